//! StoredResponse answers: found and overwritten by their scope.

use crate::conn::Conn;
use async_trait::async_trait;
use instruments::failpoint::{Step, around};
use kernel::{Cas, Seen, StoreError, Timestamp};
use partner_core::idempotency::Scope;
use partner_core::ports::{ResponseReads, ResponseTx};
use partner_core::stored_response::StoredResponse;
use store_sql::stored_responses::kept;

use crate::row::Columns;
use crate::tx::PgTx;
use crate::{PostgresStore, errors};

#[async_trait]
impl ResponseReads for PostgresStore {
    async fn answer_get(&self, scope: &Scope) -> Result<Seen<Option<StoredResponse>>, StoreError> {
        let mut conn = self.inner.conn().await?;
        let kept = find(&mut conn, scope).await?;
        self.seen_now(&mut conn, kept).await
    }
}

#[async_trait]
impl ResponseTx for PgTx {
    async fn answer_lock(&mut self, scope: &Scope) -> Result<Option<StoredResponse>, StoreError> {
        find(self.locked_connection(&scope.tenant).await?, scope).await
    }

    async fn answer_put(
        &mut self,
        scope: &Scope,
        kept: &StoredResponse,
        expired: Option<Timestamp>,
    ) -> Result<Cas, StoreError> {
        let putting = put(
            self.locked_connection(&scope.tenant).await?,
            scope,
            kept,
            expired,
        );
        let outcome = around(Step::AnswerPut, putting).await?;
        Ok(self.record_race(outcome))
    }
}

async fn find(conn: &mut Conn, scope: &Scope) -> Result<Option<StoredResponse>, StoreError> {
    let row = sqlx::query(FIND)
        .bind(scope.tenant.mode.as_str())
        .bind(scope.tenant.partner.as_str())
        .bind(&scope.route)
        .bind(scope.key.as_str())
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)?;
    row.map(|row| kept(&Columns::new("answers", &row)))
        .transpose()
}

pub(crate) const FIND: &str = "SELECT partner_id, key, fingerprint, answer, created_at,
            CASE WHEN expires_at > created_at THEN expires_at ELSE created_at + 86400000 END AS answered_until
     FROM answers
     WHERE mode = $1 AND partner_id = $2 AND route = $3 AND key = $4";

async fn put(
    conn: &mut Conn,
    scope: &Scope,
    kept: &StoredResponse,
    expired: Option<Timestamp>,
) -> Result<Cas, StoreError> {
    let written = sqlx::query(
        "INSERT INTO answers (mode, partner_id, route, key, fingerprint, answer, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $9)
         ON CONFLICT (mode, partner_id, route, key) DO UPDATE SET
             fingerprint = excluded.fingerprint, answer = excluded.answer, created_at = excluded.created_at,
             expires_at = excluded.expires_at
         WHERE answers.created_at = $8",
    )
    .bind(scope.tenant.mode.as_str())
    .bind(scope.tenant.partner.as_str())
    .bind(&scope.route)
    .bind(scope.key.as_str())
    .bind(kept.fingerprint.0.as_slice())
    .bind(&kept.answer.0)
    .bind(kept.created_at.millis())
    .bind(expired.map(Timestamp::millis))
    .bind(kept.expires_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
