//! The machine's clock and the operating system's randomness.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kernel::{Clock, Entropy, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The clock of the elapsed time. On Linux the monotonic clock stops while the machine is suspended, and this clock does not.
#[cfg(target_os = "linux")]
const ELAPSED_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const ELAPSED_CLOCK: ClockId = ClockId::Monotonic;

/// The clock and the randomness of a program. Tests pass their own.
#[derive(Clone)]
pub struct Ports {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
}

impl Ports {
    /// The machine's clock and the operating system's randomness.
    #[must_use]
    pub fn of_machine() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
        }
    }
}

/// The machine's clock. A test of replicas with different clocks shifts it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one implementation of the `Clock` port"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::from_utc(instruments::failpoint::by_own_clock(SystemTime::now()).into())
    }

    /// The kernel's clock that includes suspended time and cannot be set.
    fn elapsed(&self) -> Duration {
        let read = clock_gettime(ELAPSED_CLOCK);
        let seconds = u64::try_from(read.tv_sec).unwrap_or_default();
        let nanos = u32::try_from(read.tv_nsec).unwrap_or_default();
        Duration::new(seconds, nanos)
    }
}

/// The operating system's randomness, drawn a block at a time. Each byte is used once.
///
/// Every request needs a few bytes for its ids. A system call for each would be a large part of a small request's cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

/// Bytes drawn at once.
const BLOCK: usize = 1024;

/// A block of randomness of one thread. Used bytes are wiped.
struct Block {
    bytes: [u8; BLOCK],
    used: usize,
}

thread_local! {
    static DRAWN: RefCell<Block> = const {
        RefCell::new(Block { bytes: [0; BLOCK], used: BLOCK })
    };
}

impl Entropy for OsEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        if buffer.len() > BLOCK {
            draw(buffer);
        } else {
            DRAWN.with_borrow_mut(|block| block.take(buffer));
        }
    }
}

impl Block {
    fn take(&mut self, buffer: &mut [u8]) {
        if BLOCK - self.used < buffer.len() {
            draw(&mut self.bytes);
            self.used = 0;
        }
        let fresh = self.bytes.iter_mut().skip(self.used);
        for (to, from) in buffer.iter_mut().zip(fresh) {
            *to = std::mem::take(from);
        }
        self.used += buffer.len();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one implementation of the `Entropy` port"
)]
fn draw(buffer: &mut [u8]) {
    if let Err(error) = getrandom::fill(buffer) {
        // Without randomness, ids and nonces would repeat. Money and secrets depend on both, so the process ends.
        tracing::error!(error.chain = %error, "The operating system returned no random bytes; the process ends");
        crate::telemetry::drain();
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_in_this_century() {
        let now = SystemClock.now().to_string();
        assert!(
            now.as_str() > "2026-01-01" && now.as_str() < "2100-01-01",
            "{now}"
        );
    }

    #[test]
    fn random_draws_differ() {
        let (mut one, mut other) = ([0; 16], [0; 16]);
        OsEntropy.fill(&mut one);
        OsEntropy.fill(&mut other);
        assert_ne!(one, other);
    }

    #[test]
    fn random_bytes_are_used_once_for_every_length() {
        let mut seen = std::collections::BTreeSet::new();
        for length in (16..64).cycle().take(500).chain([BLOCK, BLOCK + 1, 5000]) {
            let mut drawn = vec![0; length];
            OsEntropy.fill(&mut drawn);
            assert!(drawn.iter().any(|byte| *byte != 0));
            assert!(
                seen.insert(drawn[..16].to_vec()),
                "the same bytes were returned twice"
            );
        }
    }
}
