//! Counts what upstreams hold that this process is not configured with: payments at rails, and verifications at verifiers. No upstream is
//! asked about them, so an operator must configure their upstream again, as the present or as the former one.

use std::sync::Arc;
use std::time::Duration;

use gate_core::ports::GateReads;
use instruments::{faults, upstream};
use kernel::{Mode, StoreResult, UpstreamName, causes};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::supervise::rest;

/// Interval between two counts.
const INTERVAL: Duration = Duration::from_secs(60);
/// Interval between two log lines about the same upstream.
const LOG_INTERVAL: Duration = Duration::from_hours(1);

/// What is counted, with the upstreams that this process is configured with.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    /// Payments that are processing.
    Rails(Vec<UpstreamName>),
    /// Verifications that are pending.
    Verifications(Vec<UpstreamName>),
}

impl Kept {
    async fn elsewhere(
        &self,
        store: &dyn GateReads,
        mode: Mode,
    ) -> StoreResult<Vec<(UpstreamName, u64)>> {
        match self {
            Self::Rails(names) => store.rails_elsewhere(mode, names).await,
            Self::Verifications(names) => store.verifications_elsewhere(mode, names).await,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Rails(_) => "rail",
            Self::Verifications(_) => "verifier",
        }
    }

    fn warn(&self, upstream: &UpstreamName, held: u64) {
        match self {
            Self::Rails(_) => tracing::warn!(
                rail.name = %upstream,
                rail.payments = held,
                "A rail that is not configured holds payments that are processing. No rail is asked about them: configure it as PENSTOCK_RAIL_FORMER"
            ),
            Self::Verifications(_) => tracing::warn!(
                verifier.name = %upstream,
                verifier.verifications = held,
                "A verifier that is not configured holds pending verifications. No verifier is asked about them: configure it as PENSTOCK_VERIFIER_FORMER"
            ),
        }
    }
}

/// Counts at once and then each minute, until `stop`, and logs each upstream that holds something at once and then each hour.
pub(crate) async fn count_elsewhere(
    store: Arc<dyn GateReads>,
    mode: Mode,
    kept: Kept,
    stop: CancellationToken,
) {
    let mut next_log = Instant::now();
    loop {
        let counted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            counted = kept.elsewhere(&*store, mode) => counted,
        };
        match counted {
            Ok(held) => {
                let shown: Vec<(String, u64)> = held
                    .iter()
                    .map(|(upstream, held)| (upstream.to_string(), *held))
                    .collect();
                upstream::held_elsewhere(kept.kind(), &shown);
                let now = Instant::now();
                if !held.is_empty() && now >= next_log {
                    next_log = now + LOG_INTERVAL;
                    for (upstream, held) in &held {
                        kept.warn(upstream, *held);
                    }
                }
            }
            Err(error) => {
                faults::of_store(&error);
                tracing::warn!(
                    error.chain = causes(&error),
                    "Failed to count what upstreams hold that are not configured"
                );
            }
        }
        if !rest(INTERVAL, &stop).await {
            return;
        }
    }
}
