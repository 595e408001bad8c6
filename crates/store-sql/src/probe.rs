//! The result of the last probe of whether a database takes writes.

use std::time::Duration;

use kernel::{NoWrites, NoWritesReason, StoreError, StoreResult, causes};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long the result of a probe counts.
const MAX_RESULT_AGE: Duration = Duration::from_millis(500);
/// How long a caller waits for the result of a probe.
pub const READY_TIMEOUT: Duration = Duration::from_millis(1400);

#[derive(Debug)]
struct ProbeResult {
    at: Instant,
    outcome: Result<(), NoWrites>,
}

fn is_recent(result: &Option<ProbeResult>) -> bool {
    let recent = |result: &ProbeResult| result.at.elapsed() < MAX_RESULT_AGE;
    result.as_ref().is_some_and(recent)
}

/// The result of the last probe, and the callers that wait for a recent one.
#[derive(Debug)]
pub struct LastProbe(watch::Sender<Option<ProbeResult>>);

impl LastProbe {
    /// Before the first probe.
    #[must_use]
    pub fn none() -> Self {
        Self(watch::Sender::new(None))
    }

    pub fn is_recent(&self) -> bool {
        is_recent(&self.0.borrow())
    }

    pub fn has_failed(&self) -> bool {
        let failed = |result: &ProbeResult| result.outcome.is_err();
        self.0.borrow().as_ref().is_some_and(failed)
    }

    /// Publishes a result, and returns why the database takes no writes.
    pub fn publish(&self, outcome: StoreResult<()>) -> Option<String> {
        let at = Instant::now();
        let outcome = outcome.map_err(|error| NoWrites {
            reason: error.no_writes_reason(),
            cause: match &error {
                StoreError::Unavailable(why) | StoreError::Unexpected(why) => causes(&**why),
                error => causes(error),
            },
        });
        let why = outcome.as_ref().err().map(|found| found.cause.clone());
        self.0.send_replace(Some(ProbeResult { at, outcome }));
        why
    }

    /// Returns a recent result, and waits for it. `late` is the error if it does not arrive in time.
    pub async fn ready(&self, late: impl FnOnce() -> String) -> StoreResult<()> {
        let mut result = self.0.subscribe();
        let recent = timeout(READY_TIMEOUT, result.wait_for(is_recent)).await;
        let outcome = match &recent {
            Ok(Ok(result)) => result.as_ref().map(|result| result.outcome.clone()),
            Ok(Err(_)) | Err(_) => None,
        };
        let outcome = outcome.unwrap_or_else(|| {
            Err(NoWrites {
                reason: NoWritesReason::Failing,
                cause: late(),
            })
        });
        outcome.map_err(StoreError::unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: base.database-readiness
    #[test]
    fn refused_writes_are_reported_within_two_seconds() {
        assert!(MAX_RESULT_AGE + READY_TIMEOUT < Duration::from_secs(2));
    }
}
