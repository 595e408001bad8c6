//! Partners.

use kernel::{Mode, StoreResult};
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};

use crate::{Connection, Row, Statement, values};

pub async fn find(connection: &mut dyn Connection, who: &Tenant) -> StoreResult<Option<Partner>> {
    let values = values![who.mode, &who.partner];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| partner(&*row)).transpose()
}

static FIND: Statement = Statement::new(
    "partners",
    "SELECT partner_id, name AS partner_name, status AS partner_status FROM partners
     WHERE mode = $1 AND partner_id = $2",
);

/// The ids of at most 1,000 partners.
pub async fn ids(connection: &mut dyn Connection, mode: Mode) -> StoreResult<Vec<PartnerId>> {
    let rows = connection.fetch_all(&IDS, values![mode]).await?;
    rows.iter().map(|row| row.partner()).collect()
}

static IDS: Statement = Statement::new(
    "partners",
    "SELECT partner_id FROM partners WHERE mode = $1 ORDER BY partner_id LIMIT 1000",
);

pub(crate) fn partner(row: &dyn Row) -> StoreResult<Partner> {
    Ok(Partner {
        id: row.partner()?,
        name: row.text("partner_name")?.to_owned(),
        status: row.parsed("partner_status", PartnerStatus::parse)?,
    })
}

pub(crate) static PUT: Statement = Statement::new(
    "partners",
    "INSERT INTO partners (mode, partner_id, name, status) VALUES ($1, $2, $3, $4)
     ON CONFLICT (mode, partner_id) DO UPDATE SET name = excluded.name, status = excluded.status",
);
