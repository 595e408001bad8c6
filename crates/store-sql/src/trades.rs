//! Trades: their rows, and the steps of one trade.

use async_trait::async_trait;
use instruments::failpoint::around;
use kernel::{Cas, Mid, Mode, Seen, StoreResult, Timestamp, UpstreamName};
use partner_core::Tenant;
use pools_core::ports::{TradeFilter, TradeTx};
use pools_core::quote::{QuoteId, Side};
use pools_core::trade::{Lease, Settlement, Step, Trade, TradeId, TradeState, TradeStatus};

use crate::bounds::upper_bound;
use crate::statement::with_clock;
use crate::{Connection, Reader, Row, Sql, Statement, StoreTx, quotes, values};

#[async_trait]
impl TradeTx for StoreTx {
    async fn trade_lock(&mut self, who: &Tenant, id: TradeId) -> StoreResult<Option<Trade>> {
        find(self.locked(who).await?, who, id).await
    }

    async fn trade_claim(
        &mut self,
        who: &Tenant,
        id: TradeId,
        attempt: u32,
        lease: Lease,
    ) -> StoreResult<Cas> {
        let id = id.in_mode(who.mode);
        let token = lease.token.cast_signed();
        let values = values![who.mode, &who.partner, id, attempt, token, lease.until];
        let written = self.locked(who).await?.execute(&CLAIM, values).await?;
        Ok(self.record_race(Cas::from_rows(written)?))
    }

    async fn trade_unclaim(&mut self, who: &Tenant, id: TradeId, token: u64) -> StoreResult<Cas> {
        let id = id.in_mode(who.mode);
        let values = values![who.mode, &who.partner, id, token.cast_signed()];
        let written = self.locked(who).await?.execute(&UNCLAIM, values).await?;
        Ok(self.record_race(Cas::from_rows(written)?))
    }

    async fn trade_rest(&mut self, who: &Tenant, id: TradeId, lease: Lease) -> StoreResult<Cas> {
        let id = id.in_mode(who.mode);
        let token = lease.token.cast_signed();
        let values = values![who.mode, &who.partner, id, token, lease.until];
        let written = self.locked(who).await?.execute(&REST, values).await?;
        Ok(self.record_race(Cas::from_rows(written)?))
    }

    async fn trade_apply(
        &mut self,
        who: &Tenant,
        before: &Trade,
        steps: &[Step],
        token: u64,
    ) -> StoreResult<Cas> {
        let (Some(id), Some(last)) = (before.id.in_mode(who.mode), steps.last()) else {
            return Ok(Cas::Lost);
        };
        let applying = apply(self.locked(who).await?, who, before, last, token);
        let applied = around("trade.apply", applying).await?;
        if self.record_race(applied) == Cas::Lost {
            return Ok(Cas::Lost);
        }
        let mut from = before.state.status();
        for step in steps {
            let to = step.state.status();
            let at = step.reached_at(before);
            let values = values![who.mode, &who.partner, id, from.as_str(), to.as_str(), at];
            let connection = self.locked(who).await?;
            connection.execute(&INSERT_TRANSITION, values).await?;
            let measured = &mut self.engine.effects().measured;
            measured.step(from.as_str(), to.as_str(), 1);
            from = to;
        }
        let begun = before.state.status();
        self.engine.count_trade(who, begun, from).await?;
        Ok(Cas::Won)
    }
}

static CLAIM: Statement = Statement::new(
    "trades",
    "UPDATE trades SET attempts = $4, lease_token = $5, lease_until = $6
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND attempts = $4 - 1",
);

static UNCLAIM: Statement = Statement::new(
    "trades",
    "UPDATE trades SET lease_token = NULL, lease_until = NULL
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND lease_token = $4",
);

static REST: Statement = Statement::new(
    "trades",
    "UPDATE trades SET lease_until = $5 WHERE mode = $1 AND partner_id = $2 AND id = $3 AND lease_token = $4",
);

static INSERT_TRANSITION: Statement = Statement::new(
    "trade_transitions",
    "INSERT INTO trade_transitions (mode, partner_id, trade_id, from_status, to_status, created_at)
     VALUES ($1, $2, $3, $4, $5, $6)",
);

/// Writes the state after the last step. The statement repeats the preconditions of the decision and never changes a settlement.
async fn apply(
    connection: &mut dyn Connection,
    who: &Tenant,
    before: &Trade,
    last: &Step,
    token: u64,
) -> StoreResult<Cas> {
    let settlement = last.state.settlement();
    let rate = settlement.and_then(|settlement| settlement.rate);
    let rate = rate.map(|rate| rate.to_string());
    let [released, failed, returned] = last.state.ends();
    let values = values![
        who.mode,
        &who.partner,
        before.id,
        before.state.status().as_str(),
        token.cast_signed(),
        last.state.status().as_str(),
        settlement.map(|settlement| settlement.at),
        settlement.map(|settlement| settlement.fill.as_str()),
        released,
        failed,
        returned,
        &rate,
    ];
    Cas::from_rows(connection.execute(&APPLY, values).await?)
}

static APPLY: Statement = Statement::new(
    "trades",
    "UPDATE trades
     SET status = $6, settled_at = $7, fill = $8, released_at = $9, failed_at = $10, returned_at = $11,
         fill_rate = $12, lease_token = NULL, lease_until = NULL
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND status = $4 AND lease_token = $5
       AND (settled_at IS NULL OR settled_at = $7)",
);

pub async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: TradeId,
) -> StoreResult<Option<Trade>> {
    let values = values![who.mode, &who.partner, id.in_mode(who.mode)];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| trade(&*row, who.mode)).transpose()
}

/// Every column that [`trade`] reads, each after the table's prefix, such as `"t."` or `""`.
#[macro_export]
macro_rules! trade_columns {
    ($table:literal) => {
        $crate::prefixed!(
            $table:
            "partner_id", "id", "quote_id", "pool", "side", "network", "fiat", "crypto", "rate", "spread_bps", "fee_bps",
            "notional", "dest_address", "dest_network", "reserved", "status", "created_at", "settled_at", "fill",
            "released_at", "failed_at", "returned_at", "attempts", "lease_token", "lease_until", "engine", "mid", "fill_rate"
        )
    };
}

/// The condition that a trade of the named table is open: its value is still reserved.
macro_rules! open {
    ($trades:literal) => {
        concat!($trades, ".status = 'reserved'")
    };
}
pub(crate) use open;

static FIND: Statement = Statement::new(
    "trades",
    concat!(
        "SELECT ",
        trade_columns!(""),
        " FROM trades WHERE mode = $1 AND partner_id = $2 AND id = $3"
    ),
);

/// The trade of a quote.
pub async fn get_by_quote(
    reader: &mut dyn Reader,
    who: &Tenant,
    quote: QuoteId,
) -> StoreResult<Option<Seen<Trade>>> {
    let values = values![who.mode, &who.partner, quote.in_mode(who.mode)];
    let connection = reader.connection();
    let Some(row) = connection.fetch_optional(&FIND_BY_QUOTE, values).await? else {
        return Ok(None);
    };
    let (value, at) = (trade(&*row, who.mode)?, reader.instant_of(&*row)?);
    Ok(Some(Seen { value, at }))
}

static FIND_BY_QUOTE: Statement = Statement::per_engine(
    "trades",
    with_clock!(
        trade_columns!(""),
        " FROM trades WHERE mode = $1 AND partner_id = $2 AND quote_id = $3"
    ),
);

/// A page by (`created_at`, id) descending. Each combination of filters has a statement and an index.
pub async fn page(
    connection: &mut dyn Connection,
    who: &Tenant,
    filter: &TradeFilter,
    limit: u32,
) -> StoreResult<Vec<Trade>> {
    let cursor = match filter.cursor {
        None => None,
        Some(cursor) => match find(connection, who, cursor).await? {
            None => return Ok(Vec::new()),
            Some(trade) => Some((trade.created_at.millis(), trade.id.ulid())),
        },
    };
    let (before, id) = upper_bound(filter.created_before, cursor);
    let from = filter.created_after.map_or(i64::MIN, Timestamp::millis);
    let side = filter.side.map_or("", Side::as_str);
    let status = filter.status.map_or("", TradeStatus::as_str);
    let (mode, partner) = (who.mode, &who.partner);
    let rows = match (filter.side, filter.status) {
        (None, None) => {
            let values = values![mode, partner, before, id, from, limit];
            connection.fetch_all(&PAGE, values).await?
        }
        (Some(_), None) => {
            let values = values![mode, partner, before, id, from, limit, side];
            connection.fetch_all(&PAGE_OF_SIDE, values).await?
        }
        (None, Some(_)) => {
            let values = values![mode, partner, before, id, from, limit, status];
            connection.fetch_all(&PAGE_OF_STATUS, values).await?
        }
        (Some(_), Some(_)) => {
            let values = values![mode, partner, before, id, from, limit, side, status];
            connection
                .fetch_all(&PAGE_OF_SIDE_AND_STATUS, values)
                .await?
        }
    };
    rows.iter().map(|row| trade(&**row, mode)).collect()
}

macro_rules! page {
    ($trades:literal, $filter:literal) => {
        concat!(
            "SELECT ",
            trade_columns!(""),
            " FROM ",
            $trades,
            " WHERE mode = $1 AND partner_id = $2",
            $filter,
            " AND (created_at, id) < ($3, $4) AND created_at >= $5
             ORDER BY created_at DESC, id DESC LIMIT CAST($6 AS bigint)"
        )
    };
}

pub static PAGE: Statement = Statement::new("trades", page!("trades", ""));

pub static PAGE_OF_SIDE: Statement = Statement::new("trades", page!("trades", " AND side = $7"));

pub static PAGE_OF_STATUS: Statement =
    Statement::new("trades", page!("trades", " AND status = $7"));

/// SQLite's planner would choose an index for only one of the two filters.
pub static PAGE_OF_SIDE_AND_STATUS: Statement = Statement::per_engine(
    "trades",
    Sql {
        sqlite: page!(
            "trades INDEXED BY trades_list_side_status",
            " AND side = $7 AND status = $8"
        ),
        postgres: page!("trades", " AND side = $7 AND status = $8"),
    },
);

pub fn trade(row: &dyn Row, mode: Mode) -> StoreResult<Trade> {
    let terms = quotes::terms(row)?;
    let reserved = match terms.side {
        Side::OnRamp => row.opt_amount("reserved", terms.pool.fiat())?,
        Side::OffRamp => row.opt_amount("reserved", terms.pool.crypto())?,
    };
    if reserved.is_some_and(|reserved| reserved != terms.input())
        || (terms.side == Side::OffRamp && reserved.is_none())
    {
        return Err(row.bad("reserved"));
    }
    Ok(Trade {
        id: row.id("id", mode)?,
        quote: row.id("quote_id", mode)?,
        terms,
        engine: row.opt_parsed("engine", UpstreamName::parse)?,
        reserved,
        created_at: row.instant("created_at")?,
        state: state(row)?,
        attempts: row.count("attempts")?,
        lease: lease(row)?,
    })
}

/// How many trades an engine holds.
pub fn held(row: &dyn Row) -> StoreResult<(UpstreamName, u64)> {
    Ok((
        row.parsed("engine", UpstreamName::parse)?,
        row.count("trades")?,
    ))
}

fn state(row: &dyn Row) -> StoreResult<TradeState> {
    let status = row.parsed("status", TradeStatus::parse)?;
    let rate = row.opt_parsed("fill_rate", Mid::parse)?;
    let settlement = match (row.opt_instant("settled_at")?, row.opt_string("fill")?) {
        (None, None) if rate.is_none() => None,
        (None, None) => return Err(row.bad("fill_rate")),
        (Some(at), Some(fill)) => Some(Settlement { at, fill, rate }),
        (Some(_), None) | (None, Some(_)) => return Err(row.bad("fill")),
    };
    let released = row.opt_instant("released_at")?;
    let failed = row.opt_instant("failed_at")?;
    let returned = row.opt_instant("returned_at")?;
    match (status, settlement, released, failed, returned) {
        (TradeStatus::Reserved, None, None, None, None) => Ok(TradeState::Reserved),
        (TradeStatus::Settled, Some(settlement), None, None, None) => {
            Ok(TradeState::Settled(settlement))
        }
        (TradeStatus::Released, None, Some(at), None, None) => Ok(TradeState::Released { at }),
        (TradeStatus::Failed, None, None, Some(at), None) => Ok(TradeState::Failed { at }),
        (TradeStatus::Returned, Some(settlement), None, None, Some(at)) => {
            Ok(TradeState::Returned { settlement, at })
        }
        _ => Err(row.bad("status")),
    }
}

fn lease(row: &dyn Row) -> StoreResult<Option<Lease>> {
    let token = row.opt_integer("lease_token")?;
    let until = row.opt_instant("lease_until")?;
    let lease = row.pair("lease_until", token.map(i64::cast_unsigned), until)?;
    Ok(lease.map(|(token, until)| Lease { token, until }))
}
