//! Instants of one monotonic clock: the driver's own, for everything it sees.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static BEGAN: LazyLock<Instant> = LazyLock::new(instant);

#[expect(
    clippy::disallowed_methods,
    reason = "what a client saw, in the order of the client's own clock"
)]
fn instant() -> Instant {
    Instant::now()
}

/// Since the driver began.
pub(crate) fn now() -> Duration {
    instant().saturating_duration_since(*BEGAN)
}

/// Seconds of the wall clock, as a receiver of webhooks compares them.
#[expect(
    clippy::disallowed_methods,
    reason = "a receiver judges timestamps by its own clock"
)]
pub(crate) fn unix() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
