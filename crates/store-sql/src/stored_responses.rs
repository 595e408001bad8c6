//! StoredResponse answers.

use kernel::StoreError;
use partner_core::idempotency::Fingerprint;
use partner_core::sealing::Sealed;
use partner_core::stored_response::StoredResponse;

use crate::Row;

pub fn kept(row: &dyn Row) -> Result<StoredResponse, StoreError> {
    Ok(StoredResponse {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        answer: Sealed(row.bytes("answer")?.to_vec()),
        created_at: row.instant("created_at")?,
        expires_at: row.instant("answered_until")?,
    })
}
