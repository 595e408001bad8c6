//! The partners' books: the row that whoever writes a partner's money holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::conn::Conn;
use kernel::{Mode, StoreError, Timestamp};
use partner_core::{PartnerId, Tenant};

use crate::row::Columns;
use crate::{config, errors};

/// A partner's books while they are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartnerLock {
    /// Another after every change of the partner, its entitlements or keys.
    pub(crate) version: i64,
    /// The last instant written.
    pub(crate) at: i64,
}

/// Whether a transaction waits for books that another one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    /// It waits, up to the transaction's `lock_timeout`.
    Wait,
    /// It leaves them out.
    Skip,
}

/// Takes the books of some partners of a mode, in the one order there is; who has none is left out.
pub(crate) async fn hold(
    conn: &mut Conn,
    mode: Mode,
    partners: &[&str],
    locks: Locks,
) -> Result<BTreeMap<PartnerId, PartnerLock>, StoreError> {
    let statement = match locks {
        Locks::Wait => HOLD,
        Locks::Skip => HOLD_UNLOCKED,
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

/// Which of some partners have books? Tells those whose books another transaction holds from those who have none.
pub(crate) async fn existing(
    conn: &mut Conn,
    mode: Mode,
    partners: &[&str],
) -> Result<BTreeSet<PartnerId>, StoreError> {
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

pub(crate) const HOLD_UNLOCKED: &str = "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[]) AS j (partner_id)
     )
     SELECT b.partner_id, b.version, b.at FROM asked AS j
     JOIN books AS b ON b.mode = j.mode AND b.partner_id = j.partner_id
     ORDER BY b.partner_id FOR NO KEY UPDATE OF b SKIP LOCKED";

pub(crate) const HOLD: &str = "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[]) AS j (partner_id)
     )
     SELECT b.partner_id, b.version, b.at FROM asked AS j
     JOIN books AS b ON b.mode = j.mode AND b.partner_id = j.partner_id
     ORDER BY b.partner_id FOR NO KEY UPDATE OF b";

/// Waits until nobody writes the partner's money, and keeps it so until the transaction ends.
pub(crate) async fn share(conn: &mut Conn, who: &Tenant) -> Result<(), StoreError> {
    sqlx::query("SELECT FROM books WHERE mode = $1 AND partner_id = $2 FOR SHARE")
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

/// Opens the books of a new partner.
pub(crate) async fn open(conn: &mut Conn, who: &Tenant) -> Result<(), StoreError> {
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

/// Writes the last instant of a transaction into books that are held. Gives them a new version if what the partner may
/// do has changed: one that [`config::draw`] has given.
pub(crate) async fn keep(
    conn: &mut Conn,
    who: &Tenant,
    at: Timestamp,
    version: Option<i64>,
) -> Result<(), StoreError> {
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
