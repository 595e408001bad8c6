//! Partners: rows in and out.

use kernel::{Mode, StoreError};
use partner_core::{Partner, Tenant};
use sqlx::PgConnection;
use store_rows::partners::partner;

use crate::errors;
use crate::row::Columns;

pub(crate) async fn find(
    conn: &mut PgConnection,
    who: &Tenant,
) -> Result<Option<Partner>, StoreError> {
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

pub(crate) async fn put(
    conn: &mut PgConnection,
    mode: Mode,
    partner: &Partner,
) -> Result<(), StoreError> {
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
