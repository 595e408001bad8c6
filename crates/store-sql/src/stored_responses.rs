//! Stored responses (table `answers`), found and replaced by their scope.

use std::time::Duration;

use async_trait::async_trait;
use kernel::{Cas, Seen, StoreResult, Timestamp};
use partner_core::idempotency::{Fingerprint, Scope};
use partner_core::ports::ResponseTx;
use partner_core::sealing::Sealed;
use partner_core::stored_response::StoredResponse;

use crate::{Connection, Reader, Row, Statement, StoreTx, idempotency, values};

#[async_trait]
impl ResponseTx for StoreTx {
    async fn response_lock(&mut self, scope: &Scope) -> StoreResult<Option<StoredResponse>> {
        let ttl = self.engine.idempotency_ttl();
        find(self.locked(&scope.tenant).await?, scope, ttl).await
    }

    async fn response_put(
        &mut self,
        scope: &Scope,
        response: &StoredResponse,
        expired: Option<Timestamp>,
    ) -> StoreResult<Cas> {
        let who = &scope.tenant;
        let values = values![
            who.mode,
            &who.partner,
            &scope.route,
            scope.key.as_str(),
            response.fingerprint.0.as_slice(),
            response.sealed.0.as_slice(),
            response.created_at,
            expired,
            response.expires_at,
        ];
        self.swap_around("stored_response.put", who, &PUT, values)
            .await
    }
}

pub async fn get(
    reader: &mut dyn Reader,
    scope: &Scope,
    ttl: Duration,
) -> StoreResult<Seen<Option<StoredResponse>>> {
    let response = find(reader.connection(), scope, ttl).await?;
    reader.seen(response).await
}

async fn find(
    connection: &mut dyn Connection,
    scope: &Scope,
    ttl: Duration,
) -> StoreResult<Option<StoredResponse>> {
    let (who, key) = (&scope.tenant, scope.key.as_str());
    let values = values![who.mode, &who.partner, &scope.route, key];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| response(&*row, ttl)).transpose()
}

pub static FIND: Statement = Statement::new(
    "answers",
    "SELECT partner_id, key, fingerprint, answer, created_at AS key_created_at, expires_at AS key_expires_at
     FROM answers WHERE mode = $1 AND partner_id = $2 AND route = $3 AND key = $4",
);

fn response(row: &dyn Row, ttl: Duration) -> StoreResult<StoredResponse> {
    Ok(StoredResponse {
        fingerprint: Fingerprint(row.digest("fingerprint")?),
        sealed: Sealed(row.bytes("answer")?.to_vec()),
        created_at: row.instant("key_created_at")?,
        expires_at: idempotency::expiry(row, ttl)?,
    })
}

static PUT: Statement = Statement::new(
    "answers",
    "INSERT INTO answers (mode, partner_id, route, key, fingerprint, answer, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $9)
     ON CONFLICT (mode, partner_id, route, key) DO UPDATE SET
         fingerprint = excluded.fingerprint, answer = excluded.answer, created_at = excluded.created_at,
         expires_at = excluded.expires_at
     WHERE answers.created_at = $8",
);
