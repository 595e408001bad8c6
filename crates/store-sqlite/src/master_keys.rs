//! Master keys, and the values that they seal.

use async_trait::async_trait;
use kernel::{Cas, StoreError};
use partner_core::ports::{
    MasterKeyStore, ResealedValue, SealedKind, SealedRow, SealedValue, StoredMasterKey,
    UnitOfWork as _,
};
use partner_core::sealing::{Fingerprint, Sealed};
use store_sql::master_keys;

use crate::SqliteStore;

#[async_trait]
impl MasterKeyStore for SqliteStore {
    async fn master_keys(&self) -> Result<Vec<StoredMasterKey>, StoreError> {
        master_keys::all(&mut self.inner.read().await?).await
    }

    async fn master_key_promote(
        &self,
        current: Fingerprint,
        fingerprint: Fingerprint,
        derived: &Sealed,
    ) -> Result<Cas, StoreError> {
        let mut tx = self.begin_tx("master_key_promote").await?;
        let outcome = tx.master_key_promote(current, fingerprint, derived).await?;
        tx.commit().await?;
        Ok(outcome)
    }

    async fn master_keys_retire(&self, current: Fingerprint) -> Result<Cas, StoreError> {
        let mut tx = self.begin_tx("master_keys_retire").await?;
        let outcome = tx.master_keys_retire(current).await?;
        tx.commit().await?;
        Ok(outcome)
    }

    async fn sealed_page(
        &self,
        kind: SealedKind,
        after: Option<&SealedRow>,
        limit: u32,
    ) -> Result<Vec<SealedValue>, StoreError> {
        master_keys::sealed_page(&mut self.inner.read().await?, kind, after, limit).await
    }

    async fn sealed_replace(
        &self,
        kind: SealedKind,
        values: &[ResealedValue],
    ) -> Result<u64, StoreError> {
        let mut tx = self.begin_tx("sealed_replace").await?;
        let replaced = tx.sealed_replace(kind, values).await?;
        tx.commit().await?;
        Ok(replaced)
    }
}
