//! API keys, stored as hashes of their secret texts.

use std::collections::BTreeMap;

use kernel::{Cas, Mode, StoreError, Timestamp};
use partner_core::key::{KeyHash, KeyId, KeyKind, KeyRecord, KeyTerms, NewKey};
use partner_core::sealing::Sealed;
use partner_core::{PartnerId, Tenant};

use crate::{Connection, Row, Statement, values};

pub(crate) async fn list(
    connection: &mut dyn Connection,
    who: &Tenant,
) -> Result<Vec<KeyRecord>, StoreError> {
    let values = values![who.mode, &who.partner];
    let rows = connection.fetch_all(&LIST, values).await?;
    rows.iter().map(|row| record(&**row, who.mode)).collect()
}

static LIST: Statement = Statement::new(
    "api_keys",
    "SELECT partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label, expires_at
     FROM api_keys WHERE mode = $1 AND partner_id = $2 ORDER BY created_at, id",
);

pub(crate) async fn owner(
    connection: &mut dyn Connection,
    hash: &KeyHash,
) -> Result<Option<(PartnerId, Mode, KeyRecord)>, StoreError> {
    let values = values![hash.0.as_slice()];
    let Some(row) = connection.fetch_optional(&OWNER, values).await? else {
        return Ok(None);
    };
    let mode = row.mode()?;
    Ok(Some((row.partner()?, mode, record(&*row, mode)?)))
}

static OWNER: Statement = Statement::new(
    "api_keys",
    "SELECT mode, partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label, expires_at
     FROM api_keys WHERE hash = $1",
);

pub(crate) async fn find(
    connection: &mut dyn Connection,
    id: KeyId,
) -> Result<Option<(PartnerId, KeyRecord)>, StoreError> {
    let values = values![id.mode(), id];
    let Some(row) = connection.fetch_optional(&FIND, values).await? else {
        return Ok(None);
    };
    Ok(Some((row.partner()?, record(&*row, id.mode())?)))
}

static FIND: Statement = Statement::new(
    "api_keys",
    "SELECT partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label, expires_at
     FROM api_keys WHERE mode = $1 AND id = $2",
);

pub(crate) fn record(row: &dyn Row, mode: Mode) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        id: row.id("id", mode)?,
        kind: row.parsed("kind", KeyKind::parse)?,
        prefix: row.text("prefix")?.to_owned(),
        last4: row.text("last4")?.to_owned(),
        generated: row.flag("generated")?,
        created_at: row.instant("created_at")?,
        revoked_at: row.opt_instant("revoked_at")?,
        label: row.opt_string("label")?,
        expires_at: row.opt_instant("expires_at")?,
    })
}

/// Stores a key whose hash no key of any mode has. On Postgres no index spans the modes, so the statement checks it. Changes of the
/// configuration are serial, so no other transaction inserts the hash meanwhile.
pub(crate) async fn insert(
    connection: &mut dyn Connection,
    who: &Tenant,
    new: &NewKey,
) -> Result<(), StoreError> {
    let key = &new.record;
    if key.id.mode() != who.mode {
        let error = format!("api_keys: {} has another mode", key.id);
        return Err(StoreError::Guard(error));
    }
    let values = values![
        who.mode,
        &who.partner,
        key.id,
        new.hash.0.as_slice(),
        key.kind.as_str(),
        &key.prefix,
        &key.last4,
        key.generated,
        key.created_at,
        key.revoked_at,
        &key.label,
        key.expires_at,
        new.publishable.as_ref().map(|sealed| sealed.0.as_slice()),
    ];
    match connection.execute(&INSERT, values).await? {
        1 => Ok(()),
        _ => Err(StoreError::Guard(format!(
            "api_keys_hash: {} is another key",
            key.id
        ))),
    }
}

static INSERT: Statement = Statement::new(
    "api_keys",
    "INSERT INTO api_keys (mode, partner_id, id, hash, kind, prefix, last4, generated, created_at, revoked_at,
                           label, expires_at, publishable_sealed)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
     WHERE NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = $4)",
);

/// The partner's newest publishable key that is active and whose text is stored, with that text.
pub(crate) async fn newest_publishable(
    connection: &mut dyn Connection,
    who: &Tenant,
    now: Timestamp,
) -> Result<Option<(KeyId, Sealed)>, StoreError> {
    let values = values![who.mode, &who.partner, now];
    let row = connection
        .fetch_optional(&NEWEST_PUBLISHABLE, values)
        .await?;
    row.map(|row| {
        let sealed = row.bytes("publishable_sealed")?.to_vec();
        Ok((row.id("id", who.mode)?, Sealed(sealed)))
    })
    .transpose()
}

pub static NEWEST_PUBLISHABLE: Statement = Statement::new(
    "api_keys",
    "SELECT partner_id, id, publishable_sealed FROM api_keys
     WHERE mode = $1 AND partner_id = $2 AND kind = 'publishable' AND publishable_sealed IS NOT NULL
       AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)
     ORDER BY created_at DESC, id DESC LIMIT 1",
);

/// Replaces the label and the expiry of a key.
pub(crate) async fn describe(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: KeyId,
    terms: &KeyTerms,
) -> Result<(), StoreError> {
    let values = values![who.mode, &who.partner, id, &terms.label, terms.expires_at];
    match connection.execute(&DESCRIBE, values).await? {
        1 => Ok(()),
        rows => Err(StoreError::Guard(format!(
            "api_keys: 1 rows expected, {rows} written"
        ))),
    }
}

static DESCRIBE: Statement = Statement::new(
    "api_keys",
    "UPDATE api_keys SET label = $4, expires_at = $5 WHERE mode = $1 AND partner_id = $2 AND id = $3",
);

/// Stores the sealed text of a publishable key that was stored before texts were.
pub(crate) async fn keep_text(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: KeyId,
    text: &Sealed,
) -> Result<Cas, StoreError> {
    let values = values![who.mode, &who.partner, id, text.0.as_slice()];
    Cas::from_rows(connection.execute(&KEEP_TEXT, values).await?)
}

static KEEP_TEXT: Statement = Statement::new(
    "api_keys",
    "UPDATE api_keys SET publishable_sealed = $4
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND kind = 'publishable' AND publishable_sealed IS NULL",
);

pub(crate) async fn revoke(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: KeyId,
    at: Timestamp,
) -> Result<Cas, StoreError> {
    let values = values![who.mode, &who.partner, id, at];
    Cas::from_rows(connection.execute(&REVOKE, values).await?)
}

static REVOKE: Statement = Statement::new(
    "api_keys",
    "UPDATE api_keys SET revoked_at = $4
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND revoked_at IS NULL",
);

/// The last use of each key of the partner.
pub(crate) async fn used(
    connection: &mut dyn Connection,
    who: &Tenant,
) -> Result<BTreeMap<KeyId, Timestamp>, StoreError> {
    let values = values![who.mode, &who.partner];
    let rows = connection.fetch_all(&USED, values).await?;
    rows.iter()
        .map(|row| Ok((row.id("key_id", who.mode)?, row.instant("last_used_at")?)))
        .collect()
}

/// The sealed texts of the partner's publishable keys.
pub(crate) async fn texts(
    connection: &mut dyn Connection,
    who: &Tenant,
) -> Result<BTreeMap<KeyId, Sealed>, StoreError> {
    let values = values![who.mode, &who.partner];
    let rows = connection.fetch_all(&TEXTS, values).await?;
    rows.iter()
        .map(|row| {
            let sealed = row.bytes("publishable_sealed")?.to_vec();
            Ok((row.id("id", who.mode)?, Sealed(sealed)))
        })
        .collect()
}

static TEXTS: Statement = Statement::new(
    "api_keys",
    "SELECT id, publishable_sealed FROM api_keys
     WHERE mode = $1 AND partner_id = $2 AND publishable_sealed IS NOT NULL",
);

static USED: Statement = Statement::new(
    "key_uses",
    "SELECT key_id, last_used_at FROM key_uses WHERE mode = $1 AND partner_id = $2",
);
