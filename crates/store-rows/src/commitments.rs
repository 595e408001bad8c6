//! What accounts are committed to.

use kernel::StoreError;

use crate::Row;

/// Units of 10^-8 in a whole one.
const WHOLE: i128 = 100_000_000;

/// A sum of amounts whose wholes and rests were summed apart: together they might not fit.
pub fn refundable(row: &dyn Row) -> Result<i128, StoreError> {
    let (whole, rest) = (row.integer("whole")?, row.integer("rest")?);
    let units = i128::from(whole).saturating_mul(WHOLE);
    Ok(units.saturating_add(rest.into()))
}
