//! Partners: rows in and out.

use crate::conn::Conn;
use kernel::{Mode, StoreError};
use partner_core::{Partner, PartnerId, Tenant};
use store_sql::partners::partner;

use crate::errors;
use crate::row::Columns;

pub(crate) async fn find(conn: &mut Conn, who: &Tenant) -> Result<Option<Partner>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, name AS partner_name, status AS partner_status FROM partners
         WHERE mode = $1 AND partner_id = $2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| partner(&Columns::new("partners", &row)))
        .transpose()
}

/// The ids of at most 1,000 partners.
pub(crate) async fn ids(conn: &mut Conn, mode: Mode) -> Result<Vec<PartnerId>, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id FROM partners WHERE mode = $1 ORDER BY partner_id LIMIT 1000",
    )
    .bind(mode.as_str())
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    let ids = rows
        .iter()
        .map(|row| Columns::new("partners", row).partner());
    ids.collect()
}

pub(crate) async fn put(conn: &mut Conn, mode: Mode, partner: &Partner) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO partners (mode, partner_id, name, status) VALUES ($1, $2, $3, $4)
         ON CONFLICT (mode, partner_id) DO UPDATE SET name = excluded.name, status = excluded.status",
    )
    .bind(mode.as_str())
    .bind(partner.id.as_str())
    .bind(&partner.name)
    .bind(partner.status.as_str())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
