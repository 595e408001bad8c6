//! Idempotency records, and the sweep of them and of stored responses (table `answers`). The batched write inserts the records.
//!
//! A program that does not know the column `expires_at` writes records whose expiry is missing or not after their creation. Such a
//! record counts for 24 hours, or for the configured time if that is longer, because the program may have had the same setting.

use std::time::Duration;

use instruments::failpoint::around;
use kernel::{StoreResult, Timestamp};
use partner_core::events::Service;
use partner_core::idempotency::Fingerprint;
use partner_core::ports::{KeySweep, KeysSwept};
use pools_core::batch::IdempotencyRecord;

use crate::{Connection, Row, Sql, Statement, values};

/// The shortest time that a record without an expiry counts.
const SHORTEST_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a record without an expiry counts, given the configured time.
fn default_lifetime(ttl: Duration) -> Duration {
    ttl.max(SHORTEST_DEFAULT)
}

/// The expiry of a row with the columns `key_created_at` and `key_expires_at`, given the configured time.
pub(crate) fn expiry(row: &dyn Row, ttl: Duration) -> StoreResult<Timestamp> {
    let created = row.instant("key_created_at")?;
    let stored = row.opt_instant("key_expires_at")?;
    let stored = stored.filter(|expiry| *expiry > created);
    Ok(stored.unwrap_or_else(|| created.plus(default_lifetime(ttl))))
}

pub fn answered(row: &dyn Row, ttl: Duration) -> StoreResult<IdempotencyRecord> {
    Ok(IdempotencyRecord {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        expires_at: expiry(row, ttl)?,
    })
}

/// A record, or `None` if the statement's outer join found none.
pub fn opt_answered(row: &dyn Row, ttl: Duration) -> StoreResult<Option<IdempotencyRecord>> {
    match row.opt_integer("key_created_at")? {
        Some(_) => answered(row, ttl).map(Some),
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
        "CASE WHEN expires_at > created_at THEN expires_at ELSE created_at + $5 END <= $4"
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

/// Deletes the expired records among the next `limit` ones. `ttl` is the configured time.
pub async fn sweep(
    connection: &mut dyn Connection,
    sweep: &KeySweep,
    limit: u32,
    now: Timestamp,
    ttl: Duration,
) -> StoreResult<KeysSwept> {
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
    let lifetime = i64::try_from(default_lifetime(ttl).as_millis()).unwrap_or(i64::MAX);
    let expired_by = now.minus(sweep.grace);
    let values = values![sweep.mode, after, reached, expired_by, lifetime];
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
