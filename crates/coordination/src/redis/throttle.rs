//! Throttles whose windows all replicas share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use instruments::shared::Call;
use partner_core::ports::Throttle;
use partner_core::throttle::{Bucket, CountScope, ThrottleDecision, Tier};
use redis::Script;

use super::{NoResponse, RedisConnection};
use crate::throttle::{Counts, MemoryThrottle, WindowState, decision};

/// The script's time: the server's, because all replicas share it.
pub(super) const SERVER_TIME: &str =
    "local at = redis.call('TIME')\nlocal now = at[1] * 1000 + math.floor(at[2] / 1000)\n";

pub(super) fn script(now: &str) -> Script {
    Script::new(&format!("{now}{}", include_str!("throttle.lua")))
}

/// Counts requests in Redis, and in this process while Redis is unavailable.
///
/// Admitted requests are always counted in this process too. So this process's windows are correct when Redis becomes
/// unavailable.
pub struct RedisThrottle {
    shared: Arc<RedisConnection>,
    alone: MemoryThrottle,
}

impl RedisThrottle {
    /// Counts in `shared`, and in `alone` while `shared` is unavailable.
    #[must_use]
    pub fn new(shared: Arc<RedisConnection>, alone: MemoryThrottle) -> Self {
        Self { shared, alone }
    }

    /// Decides a request in all its windows, with one call of the script.
    async fn ask(
        &self,
        bucket: &Bucket,
        tiers: &[Tier],
        counts: Counts,
    ) -> Result<ThrottleDecision, NoResponse> {
        let name = self
            .shared
            .name("throttle", &[bucket.group, &bucket.who.to_string()]);
        let mut question = self.shared.windows.key(name);
        question.arg(u8::from(counts == Counts::Yes));
        for tier in tiers {
            // If replicas have different configurations, each window length has its own window.
            let per = tier.per.as_millis();
            question.arg(format!("{}:{per}", tier.name));
            question.arg(tier.limit);
            question.arg(u64::try_from(per).unwrap_or(u64::MAX));
        }
        let asked = self
            .shared
            .ask(Call::Throttle, |mut connection| async move {
                question
                    .invoke_async::<Vec<(u32, u64)>>(&mut connection)
                    .await
            });
        let windows = asked
            .await?
            .into_iter()
            .map(|(used, closes_in)| WindowState {
                used,
                closes_in: Duration::from_millis(closes_in),
            });
        Ok(decision(tiers.iter().zip(windows), counts))
    }
}

#[async_trait]
impl Throttle for RedisThrottle {
    async fn take(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision {
        match self.ask(bucket, tiers, Counts::Yes).await {
            Ok(decision) if decision.admitted() => {
                self.alone.take(bucket, tiers).await;
                decision
            }
            Ok(decision) => decision,
            Err(_) => self.alone.take(bucket, tiers).await,
        }
    }

    async fn peek(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision {
        match self.ask(bucket, tiers, Counts::No).await {
            Ok(decision) => decision,
            Err(_) => self.alone.peek(bucket, tiers).await,
        }
    }

    fn counting(&self) -> CountScope {
        if self.shared.is_up() {
            CountScope::Shared
        } else {
            CountScope::Apart
        }
    }
}
