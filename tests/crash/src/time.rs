//! Instants of one monotonic clock: the driver's own, for everything it sees.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use kernel::Timestamp;

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

/// The machine's clock, by which a server on it judges too.
#[expect(
    clippy::disallowed_methods,
    reason = "who judges a deadline from outside asks the clock that decided it"
)]
pub(crate) fn wall() -> Timestamp {
    Timestamp::from_utc(SystemTime::now().into())
}

/// Sleeps until the machine's clock shows this instant.
pub(crate) fn wait_until(at: Timestamp) {
    while wall() < at {
        thread::sleep(at.since(wall()).max(Duration::from_millis(1)));
    }
}

/// Seconds of the machine's clock, as a receiver of webhooks compares them.
pub(crate) fn unix() -> u64 {
    u64::try_from(wall().seconds()).unwrap_or_default()
}
