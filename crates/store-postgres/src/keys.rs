//! API keys: rows in and out. A key's own text is nowhere.

use std::collections::BTreeMap;

use crate::conn::Conn;
use kernel::{Cas, Mode, StoreError, Timestamp};
use partner_core::key::{KeyHash, KeyId, KeyRecord, KeyTerms, KeyUse, NewKey};
use partner_core::{PartnerId, Tenant};
use sqlx::types::Uuid;
use store_sql::keys::record;

use crate::errors;
use crate::row::{Columns, key};

pub(crate) async fn list(conn: &mut Conn, who: &Tenant) -> Result<Vec<KeyRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label,
                expires_at
         FROM api_keys
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
    conn: &mut Conn,
    hash: &KeyHash,
) -> Result<Option<(PartnerId, Mode, KeyRecord)>, StoreError> {
    let row = sqlx::query(
        "SELECT mode, partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label,
                expires_at
         FROM api_keys
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
    conn: &mut Conn,
    id: KeyId,
) -> Result<Option<(PartnerId, KeyRecord)>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label,
                expires_at
         FROM api_keys
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
pub(crate) async fn insert(conn: &mut Conn, who: &Tenant, new: &NewKey) -> Result<(), StoreError> {
    if new.record.id.mode() != who.mode {
        return Err(StoreError::Guard(format!(
            "api_keys: {} is of another mode",
            new.record.id
        )));
    }
    let inserted = sqlx::query(
        "INSERT INTO api_keys (mode, partner_id, id, hash, kind, prefix, last4, generated, created_at, revoked_at,
                               label, expires_at)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
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
    .bind(&new.record.label)
    .bind(new.record.expires_at.map(Timestamp::millis))
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
    conn: &mut Conn,
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

/// Replaces the label and the expiry of a key.
pub(crate) async fn describe(
    conn: &mut Conn,
    who: &Tenant,
    id: KeyId,
    terms: &KeyTerms,
) -> Result<(), StoreError> {
    let described = sqlx::query(
        "UPDATE api_keys SET label = $4, expires_at = $5
         WHERE mode = $1 AND partner_id = $2 AND id = $3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(id))
    .bind(&terms.label)
    .bind(terms.expires_at.map(Timestamp::millis))
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    if described == 1 {
        Ok(())
    } else {
        Err(errors::rows("api_keys", 1, described))
    }
}

/// When the partner's keys were last used.
pub(crate) async fn used(
    conn: &mut Conn,
    who: &Tenant,
) -> Result<BTreeMap<KeyId, Timestamp>, StoreError> {
    let rows = sqlx::query(
        "SELECT key_id, last_used_at FROM key_uses WHERE mode = $1 AND partner_id = $2",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .fetch_all(conn)
    .await
    .map_err(errors::statement)?;
    let rows = rows.iter().map(|row| Columns::new("key_uses", row));
    rows.map(|row| Ok((row.id("key_id", who.mode)?, row.instant("last_used_at")?)))
        .collect()
}

/// Stores last uses, none later than `now`, in one order, so that replicas do not wait for each other in a circle.
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
