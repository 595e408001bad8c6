//! Idempotency records: what a key was used for.
//!
//! A record without an expiry of its own, or with one that is not after it was made, is one of a program that does not know the
//! column. It expires 24 hours after it was made: statements read `answered_until` so.

use kernel::StoreError;
use partner_core::idempotency::Fingerprint;
use pools_core::batch::IdempotencyRecord;

use crate::Row;

pub fn answered(row: &dyn Row) -> Result<IdempotencyRecord, StoreError> {
    Ok(IdempotencyRecord {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        expires_at: row.instant("answered_until")?,
    })
}

/// A record, where the statement's outer join has found one.
pub fn opt_answered(row: &dyn Row) -> Result<Option<IdempotencyRecord>, StoreError> {
    match row.opt_integer("answered_until")? {
        Some(_) => answered(row).map(Some),
        None => Ok(None),
    }
}
