//! The ports of the master key rotation.

use async_trait::async_trait;
use kernel::{Cas, StoreResult};

use crate::Tenant;
use crate::sealing::{Fingerprint, MasterKey, Sealed};

/// Whether values still depend on a master key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MasterKeyState {
    /// New values are sealed with it.
    Current,
    /// Values that it sealed may remain.
    Older,
    /// No value that it sealed remains.
    Retired,
}

/// A master key that the database has recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMasterKey {
    pub fingerprint: Fingerprint,
    /// Its position in the order of use, starting at 1.
    pub number: u32,
    /// Whether values still depend on it.
    pub state: MasterKeyState,
    /// The derived keys (indexes, signatures, tokens), sealed with this key. `None` for the first key, from which
    /// they derive.
    pub derived: Option<Sealed>,
}

impl StoredMasterKey {
    /// The first key of a database, as it is recorded.
    #[must_use]
    pub fn first(key: &MasterKey) -> Self {
        Self {
            fingerprint: key.fingerprint(),
            number: 1,
            state: MasterKeyState::Current,
            derived: None,
        }
    }
}

/// The row of a sealed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// The partner and mode of the row.
    pub tenant: Tenant,
    /// The other parts of the row's key, as texts.
    pub key: Vec<String>,
}

/// A sealed value of a row.
#[derive(Debug, Clone)]
pub struct SealedValue {
    pub row: SealedRow,
    /// The place it is sealed for.
    pub place: String,
    /// The sealed bytes; `None` if the row has no value.
    pub sealed: Option<Sealed>,
}

/// A value to be sealed again. It is replaced only if the row still has `old`.
#[derive(Debug, Clone)]
pub struct ResealedValue {
    pub row: SealedRow,
    /// The bytes that were read.
    pub old: Sealed,
    /// The same value under the new key.
    pub new: Sealed,
}

/// The reads and writes of the master key rotation, across modes and partners.
#[async_trait]
pub trait MasterKeyStore: Send + Sync {
    /// All recorded keys, in the order of their use.
    async fn master_keys(&self) -> StoreResult<Vec<StoredMasterKey>>;
    /// Makes a new key the current one in place of `current`, which becomes older. Lost if another key is current or
    /// the new key is recorded already.
    async fn master_key_promote(
        &self,
        current: Fingerprint,
        fingerprint: Fingerprint,
        derived: &Sealed,
    ) -> StoreResult<Cas>;
    /// Retires the older keys. Guard: `current` is the current key.
    async fn master_keys_retire(&self, current: Fingerprint) -> StoreResult<Cas>;
    /// The sealed columns, by name: `table.column`.
    fn sealed_columns(&self) -> Vec<&'static str>;
    /// The rows of a sealed column after a row, at most `limit`, including rows without a value, so that each page
    /// costs the same.
    async fn sealed_page(
        &self,
        column: &str,
        after: Option<&SealedRow>,
        limit: u32,
    ) -> StoreResult<Vec<SealedValue>>;
    /// Replaces values of a sealed column in one transaction. Returns the number of values that were still unchanged.
    async fn sealed_replace(&self, column: &str, values: &[ResealedValue]) -> StoreResult<u64>;
}
