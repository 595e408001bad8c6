//! Exports for the operator: a time window of a partner's trades and entries.

use crate::profile::Network;
use kernel::Timestamp;

use crate::ledger::Entry;

/// A half-open span of time: it includes its start and excludes its end. Adjacent windows have no gap and no overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: Timestamp,
    to: Timestamp,
}

impl Window {
    /// The window from a start to an end; `None` if it would be empty.
    #[must_use]
    pub fn new(from: Timestamp, to: Timestamp) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    /// The start (inclusive).
    #[must_use]
    pub const fn from(&self) -> Timestamp {
        self.from
    }

    /// The end (exclusive).
    #[must_use]
    pub const fn to(&self) -> Timestamp {
        self.to
    }
}

/// A ledger entry with its exported details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedEntry {
    pub entry: Entry,
    /// The chain of a crypto receipt; `None` for other entries.
    pub network: Option<Network>,
}
