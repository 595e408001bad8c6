//! Contingent credits.

use kernel::StoreError;
use pools_core::contingent_credit::{Amounts, Recount};

use crate::Row;

/// Units of 10^-8 in a whole one.
const WHOLE: i128 = 100_000_000;

/// A sum of amounts whose wholes and rests were summed apart: together they might not fit.
pub fn amounts(row: &dyn Row) -> Result<Amounts, StoreError> {
    let (whole, rest) = (row.integer("whole")?, row.integer("rest")?);
    let units = i128::from(whole).saturating_mul(WHOLE);
    Ok(Amounts {
        amount: units.saturating_add(rest.into()),
        reached: row.opt_instant("reached")?,
    })
}

/// How far a recount has come.
pub fn recount(row: &dyn Row) -> Result<Recount, StoreError> {
    Ok(Recount {
        begun_at: row.instant("begun_at")?,
        ended_at: row.opt_instant("ended_at")?,
        settled: row.instant("settled")?,
        reserved: row.instant("reserved")?,
        total: row.integer("total")?,
    })
}
