//! Idempotency records: what a key was used for.

use kernel::StoreError;
use partner_core::idempotency::Fingerprint;
use pools_core::books::Answered;

use crate::Row;

pub fn answered(row: &dyn Row) -> Result<Answered, StoreError> {
    Ok(Answered {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        created_at: row.instant("answered_at")?,
    })
}

/// A record, where the statement's outer join has found one.
pub fn opt_answered(row: &dyn Row) -> Result<Option<Answered>, StoreError> {
    match row.opt_integer("answered_at")? {
        Some(_) => answered(row).map(Some),
        None => Ok(None),
    }
}
