//! Locked previews: rows in and out.

use crate::conn::Conn;
use async_trait::async_trait;
use gate_core::ports::PreviewTx;
use gate_core::preview::{Preview, PreviewId};
use gate_core::session::SessionId;
use instruments::failpoint::{Step, around};
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use store_sql::previews::preview;

use crate::errors;
use crate::row::{Columns, key};
use crate::tx::PgTx;

#[async_trait]
impl PreviewTx for PgTx {
    async fn preview_insert(&mut self, who: &Tenant, preview: &Preview) -> Result<(), StoreError> {
        let inserting = insert(self.locked_connection(who).await?, who, preview);
        around(Step::PreviewInsert, inserting).await
    }

    async fn preview_lock(
        &mut self,
        who: &Tenant,
        id: PreviewId,
    ) -> Result<Option<Preview>, StoreError> {
        find(self.locked_connection(who).await?, who, id).await
    }

    async fn preview_use(
        &mut self,
        who: &Tenant,
        id: PreviewId,
        session: SessionId,
        now: Timestamp,
    ) -> Result<Cas, StoreError> {
        let noting = note(self.locked_connection(who).await?, who, id, session, now);
        let outcome = around(Step::PreviewUse, noting).await?;
        Ok(self.record_race(outcome))
    }
}

async fn find(conn: &mut Conn, who: &Tenant, id: PreviewId) -> Result<Option<Preview>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, id, side, currency, asset, amount, created_at, expires_at, session_id, used_at
         FROM quote_previews WHERE mode = $1 AND partner_id = $2 AND id = $3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(id.to_string())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| preview(&Columns::new("quote_previews", &row), who.mode))
        .transpose()
}

async fn insert(conn: &mut Conn, who: &Tenant, preview: &Preview) -> Result<(), StoreError> {
    let bound = &preview.bound;
    sqlx::query(
        "INSERT INTO quote_previews (mode, partner_id, id, side, currency, asset, amount, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(preview.id.to_string())
    .bind(bound.side.as_str())
    .bind(bound.currency.code())
    .bind(&bound.asset)
    .bind(bound.units)
    .bind(preview.created_at.millis())
    .bind(preview.expires_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

async fn note(
    conn: &mut Conn,
    who: &Tenant,
    id: PreviewId,
    session: SessionId,
    now: Timestamp,
) -> Result<Cas, StoreError> {
    let written = sqlx::query(
        "UPDATE quote_previews SET session_id = $4, used_at = $5
         WHERE mode = $1 AND partner_id = $2 AND id = $3 AND session_id IS NULL AND expires_at > $5",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(id.to_string())
    .bind(key(session))
    .bind(now.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}

/// Deletes the oldest previews that were made, and have expired, before an instant; how many.
pub(crate) async fn sweep(
    conn: &mut Conn,
    before: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    let swept = sqlx::query(
        "DELETE FROM quote_previews WHERE (mode, partner_id, id) IN (
             SELECT mode, partner_id, id FROM quote_previews
             WHERE created_at < $1 AND expires_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
    )
    .bind(before.millis())
    .bind(i64::from(limit))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(swept.rows_affected())
}
