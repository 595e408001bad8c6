//! API keys, stored as hashes of their secret texts, and the operator's transactions about a partner.

use async_trait::async_trait;
use gate_core::ports::PublishableKeyTx;
use instruments::failpoint::around;
use kernel::{Cas, Mode, StoreResult, Timestamp};
use partner_core::events::{Endpoint, Service};
use partner_core::key::{KeyHash, KeyId, KeyKind, KeyRecord, KeyTerms, NewKey};
use partner_core::ports::{KeysRead, PartnerTx};
use partner_core::sealing::Sealed;
use partner_core::{Partner, PartnerId, Tenant};

use crate::store_tx::guard;
use crate::{Connection, Row, Statement, StoreTx, config, endpoints, exactly, partners, values};

#[async_trait]
impl PartnerTx for StoreTx {
    async fn master_key(&mut self) -> StoreResult<Option<String>> {
        config::current_fingerprint(self.connection()).await
    }

    async fn partner_ids(&mut self, mode: Mode) -> StoreResult<Vec<PartnerId>> {
        partners::ids(self.connection(), mode).await
    }

    async fn partner_lock(&mut self, who: &Tenant) -> StoreResult<Option<Partner>> {
        partners::find(self.locked(who).await?, who).await
    }

    async fn partner_put(&mut self, mode: Mode, partner: &Partner) -> StoreResult<()> {
        let values = values![mode, &partner.id, &partner.name, partner.status.as_str()];
        self.reconfiguring().execute(&partners::PUT, values).await?;
        let partner = partner.id.clone();
        self.engine.lock_new(&Tenant { partner, mode }).await
    }

    async fn endpoint_get(
        &mut self,
        who: &Tenant,
        service: Service,
    ) -> StoreResult<Option<Endpoint>> {
        endpoints::find(self.locked(who).await?, who, service).await
    }

    async fn endpoint_put(&mut self, who: &Tenant, endpoint: &Endpoint) -> StoreResult<()> {
        endpoints::put(self.reconfiguring_partner(who).await?, who, endpoint).await
    }

    async fn keys_list(&mut self, who: &Tenant) -> StoreResult<Vec<KeyRecord>> {
        list(self.locked(who).await?, who).await
    }

    async fn key_owner(
        &mut self,
        hash: &KeyHash,
    ) -> StoreResult<Option<(PartnerId, Mode, KeyRecord)>> {
        let values = values![hash.0.as_slice()];
        let Some(row) = self.connection().fetch_optional(&OWNER, values).await? else {
            return Ok(None);
        };
        let mode = row.mode()?;
        Ok(Some((row.partner()?, mode, record(&*row, mode)?)))
    }

    async fn key_insert(&mut self, who: &Tenant, key: &NewKey) -> StoreResult<()> {
        let NewKey { record, .. } = key;
        guard(record.id.mode() == who.mode, || {
            format!("api_keys: {} has another mode", record.id)
        })?;
        let values = values![
            who.mode,
            &who.partner,
            record.id,
            key.hash.0.as_slice(),
            record.kind.as_str(),
            &record.prefix,
            &record.last4,
            record.generated,
            record.created_at,
            record.revoked_at,
            &record.label,
            record.expires_at,
            key.publishable.as_ref().map(|sealed| sealed.0.as_slice()),
        ];
        let connection = self.reconfiguring_partner(who).await?;
        let written = connection.execute(&INSERT, values).await?;
        guard(written == 1, || {
            format!("api_keys_hash: {} is another key", record.id)
        })
    }

    async fn key_find(&mut self, id: KeyId) -> StoreResult<Option<(PartnerId, KeyRecord)>> {
        find(self.connection(), id).await
    }

    async fn key_describe(&mut self, who: &Tenant, id: KeyId, terms: &KeyTerms) -> StoreResult<()> {
        let values = values![who.mode, &who.partner, id, &terms.label, terms.expires_at];
        let connection = self.reconfiguring_partner(who).await?;
        let written = connection.execute(&DESCRIBE, values).await?;
        exactly("api_keys", 1, written)
    }

    async fn key_keep_text(&mut self, who: &Tenant, id: KeyId, text: &Sealed) -> StoreResult<Cas> {
        let values = values![who.mode, &who.partner, id, text.0.as_slice()];
        let connection = self.reconfiguring_partner(who).await?;
        Cas::from_rows(connection.execute(&KEEP_TEXT, values).await?)
    }

    async fn key_revoke(&mut self, id: KeyId, at: Timestamp) -> StoreResult<Cas> {
        let Some((partner, _)) = find(self.reconfiguring(), id).await? else {
            return Ok(Cas::Lost);
        };
        let mode = id.mode();
        let who = Tenant { partner, mode };
        let values = values![mode, &who.partner, id, at];
        let revoking = self.locked(&who).await?.execute(&REVOKE, values);
        Cas::from_rows(around("key.revoke", revoking).await?)
    }

    async fn config_version_raise(&mut self) -> StoreResult<()> {
        self.engine.effects().reconfigured = true;
        Ok(())
    }
}

/// The keys of a partner, the oldest first.
async fn list(connection: &mut dyn Connection, who: &Tenant) -> StoreResult<Vec<KeyRecord>> {
    let values = values![who.mode, &who.partner];
    let rows = connection.fetch_all(&LIST, values).await?;
    rows.iter().map(|row| record(&**row, who.mode)).collect()
}

/// The keys of a partner, with their last uses and the sealed texts.
pub async fn read(connection: &mut dyn Connection, who: &Tenant) -> StoreResult<KeysRead> {
    let values = values![who.mode, &who.partner];
    let records = list(connection, who).await?;
    let used = connection.fetch_all(&USED, values).await?;
    let used = used
        .iter()
        .map(|row| Ok((row.id("key_id", who.mode)?, row.instant("last_used_at")?)));
    let used = used.collect::<StoreResult<_>>()?;
    let texts = connection.fetch_all(&TEXTS, values).await?;
    let texts = texts.iter().map(|row| text(&**row, who.mode));
    Ok(KeysRead {
        records,
        used,
        texts: texts.collect::<StoreResult<_>>()?,
    })
}

#[async_trait]
impl PublishableKeyTx for StoreTx {
    async fn publishable_key_newest(
        &mut self,
        who: &Tenant,
        now: Timestamp,
    ) -> StoreResult<Option<(KeyId, Sealed)>> {
        let values = values![who.mode, &who.partner, now];
        let connection = self.connection();
        let row = connection
            .fetch_optional(&NEWEST_PUBLISHABLE, values)
            .await?;
        row.map(|row| text(&*row, who.mode)).transpose()
    }
}

static LIST: Statement = Statement::new(
    "api_keys",
    "SELECT partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label, expires_at
     FROM api_keys WHERE mode = $1 AND partner_id = $2 ORDER BY created_at, id",
);

static OWNER: Statement = Statement::new(
    "api_keys",
    "SELECT mode, partner_id, id, kind, prefix, last4, generated, created_at, revoked_at, label, expires_at
     FROM api_keys WHERE hash = $1",
);

async fn find(
    connection: &mut dyn Connection,
    id: KeyId,
) -> StoreResult<Option<(PartnerId, KeyRecord)>> {
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

fn text(row: &dyn Row, mode: Mode) -> StoreResult<(KeyId, Sealed)> {
    let sealed = row.bytes("publishable_sealed")?.to_vec();
    Ok((row.id("id", mode)?, Sealed(sealed)))
}

pub(crate) fn record(row: &dyn Row, mode: Mode) -> StoreResult<KeyRecord> {
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

/// The hash is of no other key of any mode. On Postgres no index spans the modes, so the statement checks it. Changes of the
/// configuration are serial, so no other transaction inserts the hash meanwhile.
static INSERT: Statement = Statement::new(
    "api_keys",
    "INSERT INTO api_keys (mode, partner_id, id, hash, kind, prefix, last4, generated, created_at, revoked_at,
                           label, expires_at, publishable_sealed)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
     WHERE NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = $4)",
);

/// The partner's newest publishable key that is active and whose text is stored.
pub static NEWEST_PUBLISHABLE: Statement = Statement::new(
    "api_keys",
    "SELECT partner_id, id, publishable_sealed FROM api_keys
     WHERE mode = $1 AND partner_id = $2 AND kind = 'publishable' AND publishable_sealed IS NOT NULL
       AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)
     ORDER BY created_at DESC, id DESC LIMIT 1",
);

static DESCRIBE: Statement = Statement::new(
    "api_keys",
    "UPDATE api_keys SET label = $4, expires_at = $5 WHERE mode = $1 AND partner_id = $2 AND id = $3",
);

/// Stores the sealed text of a publishable key that was stored before texts were.
static KEEP_TEXT: Statement = Statement::new(
    "api_keys",
    "UPDATE api_keys SET publishable_sealed = $4
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND kind = 'publishable' AND publishable_sealed IS NULL",
);

static REVOKE: Statement = Statement::new(
    "api_keys",
    "UPDATE api_keys SET revoked_at = $4
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND revoked_at IS NULL",
);

static TEXTS: Statement = Statement::new(
    "api_keys",
    "SELECT id, publishable_sealed FROM api_keys
     WHERE mode = $1 AND partner_id = $2 AND publishable_sealed IS NOT NULL",
);

static USED: Statement = Statement::new(
    "key_uses",
    "SELECT key_id, last_used_at FROM key_uses WHERE mode = $1 AND partner_id = $2",
);
