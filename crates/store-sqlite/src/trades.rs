//! Trades: rows in and out, and the steps of one trade.

use async_trait::async_trait;
use instruments::failpoint::{Step as Failpoint, around};
use kernel::{Cas, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use pools_core::ports::{TradeFilter, TradeTx};
use pools_core::quote::{QuoteId, Side};
use pools_core::trade::{Lease, Step, Trade, TradeId, TradeStatus};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use store_sql::trades::Facts;

use crate::errors;
use crate::row::{Columns, own_key};
use crate::tx::SqliteTx;

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
    id: TradeId,
) -> Result<Option<Trade>, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(None);
    };
    let row = sqlx::query(FIND)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(key)
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)?;
    row.map(|row| trade(&row, who.mode)).transpose()
}

const FIND: &str =
    "SELECT partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
            returned_at, attempts, lease_token, lease_until, engine, mid, fill_rate
     FROM trades WHERE mode = ?1 AND partner_id = ?2 AND id = ?3";

pub(crate) async fn find_by_quote(
    conn: &mut SqliteConnection,
    who: &Tenant,
    quote: QuoteId,
) -> Result<Option<Trade>, StoreError> {
    let Some(key) = own_key(who, quote) else {
        return Ok(None);
    };
    let row = sqlx::query(
        "SELECT partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
                dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
                returned_at, attempts, lease_token, lease_until, engine, mid, fill_rate
         FROM trades WHERE mode = ?1 AND partner_id = ?2 AND quote_id = ?3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| trade(&row, who.mode)).transpose()
}

pub(crate) fn trade(row: &SqliteRow, mode: Mode) -> Result<Trade, StoreError> {
    store_sql::trades::trade(&Columns::new("trades", row), mode)
}

/// Where a page of the list begins and ends: below a pair of instant and id, and not before an
/// instant.
struct Range {
    below: (i64, String),
    from: i64,
}

/// A cursor and an upper bound are both an exclusive upper pair; the smaller one holds.
async fn range(
    conn: &mut SqliteConnection,
    who: &Tenant,
    filter: &TradeFilter,
) -> Result<Option<Range>, StoreError> {
    let up_to = filter
        .created_before
        .map_or((i64::MAX, String::new()), |before| {
            (before.millis().saturating_add(1), String::new())
        });
    let below = match filter.cursor {
        None => up_to,
        Some(cursor) => match find(conn, who, cursor).await? {
            None => return Ok(None),
            Some(trade) => up_to.min((trade.created_at.millis(), trade.id.ulid().to_string())),
        },
    };
    let from = filter.created_after.map_or(i64::MIN, Timestamp::millis);
    Ok(Some(Range { below, from }))
}

/// A page by (`created_at`, id) descending: one statement and one index per combination of filters.
pub(crate) async fn page(
    conn: &mut SqliteConnection,
    who: &Tenant,
    filter: &TradeFilter,
    limit: u32,
) -> Result<Vec<Trade>, StoreError> {
    let Some(range) = range(conn, who, filter).await? else {
        return Ok(Vec::new());
    };
    let statement = match (filter.side, filter.status) {
        (None, None) => PAGE,
        (Some(_), None) => PAGE_OF_SIDE,
        (None, Some(_)) => PAGE_OF_STATUS,
        (Some(_), Some(_)) => PAGE_OF_SIDE_AND_STATUS,
    };
    let rows = sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(range.below.0)
        .bind(range.below.1)
        .bind(range.from)
        .bind(limit)
        .bind(filter.side.map(Side::as_str))
        .bind(filter.status.map(TradeStatus::as_str))
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter().map(|row| trade(row, who.mode)).collect()
}

pub(crate) const PAGE: &str =
    "SELECT partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
            returned_at, attempts, lease_token, lease_until, engine, mid, fill_rate
     FROM trades
     WHERE mode = ?1 AND partner_id = ?2 AND (created_at, id) < (?3, ?4) AND created_at >= ?5
     ORDER BY created_at DESC, id DESC LIMIT +?6";

pub(crate) const PAGE_OF_SIDE: &str =
    "SELECT partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
            returned_at, attempts, lease_token, lease_until, engine, mid, fill_rate
     FROM trades
     WHERE mode = ?1 AND partner_id = ?2 AND side = ?7 AND (created_at, id) < (?3, ?4) AND created_at >= ?5
     ORDER BY created_at DESC, id DESC LIMIT +?6";

pub(crate) const PAGE_OF_STATUS: &str =
    "SELECT partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
            returned_at, attempts, lease_token, lease_until, engine, mid, fill_rate
     FROM trades
     WHERE mode = ?1 AND partner_id = ?2 AND status = ?8 AND (created_at, id) < (?3, ?4) AND created_at >= ?5
     ORDER BY created_at DESC, id DESC LIMIT +?6";

/// The planner would be content with an index of one of the two.
pub(crate) const PAGE_OF_SIDE_AND_STATUS: &str =
    "SELECT partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
            returned_at, attempts, lease_token, lease_until, engine, mid, fill_rate
     FROM trades INDEXED BY trades_list_side_status
     WHERE mode = ?1 AND partner_id = ?2 AND side = ?7 AND status = ?8
       AND (created_at, id) < (?3, ?4) AND created_at >= ?5
     ORDER BY created_at DESC, id DESC LIMIT +?6";

#[async_trait]
impl TradeTx for SqliteTx {
    async fn trade_lock(&mut self, who: &Tenant, id: TradeId) -> Result<Option<Trade>, StoreError> {
        find(self.conn(), who, id).await
    }

    async fn trade_claim(
        &mut self,
        who: &Tenant,
        id: TradeId,
        attempt: u32,
        lease: Lease,
    ) -> Result<Cas, StoreError> {
        let Some(key) = own_key(who, id) else {
            return Ok(Cas::Lost);
        };
        let rows = sqlx::query(
            "UPDATE trades SET attempts = ?4, lease_token = ?5, lease_until = ?6
             WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND attempts = ?4 - 1",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(key)
        .bind(attempt)
        .bind(lease.token.cast_signed())
        .bind(lease.until.millis())
        .execute(self.conn())
        .await
        .map_err(errors::statement)?
        .rows_affected();
        Ok(self.record_race(Cas::from_rows(rows)?))
    }

    async fn trade_unclaim(
        &mut self,
        who: &Tenant,
        id: TradeId,
        token: u64,
    ) -> Result<Cas, StoreError> {
        let Some(key) = own_key(who, id) else {
            return Ok(Cas::Lost);
        };
        let rows = sqlx::query(
            "UPDATE trades SET lease_token = NULL, lease_until = NULL
             WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND lease_token = ?4",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(key)
        .bind(token.cast_signed())
        .execute(self.conn())
        .await
        .map_err(errors::statement)?
        .rows_affected();
        Ok(self.record_race(Cas::from_rows(rows)?))
    }

    async fn trade_rest(
        &mut self,
        who: &Tenant,
        id: TradeId,
        lease: Lease,
    ) -> Result<Cas, StoreError> {
        let Some(key) = own_key(who, id) else {
            return Ok(Cas::Lost);
        };
        let rows = sqlx::query(
            "UPDATE trades SET lease_until = ?5
             WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND lease_token = ?4",
        )
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(key)
        .bind(lease.token.cast_signed())
        .bind(lease.until.millis())
        .execute(self.conn())
        .await
        .map_err(errors::statement)?
        .rows_affected();
        Ok(self.record_race(Cas::from_rows(rows)?))
    }

    async fn trade_apply(
        &mut self,
        who: &Tenant,
        before: &Trade,
        steps: &[Step],
        token: u64,
    ) -> Result<Cas, StoreError> {
        let (Some(key), Some(last)) = (own_key(who, before.id), steps.last()) else {
            return Ok(Cas::Lost);
        };
        let applying = apply(self.conn(), who, &key, before, last, token);
        let applied = around(Failpoint::TradeApply, applying).await?;
        if self.record_race(applied) == Cas::Lost {
            return Ok(Cas::Lost);
        }
        let mut from = before.state.status();
        for step in steps {
            let to = step.state.status();
            log_transition(self.conn(), who, &key, (from, to), step.reached_at(before)).await?;
            self.measured.step(from.as_str(), to.as_str(), 1);
            from = to;
        }
        Ok(Cas::Won)
    }
}

/// Repeats in its WHERE what the rules decided on; a settlement, once written, stays.
async fn apply(
    conn: &mut SqliteConnection,
    who: &Tenant,
    key: &str,
    before: &Trade,
    last: &Step,
    token: u64,
) -> Result<Cas, StoreError> {
    let facts = Facts::of(&last.state);
    let rows = sqlx::query(
        "UPDATE trades
         SET status = ?6, settled_at = ?7, fill = ?8, released_at = ?9, failed_at = ?10, returned_at = ?11,
             fill_rate = ?12, lease_token = NULL, lease_until = NULL
         WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND status = ?4 AND lease_token = ?5
           AND (settled_at IS NULL OR settled_at = ?7)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(before.state.status().as_str())
    .bind(token.cast_signed())
    .bind(last.state.status().as_str())
    .bind(facts.settled_at.map(Timestamp::millis))
    .bind(facts.fill)
    .bind(facts.released_at.map(Timestamp::millis))
    .bind(facts.failed_at.map(Timestamp::millis))
    .bind(facts.returned_at.map(Timestamp::millis))
    .bind(facts.fill_rate)
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    Cas::from_rows(rows)
}

async fn log_transition(
    conn: &mut SqliteConnection,
    who: &Tenant,
    key: &str,
    (from, to): (TradeStatus, TradeStatus),
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO trade_transitions (mode, partner_id, trade_id, from_status, to_status, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(from.as_str())
    .bind(to.as_str())
    .bind(at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
