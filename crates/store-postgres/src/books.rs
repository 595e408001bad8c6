//! The partners' books: the row that whoever writes a partner's money holds.

use std::collections::BTreeMap;

use kernel::{Mode, StoreError, Timestamp};
use partner_core::{PartnerId, Tenant};
use sqlx::PgConnection;

use crate::errors;
use crate::row::Columns;

/// A partner's books while they are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// Raised by every change of the partner, its entitlements or keys.
    pub(crate) version: i64,
    /// The last instant written.
    pub(crate) at: i64,
}

/// Takes the books of some partners of a mode, in the one order there is; who has none is left out.
pub(crate) async fn hold(
    conn: &mut PgConnection,
    mode: Mode,
    partners: &[&str],
) -> Result<BTreeMap<PartnerId, Held>, StoreError> {
    let rows = sqlx::query(HOLD)
        .bind(mode.as_str())
        .bind(partners)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| {
            let row = Columns::new("books", row);
            let held = Held {
                version: row.integer("version")?,
                at: row.integer("at")?,
            };
            Ok((row.partner()?, held))
        })
        .collect()
}

pub(crate) const HOLD: &str = "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[]) AS j (partner_id)
     )
     SELECT b.partner_id, b.version, b.at FROM asked AS j
     JOIN books AS b ON b.mode = j.mode AND b.partner_id = j.partner_id
     ORDER BY b.partner_id FOR NO KEY UPDATE OF b";

/// Waits until nobody writes the partner's money, and keeps it so until the transaction ends.
pub(crate) async fn share(conn: &mut PgConnection, who: &Tenant) -> Result<(), StoreError> {
    sqlx::query("SELECT FROM books WHERE mode = $1 AND partner_id = $2 FOR SHARE")
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

/// Opens the books of a new partner.
pub(crate) async fn open(conn: &mut PgConnection, who: &Tenant) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO books (mode, partner_id, version, at) VALUES ($1, $2, 1, 0)
         ON CONFLICT (mode, partner_id) DO NOTHING",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

/// Writes the last instant of a transaction into books that are held; raises their version where
/// what the partner may do has changed.
pub(crate) async fn keep(
    conn: &mut PgConnection,
    who: &Tenant,
    at: Timestamp,
    changed: bool,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE books SET at = greatest(at, $3), version = version + $4
         WHERE mode = $1 AND partner_id = $2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(at.millis())
    .bind(i64::from(changed))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
