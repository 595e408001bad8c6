//! The running velocity totals: rows in and out.

use async_trait::async_trait;
use kernel::StoreError;
use partner_core::Tenant;
use pools_core::ports::VelocityTx;
use pools_core::velocity::Velocity;

use crate::errors;
use crate::row::Columns;
use crate::tx::PgTx;

pub(crate) fn velocity_of(row: &Columns<'_>) -> Result<Velocity, StoreError> {
    Ok(Velocity {
        total: row.parsed("total", |text| text.parse().ok())?,
        floor: row.instant("floor")?,
    })
}

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
