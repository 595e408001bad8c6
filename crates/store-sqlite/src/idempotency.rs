//! Idempotency records and stored answers: found by their scope, swept by their expiry. The batch queue writes the former.

use async_trait::async_trait;
use instruments::failpoint::{Step, around};
use kernel::{StoreError, Timestamp};
use partner_core::events::Service;
use partner_core::key::KeyUse;
use partner_core::ports::{KeySweep, KeysSwept, Maintenance};
use sqlx::SqliteConnection;
use store_sql::previews;

use crate::connection::Link;
use crate::tx::SqliteTx;
use crate::{SqliteStore, errors, keys};

pub(crate) use store_sql::idempotency::answered;

#[async_trait]
impl Maintenance for SqliteStore {
    async fn idempotency_sweep(
        &self,
        sweep: &KeySweep,
        limit: u32,
    ) -> Result<KeysSwept, StoreError> {
        let mut tx = SqliteTx::begin(self, "idempotency_sweep").await?;
        let now = tx.instant().await?;
        let step = Sweep::of(sweep.service);
        let mut swept = step.step(tx.conn(), sweep, limit, now).await?;
        if sweep.service == Service::Gate {
            let previews =
                previews::sweep(&mut Link(tx.conn()), now.minus(sweep.age), limit).await?;
            swept.deleted = swept.deleted.saturating_add(previews);
            swept.more |= previews >= u64::from(limit);
        }
        tx.finish().await?;
        Ok(swept)
    }

    async fn key_uses_record(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        let mut tx = SqliteTx::begin(self, "key_uses_record").await?;
        let now = tx.instant().await?;
        keys::record_uses(tx.conn(), uses, now).await?;
        tx.finish().await
    }

    /// An index is chosen by how many of its columns are given: nothing of a table has to be known.
    async fn gather_statistics(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// The statements of a sweep over one table. It goes along the instants at which records were made, a bounded number of records at a
/// time, because what expires is not in the order of any index: settings change. A plus keeps the planner from looking up the mode alone.
pub(crate) struct Sweep {
    /// The instant of one of the records: that after the first ?3.
    pub(crate) reached: &'static str,
    pub(crate) delete: &'static str,
    pub(crate) left: &'static str,
}

macro_rules! sweep_of {
    ($table:literal) => {
        Sweep {
            reached: concat!(
                "SELECT created_at FROM ", $table, "
         WHERE created_at > ?1 AND created_at <= ?2 ORDER BY created_at LIMIT 1 OFFSET +?3"
            ),
            delete: concat!(
                "DELETE FROM ", $table, " WHERE rowid IN (
         SELECT rowid FROM ", $table, "
         WHERE created_at > ?2 AND created_at <= ?3 AND +mode = ?1 AND CASE WHEN expires_at > created_at THEN expires_at ELSE created_at + 86400000 END <= ?4
     )"
            ),
            left: concat!(
                "SELECT EXISTS (SELECT 1 FROM ", $table, "
         WHERE created_at > ?2 AND created_at <= ?3 AND +mode = ?1)"
            ),
        }
    };
}

pub(crate) const KEYS: Sweep = sweep_of!("idempotency_keys");
pub(crate) const ANSWERS: Sweep = sweep_of!("answers");

impl Sweep {
    pub(crate) const fn of(service: Service) -> Self {
        match service {
            Service::Pools => KEYS,
            Service::Gate => ANSWERS,
        }
    }

    pub(crate) async fn step(
        &self,
        conn: &mut SqliteConnection,
        sweep: &KeySweep,
        limit: u32,
        now: Timestamp,
    ) -> Result<KeysSwept, StoreError> {
        let after = sweep.after.map_or(i64::MIN, Timestamp::millis);
        let up_to = now
            .minus(sweep.age)
            .max(sweep.after.unwrap_or(now.minus(sweep.age)));
        let reached: Option<i64> = sqlx::query_scalar(self.reached)
            .bind(after)
            .bind(up_to.millis())
            .bind(i64::from(limit.saturating_sub(1)))
            .fetch_optional(&mut *conn)
            .await
            .map_err(errors::statement)?;
        let reached_at = reached.and_then(Timestamp::from_millis).unwrap_or(up_to);
        let deleting = sqlx::query(self.delete)
            .bind(sweep.mode.as_str())
            .bind(after)
            .bind(reached_at.millis())
            .bind(now.minus(sweep.grace).millis())
            .execute(&mut *conn);
        let deleting = async { deleting.await.map_err(errors::statement) };
        let deleted = around(Step::SweepDelete, deleting).await?.rows_affected();
        let left: bool = sqlx::query_scalar(self.left)
            .bind(sweep.mode.as_str())
            .bind(after)
            .bind(reached_at.millis())
            .fetch_one(conn)
            .await
            .map_err(errors::statement)?;
        Ok(KeysSwept {
            deleted,
            reached: reached_at,
            more: reached.is_some(),
            left,
        })
    }
}
