//! What a run has met: an attack that never gets in proves little.

use std::collections::BTreeMap;
use std::fmt;

use crate::schema::{Operation, operations};

/// Answers by operation, status and code.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<(String, u16, String), u64>);

/// What belongs to no operation.
pub(crate) const NOWHERE: &str = "(no operation)";

/// So often at least a whole run is to get past the refusals of every operation, and to be refused.
const SHARE: u64 = 50;

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

    /// Every operation was reached, and refused.
    pub(crate) fn is_worth_its_name(&self) {
        for Operation { id, .. } in operations() {
            let (done, refused) = (self.of(&id, 200..300), self.of(&id, 400..500));
            assert!(
                done >= SHARE && refused >= SHARE,
                "{id}: {done} successes and {refused} refusals; a value that the document's examples cannot give belongs into `schema.rs`"
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
