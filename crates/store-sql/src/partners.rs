//! Partners.

use kernel::StoreError;
use partner_core::{Partner, PartnerStatus};

use crate::Row;

pub fn partner(row: &dyn Row) -> Result<Partner, StoreError> {
    Ok(Partner {
        id: row.partner()?,
        name: row.text("partner_name")?.to_owned(),
        status: row.parsed("partner_status", PartnerStatus::parse)?,
    })
}
