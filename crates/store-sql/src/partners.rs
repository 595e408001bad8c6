//! Partners.

use kernel::StoreResult;
use partner_core::{Partner, PartnerStatus};

use crate::{Row, Statement};

pub(crate) static FIND: Statement = Statement::new(
    "partners",
    "SELECT partner_id, name AS partner_name, status AS partner_status FROM partners
     WHERE mode = $1 AND partner_id = $2",
);

/// The ids of at most 1,000 partners.
pub(crate) static IDS: Statement = Statement::new(
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
