//! The running velocity totals.

use kernel::StoreError;
use pools_core::velocity::Velocity;

use crate::Row;

/// A total, if the statement's outer join has found one.
pub fn opt_velocity(row: &dyn Row) -> Result<Option<Velocity>, StoreError> {
    if row.opt_text("total")?.is_none() {
        return Ok(None);
    }
    velocity_of(row).map(Some)
}

pub fn velocity_of(row: &dyn Row) -> Result<Velocity, StoreError> {
    Ok(Velocity {
        total: row.parsed("total", |text| text.parse().ok())?,
        floor: row.instant("floor")?,
    })
}
