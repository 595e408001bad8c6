//! Trades: execute a quote, poll, list, read.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use http_kit::{ApiError, Class, IdempotencyHeader, Json as Body, PathId, Query, RawJson, log_id};
use kernel::Bound;
use partner_core::Access;
use partner_core::stored_response::RenderError;
use pools_core::batch::{Refusal, TransactOutcome};
use pools_core::events::event_id;
use pools_core::ports::TradeFilter;
use pools_core::profile::PoolsProfile;
use pools_core::quote::{QuoteId, Side};
use pools_core::trade::{Trade, TradeEvent, TradeId, TradeStatus};
use pools_core::usecases::transact_quote::{Transact, TransactError, TransactQuote};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::app::{App, Entitled, Operation, Secret};
use crate::wire::instant;
use crate::words;
use crate::{codes, errors, measured};

const DEFAULT_LIMIT: u32 = 50;
const LARGEST_LIMIT: u32 = 100;

/// The quote to execute. All other fields of the body are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactRequest {
    /// A firm, active quote of this pool.
    // Any JSON value, because it is validated after the Idempotency-Key.
    #[schema(value_type = String, required = true, example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")]
    quote_id: Option<RawJson>,
}

impl TransactRequest {
    fn quote(&self) -> Option<QuoteId> {
        let text: String = serde_json::from_str(self.quote_id.as_ref()?.as_str()).ok()?;
        QuoteId::parse(&text)
    }
}

/// The response to a transact.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactAck {
    /// The new trade, or the trade that the quote already had.
    #[schema(example = "txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    transact_id: String,
    /// `reserved` after the first execution; on a repeat, the trade's current status.
    status: words::TradeStatus,
    /// The executed quote.
    #[schema(example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")]
    quote_id: String,
    /// True if the quote already had this trade.
    idempotent: bool,
}

/// A trade's status. It has no amounts; read the trade for these.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusView {
    /// Trade id.
    #[schema(example = "txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    transact_id: String,
    /// Quote id.
    #[schema(example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")]
    quote_id: String,
    /// The trade's status.
    status: words::TradeStatus,
    /// Pool id.
    #[schema(example = "EUR-USDT")]
    pool_id: String,
    /// Side.
    side: words::Side,
    /// When the quote was executed.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the trade settled, or null.
    #[schema(required = true, format = DateTime)]
    settled_at: Option<String>,
}

/// A trade.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Trade)]
pub(crate) struct TradeRecord {
    /// Trade id; also the list cursor.
    #[schema(example = "txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    transact_id: String,
    /// The executed quote.
    #[schema(example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")]
    quote_id: String,
    /// Pool id.
    #[schema(example = "EUR-USDT")]
    pool_id: String,
    /// Display label.
    #[schema(example = "EUR/USDT")]
    pair: String,
    /// Side.
    side: words::Side,
    /// The trade's status.
    status: words::TradeStatus,
    /// Fiat leg.
    #[schema(example = "EUR")]
    fiat_currency: String,
    /// Crypto leg.
    #[schema(example = "USDT")]
    crypto_currency: String,
    /// Chain locked on the quote.
    crypto_network: words::CryptoNetwork,
    /// Fiat leg.
    #[schema(example = "100.00")]
    fiat_amount: String,
    /// Crypto leg.
    #[schema(example = "107.90325")]
    crypto_amount: String,
    /// Rate locked on the quote, including spread and fee.
    #[schema(example = "1.0790325")]
    quoted_rate: String,
    /// Spread in the rate, in basis points.
    #[schema(example = 25)]
    spread_bps: u16,
    /// Draw fee in the rate, in basis points.
    #[schema(example = 30)]
    fee_bps: u16,
    /// `spreadBps` + `feeBps`.
    #[schema(example = 55)]
    total_bps: u16,
    /// Opaque reference of the fill, for support; null until the trade settles.
    #[schema(required = true)]
    engine_fill_tx_id: Option<String>,
    /// When the quote was executed.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the trade settled, or null.
    #[schema(required = true, format = DateTime)]
    settled_at: Option<String>,
}

/// The body of an event: its id and type, and the trade as `getTrade` returns it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TradeEvent)]
pub(crate) struct TradeEventBody {
    /// Hex SHA-256 of `<transactId>:<type>`. Deliveries can repeat, so handle each id once.
    event_id: String,
    /// The event's type.
    #[serde(rename = "type")]
    #[schema(example = "pool.transaction.settled")]
    kind: &'static str,
    #[serde(flatten)]
    trade: TradeRecord,
}

/// A page of trades, newest first.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TradePage {
    /// The trades.
    data: Vec<TradeRecord>,
    /// The cursor of the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
    /// Whether another page follows.
    has_more: bool,
}

/// The filters of the list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "documents the parameters; each is read strictly by its handler"
)]
pub(crate) struct TradeListParams {
    /// Trades per page.
    #[param(required = false, minimum = 1, maximum = 100, default = 50)]
    limit: u32,
    /// The `nextCursor` of the previous page, which is a `transactId`.
    cursor: Option<String>,
    /// Returns only trades of this side.
    #[param(value_type = Option<words::Side>, inline)]
    side: Option<String>,
    /// Returns only trades with this status.
    #[param(value_type = Option<words::TradeStatus>, inline)]
    status: Option<String>,
    /// Inclusive lower bound on `createdAt`: RFC 3339, of which the seconds may be absent, or a date.
    #[param(example = "2026-05-25T00:00:00Z")]
    created_after: Option<String>,
    /// Inclusive upper bound on `createdAt`: RFC 3339, of which the seconds may be absent, or a date.
    #[param(example = "2026-05-26T00:00:00Z")]
    created_before: Option<String>,
}

pub(crate) const TRANSACT: Operation = Operation {
    route: || routes!(transact),
    admission: Class::Entitled,
    errors: &[
        codes::ENTITLED,
        codes::BODY,
        &[
            codes::IDEMPOTENCY_KEY_REQUIRED,
            codes::IDEMPOTENCY_KEY_INVALID,
            codes::INSUFFICIENT_BALANCE,
            codes::RESOURCE_NOT_FOUND,
            codes::IDEMPOTENCY_IN_PROGRESS,
            codes::IDEMPOTENCY_KEY_REUSED,
            codes::QUOTE_IN_PROGRESS,
            codes::QUOTE_REJECTED,
            codes::QUOTE_EXPIRED,
            codes::RESERVATION_FAILED,
            codes::VELOCITY_CAP_EXCEEDED,
            codes::SIDE_NOT_ENABLED,
            codes::ENGINE_UNAVAILABLE,
            codes::OUTCOME_UNKNOWN,
        ],
    ],
};

/// Execute a firm quote
///
/// A quote is executed at most once: a repeat under any key returns the existing trade with
/// `idempotent` true. Side, amounts, rate and delivery target come from the quote, never from this
/// body. Retry a 5xx with the same `Idempotency-Key`.
#[utoipa::path(post, path = "/v1/pools/{id}/transact", operation_id = "transact", tag = "Trades",
    params(
        ("id" = String, Path, description = "Pool id", example = "EUR-USDT"),
        ("Idempotency-Key" = String, Header, description = "Your key for this one operation: 1 to 255 visible ASCII characters. Kept for 24 hours.",
            example = "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1"),
    ),
    request_body = TransactRequest,
    responses((status = 200, description = "The trade was created, or it existed already", body = TransactAck)))]
pub(crate) async fn transact(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
    key: IdempotencyHeader,
    request: Request,
) -> Result<Json<TransactAck>, ApiError> {
    let pool = app.allowed_pool(who.access(), &id).await?;
    let Body(body) = Body::<TransactRequest>::from_request(request, &()).await?;
    let key = key.required()?;
    let quote = body.quote().ok_or_else(|| {
        ApiError::invalid_request("`quoteId` must be a quote id as returned by a firm quote.")
    })?;
    log_id(quote);
    let request = Transact {
        pool: pool.id,
        quote,
        key,
    };
    let transacting = &app.parts().transacting;
    let outcome = match transacting.transact(who.access(), request).await {
        Ok(outcome) => Ok(outcome),
        Err(error) => Err(refused(transacting, who.access(), quote, error).await),
    };
    let acknowledged = acknowledge(&measured::transact(outcome)?);
    log_id(&acknowledged.transact_id);
    Ok(Json(acknowledged))
}

/// The response to a transact that created no trade. A refusal by the velocity cap says how long until the amount fits.
async fn refused(
    transacting: &TransactQuote,
    access: &Access<PoolsProfile>,
    quote: QuoteId,
    error: TransactError,
) -> ApiError {
    let is_over_cap = matches!(error, TransactError::Refused(Refusal::VelocityCapExceeded));
    let refusal = errors::transact_error(error);
    if !is_over_cap {
        return refusal;
    }
    match transacting.wait_for_cap(access, quote).await {
        Ok(Some(wait)) => refusal.retry_after(wait),
        Ok(None) => refusal,
        Err(cause) => refusal.caused_by(cause),
    }
}

pub(crate) const GET_TRANSACTION_BY_QUOTE: Operation = Operation {
    route: || routes!(get_transaction_by_quote),
    admission: Class::Secret,
    errors: &[&[codes::RESOURCE_NOT_FOUND, codes::OUTCOME_UNKNOWN]],
};

/// Poll a trade by its quote
///
/// Only this call changes the trade's status: it advances a reserved trade by what has happened
/// since. Poll at a steady interval, and continue after `settled` to detect `returned`.
#[utoipa::path(get, path = "/v1/pools/transactions/{quoteId}", operation_id = "getTransactionByQuote", tag = "Trades",
    params(("quoteId" = String, Path, description = "Quote id", example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")),
    responses((status = 200, description = "The trade's status", body = StatusView)))]
pub(crate) async fn get_transaction_by_quote(
    who: Secret,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<StatusView>, ApiError> {
    let id = id.parse("trade", QuoteId::parse)?;
    let polled = app.parts().polling.poll(who.tenant(), id).await;
    let trade = polled.map_err(errors::poll_error)?;
    log_id(trade.id);
    let settlement = trade.state.settlement();
    Ok(Json(StatusView {
        transact_id: trade.id.to_string(),
        quote_id: trade.quote.to_string(),
        status: trade.state.status().into(),
        pool_id: trade.terms.pool.to_string(),
        side: trade.terms.side.into(),
        created_at: instant(trade.created_at),
        settled_at: settlement.map(|settlement| instant(settlement.at)),
    }))
}

pub(crate) const LIST_TRADES: Operation = Operation {
    route: || routes!(list_trades),
    admission: Class::Secret,
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List your trades
///
/// A pure read, newest first. Keep the same filters while you follow the cursor. A cursor that is
/// not one of your trades returns an empty page.
#[utoipa::path(get, path = "/v1/pools/trades", operation_id = "listTrades", tag = "Trades",
    params(TradeListParams),
    responses((status = 200, description = "A page of trades", body = TradePage)))]
pub(crate) async fn list_trades(
    who: Secret,
    State(app): State<App>,
    query: Query,
) -> Result<Json<TradePage>, ApiError> {
    let limit = query.integer("limit", 1..=LARGEST_LIMIT)?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let Some(filter) = trade_filter(&query)? else {
        return Ok(Json(TradePage::default()));
    };
    let reading = &app.parts().reading;
    let page = reading.trades(who.tenant(), &filter, limit).await?;
    let last = page.items.last().filter(|_| page.has_more);
    Ok(Json(TradePage {
        data: page.items.iter().map(record).collect(),
        next_cursor: last.map(|trade| trade.id.to_string()),
        has_more: page.has_more,
    }))
}

pub(crate) const GET_TRADE: Operation = Operation {
    route: || routes!(get_trade),
    admission: Class::Secret,
    errors: &[&[codes::RESOURCE_NOT_FOUND]],
};

/// Read a trade
///
/// A pure read: it never advances settlement.
#[utoipa::path(get, path = "/v1/pools/trades/{transactId}", operation_id = "getTrade", tag = "Trades",
    params(("transactId" = String, Path, description = "Trade id", example = "txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The trade", body = TradeRecord)))]
pub(crate) async fn get_trade(
    who: Secret,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<TradeRecord>, ApiError> {
    let id = id.parse("trade", TradeId::parse)?;
    let trade = app.parts().reading.trade(who.tenant(), id).await?;
    Ok(Json(record(
        &trade.ok_or_else(|| ApiError::not_found("trade"))?,
    )))
}

/// The filters of the list; `None` for the status `quoted`, which the contract lists and no stored
/// trade has.
fn trade_filter(query: &Query) -> Result<Option<TradeFilter>, ApiError> {
    let mut words = vec![("quoted", None)];
    words.extend(TradeStatus::ALL.map(|status| (status.as_str(), Some(status))));
    let status = query.one_of("status", &words)?;
    let filter = TradeFilter {
        cursor: query.parsed("cursor", |text| {
            TradeId::parse(text).ok_or("expected a `nextCursor` of this list")
        })?,
        side: query.one_of("side", &Side::ALL.map(|side| (side.as_str(), side)))?,
        status: status.flatten(),
        created_after: query.instant("created_after", Bound::Lower)?,
        created_before: query.instant("created_before", Bound::Upper)?,
    };
    Ok((status != Some(None)).then_some(filter))
}

fn acknowledge(outcome: &TransactOutcome) -> TransactAck {
    let (trade, idempotent) = match outcome {
        TransactOutcome::Opened(trade) => (trade, false),
        TransactOutcome::Existing(trade) => (trade, true),
    };
    TransactAck {
        transact_id: trade.id.to_string(),
        status: trade.state.status().into(),
        quote_id: trade.quote.to_string(),
        idempotent,
    }
}

/// Renders the body of a trade's event. It cannot fail in practice, because every field is a text, a number or null.
pub fn render_event(trade: &Trade, event: TradeEvent) -> Result<Vec<u8>, RenderError> {
    let body = TradeEventBody {
        event_id: event_id(trade, event),
        kind: event.as_str(),
        trade: record(trade),
    };
    serde_json::to_vec(&body).map_err(|error| RenderError(error.into()))
}

fn record(trade: &Trade) -> TradeRecord {
    let terms = &trade.terms;
    let settlement = trade.state.settlement();
    TradeRecord {
        transact_id: trade.id.to_string(),
        quote_id: trade.quote.to_string(),
        pool_id: terms.pool.to_string(),
        pair: terms.pool.pair(),
        side: terms.side.into(),
        status: trade.state.status().into(),
        fiat_currency: terms.pool.fiat().to_string(),
        crypto_currency: terms.pool.crypto().to_string(),
        crypto_network: terms.network.into(),
        fiat_amount: terms.fiat.to_string(),
        crypto_amount: terms.crypto.to_string(),
        quoted_rate: terms.rate.to_string(),
        spread_bps: terms.spread_bps,
        fee_bps: terms.fee_bps,
        total_bps: terms.spread_bps.saturating_add(terms.fee_bps),
        engine_fill_tx_id: settlement.map(|settlement| settlement.fill.clone()),
        created_at: instant(trade.created_at),
        settled_at: settlement.map(|settlement| instant(settlement.at)),
    }
}
