//! Idempotency records: found by their scope, swept by their age. The lane writes them.

use kernel::StoreError;
use partner_core::idempotency::Fingerprint;
use pools_core::books::Answered;

use crate::row::Columns;

/// A record, where the statement's outer join has found one.
pub(crate) fn opt_answered(row: &Columns<'_>) -> Result<Option<Answered>, StoreError> {
    let Some(created_at) = row.opt_instant("answered_at")? else {
        return Ok(None);
    };
    Ok(Some(Answered {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        created_at,
    }))
}

pub(crate) const SWEEP: &str =
    "DELETE FROM idempotency_keys WHERE (mode, partner_id, route, key) IN (
         SELECT mode, partner_id, route, key FROM idempotency_keys
         WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )";
