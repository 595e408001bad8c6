//! The running velocity totals: rows in and out.

use std::time::Duration;

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::StoreError;
use partner_core::Tenant;
use pools_core::ports::{VelocityRange, VelocityTx};
use pools_core::velocity::{Crossed, Velocity};
use store_sql::velocity::velocity_of;

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
        .fetch_optional(self.locked_connection(who).await?)
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
        .execute(self.locked_connection(who).await?)
        .await
        .map_err(errors::statement)?;
        Ok(())
    }

    async fn velocity_read(
        &mut self,
        who: &Tenant,
        range: VelocityRange,
        limit: u32,
    ) -> Result<Crossed, StoreError> {
        read(self.locked_connection(who).await?, who, range, limit).await
    }
}

async fn read(
    conn: &mut Conn,
    who: &Tenant,
    range: VelocityRange,
    limit: u32,
) -> Result<Crossed, StoreError> {
    let statement = if range.newest_first { NEWEST } else { OLDEST };
    let rows = sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(range.after.millis())
        .bind(range.up_to.millis())
        .bind(i64::from(limit.saturating_sub(1)))
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    let mut crossed = Crossed::default();
    for row in &rows {
        let row = Columns::new("trades", row);
        crossed.reached = row.opt_instant("reached")?;
        crossed.notionals.extend(row.opt_integer("notional")?);
    }
    Ok(crossed)
}

/// The counting trades after $3 and up to $4, the oldest first, up to the instant of one of them: that of the row
/// after the first $5. One row at least, which says how far the statement has read.
pub(crate) const OLDEST: &str = "WITH bound AS MATERIALIZED (
         SELECT (SELECT t.created_at FROM trades AS t
                 WHERE t.mode = $1 AND t.partner_id = $2 AND t.created_at > $3 AND t.created_at <= $4
                 ORDER BY t.created_at LIMIT 1 OFFSET $5) AS reached
     )
     SELECT b.reached, t.notional FROM bound AS b
     LEFT JOIN trades AS t ON t.mode = $1 AND t.partner_id = $2 AND t.created_at > $3
          AND t.created_at <= coalesce(b.reached, $4) AND t.status NOT IN ('released', 'failed')";

/// The same, the newest first.
pub(crate) const NEWEST: &str = "WITH bound AS MATERIALIZED (
         SELECT (SELECT t.created_at FROM trades AS t
                 WHERE t.mode = $1 AND t.partner_id = $2 AND t.created_at > $3 AND t.created_at <= $4
                 ORDER BY t.created_at DESC LIMIT 1 OFFSET $5) AS reached
     )
     SELECT b.reached, t.notional FROM bound AS b
     LEFT JOIN trades AS t ON t.mode = $1 AND t.partner_id = $2 AND t.created_at <= $4
          AND t.created_at >= coalesce(b.reached, $3 + 1) AND t.status NOT IN ('released', 'failed')";

/// Notes the window of the process that serves, unless it is the one noted already.
pub(crate) async fn keep_window(conn: &mut Conn, window: Duration) -> Result<(), StoreError> {
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
