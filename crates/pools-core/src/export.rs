//! What exports for the operator show beside trades: ledger entries.

use crate::ledger::Entry;
use crate::profile::Network;

/// A ledger entry with its exported details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedEntry {
    pub entry: Entry,
    /// The chain of a crypto receipt; `None` for other entries.
    pub network: Option<Network>,
}
