//! Partner locks: a transaction that writes a partner's money locks the partner's row in `books`.

use std::collections::{BTreeMap, BTreeSet};

use crate::conn::Conn;
use kernel::{Mode, StoreResult, Timestamp};
use partner_core::{PartnerId, Tenant};

use crate::row::Columns;
use crate::{config, errors};

/// The row of `books` of a locked partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartnerLock {
    /// Changes with the partner, its entitlements and its keys.
    pub(crate) version: i64,
    /// The last stored instant.
    pub(crate) at: i64,
}

/// The treatment of partners whose lock another transaction holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    /// Wait for the lock, up to the transaction's `lock_timeout`.
    Wait,
    /// Leave the partner out.
    Skip,
}

/// Locks several partners of a mode, always in the order of their names. Partners without a row are left out.
pub(crate) async fn take(
    conn: &mut Conn,
    mode: Mode,
    partners: &[&str],
    locks: Locks,
) -> StoreResult<BTreeMap<PartnerId, PartnerLock>> {
    let statement = match locks {
        Locks::Wait => TAKE,
        Locks::Skip => TAKE_UNLOCKED,
    };
    let rows = sqlx::query(statement)
        .bind(mode.as_str())
        .bind(partners)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| {
            let row = Columns::new("books", row);
            let held = PartnerLock {
                version: row.integer("version")?,
                at: row.integer("at")?,
            };
            Ok((row.partner()?, held))
        })
        .collect()
}

/// The partners that have a row in `books`, locked or not.
pub(crate) async fn existing(
    conn: &mut Conn,
    mode: Mode,
    partners: &[&str],
) -> StoreResult<BTreeSet<PartnerId>> {
    let rows = sqlx::query(EXISTING)
        .bind(mode.as_str())
        .bind(partners)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    let partner = |row| Columns::new("books", row).partner();
    rows.iter().map(partner).collect()
}

pub(crate) const EXISTING: &str = "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[]) AS j (partner_id)
     )
     SELECT b.partner_id FROM asked AS j
     JOIN books AS b ON b.mode = j.mode AND b.partner_id = j.partner_id";

pub(crate) const TAKE_UNLOCKED: &str = "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[]) AS j (partner_id)
     )
     SELECT b.partner_id, b.version, b.at FROM asked AS j
     JOIN books AS b ON b.mode = j.mode AND b.partner_id = j.partner_id
     ORDER BY b.partner_id FOR NO KEY UPDATE OF b SKIP LOCKED";

pub(crate) const TAKE: &str = "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[]) AS j (partner_id)
     )
     SELECT b.partner_id, b.version, b.at FROM asked AS j
     JOIN books AS b ON b.mode = j.mode AND b.partner_id = j.partner_id
     ORDER BY b.partner_id FOR NO KEY UPDATE OF b";

/// Waits for the transactions that write the partner's money, and keeps others out until this transaction ends.
pub(crate) async fn share(conn: &mut Conn, who: &Tenant) -> StoreResult<()> {
    sqlx::query("SELECT FROM books WHERE mode = $1 AND partner_id = $2 FOR SHARE")
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

/// Creates the row of a new partner.
pub(crate) async fn create(conn: &mut Conn, who: &Tenant) -> StoreResult<()> {
    let version = config::draw(conn).await?;
    sqlx::query(
        "INSERT INTO books (mode, partner_id, version, at) VALUES ($1, $2, $3, 0)
         ON CONFLICT (mode, partner_id) DO NOTHING",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(version)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

/// Stores the transaction's instant in a locked partner's row. If the configuration has changed, also stores the new version,
/// which [`config::draw`] returned.
pub(crate) async fn put(
    conn: &mut Conn,
    who: &Tenant,
    at: Timestamp,
    version: Option<i64>,
) -> StoreResult<()> {
    sqlx::query(
        "UPDATE books SET at = greatest(at, $3),
                version = coalesce($4, version)
         WHERE mode = $1 AND partner_id = $2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(at.millis())
    .bind(version)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
