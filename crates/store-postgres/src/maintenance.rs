//! What keeps tables bounded, and rows found by their keys.

use async_trait::async_trait;
use kernel::StoreError;
use partner_core::events::Service;
use partner_core::key::KeyUse;
use partner_core::ports::{KeySweep, KeysSwept, Maintenance};
use store_sql::previews;

use crate::idempotency::Sweep;
use crate::tx::PgTx;
use crate::{PostgresStore, errors, keys};

#[async_trait]
impl Maintenance for PostgresStore {
    async fn idempotency_sweep(
        &self,
        sweep: &KeySweep,
        limit: u32,
    ) -> Result<KeysSwept, StoreError> {
        let mut tx = PgTx::begin(self, "idempotency_sweep").await?;
        let now = tx.instant().await?;
        let step = Sweep::of(sweep.service);
        let mut swept = step.step(tx.conn(), sweep, limit, now).await?;
        if sweep.service == Service::Gate {
            let previews = previews::sweep(tx.conn(), now.minus(sweep.age), limit).await?;
            swept.deleted = swept.deleted.saturating_add(previews);
            swept.more |= previews >= u64::from(limit);
        }
        tx.finish().await?;
        Ok(swept)
    }

    async fn key_uses_record(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        let mut tx = PgTx::begin(self, "key_uses_record").await?;
        let now = tx.instant().await?;
        keys::record_uses(tx.conn(), uses, now).await?;
        tx.finish().await
    }

    async fn gather_statistics(&self) -> Result<u64, StoreError> {
        let mut conn = self.inner.conn().await?;
        let gathered: i64 = sqlx::query_scalar("SELECT gather_statistics()")
            .fetch_one(&mut *conn)
            .await
            .map_err(errors::statement)?;
        Ok(gathered.unsigned_abs())
    }
}
