//! The sources of instants and randomness.

use std::time::Duration;

use crate::Timestamp;

/// A source of instants. An embedded store and the tests receive one; a server store uses its database's clock.
pub trait Clock: Send + Sync {
    /// The current instant, cut to whole milliseconds.
    fn now(&self) -> Timestamp;

    /// The time since a fixed instant, which does not change while the process runs.
    ///
    /// Setting the machine's clock does not change the elapsed time. By default it follows [`Clock::now`], which suits a clock that
    /// only a test changes.
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now().millis().max(0).unsigned_abs())
    }
}

/// A source of random bytes: the operating system's in production, seeded in tests.
pub trait Entropy: Send + Sync {
    /// Fills `buffer` with random bytes.
    fn fill(&self, buffer: &mut [u8]);

    /// A random number, such as the token of a lease.
    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }
}
