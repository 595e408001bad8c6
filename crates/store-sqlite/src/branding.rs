//! Branding, one row a partner.

use async_trait::async_trait;
use gate_core::branding::Branding;
use gate_core::ports::BrandingTx;
use instruments::failpoint::{Step, around};
use kernel::{Cas, StoreError};
use partner_core::Tenant;
use sqlx::SqliteConnection;
use store_sql::branding::branding;

use crate::errors;
use crate::row::Columns;
use crate::tx::SqliteTx;

#[async_trait]
impl BrandingTx for SqliteTx {
    async fn branding_lock(&mut self, who: &Tenant) -> Result<Branding, StoreError> {
        find(self.conn(), who).await
    }

    async fn branding_put(&mut self, who: &Tenant, branding: &Branding) -> Result<Cas, StoreError> {
        let putting = put(self.conn(), who, branding);
        let outcome = around(Step::BrandingPut, putting).await?;
        Ok(self.record_race(outcome))
    }
}

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
) -> Result<Branding, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, logo_url, primary_color, secondary_color, accent_color, brand_name, revision
         FROM branding WHERE mode = ?1 AND partner_id = ?2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map_or_else(
        || Ok(Branding::default()),
        |row| branding(&Columns::new("branding", &row)),
    )
}

/// Of the first revision nothing may be stored yet, of another one the revision before it must be.
async fn put(
    conn: &mut SqliteConnection,
    who: &Tenant,
    branding: &Branding,
) -> Result<Cas, StoreError> {
    let written = sqlx::query(
        "INSERT INTO branding (mode, partner_id, logo_url, primary_color, secondary_color, accent_color, brand_name,
                               revision)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
         WHERE ?8 = 1 OR EXISTS (SELECT 1 FROM branding WHERE mode = ?1 AND partner_id = ?2)
         ON CONFLICT (mode, partner_id) DO UPDATE SET
             logo_url = excluded.logo_url, primary_color = excluded.primary_color,
             secondary_color = excluded.secondary_color, accent_color = excluded.accent_color,
             brand_name = excluded.brand_name, revision = excluded.revision
         WHERE branding.revision = excluded.revision - 1",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(&branding.logo_url)
    .bind(&branding.primary_color)
    .bind(&branding.secondary_color)
    .bind(&branding.accent_color)
    .bind(&branding.brand_name)
    .bind(branding.revision)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
