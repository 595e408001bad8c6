//! Compares the store's clock with the elapsed time.

use std::sync::Arc;
use std::time::Duration;

use partner_core::clock::ClockJump;
use partner_core::ports::ClockGuard;
use tokio_util::sync::CancellationToken;

use super::failed;
use crate::supervise::every;

/// Interval between two checks.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn watch(store: Arc<dyn ClockGuard>, stop: CancellationToken) {
    let turn = |before| check(&*store, before);
    every(INTERVAL, &stop, (false, false), turn).await;
}

/// Checks the clock. Returns whether a jump is refused, and whether the check failed.
async fn check(store: &dyn ClockGuard, (was_refused, was_failing): (bool, bool)) -> (bool, bool) {
    match store.clock_check().await {
        Ok(jump) => {
            log_jump(jump, was_refused);
            (jump.is_some(), false)
        }
        Err(error) => {
            if !was_failing {
                failed(&error, "Failed to check the clock");
            }
            (was_refused, true)
        }
    }
}

/// Logs that a clock jump is refused, or that it is no longer refused.
fn log_jump(jump: Option<ClockJump>, was_refused: bool) {
    match jump {
        Some(jump) if !was_refused => tracing::error!(
            clock.expected = %jump.expected,
            clock.found = %jump.found,
            "The clock jumped ahead. Writes are refused until you correct the clock or run `penstock clock accept`"
        ),
        None if was_refused => tracing::warn!("The clock is correct again; writes continue"),
        _ => {}
    }
}
