//! Rail records: their rows, and the steps of one record.

use std::time::Duration;

use async_trait::async_trait;
use gate_core::due::DueShare;
use gate_core::ports::{HeldBy, Notified, RailTx};
use gate_core::rail::{
    FailureReason, Finding, Hosted, Instructions, OpenItem, PAYOUT_KEPT_FOR, PollLease, RailId,
    RailKind, RailRecord, RailState, RailStatus, Received,
};
use gate_core::session::SessionId;
use gate_core::signed_quote::QuoteTerms;
use gate_core::transaction::RefId;
use kernel::{Cas, Mode, Readable, StoreResult, Timestamp, TraceParent, UpstreamName};
use partner_core::Tenant;
use partner_core::sealing::Sealed;

use crate::due::{self, due_of_each_partner};
use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Sql, Statement, StoreTx, Value, json, signed_quotes, values};

#[async_trait]
impl RailTx for StoreTx {
    async fn rail_insert(&mut self, who: &Tenant, record: &RailRecord) -> StoreResult<()> {
        let fits = record.id.in_mode(who.mode).is_some() && record.state == RailState::Processing;
        guard(fits, || {
            let id = record.id;
            format!("rail_records: {id} has another mode or is not in progress")
        })?;
        let instructions = record.instructions.as_ref();
        let instructions = instructions.map(|it| json(&it.0)).transpose()?;
        let hosted = record.hosted.as_ref();
        let payout = hosted.and_then(|hosted| hosted.payout.as_ref());
        let trace_parent = record.trace_parent.map(|it| it.to_string());
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
            hosted.is_some(),
            record.has_rail_events(),
            hosted.and_then(|hosted| hosted.wallet_address.as_deref()),
            payout.map(|payout| payout.0.as_slice()),
            &record.rail,
            record.pay_until,
            &trace_parent,
        ];
        self.insert_around("rail.insert", who, &INSERT, values)
            .await
    }

    async fn rail_lock(&mut self, who: &Tenant, id: RailId) -> StoreResult<Option<RailRecord>> {
        find(self.locked(who).await?, who, id).await
    }

    async fn rail_ask(
        &mut self,
        who: &Tenant,
        before: &PollLease,
        after: &RailRecord,
    ) -> StoreResult<Cas> {
        let said = said(after);
        let values = values![
            who.mode,
            &who.partner,
            after.id.id().in_mode(who.mode),
            before.attempts,
            before.token.map(u64::cast_signed),
            after.asking.attempts,
            after.asking.token.map(u64::cast_signed),
            after.asking.next_at,
        ];
        let values = [values as &[_], &said].concat();
        self.swap_around("rail.ask", who, &ASK, &values).await
    }

    async fn rail_wake(&mut self, who: &Tenant, id: RailId, now: Timestamp) -> StoreResult<Cas> {
        let values = values![who.mode, &who.partner, id.id().in_mode(who.mode), now];
        self.swap_around("rail.wake", who, &WAKE, values).await
    }

    async fn rail_end(
        &mut self,
        who: &Tenant,
        before: &PollLease,
        after: &RailRecord,
    ) -> StoreResult<Cas> {
        let Some(ended) = after.state.ended_at() else {
            return Ok(self.record_race(Cas::Lost));
        };
        let said = said(after);
        let reason = after.state.failure_reason();
        let values = values![
            who.mode,
            &who.partner,
            after.id.id().in_mode(who.mode),
            before.attempts,
            before.token.map(u64::cast_signed),
            after.state.status().as_str(),
            after.state.failure_code(),
            ended,
            after.state.reference(),
            reason.map(FailureReason::as_str),
            after.watch_at,
        ];
        let values = [values as &[_], &said].concat();
        self.swap_around("rail.end", who, &END, &values).await
    }

    async fn rail_watch(
        &mut self,
        who: &Tenant,
        before: Option<Timestamp>,
        after: &RailRecord,
    ) -> StoreResult<Cas> {
        let said = said(after);
        let values = values![
            who.mode,
            &who.partner,
            after.id.id().in_mode(who.mode),
            before,
            after.watch_at,
        ];
        let values = [values as &[_], &said].concat();
        self.swap_around("rail.watch", who, &WATCH, &values).await
    }
}

/// What the rail has said about a record, for the last parameters of a statement.
fn said(record: &RailRecord) -> [Value<'_>; 5] {
    let (received, item) = (record.received, record.open_item);
    [
        record.acknowledged_at.into(),
        received.map(|it| it.amount.units()).into(),
        received.map(|it| it.at).into(),
        item.map(|item| item.finding.as_str()).into(),
        item.map(|item| item.at).into(),
    ]
}

pub async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: RailId,
) -> StoreResult<Option<RailRecord>> {
    let key = id.id().in_mode(who.mode);
    let values = values![who.mode, &who.partner, key, id.kind().as_str()];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| record(&*row, who.mode)).transpose()
}

/// Every column that is read of a record `r` and its quote `q`.
#[macro_export]
macro_rules! rail_columns {
    () => {
        "r.partner_id, r.id, r.kind, r.quote_id, r.session_id, r.transaction_id, r.instructions, r.status,
            r.failure_code, r.created_at, r.ended_at, r.attempts, r.ask_token, r.ask_at, r.hosted, r.rail_events,
            r.wallet_address, r.payout, r.reference, r.rail, r.pay_until, r.acknowledged_at, r.failure_reason, r.received,
            r.received_at, r.open_item, r.open_item_at, r.watch_at, r.trace_parent, q.side, q.currency, q.asset, q.asset_scale, q.network, q.payment_method, q.fiat,
            q.crypto, q.rate, q.service_fee, q.network_fee, q.source_asset, q.source_scale, q.source_network, q.source_amount"
    };
}

pub static FIND: Statement = Statement::new(
    "rail_records",
    concat!(
        "SELECT ",
        rail_columns!(),
        "
     FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     WHERE r.mode = $1 AND r.partner_id = $2 AND r.id = $3 AND r.kind = $4"
    ),
);

/// The newest payment of a session.
pub async fn of_session(
    reader: &mut dyn Reader,
    who: &Tenant,
    session: SessionId,
) -> StoreResult<Option<RailRecord>> {
    let values = values![who.mode, &who.partner, session.in_mode(who.mode)];
    let row = reader
        .connection()
        .fetch_optional(&NEWEST_OF_SESSION, values)
        .await?;
    row.map(|row| record(&*row, who.mode)).transpose()
}

pub static NEWEST_OF_SESSION: Statement = Statement::new(
    "rail_records",
    concat!(
        "SELECT ",
        rail_columns!(),
        "
     FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     WHERE r.mode = $1 AND r.partner_id = $2 AND r.session_id = $3
     ORDER BY r.created_at DESC, r.id DESC LIMIT 1"
    ),
);

/// Records in progress that are due, of each partner the longest overdue first.
pub async fn due(
    reader: &mut dyn Reader,
    held: HeldBy<'_>,
    share: &DueShare,
) -> StoreResult<Readable<(Tenant, RailId)>> {
    let of = (held.mode, Some(held.upstream), share);
    due::read(reader, &DUE, "ask_at", of, id).await
}

pub static DUE: Statement = Statement::per_engine(
    "rail_records",
    due_of_each_partner!(
        "rail_records" where "status = 'processing' AND rail = $6", "ask_at" in "rail_records_due_of_rail", ["id", "kind"], ""
    ),
);

/// Ended records that are due, of each partner the longest overdue first.
pub async fn watched(
    reader: &mut dyn Reader,
    held: HeldBy<'_>,
    share: &DueShare,
) -> StoreResult<Readable<(Tenant, RailId)>> {
    let of = (held.mode, Some(held.upstream), share);
    due::read(reader, &WATCHED, "watch_at", of, id).await
}

pub static WATCHED: Statement = Statement::per_engine(
    "rail_records",
    due_of_each_partner!(
        "rail_records" where "watch_at IS NOT NULL AND rail = $6", "watch_at" in "rail_records_watched", ["id", "kind"], ""
    ),
);

/// The number of records in progress of each rail that is not one of these.
pub async fn elsewhere(
    reader: &mut dyn Reader,
    mode: Mode,
    names: &[UpstreamName],
) -> StoreResult<Vec<(UpstreamName, u64)>> {
    due::elsewhere(reader, &ELSEWHERE, mode, names).await
}

pub static ELSEWHERE: Statement = Statement::new(
    "rail_records",
    "SELECT rail AS holder, count(*) AS held FROM rail_records
     WHERE mode = $1 AND status = 'processing' AND rail NOT IN ($2, $3)
     GROUP BY rail ORDER BY rail",
);

/// The number of ended records that are watched, of each rail that is not one of these.
pub async fn watched_elsewhere(
    reader: &mut dyn Reader,
    mode: Mode,
    names: &[UpstreamName],
) -> StoreResult<Vec<(UpstreamName, u64)>> {
    due::elsewhere(reader, &WATCHED_ELSEWHERE, mode, names).await
}

pub static WATCHED_ELSEWHERE: Statement = Statement::new(
    "rail_records",
    "SELECT rail AS holder, count(*) AS held FROM rail_records
     WHERE mode = $1 AND watch_at IS NOT NULL AND rail NOT IN ($2, $3)
     GROUP BY rail ORDER BY rail",
);

/// The number of records that an operator must look at, by finding.
pub async fn open_items(reader: &mut dyn Reader, mode: Mode) -> StoreResult<Vec<(Finding, u64)>> {
    let rows = reader
        .connection()
        .fetch_all(&OPEN_ITEMS, values![mode])
        .await?;
    let count = |row: &dyn Row| {
        let finding = row.parsed("open_item", Finding::parse)?;
        Ok((finding, row.count("items")?))
    };
    rows.iter().map(|row| count(row.as_ref())).collect()
}

pub static OPEN_ITEMS: Statement = Statement::new(
    "rail_records",
    "SELECT open_item, count(*) AS items FROM rail_records
     WHERE mode = $1 AND open_item IS NOT NULL GROUP BY open_item ORDER BY open_item",
);

/// The record that a notification names.
pub async fn notified(
    reader: &mut dyn Reader,
    mode: Mode,
    id: RailId,
) -> StoreResult<Option<Notified>> {
    let now = reader.now().await?;
    let values = values![mode, id.id().in_mode(mode), id.kind().as_str(), now];
    let row = reader.connection().fetch_optional(&NOTIFIED, values);
    let found = row.await?.map(|row| {
        Ok(Notified {
            who: row.tenant_in(mode)?,
            rail: row.parsed("rail", UpstreamName::parse)?,
            is_asleep: row.flag("is_asleep")?,
        })
    });
    found.transpose()
}

/// Whether a record can be woken at $4.
macro_rules! is_asleep {
    () => {
        "(status = 'processing' AND ask_at > $4 AND woken_at IS NULL
          OR status <> 'processing' AND (watch_at IS NULL OR watch_at > $4))"
    };
}

pub static NOTIFIED: Statement = Statement::new(
    "rail_records",
    concat!(
        "SELECT partner_id, rail, ",
        is_asleep!(),
        " AS is_asleep FROM rail_records WHERE mode = $1 AND id = $2 AND kind = $3"
    ),
);

/// The age of the oldest record in progress.
pub async fn oldest(reader: &mut dyn Reader, mode: Mode) -> StoreResult<Option<Duration>> {
    let now = reader.now().await?;
    let values = values![mode];
    let found = reader.connection().fetch_optional(&OLDEST, values).await?;
    let created = found.map(|row| row.instant("created_at"));
    Ok(created.transpose()?.map(|at| now.since(at)))
}

/// Ids begin with the instant at which they were made.
pub static OLDEST: Statement = Statement::new(
    "rail_records",
    "SELECT partner_id, created_at FROM rail_records WHERE mode = $1 AND status = 'processing' ORDER BY id LIMIT 1",
);

/// A record, from a row that also has its quote's terms.
pub(crate) fn record(row: &dyn Row, mode: Mode) -> StoreResult<RailRecord> {
    let id = id(row, mode)?;
    let instructions = row.opt_parsed("instructions", |text| serde_json::from_str(text).ok())?;
    let hosted = hosted(row)?;
    let state = RailState::stored(
        RailRecord::is_cancellable(id.kind(), hosted.is_some()),
        row.parsed("status", RailStatus::parse)?,
        row.opt_instant("ended_at")?,
        (
            row.opt_text("failure_code")?,
            row.opt_parsed("failure_reason", FailureReason::parse)?,
            row.opt_text("reference")?,
        ),
    );
    let terms = signed_quotes::terms(row)?;
    let received = received(row, &terms)?;
    Ok(RailRecord {
        id,
        quote: row.id("quote_id", mode)?,
        terms,
        session: row.id("session_id", mode)?,
        refid: RefId::from(row.id("transaction_id", mode)?),
        instructions: instructions.map(Instructions),
        hosted,
        rail: row.parsed("rail", UpstreamName::parse)?,
        created_at: row.instant("created_at")?,
        pay_until: row.opt_instant("pay_until")?,
        state: state.ok_or_else(|| row.bad("status"))?,
        asking: PollLease {
            attempts: row.count("attempts")?,
            token: row.opt_integer("ask_token")?.map(i64::cast_unsigned),
            next_at: row.instant("ask_at")?,
        },
        acknowledged_at: row.opt_instant("acknowledged_at")?,
        received,
        open_item: open_item(row)?,
        trace_parent: row.opt_parsed("trace_parent", |text| TraceParent::parse(text.as_bytes()))?,
        watch_at: row.opt_instant("watch_at")?,
    })
}

fn received(row: &dyn Row, terms: &QuoteTerms) -> StoreResult<Option<Received>> {
    let amount = row.opt_amount("received", terms.paid().amount.asset())?;
    let at = row.opt_instant("received_at")?;
    Ok(amount.zip(at).map(|(amount, at)| Received { amount, at }))
}

fn open_item(row: &dyn Row) -> StoreResult<Option<OpenItem>> {
    let finding = row.opt_parsed("open_item", Finding::parse)?;
    let at = row.opt_instant("open_item_at")?;
    Ok(finding
        .zip(at)
        .map(|(finding, at)| OpenItem { finding, at }))
}

fn hosted(row: &dyn Row) -> StoreResult<Option<Hosted>> {
    if !row.flag("hosted")? {
        return Ok(None);
    }
    Ok(Some(Hosted {
        wallet_address: row.opt_string("wallet_address")?,
        payout: row.opt_bytes("payout")?.map(|bytes| Sealed(bytes.to_vec())),
        rail_events: row.flag("rail_events")?,
    }))
}

fn id(row: &dyn Row, mode: Mode) -> StoreResult<RailId> {
    let kind = row.parsed("kind", RailKind::parse)?;
    Ok(RailId::from_parts(kind, row.id("id", mode)?))
}

static INSERT: Statement = Statement::new(
    "rail_records",
    "INSERT INTO rail_records (mode, partner_id, id, kind, quote_id, session_id, transaction_id, instructions,
                               status, created_at, attempts, ask_token, ask_at, hosted, rail_events, wallet_address,
                               payout, rail, pay_until, trace_parent)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'processing', $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
);

/// Erases payout accounts of records that ended [`PAYOUT_KEPT_FOR`] ago or earlier, the oldest first. Returns their number.
pub async fn erase_payouts(
    connection: &mut dyn Connection,
    mode: Mode,
    now: Timestamp,
    limit: u32,
) -> StoreResult<u64> {
    let values = values![mode, now.minus(PAYOUT_KEPT_FOR), limit];
    connection.execute(&ERASE_PAYOUTS, values).await
}

/// On Postgres, it skips records that another transaction has locked.
pub static ERASE_PAYOUTS: Statement = Statement::per_engine(
    "rail_records",
    Sql {
        sqlite: "UPDATE rail_records SET payout = NULL WHERE rowid IN (
             SELECT rowid FROM rail_records
             WHERE mode = $1 AND ended_at <= $2 AND payout IS NOT NULL ORDER BY ended_at LIMIT CAST($3 AS bigint)
         )",
        postgres: "UPDATE rail_records SET payout = NULL WHERE (mode, partner_id, id) IN (
             SELECT mode, partner_id, id FROM rail_records
             WHERE mode = $1 AND ended_at <= $2 AND payout IS NOT NULL ORDER BY ended_at LIMIT CAST($3 AS bigint)
             FOR UPDATE SKIP LOCKED
         )",
    },
);

/// A record in progress has no end. Said by its status, Postgres could look it up among all records in progress.
pub static ASK: Statement = Statement::new(
    "rail_records",
    "UPDATE rail_records SET attempts = $6, ask_token = $7, woken_at = NULL, acknowledged_at = $9, received = $10, received_at = $11,
                             open_item = $12, open_item_at = $13,
                             ask_at = CASE WHEN CAST($7 AS bigint) IS NULL THEN coalesce(woken_at, $8) ELSE $8 END
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND ended_at IS NULL AND attempts = $4
       AND ask_token IS NOT DISTINCT FROM $5",
);

/// A poll that is under way keeps its lease.
static WAKE: Statement = Statement::new(
    "rail_records",
    concat!(
        "UPDATE rail_records SET ask_at = CASE WHEN ask_token IS NULL AND status = 'processing' THEN $4 ELSE ask_at END,
                             woken_at = CASE WHEN ask_token IS NOT NULL AND status = 'processing' THEN $4 END,
                             watch_at = CASE WHEN status <> 'processing' THEN $4 END
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND ",
        is_asleep!()
    ),
);

pub static END: Statement = Statement::new(
    "rail_records",
    "UPDATE rail_records SET status = $6, failure_code = $7, ended_at = $8, reference = $9, failure_reason = $10, watch_at = coalesce(woken_at, $11),
                             acknowledged_at = $12, received = $13, received_at = $14, open_item = $15, open_item_at = $16,
                             ask_token = NULL, woken_at = NULL
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND ended_at IS NULL AND attempts = $4
       AND ask_token IS NOT DISTINCT FROM $5",
);

pub static WATCH: Statement = Statement::new(
    "rail_records",
    "UPDATE rail_records SET watch_at = $5, acknowledged_at = $6, received = $7, received_at = $8, open_item = $9, open_item_at = $10
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND ended_at IS NOT NULL AND watch_at IS NOT DISTINCT FROM $4",
);
