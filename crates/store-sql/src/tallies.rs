//! Tallies of live sessions.

use gate_core::quota::{Month, Tally};
use kernel::StoreError;

use crate::Row;

pub fn tally(row: &dyn Row) -> Result<Tally, StoreError> {
    Ok(Tally {
        month: row.parsed("month", Month::parse)?,
        created: row.count("created")?,
    })
}
