//! API keys: rows in and out. A key's own text is nowhere.

use kernel::{Cas, Mode, StoreError, Timestamp};
use partner_core::key::{KeyHash, KeyId, KeyRecord, NewKey};
use partner_core::{PartnerId, Tenant};
use sqlx::PgConnection;
use store_rows::keys::record;

use crate::errors;
use crate::row::{Columns, key};

pub(crate) async fn list(
    conn: &mut PgConnection,
    who: &Tenant,
) -> Result<Vec<KeyRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id, id, kind, prefix, last4, generated, created_at, revoked_at FROM api_keys
         WHERE mode = $1 AND partner_id = $2 ORDER BY created_at, id",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    rows.iter()
        .map(|row| record(&Columns::new("api_keys", row), who.mode))
        .collect()
}

pub(crate) async fn owner(
    conn: &mut PgConnection,
    hash: &KeyHash,
) -> Result<Option<(PartnerId, Mode, KeyRecord)>, StoreError> {
    let row = sqlx::query(
        "SELECT mode, partner_id, id, kind, prefix, last4, generated, created_at, revoked_at FROM api_keys
         WHERE hash = $1",
    )
    .bind(hash.0.as_slice())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    let Some(row) = row else {
        return Ok(None);
    };
    let row = Columns::new("api_keys", &row);
    let mode = row.mode()?;
    Ok(Some((row.partner()?, mode, record(&row, mode)?)))
}

pub(crate) async fn find(
    conn: &mut PgConnection,
    id: KeyId,
) -> Result<Option<(PartnerId, KeyRecord)>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, id, kind, prefix, last4, generated, created_at, revoked_at FROM api_keys
         WHERE mode = $1 AND id = $2",
    )
    .bind(id.mode().as_str())
    .bind(key(id))
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    let Some(row) = row else {
        return Ok(None);
    };
    let row = Columns::new("api_keys", &row);
    Ok(Some((row.partner()?, record(&row, id.mode())?)))
}

/// Stores a key that nobody has yet, in any mode. Whoever provisions does so alone, so that what
/// is not there stays so until the key is.
pub(crate) async fn insert(
    conn: &mut PgConnection,
    who: &Tenant,
    new: &NewKey,
) -> Result<(), StoreError> {
    if new.record.id.mode() != who.mode {
        return Err(StoreError::Guard(format!(
            "api_keys: {} is of another mode",
            new.record.id
        )));
    }
    let inserted = sqlx::query(
        "INSERT INTO api_keys (mode, partner_id, id, hash, kind, prefix, last4, generated, created_at, revoked_at)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
         WHERE NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = $4)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(new.record.id))
    .bind(new.hash.0.as_slice())
    .bind(new.record.kind.as_str())
    .bind(&new.record.prefix)
    .bind(&new.record.last4)
    .bind(new.record.generated)
    .bind(new.record.created_at.millis())
    .bind(new.record.revoked_at.map(Timestamp::millis))
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    if inserted == 1 {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "api_keys_hash: {} is another key",
        new.record.id
    )))
}

pub(crate) async fn revoke(
    conn: &mut PgConnection,
    who: &Tenant,
    id: KeyId,
    at: Timestamp,
) -> Result<Cas, StoreError> {
    let rows = sqlx::query(
        "UPDATE api_keys SET revoked_at = $4
         WHERE mode = $1 AND partner_id = $2 AND id = $3 AND revoked_at IS NULL",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(id))
    .bind(at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    Cas::from_rows(rows)
}
