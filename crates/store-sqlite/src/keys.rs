//! The last uses of API keys, written in batches.

use kernel::{StoreError, Timestamp};
use partner_core::key::KeyUse;
use sqlx::SqliteConnection;

use crate::errors;
use crate::row::key;

/// Stores last uses, none later than `now`.
pub(crate) async fn record_uses(
    conn: &mut SqliteConnection,
    uses: &[KeyUse],
    now: Timestamp,
) -> Result<(), StoreError> {
    for one in uses {
        sqlx::query(
            "INSERT INTO key_uses (mode, partner_id, key_id, last_used_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (mode, partner_id, key_id)
             DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at)",
        )
        .bind(one.who.mode.as_str())
        .bind(one.who.partner.as_str())
        .bind(key(one.key))
        .bind(one.at.min(now).millis())
        .execute(&mut *conn)
        .await
        .map_err(errors::statement)?;
    }
    Ok(())
}
