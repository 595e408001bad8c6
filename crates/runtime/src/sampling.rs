//! What has to be asked for to be known: how trades and connections stand.

use std::sync::Arc;
use std::time::Duration;

use coordination::causes;
use instruments::{faults, store as of_store, trading};
use kernel::{Mode, StoreError};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::open::Store;

const EVERY: Duration = Duration::from_secs(15);

/// Renews the sampled metrics until `stop`.
pub(crate) async fn sample(store: Arc<dyn Store>, mode: Mode, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        for (pool, in_use, idle) in store.connections() {
            of_store::connections(pool, in_use, idle);
        }
        let sampled = trades(&*store, mode).await;
        if let Err(fault) = &sampled {
            faults::of_store(fault);
            if !failing {
                tracing::warn!(error.chain = causes(fault), "Failed to sample trades");
            }
        }
        failing = sampled.is_err();
    }
}

async fn trades(store: &dyn Store, mode: Mode) -> Result<(), StoreError> {
    let standing = store.trades_standing(mode).await?;
    for (status, count) in standing.by_status {
        trading::trades(status.as_str(), count);
    }
    trading::oldest_reserved(standing.oldest_reserved);
    Ok(())
}
