//! Kept answers.

use kernel::StoreError;
use partner_core::answers::Kept;
use partner_core::idempotency::Fingerprint;
use partner_core::sealing::Sealed;

use crate::Row;

pub fn kept(row: &dyn Row) -> Result<Kept, StoreError> {
    Ok(Kept {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        answer: Sealed(row.bytes("answer")?.to_vec()),
        created_at: row.instant("created_at")?,
        expires_at: row.instant("answered_until")?,
    })
}
