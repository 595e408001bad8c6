//! Idempotency records, and the sweep of them and of stored responses (table `answers`). The batched write inserts the records.
//!
//! A program that does not know the column `expires_at` writes records whose expiry is missing or not after their creation. Such a
//! record expires 24 hours after its creation. Statements select the resulting expiry as `answered_until`.

use instruments::failpoint::around;
use kernel::{StoreError, Timestamp};
use partner_core::events::Service;
use partner_core::idempotency::Fingerprint;
use partner_core::ports::{KeySweep, KeysSwept};
use pools_core::batch::IdempotencyRecord;

use crate::{Connection, Row, Sql, Statement, values};

pub fn answered(row: &dyn Row) -> Result<IdempotencyRecord, StoreError> {
    Ok(IdempotencyRecord {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        expires_at: row.instant("answered_until")?,
    })
}

/// A record, or `None` if the statement's outer join found none.
pub fn opt_answered(row: &dyn Row) -> Result<Option<IdempotencyRecord>, StoreError> {
    match row.opt_integer("answered_until")? {
        Some(_) => answered(row).map(Some),
        None => Ok(None),
    }
}

/// The statements of a sweep of one table. A sweep reads a bounded number of records at a time, in the order of their creation. No
/// index has the order of their expiry.
#[derive(Debug)]
pub struct Sweep {
    /// The instant of the record after the first $3.
    pub reached: Statement,
    pub delete: Statement,
    pub left: Statement,
}

macro_rules! expired {
    () => {
        "CASE WHEN expires_at > created_at THEN expires_at ELSE created_at + 86400000 END <= $4"
    };
}

/// A unary plus keeps SQLite's planner from looking up the mode alone.
macro_rules! sweep_of {
    ($table:literal) => {
        Sweep {
            reached: Statement::new(
                $table,
                concat!(
                    "SELECT created_at FROM ", $table, "
                     WHERE created_at > $1 AND created_at <= $2 ORDER BY created_at LIMIT 1 OFFSET CAST($3 AS bigint)"
                ),
            ),
            delete: Statement::per_engine(
                $table,
                Sql {
                    sqlite: concat!(
                        "DELETE FROM ", $table, " WHERE rowid IN (
                             SELECT rowid FROM ", $table, "
                             WHERE created_at > $2 AND created_at <= $3 AND +mode = $1 AND ", expired!(), "
                         )"
                    ),
                    postgres: concat!(
                        "DELETE FROM ", $table, " WHERE (mode, partner_id, route, key) IN (
                             SELECT mode, partner_id, route, key FROM ", $table, "
                             WHERE created_at > $2 AND created_at <= $3 AND mode = $1 AND ", expired!(), "
                             FOR UPDATE SKIP LOCKED
                         )"
                    ),
                },
            ),
            left: Statement::per_engine(
                $table,
                Sql {
                    sqlite: concat!(
                        "SELECT EXISTS (SELECT 1 FROM ", $table, "
                         WHERE created_at > $2 AND created_at <= $3 AND +mode = $1) AS is_left"
                    ),
                    postgres: concat!(
                        "SELECT EXISTS (SELECT 1 FROM ", $table, "
                         WHERE created_at > $2 AND created_at <= $3 AND mode = $1) AS is_left"
                    ),
                },
            ),
        }
    };
}

static KEYS: Sweep = sweep_of!("idempotency_keys");
static RESPONSES: Sweep = sweep_of!("answers");

impl Sweep {
    #[must_use]
    pub const fn of(service: Service) -> &'static Self {
        match service {
            Service::Pools => &KEYS,
            Service::Gate => &RESPONSES,
        }
    }
}

/// Deletes the expired records among the next `limit` ones.
pub async fn sweep(
    connection: &mut dyn Connection,
    sweep: &KeySweep,
    limit: u32,
    now: Timestamp,
) -> Result<KeysSwept, StoreError> {
    let statements = Sweep::of(sweep.service);
    let after = sweep.after.map_or(i64::MIN, Timestamp::millis);
    let up_to = now
        .minus(sweep.age)
        .max(sweep.after.unwrap_or(now.minus(sweep.age)));
    let values = values![after, up_to, limit.saturating_sub(1)];
    let row = connection
        .fetch_optional(&statements.reached, values)
        .await?;
    let last = row.map(|row| row.instant("created_at")).transpose()?;
    let reached = last.unwrap_or(up_to);
    let values = values![sweep.mode, after, reached, now.minus(sweep.grace)];
    let deleting = connection.execute(&statements.delete, values);
    let deleted = around("sweep.delete", deleting).await?;
    let values = values![sweep.mode, after, reached];
    let left = connection.fetch_one(&statements.left, values).await?;
    Ok(KeysSwept {
        deleted,
        reached,
        more: last.is_some(),
        left: left.flag("is_left")?,
    })
}
