//! What the operator takes out: a window of a partner's books.

use crate::profile::Network;
use kernel::Timestamp;

use crate::ledger::Entry;

/// A span of time that has its first instant and not its last, so that windows laid end to end
/// have everything once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: Timestamp,
    to: Timestamp,
}

impl Window {
    /// From one instant up to another; `None` where nothing lies between them.
    #[must_use]
    pub fn new(from: Timestamp, to: Timestamp) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    /// Its first instant.
    #[must_use]
    pub const fn from(&self) -> Timestamp {
        self.from
    }

    /// The first instant after it.
    #[must_use]
    pub const fn to(&self) -> Timestamp {
        self.to
    }
}

/// An entry with what is stored beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedEntry {
    /// The entry.
    pub entry: Entry,
    /// The chain a crypto receipt came in on.
    pub network: Option<Network>,
}
