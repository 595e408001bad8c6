//! Idempotency records: found by their scope, swept by their age. The lane writes them.

pub(crate) use store_rows::idempotency::opt_answered;

pub(crate) const SWEEP: &str =
    "DELETE FROM idempotency_keys WHERE (mode, partner_id, route, key) IN (
         SELECT mode, partner_id, route, key FROM idempotency_keys
         WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )";
