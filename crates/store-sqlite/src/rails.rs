//! Rail records: rows in and out, and the steps of one record.

use async_trait::async_trait;
use gate_core::ports::RailTx;
use gate_core::rail::{PollLease, RailId, RailRecord, RailStep};
use instruments::failpoint::{Step, around};
use kernel::{Cas, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use sqlx::SqliteConnection;
use store_sql::rails::{check_new, id, record};

use crate::errors;
use crate::row::{Columns, json, key, own_key};
use crate::tx::SqliteTx;

#[async_trait]
impl RailTx for SqliteTx {
    async fn rail_insert(&mut self, who: &Tenant, record: &RailRecord) -> Result<(), StoreError> {
        let inserting = insert(self.conn(), who, record);
        around(Step::RailInsert, inserting).await
    }

    async fn rail_lock(
        &mut self,
        who: &Tenant,
        id: RailId,
    ) -> Result<Option<RailRecord>, StoreError> {
        find(self.conn(), who, id).await
    }

    async fn rail_ask(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        after: &PollLease,
    ) -> Result<Cas, StoreError> {
        let asking = ask(self.conn(), who, id, before, after);
        let outcome = around(Step::RailAsk, asking).await?;
        Ok(self.record_race(outcome))
    }

    async fn rail_apply(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        step: &RailStep,
    ) -> Result<Cas, StoreError> {
        let applying = apply(self.conn(), who, id, before, step);
        let outcome = around(Step::RailApply, applying).await?;
        Ok(self.record_race(outcome))
    }
}

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
    id: RailId,
) -> Result<Option<RailRecord>, StoreError> {
    let Some(key) = own_key(who, id.id()) else {
        return Ok(None);
    };
    let row = sqlx::query(
        "SELECT r.partner_id, r.id, r.kind, r.quote_id, r.session_id, r.transaction_id, r.instructions, r.status,
                r.failure_code, r.created_at, r.ended_at, r.attempts, r.ask_token, r.ask_at, q.side, q.currency,
                q.asset, q.asset_scale, q.network, q.payment_method, q.fiat, q.crypto, q.rate, q.service_fee,
                q.network_fee
         FROM rail_records AS r
         JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
         WHERE r.mode = ?1 AND r.partner_id = ?2 AND r.id = ?3 AND r.kind = ?4",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(id.kind().as_str())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| record(&Columns::new("rail_records", &row), who.mode))
        .transpose()
}

/// Records that are due, the longest overdue first.
pub(crate) async fn due(
    conn: &mut SqliteConnection,
    mode: Mode,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<(Tenant, RailId)>, StoreError> {
    let rows = sqlx::query(DUE)
        .bind(mode.as_str())
        .bind(now.millis())
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| {
            let row = Columns::new("rail_records", row);
            let partner = row.partner()?;
            Ok((Tenant { partner, mode }, id(&row, mode)?))
        })
        .collect()
}

pub(crate) const DUE: &str = "SELECT partner_id, id, kind FROM rail_records
     WHERE mode = ?1 AND status = 'processing' AND ask_at <= ?2 ORDER BY ask_at LIMIT +?3";

async fn insert(
    conn: &mut SqliteConnection,
    who: &Tenant,
    record: &RailRecord,
) -> Result<(), StoreError> {
    check_new(who, record)?;
    let instructions = record.instructions.as_ref();
    let instructions = instructions.map(|it| json(&it.0)).transpose()?;
    sqlx::query(
        "INSERT INTO rail_records (mode, partner_id, id, kind, quote_id, session_id, transaction_id, instructions,
                                   status, created_at, attempts, ask_token, ask_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'processing', ?9, ?10, ?11, ?12)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(record.id.id()))
    .bind(record.id.kind().as_str())
    .bind(key(record.quote))
    .bind(key(record.session))
    .bind(key(record.refid.id()))
    .bind(instructions)
    .bind(record.created_at.millis())
    .bind(i64::from(record.asking.attempts))
    .bind(record.asking.token.map(u64::cast_signed))
    .bind(record.asking.next_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

async fn ask(
    conn: &mut SqliteConnection,
    who: &Tenant,
    id: RailId,
    before: &PollLease,
    after: &PollLease,
) -> Result<Cas, StoreError> {
    let Some(key) = own_key(who, id.id()) else {
        return Ok(Cas::Lost);
    };
    let written = sqlx::query(
        "UPDATE rail_records SET attempts = ?6, ask_token = ?7, ask_at = ?8
         WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND status = 'processing' AND attempts = ?4
           AND ask_token IS ?5",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(i64::from(before.attempts))
    .bind(before.token.map(u64::cast_signed))
    .bind(i64::from(after.attempts))
    .bind(after.token.map(u64::cast_signed))
    .bind(after.next_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}

async fn apply(
    conn: &mut SqliteConnection,
    who: &Tenant,
    id: RailId,
    before: &PollLease,
    step: &RailStep,
) -> Result<Cas, StoreError> {
    let (Some(key), Some(ended)) = (own_key(who, id.id()), step.0.ended_at()) else {
        return Ok(Cas::Lost);
    };
    let written = sqlx::query(
        "UPDATE rail_records SET status = ?6, failure_code = ?7, ended_at = ?8, ask_token = NULL
         WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND status = 'processing' AND attempts = ?4
           AND ask_token IS ?5",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(i64::from(before.attempts))
    .bind(before.token.map(u64::cast_signed))
    .bind(step.0.status().as_str())
    .bind(step.0.failure_code())
    .bind(ended.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
