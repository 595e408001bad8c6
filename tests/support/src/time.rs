//! Instants of the test program's monotonic clock, for everything that it observes, and the machine's clock.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use kernel::Timestamp;

static BEGAN: LazyLock<Instant> = LazyLock::new(instant);

#[expect(
    clippy::disallowed_methods,
    reason = "observations are ordered by the client's own clock"
)]
fn instant() -> Instant {
    Instant::now()
}

/// Time since the first call.
#[must_use]
pub fn now() -> Duration {
    instant().saturating_duration_since(*BEGAN)
}

/// The machine's clock, which a server on the machine uses too.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a deadline is checked from outside by the clock that decided it"
)]
pub fn wall() -> Timestamp {
    Timestamp::from_utc(SystemTime::now().into())
}

/// Sleeps until the machine's clock shows this instant.
pub fn wait_until(at: Timestamp) {
    while wall() < at {
        thread::sleep(at.since(wall()).max(Duration::from_millis(1)));
    }
}

/// Seconds of the machine's clock, for comparison with webhook timestamps.
#[must_use]
pub fn unix() -> u64 {
    u64::try_from(wall().seconds()).unwrap_or_default()
}
