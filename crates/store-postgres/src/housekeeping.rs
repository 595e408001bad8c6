//! What keeps tables bounded, and rows found by their keys.

use std::time::Duration;

use async_trait::async_trait;
use failpoints::{Step, around};
use kernel::StoreError;
use partner_core::ports::Housekeeping;

use crate::tx::PgTx;
use crate::{PostgresStore, answers, errors, idempotency, previews};

#[async_trait]
impl Housekeeping for PostgresStore {
    async fn idempotency_sweep(&self, age: Duration, limit: u32) -> Result<u64, StoreError> {
        let mut tx = PgTx::begin(self, "idempotency_sweep").await?;
        let before = tx.instant().await?.minus(age);
        let sweeping = sqlx::query(idempotency::SWEEP)
            .bind(before.millis())
            .bind(i64::from(limit))
            .execute(tx.conn());
        let sweeping = async { sweeping.await.map_err(errors::statement) };
        let swept = around(Step::SweepDelete, sweeping).await?.rows_affected();
        let answers = answers::sweep(tx.conn(), before, limit).await?;
        let previews = previews::sweep(tx.conn(), before, limit).await?;
        tx.finish().await?;
        Ok(swept.saturating_add(answers).saturating_add(previews))
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
