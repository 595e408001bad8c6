//! Entropy that is the same in every run.

use std::sync::atomic::{AtomicU64, Ordering};

use kernel::Entropy;

/// A deterministic random generator.
#[derive(Debug)]
pub(crate) struct Seeded(AtomicU64);

impl Seeded {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next 64 bits of SplitMix64.
    pub(crate) fn next(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.next() % end
    }
}

impl Entropy for Seeded {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
