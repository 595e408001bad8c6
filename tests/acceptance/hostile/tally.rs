//! Counts of responses. They prove that a run reached every operation.

use std::collections::BTreeMap;
use std::fmt;

use crate::schema::{Operation, operations};

/// Responses by operation, status and code.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<(String, u16, String), u64>);

/// The name for requests that match no operation.
pub(crate) const NOWHERE: &str = "(no operation)";

/// Least number of successes and of refusals per operation in a full run.
const SHARE: u64 = 40;

impl Tally {
    pub(crate) fn count(&mut self, operation: &str, status: u16, code: &str) {
        let row = (operation.to_owned(), status, code.to_owned());
        *self.0.entry(row).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (row, count) in other.0 {
            *self.0.entry(row).or_default() += count;
        }
    }

    fn of(&self, operation: &str, statuses: std::ops::Range<u16>) -> u64 {
        let rows = self.0.iter();
        rows.filter(|((id, status, _), _)| id == operation && statuses.contains(status))
            .map(|(_, count)| count)
            .sum()
    }

    /// Panics unless every operation was reached and refused.
    pub(crate) fn assert_covers_operations(&self) {
        for Operation { id, .. } in operations() {
            let (done, refused) = (self.of(&id, 200..300), self.of(&id, 400..500));
            assert!(
                done >= SHARE && refused >= SHARE,
                "{id}: {done} successes and {refused} refusals; add values that the document's examples lack to `schema.rs`"
            );
        }
        assert!(self.of(NOWHERE, 400..500) >= SHARE);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((operation, status, code), count) in &self.0 {
            writeln!(f, "{count:>8} {operation} {status} {code}")?;
        }
        Ok(())
    }
}
