//! The running velocity totals: rows in and out.

use std::time::Duration;

use async_trait::async_trait;
use kernel::StoreError;
use partner_core::Tenant;
use pools_core::ports::VelocityTx;
use pools_core::velocity::Velocity;
use sqlx::PgConnection;
use store_rows::velocity::velocity_of;

use crate::errors;
use crate::row::Columns;
use crate::tx::PgTx;

#[async_trait]
impl VelocityTx for PgTx {
    async fn velocity_lock(&mut self, who: &Tenant) -> Result<Option<Velocity>, StoreError> {
        let row = sqlx::query(
            "SELECT partner_id, total, floor FROM velocity WHERE mode = $1 AND partner_id = $2",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .fetch_optional(self.holding(who).await?)
        .await
        .map_err(errors::statement)?;
        row.map(|row| velocity_of(&Columns::new("velocity", &row)))
            .transpose()
    }

    async fn velocity_put(&mut self, who: &Tenant, velocity: &Velocity) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO velocity (mode, partner_id, total, floor) VALUES ($1, $2, $3, $4)
             ON CONFLICT (mode, partner_id) DO UPDATE SET total = excluded.total, floor = excluded.floor",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(velocity.total.to_string())
        .bind(velocity.floor.millis())
        .execute(self.holding(who).await?)
        .await
        .map_err(errors::statement)?;
        Ok(())
    }
}

/// Notes the window of the process that serves, unless it is the one noted already.
pub(crate) async fn keep_window(
    conn: &mut PgConnection,
    window: Duration,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO velocity_window (id, millis, since)
         VALUES (1, $1, coalesce((
             SELECT max(newest.created_at)
             FROM partners AS p
             CROSS JOIN LATERAL (
                 SELECT t.created_at FROM trades AS t
                 WHERE t.mode = p.mode AND t.partner_id = p.partner_id ORDER BY t.created_at DESC LIMIT 1
             ) AS newest
         ), 0))
         ON CONFLICT (id) DO UPDATE SET millis = excluded.millis, since = excluded.since
         WHERE velocity_window.millis <> excluded.millis",
    )
    .bind(i64::try_from(window.as_millis()).unwrap_or(i64::MAX))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
