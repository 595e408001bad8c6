//! What an audit finds, as it is gathered.

use crate::ports::Finding;

/// Breaches described; the rest is counted.
const SHOWN: usize = 20;

/// Rows that break one invariant.
#[derive(Debug, Default)]
pub struct Breaches {
    shown: Vec<String>,
    count: u64,
}

impl Breaches {
    /// Counts one more; it is described while there are few.
    pub fn add(&mut self, describe: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        if self.shown.len() < SHOWN {
            self.shown.push(describe());
        }
    }

    /// What was found of an invariant.
    #[must_use]
    pub fn of(self, invariant: &'static str) -> Finding {
        Finding {
            invariant,
            breaches: self.shown,
            count: self.count,
        }
    }
}
