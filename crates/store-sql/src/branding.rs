//! Branding, one row per partner.

use async_trait::async_trait;
use gate_core::branding::Branding;
use gate_core::ports::BrandingTx;
use kernel::{Cas, Seen, StoreResult};
use partner_core::Tenant;

use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl BrandingTx for StoreTx {
    async fn branding_lock(&mut self, who: &Tenant) -> StoreResult<Branding> {
        find(self.locked(who).await?, who).await
    }

    async fn branding_put(&mut self, who: &Tenant, branding: &Branding) -> StoreResult<Cas> {
        let values = values![
            who.mode,
            &who.partner,
            &branding.logo_url,
            &branding.primary_color,
            &branding.secondary_color,
            &branding.accent_color,
            &branding.brand_name,
            branding.revision,
        ];
        self.swap_around("branding.put", who, &PUT, values).await
    }
}

pub async fn get(reader: &mut dyn Reader, who: &Tenant) -> StoreResult<Seen<Branding>> {
    let branding = find(reader.connection(), who).await?;
    reader.seen(branding).await
}

async fn find(connection: &mut dyn Connection, who: &Tenant) -> StoreResult<Branding> {
    let values = values![who.mode, &who.partner];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map_or_else(|| Ok(Branding::default()), |row| branding(&*row))
}

static FIND: Statement = Statement::new(
    "branding",
    "SELECT partner_id, logo_url, primary_color, secondary_color, accent_color, brand_name, revision
     FROM branding WHERE mode = $1 AND partner_id = $2",
);

pub(crate) fn branding(row: &dyn Row) -> StoreResult<Branding> {
    Ok(Branding {
        logo_url: row.opt_string("logo_url")?,
        primary_color: row.opt_string("primary_color")?,
        secondary_color: row.opt_string("secondary_color")?,
        accent_color: row.opt_string("accent_color")?,
        brand_name: row.opt_string("brand_name")?,
        revision: row.integer("revision")?,
    })
}

/// The first revision requires that no row exists; a later revision requires the one before it.
static PUT: Statement = Statement::new(
    "branding",
    "INSERT INTO branding (mode, partner_id, logo_url, primary_color, secondary_color, accent_color, brand_name,
                           revision)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8
     WHERE $8 = 1 OR EXISTS (SELECT 1 FROM branding WHERE mode = $1 AND partner_id = $2)
     ON CONFLICT (mode, partner_id) DO UPDATE SET
         logo_url = excluded.logo_url, primary_color = excluded.primary_color,
         secondary_color = excluded.secondary_color, accent_color = excluded.accent_color,
         brand_name = excluded.brand_name, revision = excluded.revision
     WHERE branding.revision = excluded.revision - 1",
);
