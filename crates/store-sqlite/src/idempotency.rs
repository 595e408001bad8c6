//! Idempotency records: found by their scope, swept by their age. The lane writes them.

use std::time::Duration;

use async_trait::async_trait;
use failpoints::{Step, around};
use kernel::StoreError;
use partner_core::ports::Housekeeping;

use crate::tx::SqliteTx;
use crate::{SqliteStore, answers, errors, previews};

pub(crate) use store_rows::idempotency::answered;

#[async_trait]
impl Housekeeping for SqliteStore {
    async fn idempotency_sweep(&self, age: Duration, limit: u32) -> Result<u64, StoreError> {
        let mut tx = SqliteTx::begin(self, "idempotency_sweep").await?;
        let before = tx.instant().await?.minus(age);
        let sweeping = sqlx::query(
            "DELETE FROM idempotency_keys WHERE rowid IN (
                 SELECT rowid FROM idempotency_keys WHERE created_at < ?1 ORDER BY created_at LIMIT +?2
             )",
        )
        .bind(before.millis())
        .bind(limit)
        .execute(tx.conn());
        let sweeping = async { sweeping.await.map_err(errors::statement) };
        let swept = around(Step::SweepDelete, sweeping).await?.rows_affected();
        let answers = answers::sweep(tx.conn(), before, limit).await?;
        let previews = previews::sweep(tx.conn(), before, limit).await?;
        tx.finish().await?;
        Ok(swept.saturating_add(answers).saturating_add(previews))
    }

    /// An index is chosen by how many of its columns are given: nothing of a table has to be known.
    async fn gather_statistics(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}
