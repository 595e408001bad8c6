//! Where instants and randomness come from.

use crate::Timestamp;

/// A source of instants. An embedded store and the tests are given one; a server store
/// asks its database instead.
pub trait Clock: Send + Sync {
    /// The present instant, cut to whole milliseconds.
    fn now(&self) -> Timestamp;
}

/// A source of random bytes: the operating system's in production, seeded in tests.
pub trait Entropy: Send + Sync {
    /// Fills `buffer` with random bytes.
    fn fill(&self, buffer: &mut [u8]);
}
