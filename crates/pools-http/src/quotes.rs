//! Quotes: give, read, reject.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use http_kit::{ApiError, JsonWithUnknown as Body, PathId};
use pools_core::profile::PoolTerms;
use pools_core::quote::{Quote, QuoteId, QuoteOutcome, QuoteStatus};
use pools_core::usecases::create_quote::{QuoteInput, QuoteResult};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::{App, Entitled, Secret};
use crate::wire::{JsonNumber, instant};
use crate::{errors, measured};

/// An order to be quoted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuoteRequest {
    /// `on_ramp`: fiat paid in, crypto delivered. `off_ramp`: crypto sold, fiat paid out.
    #[schema(value_type = Side, required = true)]
    side: Option<String>,
    /// ISO 4217 code of the pool's fiat.
    #[schema(value_type = String, required = true, example = "EUR")]
    fiat_currency: Option<String>,
    /// Symbol of the pool's crypto asset.
    #[schema(value_type = String, required = true, example = "USDT")]
    crypto_currency: Option<String>,
    /// The input leg, greater than zero: fiat paid in, or crypto sold. A decimal string without
    /// sign, exponent or leading zeros, with at most the digits of its currency.
    #[schema(
        value_type = String,
        required = true,
        example = "100.00",
        pattern = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$"
    )]
    amount: Option<String>,
    /// The chain the crypto leg moves on; locked on the quote. Defaults to `tron`.
    #[schema(value_type = Option<CryptoNetwork>, default = "tron", example = "ethereum")]
    crypto_network: Option<String>,
    /// `firm`: executable once, for a short time. `indicative`: a price only.
    #[serde(rename = "type")]
    #[schema(value_type = Option<QuoteType>, default = "firm")]
    kind: Option<String>,
    /// Where a purchase is delivered: an EVM address. Mixed case must carry the EIP-55 checksum.
    /// A pool with native addresses takes an address of the delivery network instead: on `tron` a
    /// T-address, on `solana` 32 bytes in base58. Required on `on_ramp`; locked on the quote.
    #[schema(
        example = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        pattern = "^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$"
    )]
    dest_address: Option<String>,
    /// Delivery network; defaults to the quoted `cryptoNetwork`. `tron` and `solana` can be named
    /// in a pool with native addresses only.
    #[schema(value_type = Option<DestNetwork>, example = "ethereum")]
    dest_network: Option<String>,
}

/// Which way an order goes.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum Side {
    OnRamp,
    OffRamp,
}

/// Firm or price only.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are read by the domain"
)]
pub(crate) enum QuoteType {
    Firm,
    Indicative,
}

/// A chain the crypto leg can move on.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum CryptoNetwork {
    Tron,
    Ethereum,
    Bsc,
    Polygon,
    Solana,
}

/// A network crypto can be delivered on.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are read by the domain"
)]
pub(crate) enum DestNetwork {
    Arbitrum,
    Ethereum,
    Bsc,
    Optimism,
    Polygon,
    Tron,
    Solana,
}

/// Why an order cannot be priced at the moment.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum UnavailableReason {
    PoolDry,
    EngineUnavailable,
    RateUnavailable,
}

/// A quote's status, derived when it is read.
#[derive(Debug, ToSchema)]
#[schema(as = QuoteStatus, rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum QuoteStatusWord {
    Active,
    Consumed,
    Expired,
    Rejected,
}

/// The answer to a quote request, 200 whether or not it could be priced.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuoteResponse {
    /// False where the pool cannot be priced at the moment.
    available: bool,
    /// `firm` or `indicative`; with `available` true.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<QuoteType>, nullable = false)]
    kind: Option<&'static str>,
    /// True only for a firm quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    executable: Option<bool>,
    /// Joins quote, trade and status; firm quotes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")]
    quote_id: Option<String>,
    /// Output per unit of input for the chosen side, all-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "1.0790325")]
    rate: Option<String>,
    /// Spread in the rate, in basis points; at most 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 25)]
    spread_bps: Option<u16>,
    /// Your tier's draw fee in the rate, in basis points.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 30)]
    fee_bps: Option<u16>,
    /// Minimum order size, in USDT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, example = 10)]
    min_order_usdt: Option<JsonNumber>,
    /// Maximum order size, in USDT; null: no maximum. Absent where `available` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, example = 100_000)]
    max_order_usdt: Option<Option<JsonNumber>>,
    /// When a firm quote expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    expires_at: Option<String>,
    /// Why there is no price; with `available` false. Do not retry in a tight loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UnavailableReason>, nullable = false)]
    unavailable_reason: Option<&'static str>,
}

/// A firm quote as stored. Branch on `status`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Quote)]
pub(crate) struct QuoteRecord {
    /// Quote id.
    #[schema(example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")]
    quote_id: String,
    /// Pool id.
    #[schema(example = "EUR-USDT")]
    pool_id: String,
    /// Display label.
    #[schema(example = "EUR/USDT")]
    pair: String,
    /// Side.
    #[schema(value_type = Side)]
    side: &'static str,
    /// Chain locked on the quote.
    #[schema(value_type = CryptoNetwork)]
    crypto_network: &'static str,
    /// Fiat leg: paid on `on_ramp`, received on `off_ramp`.
    #[schema(example = "100.00")]
    fiat_amount: String,
    /// Crypto leg: received on `on_ramp`, sold on `off_ramp`.
    #[schema(example = "107.90325")]
    crypto_amount: String,
    /// Output per unit of input, all-in.
    #[schema(example = "1.0790325")]
    rate: String,
    /// Spread in the rate, in basis points.
    #[schema(example = 25)]
    spread_bps: u16,
    /// Draw fee in the rate, in basis points.
    #[schema(example = 30)]
    fee_bps: u16,
    /// Derived when read: `rejected` wins over `consumed`, that over `expired`, that over `active`.
    #[schema(value_type = QuoteStatusWord)]
    status: &'static str,
    /// From this instant on the quote is expired.
    #[schema(format = DateTime)]
    expires_at: String,
    /// When it was executed, or null.
    #[schema(required = true, format = DateTime)]
    consumed_at: Option<String>,
    /// When it was rejected, or null.
    #[schema(required = true, format = DateTime)]
    rejected_at: Option<String>,
    /// When it was given.
    #[schema(format = DateTime)]
    created_at: String,
}

/// Quote an order
///
/// A firm quote is executable once until `expiresAt`; an indicative one is a price only and
/// leaves no trace. The other leg is `amount` × `rate`, rounded down to its digits. An order that
/// cannot be priced at the moment is 200 with `available` false.
#[utoipa::path(post, path = "/v1/pools/{id}/quote", operation_id = "createQuote", tag = "Quotes",
    params(("id" = String, Path, description = "Pool id", example = "EUR-USDT")),
    request_body = QuoteRequest,
    security(("secretKey" = [])),
    responses((status = 200, description = "The quote, or why there is none", body = QuoteResponse)))]
pub(crate) async fn create_quote(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
    request: Request,
) -> Result<Json<QuoteResponse>, ApiError> {
    let pool = app.pool(&id).await?;
    who.access()
        .profile
        .pool_allowed(&pool.id)
        .map_err(|_| ApiError::not_found("pool"))?;
    let Body(request, unknown) = Body::<QuoteRequest>::from_request(request, &()).await?;
    let offer = app
        .parts()
        .quoting
        .quote(who.access(), &pool, &request.into())
        .await
        .map_err(|error| errors::quote_error(error, &unknown));
    Ok(Json(measured::quote(offer)?.into()))
}

/// Read a firm quote
///
/// A pure read: it does not consume, extend or re-price.
#[utoipa::path(get, path = "/v1/pools/quotes/{quoteId}", operation_id = "getQuote", tag = "Quotes",
    params(("quoteId" = String, Path, description = "Quote id", example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")),
    security(("secretKey" = [])),
    responses((status = 200, description = "The quote", body = QuoteRecord)))]
pub(crate) async fn get_quote(
    who: Secret,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<QuoteRecord>, ApiError> {
    let id = id.parse("quote", QuoteId::parse)?;
    let found = app.parts().reading.quote(who.tenant(), id).await?;
    let (quote, status) = found.ok_or_else(|| ApiError::not_found("quote"))?;
    Ok(Json(record(&quote, status)))
}

/// Reject a firm quote
///
/// Succeeds exactly once, on an active quote; no money moves and no event is sent.
#[utoipa::path(post, path = "/v1/pools/quotes/{quoteId}/reject", operation_id = "rejectQuote", tag = "Quotes",
    params(("quoteId" = String, Path, description = "Quote id", example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")),
    security(("secretKey" = [])),
    responses((status = 200, description = "The quote, rejected", body = QuoteRecord)))]
pub(crate) async fn reject_quote(
    who: Secret,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<QuoteRecord>, ApiError> {
    let id = id.parse("quote", QuoteId::parse)?;
    let quote = app
        .parts()
        .rejecting
        .reject(who.tenant(), id)
        .await
        .map_err(errors::reject_error)?;
    Ok(Json(record(&quote, QuoteStatus::Rejected)))
}

impl From<QuoteRequest> for QuoteInput {
    fn from(request: QuoteRequest) -> Self {
        Self {
            side: request.side,
            fiat_currency: request.fiat_currency,
            crypto_currency: request.crypto_currency,
            amount: request.amount,
            crypto_network: request.crypto_network,
            kind: request.kind,
            dest_address: request.dest_address,
            dest_network: request.dest_network,
        }
    }
}

impl From<QuoteResult> for QuoteResponse {
    fn from(offer: QuoteResult) -> Self {
        match offer {
            QuoteResult::Unavailable(reason) => Self {
                unavailable_reason: Some(reason.as_str()),
                ..Self::default()
            },
            QuoteResult::Indicative(priced, terms) => priced_response(
                "indicative",
                priced.rate.to_string(),
                (priced.spread_bps, priced.fee_bps),
                &terms,
            ),
            QuoteResult::Firm(quote, terms) => Self {
                quote_id: Some(quote.id.to_string()),
                expires_at: Some(instant(quote.expires_at)),
                ..priced_response(
                    "firm",
                    quote.terms.rate.to_string(),
                    (quote.terms.spread_bps, quote.terms.fee_bps),
                    &terms,
                )
            },
        }
    }
}

fn priced_response(
    kind: &'static str,
    rate: String,
    (spread, fee): (u16, u16),
    terms: &PoolTerms,
) -> QuoteResponse {
    QuoteResponse {
        available: true,
        kind: Some(kind),
        executable: Some(kind == "firm"),
        rate: Some(rate),
        spread_bps: Some(spread),
        fee_bps: Some(fee),
        min_order_usdt: Some(JsonNumber(terms.min_order_usdt)),
        max_order_usdt: Some(terms.max_order_usdt.map(JsonNumber)),
        ..QuoteResponse::default()
    }
}

fn record(quote: &Quote, status: QuoteStatus) -> QuoteRecord {
    let terms = &quote.terms;
    let (consumed_at, rejected_at) = match quote.fate {
        QuoteOutcome::Open => (None, None),
        QuoteOutcome::Consumed(at) => (Some(instant(at)), None),
        QuoteOutcome::Rejected(at) => (None, Some(instant(at))),
    };
    QuoteRecord {
        quote_id: quote.id.to_string(),
        pool_id: terms.pool.to_string(),
        pair: terms.pool.pair(),
        side: terms.side.as_str(),
        crypto_network: terms.network.as_str(),
        fiat_amount: terms.fiat.to_string(),
        crypto_amount: terms.crypto.to_string(),
        rate: terms.rate.to_string(),
        spread_bps: terms.spread_bps,
        fee_bps: terms.fee_bps,
        status: status.as_str(),
        expires_at: instant(quote.expires_at),
        consumed_at,
        rejected_at,
        created_at: instant(quote.created_at),
    }
}
