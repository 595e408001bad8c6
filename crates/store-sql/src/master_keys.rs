//! Master keys and sealed values: their rows, and the replacement of keys and values.

use gate_core::customer::person_place;
use gate_core::ports::kyc_place;
use gate_core::rail::payout_place;
use kernel::{Cas, StoreError};
use partner_core::events::{EndpointId, event_place, secret_place};
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::key::publishable_place;
use partner_core::ports::{
    MasterKeyState, ResealedValue, SealedKind, SealedRow, SealedValue, StoredMasterKey,
    UnitOfWork as _,
};
use partner_core::sealing::{Fingerprint, Sealed};
use partner_core::stored_response;
use ulid::Ulid;

use crate::{Reader, Row, Statement, StoreTx, Value, config, values};

pub async fn all(reader: &mut dyn Reader) -> Result<Vec<StoredMasterKey>, StoreError> {
    let rows = reader.connection().fetch_all(&ALL, values![]).await?;
    rows.iter().map(|row| master_key(&**row)).collect()
}

static ALL: Statement = Statement::new(
    "master_keys",
    "SELECT fingerprint, number, state, derived FROM master_keys ORDER BY number",
);

fn master_key(row: &dyn Row) -> Result<StoredMasterKey, StoreError> {
    let state = match row.text("state")? {
        "current" => MasterKeyState::Current,
        "older" => MasterKeyState::Older,
        "retired" => MasterKeyState::Retired,
        _ => return Err(row.bad("state")),
    };
    Ok(StoredMasterKey {
        fingerprint: row.parsed("fingerprint", Fingerprint::parse)?,
        number: u32::try_from(row.integer("number")?).map_err(|_| row.bad("number"))?,
        state,
        derived: row
            .opt_bytes("derived")?
            .map(|bytes| Sealed(bytes.to_vec())),
    })
}

/// Stores the fingerprint of the first master key, commits, and returns the current key's.
pub async fn check(mut tx: Box<StoreTx>, fingerprint: &str) -> Result<String, StoreError> {
    let stored = config::master_key(tx.connection(), fingerprint).await?;
    tx.commit().await?;
    Ok(stored)
}

impl StoreTx {
    /// Makes a new key the current one. Changes nothing if `current` is not the current key, or if the new key is known.
    pub async fn master_key_promote(
        &mut self,
        current: Fingerprint,
        new: Fingerprint,
        derived: &Sealed,
    ) -> Result<Cas, StoreError> {
        if !self.master_key_is(current).await? {
            return Ok(Cas::Lost);
        }
        let connection = self.connection();
        let new = new.to_string();
        if connection
            .fetch_optional(&KNOWN, values![&new])
            .await?
            .is_some()
        {
            return Ok(Cas::Lost);
        }
        connection.execute(&INSTALL, values![&new]).await?;
        connection.execute(&AGE, values![]).await?;
        let values = values![&new, derived.0.as_slice()];
        let outcome = Cas::from_rows(connection.execute(&INSERT, values).await?);
        self.engine.record_reconfigured();
        outcome
    }

    /// Retires all keys but the current one. Changes nothing if `current` is not that key.
    pub async fn master_keys_retire(&mut self, current: Fingerprint) -> Result<Cas, StoreError> {
        if !self.master_key_is(current).await? {
            return Ok(Cas::Lost);
        }
        self.connection().execute(&RETIRE, values![]).await?;
        Ok(Cas::Won)
    }

    /// Checks that `current` is the current key. No other transaction replaces the key before this one ends.
    async fn master_key_is(&mut self, current: Fingerprint) -> Result<bool, StoreError> {
        self.engine.lock_config().await?;
        let stored = config::current_fingerprint(self.connection()).await?;
        Ok(stored.is_some_and(|stored| stored == current.to_string()))
    }

    /// Replaces sealed values that are unchanged since they were read, and returns their number.
    pub async fn sealed_replace(
        &mut self,
        kind: SealedKind,
        values: &[ResealedValue],
    ) -> Result<u64, StoreError> {
        let connection = self.connection();
        let mut replaced = 0;
        for value in values {
            let tenant = &value.row.tenant;
            let [first, second] = parts(kind, &value.row)?;
            let (new, old) = (value.new.0.as_slice(), value.old.0.as_slice());
            let values = values![tenant.mode, &tenant.partner, first, second, new, old];
            replaced += connection.execute(replace(kind), values).await?;
        }
        Ok(replaced)
    }
}

static KNOWN: Statement = Statement::new(
    "master_keys",
    "SELECT number FROM master_keys WHERE fingerprint = $1",
);

static INSTALL: Statement = Statement::new(
    "installation",
    "UPDATE installation SET master_key_fingerprint = $1 WHERE id = 1",
);

static AGE: Statement = Statement::new(
    "master_keys",
    "UPDATE master_keys SET state = 'older' WHERE state = 'current'",
);

static INSERT: Statement = Statement::new(
    "master_keys",
    "INSERT INTO master_keys (fingerprint, number, state, derived)
     SELECT $1, max(number) + 1, 'current', $2 FROM master_keys",
);

static RETIRE: Statement = Statement::new(
    "master_keys",
    "UPDATE master_keys SET state = 'retired' WHERE state = 'older'",
);

/// A page of sealed values after a row, in the order of their keys.
pub async fn sealed_page(
    reader: &mut dyn Reader,
    kind: SealedKind,
    after: Option<&SealedRow>,
    limit: u32,
) -> Result<Vec<SealedValue>, StoreError> {
    let (mode, partner, [first, second]) = match after {
        Some(row) => {
            let tenant = &row.tenant;
            (
                tenant.mode.as_str(),
                tenant.partner.as_str(),
                parts(kind, row)?,
            )
        }
        None => ("", "", start(kind)),
    };
    let values = values![mode, partner, first, second, limit];
    let rows = reader.connection().fetch_all(page(kind), values).await?;
    rows.iter().map(|row| sealed_value(kind, &**row)).collect()
}

/// The parts of a row's key after its tenant. A kind whose key has one such part leaves the second empty.
fn parts(kind: SealedKind, row: &SealedRow) -> Result<[Value<'_>; 2], StoreError> {
    let first = match kind {
        SealedKind::Secret
        | SealedKind::Package
        | SealedKind::Person
        | SealedKind::Payout
        | SealedKind::PublishableKey => {
            Value::from(Ulid::from_string(&row.first).map_err(StoreError::unexpected)?)
        }
        SealedKind::Event | SealedKind::Response => Value::from(&row.first),
    };
    let second = match kind {
        SealedKind::Secret => {
            Value::from(row.second.parse::<i16>().map_err(StoreError::unexpected)?)
        }
        _ => Value::from(&row.second),
    };
    Ok([first, second])
}

/// Key parts that are below those of every row.
fn start(kind: SealedKind) -> [Value<'static>; 2] {
    let nil = Value::from(Ulid::nil());
    match kind {
        SealedKind::Secret => [nil, Value::from(-1_i16)],
        SealedKind::Package
        | SealedKind::Person
        | SealedKind::Payout
        | SealedKind::PublishableKey => [nil, Value::from("")],
        SealedKind::Event | SealedKind::Response => [Value::from(""), Value::from("")],
    }
}

fn sealed_value(kind: SealedKind, row: &dyn Row) -> Result<SealedValue, StoreError> {
    let tenant = row.tenant()?;
    let mode = tenant.mode;
    let place = match kind {
        SealedKind::Secret => secret_place(row.id::<_>("id", mode).map(|id: EndpointId| id)?),
        SealedKind::Event => event_place(&tenant, row.text("id")?),
        SealedKind::Package => kyc_place(&tenant, row.id("id", mode)?),
        SealedKind::Person => person_place(&tenant, row.id("id", mode)?),
        SealedKind::Payout => payout_place(&tenant, row.id("id", mode)?),
        SealedKind::PublishableKey => publishable_place(&tenant, row.id("id", mode)?),
        SealedKind::Response => stored_response::place(&Scope {
            tenant: tenant.clone(),
            route: row.text("route")?.to_owned(),
            key: row.parsed("key", |key| IdempotencyKey::parse(key.as_bytes()).ok())?,
        }),
    };
    let (first, second) = match kind {
        SealedKind::Secret => (row.written("id")?, row.small("place")?.to_string()),
        SealedKind::Response => (row.written("route")?, row.written("key")?),
        _ => (row.written("id")?, String::new()),
    };
    Ok(SealedValue {
        row: SealedRow {
            tenant,
            first,
            second,
        },
        place,
        sealed: row.opt_bytes("sealed")?.map(|bytes| Sealed(bytes.to_vec())),
    })
}

fn page(kind: SealedKind) -> &'static Statement {
    match kind {
        SealedKind::Secret => &SECRETS,
        SealedKind::Event => &EVENTS,
        SealedKind::Package => &PACKAGES,
        SealedKind::Person => &PERSONS,
        SealedKind::Payout => &PAYOUTS,
        SealedKind::PublishableKey => &PUBLISHABLE_KEYS,
        SealedKind::Response => &RESPONSES,
    }
}

static SECRETS: Statement = Statement::new(
    "webhook_secrets",
    "SELECT mode, partner_id, endpoint_id AS id, place, sealed FROM webhook_secrets
     WHERE (mode, partner_id, endpoint_id, place) > ($1, $2, $3, $4)
     ORDER BY mode, partner_id, endpoint_id, place LIMIT CAST($5 AS bigint)",
);

static EVENTS: Statement = Statement::new(
    "events",
    "SELECT mode, partner_id, id, body AS sealed FROM events
     WHERE (mode, partner_id, id) > ($1, $2, $3) AND CAST($4 AS text) IS NOT NULL
     ORDER BY mode, partner_id, id LIMIT CAST($5 AS bigint)",
);

static PACKAGES: Statement = Statement::new(
    "sessions",
    "SELECT mode, partner_id, id, kyc_package AS sealed FROM sessions
     WHERE (mode, partner_id, id) > ($1, $2, $3) AND CAST($4 AS text) IS NOT NULL
     ORDER BY mode, partner_id, id LIMIT CAST($5 AS bigint)",
);

static PERSONS: Statement = Statement::new(
    "customers",
    "SELECT mode, partner_id, id, person AS sealed FROM customers
     WHERE (mode, partner_id, id) > ($1, $2, $3) AND CAST($4 AS text) IS NOT NULL
     ORDER BY mode, partner_id, id LIMIT CAST($5 AS bigint)",
);

static PAYOUTS: Statement = Statement::new(
    "rail_records",
    "SELECT mode, partner_id, id, payout AS sealed FROM rail_records
     WHERE (mode, partner_id, id) > ($1, $2, $3) AND CAST($4 AS text) IS NOT NULL
     ORDER BY mode, partner_id, id LIMIT CAST($5 AS bigint)",
);

static PUBLISHABLE_KEYS: Statement = Statement::new(
    "api_keys",
    "SELECT mode, partner_id, id, publishable_sealed AS sealed FROM api_keys
     WHERE (mode, partner_id, id) > ($1, $2, $3) AND CAST($4 AS text) IS NOT NULL
     ORDER BY mode, partner_id, id LIMIT CAST($5 AS bigint)",
);

static RESPONSES: Statement = Statement::new(
    "answers",
    "SELECT mode, partner_id, route, key, answer AS sealed FROM answers
     WHERE (mode, partner_id, route, key) > ($1, $2, $3, $4)
     ORDER BY mode, partner_id, route, key LIMIT CAST($5 AS bigint)",
);

fn replace(kind: SealedKind) -> &'static Statement {
    match kind {
        SealedKind::Secret => &REPLACE_SECRET,
        SealedKind::Event => &REPLACE_EVENT,
        SealedKind::Package => &REPLACE_PACKAGE,
        SealedKind::Person => &REPLACE_PERSON,
        SealedKind::Payout => &REPLACE_PAYOUT,
        SealedKind::PublishableKey => &REPLACE_PUBLISHABLE_KEY,
        SealedKind::Response => &REPLACE_RESPONSE,
    }
}

static REPLACE_SECRET: Statement = Statement::new(
    "webhook_secrets",
    "UPDATE webhook_secrets SET sealed = $5
     WHERE mode = $1 AND partner_id = $2 AND endpoint_id = $3 AND place = $4 AND sealed = $6",
);

static REPLACE_EVENT: Statement = Statement::new(
    "events",
    "UPDATE events SET body = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND CAST($4 AS text) IS NOT NULL AND body = $6",
);

static REPLACE_PACKAGE: Statement = Statement::new(
    "sessions",
    "UPDATE sessions SET kyc_package = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND CAST($4 AS text) IS NOT NULL AND kyc_package = $6",
);

static REPLACE_PERSON: Statement = Statement::new(
    "customers",
    "UPDATE customers SET person = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND CAST($4 AS text) IS NOT NULL AND person = $6",
);

static REPLACE_PAYOUT: Statement = Statement::new(
    "rail_records",
    "UPDATE rail_records SET payout = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND CAST($4 AS text) IS NOT NULL AND payout = $6",
);

static REPLACE_PUBLISHABLE_KEY: Statement = Statement::new(
    "api_keys",
    "UPDATE api_keys SET publishable_sealed = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND CAST($4 AS text) IS NOT NULL AND publishable_sealed = $6",
);

static REPLACE_RESPONSE: Statement = Statement::new(
    "answers",
    "UPDATE answers SET answer = $5
     WHERE mode = $1 AND partner_id = $2 AND route = $3 AND key = $4 AND answer = $6",
);
