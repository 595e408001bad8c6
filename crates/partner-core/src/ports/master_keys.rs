//! What the rotation of the master key reads and writes.

use async_trait::async_trait;
use kernel::{Cas, StoreError};

use crate::Tenant;
use crate::sealing::{Fingerprint, Sealed};

/// Whether a master key may still be needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MasterKeyState {
    /// Values are sealed with it.
    Current,
    /// Values that it sealed may remain.
    Older,
    /// No value that it sealed remains.
    Retired,
}

/// A master key that the database knows by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMasterKey {
    /// Its name.
    pub fingerprint: Fingerprint,
    /// Its place in the order of their use, from one.
    pub number: u32,
    /// Whether it may still be needed.
    pub state: MasterKeyState,
    /// The keys of marks, signatures and tokens, sealed with this key. The first key has none: they derive from it.
    pub derived: Option<Sealed>,
}

/// What is sealed at rest, one kind a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedKind {
    /// Webhook secrets.
    Secret,
    /// Bodies of events.
    Event,
    /// KYC packages of sessions.
    Package,
    /// Personal data of customers.
    Person,
    /// Stored responses.
    Response,
}

impl SealedKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Secret,
        Self::Event,
        Self::Package,
        Self::Person,
        Self::Response,
    ];
}

/// The row of a sealed value: its tenant and the two parts of its key. The second may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Whose row it is.
    pub tenant: Tenant,
    /// The first part of the row's key, as text.
    pub first: String,
    /// The second part, as text.
    pub second: String,
}

/// A sealed value of a row.
#[derive(Debug, Clone)]
pub struct SealedValue {
    /// The row.
    pub row: SealedRow,
    /// The place it is sealed for.
    pub place: String,
    /// The sealed bytes; `None` where the row has no value.
    pub sealed: Option<Sealed>,
}

/// A value that is sealed again: it is replaced only if the row still holds `old`.
#[derive(Debug, Clone)]
pub struct ResealedValue {
    /// The row.
    pub row: SealedRow,
    /// The bytes that were read.
    pub old: Sealed,
    /// The same value under another key.
    pub new: Sealed,
}

/// What the rotation of the master key reads and writes. It crosses modes and partners.
#[async_trait]
pub trait MasterKeyStore: Send + Sync {
    /// Every key that the database knows, in the order of their use.
    async fn master_keys(&self) -> Result<Vec<StoredMasterKey>, StoreError>;
    /// Makes a new key the current one in place of `current`, and that one older, unless another is current or the database knows
    /// the new one already.
    async fn master_key_promote(
        &self,
        current: Fingerprint,
        fingerprint: Fingerprint,
        derived: &Sealed,
    ) -> Result<Cas, StoreError>;
    /// Marks older keys as retired, if `current` is still the current key.
    async fn master_keys_retire(&self, current: Fingerprint) -> Result<Cas, StoreError>;
    /// The rows of a kind after a row, at most `limit`, whether or not they have a value: so a page costs the same however few have.
    async fn sealed_page(
        &self,
        kind: SealedKind,
        after: Option<&SealedRow>,
        limit: u32,
    ) -> Result<Vec<SealedValue>, StoreError>;
    /// Replaces values in one transaction; returns how many still were as read.
    async fn sealed_replace(
        &self,
        kind: SealedKind,
        values: &[ResealedValue],
    ) -> Result<u64, StoreError>;
}
