//! The running velocity totals.

use kernel::StoreError;
use pools_core::velocity::Velocity;

use crate::Row;

pub fn velocity_of(row: &dyn Row) -> Result<Velocity, StoreError> {
    Ok(Velocity {
        total: row.parsed("total", |text| text.parse().ok())?,
        floor: row.instant("floor")?,
    })
}
