//! The last uses of API keys, written in batches.

use kernel::{StoreError, Timestamp};
use partner_core::key::KeyUse;
use sqlx::types::Uuid;

use crate::conn::Conn;
use crate::errors;
use crate::row::key;

/// Stores last uses, none later than `now`. It writes them in one order, so that replicas do not deadlock.
pub(crate) async fn record_uses(
    conn: &mut Conn,
    uses: &[KeyUse],
    now: Timestamp,
) -> Result<(), StoreError> {
    let modes: Vec<&str> = uses.iter().map(|one| one.who.mode.as_str()).collect();
    let partners: Vec<&str> = uses.iter().map(|one| one.who.partner.as_str()).collect();
    let keys: Vec<Uuid> = uses.iter().map(|one| key(one.key)).collect();
    let instants: Vec<i64> = uses.iter().map(|one| one.at.min(now).millis()).collect();
    sqlx::query(
        "INSERT INTO key_uses (mode, partner_id, key_id, last_used_at)
         SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) ORDER BY 1, 2, 3
         ON CONFLICT (mode, partner_id, key_id)
         DO UPDATE SET last_used_at = greatest(key_uses.last_used_at, excluded.last_used_at)",
    )
    .bind(modes)
    .bind(partners)
    .bind(keys)
    .bind(instants)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
