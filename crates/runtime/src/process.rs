//! Where instants and randomness really come from: the machine's clock and the operating system.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use kernel::{Clock, Entropy, Timestamp};

/// The sources a program runs on; tests bring their own.
#[derive(Clone)]
pub struct Ports {
    /// The process's clock.
    pub clock: Arc<dyn Clock>,
    /// The process's randomness.
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

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ports")
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one implementation of the `Clock` port"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::from_utc(SystemTime::now().into())
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one implementation of the `Entropy` port"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        if let Err(fault) = getrandom::fill(buffer) {
            // Going on without randomness would repeat ids and nonces: money and secrets hang on
            // both, so nothing is better than this.
            tracing::error!(error = %fault, "The operating system gives no randomness");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_in_this_century() {
        let now = SystemClock.now().to_string();
        assert!(
            now.as_str() > "2026-01-01" && now.as_str() < "2100-01-01",
            "{now}"
        );
    }

    #[test]
    fn two_draws_differ() {
        let (mut one, mut other) = ([0; 16], [0; 16]);
        OsEntropy.fill(&mut one);
        OsEntropy.fill(&mut other);
        assert_ne!(one, other);
    }
}
