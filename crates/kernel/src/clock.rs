//! Where instants and randomness come from.

use std::time::Duration;

use crate::Timestamp;

/// A source of instants. An embedded store and the tests are given one; a server store
/// asks its database instead.
pub trait Clock: Send + Sync {
    /// The present instant, cut to whole milliseconds.
    fn now(&self) -> Timestamp;

    /// The time that has passed since a fixed moment, which stays the same while the process runs.
    ///
    /// Setting the machine's clock does not change it. By default it follows [`Clock::now`], which suits a clock that
    /// only a test moves.
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now().millis().max(0).unsigned_abs())
    }
}

/// A source of random bytes: the operating system's in production, seeded in tests.
pub trait Entropy: Send + Sync {
    /// Fills `buffer` with random bytes.
    fn fill(&self, buffer: &mut [u8]);
}
