//! Time and randomness that tests control.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kernel::{Clock, Entropy, Timestamp};

/// A clock that only tests move.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A stopped clock at an instant, in milliseconds since 1970.
    #[must_use]
    pub fn at(millis: i64) -> Self {
        Self(AtomicI64::new(millis))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).expect("a duration in range");
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the clock to any instant, also backwards.
    pub fn set(&self, at: Timestamp) {
        self.0.store(at.millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst)).expect("an instant in range")
    }
}

/// Randomness that is the same in every run: a counter, scrambled.
#[derive(Debug)]
pub struct Seeded(AtomicU64);

impl Seeded {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number of the stream.
    pub fn next(&self) -> u64 {
        let step = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst);
        let mixed = (step ^ (step >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl Entropy for Seeded {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next().to_be_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
