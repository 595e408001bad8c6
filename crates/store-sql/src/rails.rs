//! Rail records: their rows, and the steps of one record.

use async_trait::async_trait;
use gate_core::ports::RailTx;
use gate_core::rail::{
    Instructions, PollLease, RailId, RailKind, RailRecord, RailState, RailStatus, RailStep,
};
use gate_core::transaction::RefId;
use instruments::failpoint::around;
use kernel::{Cas, Mode, StoreError};
use partner_core::Tenant;

use crate::{Connection, Reader, Row, Statement, StoreTx, json, signed_quotes, values};

#[async_trait]
impl RailTx for StoreTx {
    async fn rail_insert(&mut self, who: &Tenant, record: &RailRecord) -> Result<(), StoreError> {
        let inserting = insert(self.locked(who).await?, who, record);
        around("rail.insert", inserting).await
    }

    async fn rail_lock(
        &mut self,
        who: &Tenant,
        id: RailId,
    ) -> Result<Option<RailRecord>, StoreError> {
        find(self.locked(who).await?, who, id).await
    }

    async fn rail_ask(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        after: &PollLease,
    ) -> Result<Cas, StoreError> {
        let asking = ask(self.locked(who).await?, who, id, before, after);
        let outcome = around("rail.ask", asking).await?;
        Ok(self.record_race(outcome))
    }

    async fn rail_apply(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        step: &RailStep,
    ) -> Result<Cas, StoreError> {
        let applying = apply(self.locked(who).await?, who, id, before, step);
        let outcome = around("rail.apply", applying).await?;
        Ok(self.record_race(outcome))
    }
}

pub async fn get(
    reader: &mut dyn Reader,
    who: &Tenant,
    id: RailId,
) -> Result<Option<RailRecord>, StoreError> {
    find(reader.connection(), who, id).await
}

async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: RailId,
) -> Result<Option<RailRecord>, StoreError> {
    let Some(key) = id.id().in_mode(who.mode) else {
        return Ok(None);
    };
    let values = values![who.mode, &who.partner, key, id.kind().as_str()];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| record(&*row, who.mode)).transpose()
}

static FIND: Statement = Statement::new(
    "rail_records",
    "SELECT r.partner_id, r.id, r.kind, r.quote_id, r.session_id, r.transaction_id, r.instructions, r.status,
            r.failure_code, r.created_at, r.ended_at, r.attempts, r.ask_token, r.ask_at, q.side, q.currency,
            q.asset, q.asset_scale, q.network, q.payment_method, q.fiat, q.crypto, q.rate, q.service_fee,
            q.network_fee
     FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     WHERE r.mode = $1 AND r.partner_id = $2 AND r.id = $3 AND r.kind = $4",
);

/// Records that are due, the longest overdue first.
pub async fn due(
    reader: &mut dyn Reader,
    mode: Mode,
    limit: u32,
) -> Result<Vec<(Tenant, RailId)>, StoreError> {
    let now = reader.now().await?;
    let values = values![mode, now, limit];
    let rows = reader.connection().fetch_all(&DUE, values).await?;
    rows.iter()
        .map(|row| {
            let partner = row.partner()?;
            Ok((Tenant { partner, mode }, id(&**row, mode)?))
        })
        .collect()
}

pub static DUE: Statement = Statement::new(
    "rail_records",
    "SELECT partner_id, id, kind FROM rail_records
     WHERE mode = $1 AND status = 'processing' AND ask_at <= $2 ORDER BY ask_at LIMIT CAST($3 AS bigint)",
);

/// A record, from a row that also has its quote's terms.
pub(crate) fn record(row: &dyn Row, mode: Mode) -> Result<RailRecord, StoreError> {
    let id = id(row, mode)?;
    let instructions = row.opt_parsed("instructions", |text| serde_json::from_str(text).ok())?;
    let state = RailState::stored(
        id.kind(),
        row.parsed("status", RailStatus::parse)?,
        row.opt_instant("ended_at")?,
        row.opt_text("failure_code")?,
    );
    Ok(RailRecord {
        id,
        quote: row.id("quote_id", mode)?,
        terms: signed_quotes::terms(row)?,
        session: row.id("session_id", mode)?,
        refid: RefId::from(row.id("transaction_id", mode)?),
        instructions: instructions.map(Instructions),
        created_at: row.instant("created_at")?,
        state: state.ok_or_else(|| row.bad("status"))?,
        asking: PollLease {
            attempts: row.count("attempts")?,
            token: row.opt_integer("ask_token")?.map(i64::cast_unsigned),
            next_at: row.instant("ask_at")?,
        },
    })
}

fn id(row: &dyn Row, mode: Mode) -> Result<RailId, StoreError> {
    let kind = row.parsed("kind", RailKind::parse)?;
    Ok(RailId::from_parts(kind, row.id("id", mode)?))
}

/// A new record belongs to the tenant and is in progress.
fn check_new(who: &Tenant, record: &RailRecord) -> Result<(), StoreError> {
    if record.id.in_mode(who.mode).is_some() && record.state == RailState::Processing {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "rail_records: {} has another mode or is not in progress",
        record.id
    )))
}

async fn insert(
    connection: &mut dyn Connection,
    who: &Tenant,
    record: &RailRecord,
) -> Result<(), StoreError> {
    check_new(who, record)?;
    let instructions = record.instructions.as_ref();
    let instructions = instructions.map(|it| json(&it.0)).transpose()?;
    let values = values![
        who.mode,
        &who.partner,
        record.id.id(),
        record.id.kind().as_str(),
        record.quote,
        record.session,
        record.refid.id(),
        &instructions,
        record.created_at,
        record.asking.attempts,
        record.asking.token.map(u64::cast_signed),
        record.asking.next_at,
    ];
    connection.execute(&INSERT, values).await.map(drop)
}

static INSERT: Statement = Statement::new(
    "rail_records",
    "INSERT INTO rail_records (mode, partner_id, id, kind, quote_id, session_id, transaction_id, instructions,
                               status, created_at, attempts, ask_token, ask_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'processing', $9, $10, $11, $12)",
);

async fn ask(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: RailId,
    before: &PollLease,
    after: &PollLease,
) -> Result<Cas, StoreError> {
    let Some(id) = id.id().in_mode(who.mode) else {
        return Ok(Cas::Lost);
    };
    let values = values![
        who.mode,
        &who.partner,
        id,
        before.attempts,
        before.token.map(u64::cast_signed),
        after.attempts,
        after.token.map(u64::cast_signed),
        after.next_at,
    ];
    Cas::from_rows(connection.execute(&ASK, values).await?)
}

static ASK: Statement = Statement::new(
    "rail_records",
    "UPDATE rail_records SET attempts = $6, ask_token = $7, ask_at = $8
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND status = 'processing' AND attempts = $4
       AND ask_token IS NOT DISTINCT FROM $5",
);

async fn apply(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: RailId,
    before: &PollLease,
    step: &RailStep,
) -> Result<Cas, StoreError> {
    let (Some(id), Some(ended)) = (id.id().in_mode(who.mode), step.0.ended_at()) else {
        return Ok(Cas::Lost);
    };
    let values = values![
        who.mode,
        &who.partner,
        id,
        before.attempts,
        before.token.map(u64::cast_signed),
        step.0.status().as_str(),
        step.0.failure_code(),
        ended,
    ];
    Cas::from_rows(connection.execute(&APPLY, values).await?)
}

static APPLY: Statement = Statement::new(
    "rail_records",
    "UPDATE rail_records SET status = $6, failure_code = $7, ended_at = $8, ask_token = NULL
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND status = 'processing' AND attempts = $4
       AND ask_token IS NOT DISTINCT FROM $5",
);
