//! Maintenance: bounds the tables and records when keys were used.

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::key::KeyUse;
use partner_core::ports::{KeySweep, KeysSwept, Maintenance};
use sqlx::SqliteConnection;
use store_sql::maintenance;

use crate::row::key;
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors};

#[async_trait]
impl Maintenance for SqliteStore {
    async fn idempotency_sweep(&self, sweep: &KeySweep, limit: u32) -> StoreResult<KeysSwept> {
        let tx = self.begin_tx("idempotency_sweep").await?;
        maintenance::sweep(tx, sweep, limit, self.inner.options.idempotency_ttl).await
    }

    async fn key_uses_record(&self, uses: &[KeyUse]) -> StoreResult<()> {
        let mut tx = SqliteTx::begin(self, "key_uses_record").await?;
        let now = tx.instant().await?;
        record_uses(tx.conn(), uses, now).await?;
        tx.finish().await
    }

    /// Does nothing: without statistics SQLite chooses the index of which a statement binds the most columns.
    async fn gather_statistics(&self) -> StoreResult<u64> {
        Ok(0)
    }
}

/// Stores last uses, none later than `now`.
async fn record_uses(
    conn: &mut SqliteConnection,
    uses: &[KeyUse],
    now: Timestamp,
) -> StoreResult<()> {
    for one in uses {
        sqlx::query(
            "INSERT INTO key_uses (mode, partner_id, key_id, last_used_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (mode, partner_id, key_id)
             DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)",
        )
        .bind(one.who.mode.as_str())
        .bind(one.who.partner.as_str())
        .bind(key(one.key))
        .bind(one.at.min(now).millis())
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    }
    Ok(())
}
