//! Maintenance: bounds the tables, records when keys were used, and gathers statistics.

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::key::KeyUse;
use partner_core::ports::{KeySweep, KeysSwept, Maintenance};
use store_sql::maintenance;

use crate::conn::Conn;
use crate::row::{column, key};
use crate::tx::PgTx;
use crate::{PostgresStore, errors};

#[async_trait]
impl Maintenance for PostgresStore {
    async fn idempotency_sweep(&self, sweep: &KeySweep, limit: u32) -> StoreResult<KeysSwept> {
        let tx = self.begin_tx("idempotency_sweep").await?;
        maintenance::sweep(tx, sweep, limit, self.inner.options.idempotency_ttl).await
    }

    async fn key_uses_record(&self, uses: &[KeyUse]) -> StoreResult<()> {
        let mut tx = PgTx::begin(self, "key_uses_record").await?;
        let now = tx.instant().await?;
        record_uses(tx.conn(), uses, now).await?;
        tx.finish().await
    }

    async fn gather_statistics(&self) -> StoreResult<u64> {
        let mut conn = self.inner.conn().await?;
        let gathered: i64 = sqlx::query_scalar("SELECT gather_statistics()")
            .fetch_one(&mut *conn)
            .await
            .map_err(errors::statement)?;
        Ok(gathered.unsigned_abs())
    }
}

/// Stores last uses, none later than `now`. It writes them in one order, so that replicas do not deadlock.
async fn record_uses(conn: &mut Conn, uses: &[KeyUse], now: Timestamp) -> StoreResult<()> {
    sqlx::query(
        "INSERT INTO key_uses (mode, partner_id, key_id, last_used_at)
         SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) ORDER BY 1, 2, 3
         ON CONFLICT (mode, partner_id, key_id)
         DO UPDATE SET last_used_at = greatest(key_uses.last_used_at, excluded.last_used_at)",
    )
    .bind(column(uses, |one| one.who.mode.as_str()))
    .bind(column(uses, |one| one.who.partner.as_str()))
    .bind(column(uses, |one| key(one.key)))
    .bind(column(uses, |one| one.at.min(now).millis()))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
