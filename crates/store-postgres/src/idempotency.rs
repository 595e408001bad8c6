//! Idempotency records: found by their scope, swept by their age. The lane writes them.

use async_trait::async_trait;
use failpoints::{Step, around};
use kernel::{StoreError, Timestamp};
use partner_core::idempotency::Fingerprint;
use partner_core::ports::Housekeeping;
use pools_core::books::Answered;

use crate::row::Columns;
use crate::tx::PgTx;
use crate::{PostgresStore, answers, errors};

/// A record, where the statement's outer join has found one.
pub(crate) fn opt_answered(row: &Columns<'_>) -> Result<Option<Answered>, StoreError> {
    let Some(created_at) = row.opt_instant("answered_at")? else {
        return Ok(None);
    };
    Ok(Some(Answered {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        created_at,
    }))
}

#[async_trait]
impl Housekeeping for PostgresStore {
    async fn idempotency_sweep(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tx = PgTx::begin(self, "idempotency_sweep").await?;
        let sweeping = sqlx::query(SWEEP)
            .bind(before.millis())
            .bind(i64::from(limit))
            .execute(tx.conn());
        let sweeping = async { sweeping.await.map_err(errors::statement) };
        let swept = around(Step::SweepDelete, sweeping).await?.rows_affected();
        let answers = answers::sweep(tx.conn(), before, limit).await?;
        tx.finish().await?;
        Ok(swept.saturating_add(answers))
    }
}

pub(crate) const SWEEP: &str =
    "DELETE FROM idempotency_keys WHERE (mode, partner_id, route, key) IN (
         SELECT mode, partner_id, route, key FROM idempotency_keys
         WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )";
