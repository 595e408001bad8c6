//! Counts what an operator must look at: what upstreams hold that this process is not configured with, about which no upstream is asked
//! until an operator configures theirs again, and the payments with an open item.

use std::sync::Arc;
use std::time::Duration;

use gate_core::ports::GateReads;
use gate_core::rail::Finding;
use instruments::{faults, upstream};
use kernel::{Mode, StoreResult, UpstreamName, causes};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::supervise::rest;

/// Interval between two counts.
const INTERVAL: Duration = Duration::from_secs(60);
/// Interval between two log lines about the same upstream.
const LOG_INTERVAL: Duration = Duration::from_hours(1);

/// The names of the configured upstreams.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    pub(crate) rails: Vec<UpstreamName>,
    pub(crate) verifiers: Vec<UpstreamName>,
}

/// What an upstream holds that is not configured.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// Payments that are processing.
    Payments,
    /// Payments that ended within the last 30 days.
    Ended,
    /// Pending verifications of open sessions.
    Verifications,
}

impl Held {
    /// The label of the metric.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Payments => "rail",
            Self::Ended => "rail_ended",
            Self::Verifications => "verifier",
        }
    }

    fn warn(self, upstream: &UpstreamName, held: u64) {
        match self {
            Self::Payments => tracing::warn!(
                rail.name = %upstream,
                rail.payments = held,
                "A rail that is not configured holds payments that are processing. No rail is asked about them: configure it as PENSTOCK_RAIL_FORMER"
            ),
            Self::Ended => tracing::warn!(
                rail.name = %upstream,
                rail.payments = held,
                "A rail that is not configured held payments that ended within the last 30 days, and is not asked about late or returned money: configure it as PENSTOCK_RAIL_FORMER"
            ),
            Self::Verifications => tracing::warn!(
                verifier.name = %upstream,
                verifier.verifications = held,
                "A verifier that is not configured holds pending verifications. No verifier is asked about them: configure it as PENSTOCK_VERIFIER_FORMER"
            ),
        }
    }
}

/// Counts at once and then each minute, until `stop`, and logs each upstream that holds something at once and then each hour.
pub(crate) async fn count_held(
    store: Arc<dyn GateReads>,
    mode: Mode,
    configured: Configured,
    stop: CancellationToken,
) {
    let mut next_log = Instant::now();
    loop {
        let logs = Instant::now() >= next_log;
        let counted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            counted = count(&*store, mode, &configured, logs) => counted,
        };
        match counted {
            Ok(()) if logs => next_log += LOG_INTERVAL,
            Ok(()) => {}
            Err(error) => {
                faults::of_store(&error);
                tracing::warn!(
                    error.chain = causes(&error),
                    "Failed to count the open items, and what upstreams hold that are not configured"
                );
            }
        }
        if !rest(INTERVAL, &stop).await {
            return;
        }
    }
}

async fn count(
    store: &dyn GateReads,
    mode: Mode,
    configured: &Configured,
    logs: bool,
) -> StoreResult<()> {
    let Configured { rails, verifiers } = configured;
    for (what, held) in [
        (Held::Payments, store.rails_elsewhere(mode, rails).await?),
        (
            Held::Ended,
            store.rails_watched_elsewhere(mode, rails).await?,
        ),
        (
            Held::Verifications,
            store.verifications_elsewhere(mode, verifiers).await?,
        ),
    ] {
        for (upstream, held) in held.iter().filter(|_| logs) {
            what.warn(upstream, *held);
        }
        let shown: Vec<(String, u64)> = held
            .into_iter()
            .map(|(upstream, held)| (upstream.to_string(), held))
            .collect();
        upstream::held_elsewhere(what.as_str(), &shown);
    }
    let items = store.rail_open_items(mode).await?;
    for finding in Finding::ALL {
        let found = items.iter().find(|(found, _)| *found == finding);
        upstream::rail_open_items(finding.as_str(), found.map_or(0, |(_, items)| *items));
    }
    Ok(())
}
