//! The findings of an audit.

use crate::ports::Finding;

/// Maximum breaches that are described. Further breaches are only counted.
const SHOWN: usize = 20;

/// Rows that break one invariant.
#[derive(Debug, Default)]
pub struct Breaches {
    shown: Vec<String>,
    count: u64,
}

impl Breaches {
    /// Counts a breach. Describes it if fewer than `SHOWN` are described.
    pub fn add(&mut self, describe: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        if self.shown.len() < SHOWN {
            self.shown.push(describe());
        }
    }

    /// The finding about an invariant.
    #[must_use]
    pub fn of(self, invariant: &'static str) -> Finding {
        Finding {
            invariant,
            breaches: self.shown,
            count: self.count,
        }
    }
}
