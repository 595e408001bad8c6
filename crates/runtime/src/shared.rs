//! State that replicas share through Redis, or that each process keeps alone.

use std::sync::Arc;

use coordination::{
    MemoryInFlight, MemoryThrottle, RedisConnection, RedisInFlight, RedisThrottle, RedisTimeouts,
};
use partner_core::ports::{InFlight, Throttle};

use crate::open::OpenedBase;
use crate::supervise::Tasks;

/// Opens the throttle and the keys in flight. A background task connects to an unavailable Redis until the tasks stop.
pub(crate) async fn open(
    base: &OpenedBase,
    tasks: &Tasks,
) -> (Arc<dyn Throttle>, Arc<dyn InFlight>) {
    let alone = MemoryThrottle::new(Arc::clone(&base.clock));
    let Some(redis) = &base.config.redis else {
        return (Arc::new(alone), Arc::new(MemoryInFlight::new()));
    };
    let entropy = Arc::clone(&base.entropy);
    let shared =
        RedisConnection::open(redis, base.config.mode, entropy, RedisTimeouts::default()).await;
    let (kept, stop) = (Arc::clone(&shared), tasks.stop.clone());
    tasks
        .tracker
        .spawn(async move { kept.keep(stop.cancelled()).await });
    (
        Arc::new(RedisThrottle::new(Arc::clone(&shared), alone)),
        Arc::new(RedisInFlight::start(shared)),
    )
}
