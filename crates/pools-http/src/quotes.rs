//! Quotes: create, read, reject.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use http_kit::{ApiError, Class, JsonWithUnknown as Body, PathId, log_id};
use pools_core::profile::PoolTerms;
use pools_core::quote::{Quote, QuoteId, QuoteOutcome, QuoteStatus};
use pools_core::usecases::create_quote::{QuoteInput, QuoteKind, QuoteResult};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled, Operation, Secret};
use crate::wire::{JsonNumber, instant};
use crate::words;
use crate::{codes, errors, measured};

/// An order for a quote.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuoteRequest {
    /// `on_ramp`: fiat paid in, crypto delivered. `off_ramp`: crypto sold, fiat paid out.
    #[schema(value_type = words::Side, required = true)]
    side: Option<String>,
    /// ISO 4217 code of the pool's fiat.
    #[schema(value_type = String, required = true, example = "EUR")]
    fiat_currency: Option<String>,
    /// Symbol of the pool's crypto asset.
    #[schema(value_type = String, required = true, example = "USDT")]
    crypto_currency: Option<String>,
    /// The input leg, greater than zero: fiat paid in, or crypto sold. A decimal string without
    /// sign, exponent or leading zeros, with at most as many fractional digits as its currency has.
    #[schema(
        value_type = String,
        required = true,
        example = "100.00",
        pattern = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$"
    )]
    amount: Option<String>,
    /// The chain of the crypto leg, locked on the quote. Defaults to `tron`.
    #[schema(value_type = Option<words::CryptoNetwork>, default = "tron", example = "ethereum")]
    crypto_network: Option<String>,
    /// `firm`: executable once, before it expires. `indicative`: a price only.
    #[serde(rename = "type")]
    #[schema(value_type = Option<words::QuoteType>, default = "firm")]
    kind: Option<String>,
    /// Where a purchase is delivered: an EVM address. A mixed-case address must have a valid EIP-55
    /// checksum. In a pool with native addresses it is an address of the delivery network instead:
    /// a T-address on `tron`, 32 bytes in base58 on `solana`. Required on `on_ramp`; locked on the
    /// quote.
    #[schema(
        example = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        pattern = "^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$"
    )]
    dest_address: Option<String>,
    /// Delivery network; defaults to the quoted `cryptoNetwork`. `tron` and `solana` are accepted
    /// only in a pool with native addresses.
    #[schema(value_type = Option<words::DestNetwork>, example = "ethereum")]
    dest_network: Option<String>,
}

/// The response to a quote request: 200 whether or not the order could be priced.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuoteResponse {
    /// False if the order cannot be priced now.
    available: bool,
    /// `firm` or `indicative`. Present if `available` is true.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    kind: Option<words::QuoteType>,
    /// True only for a firm quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    executable: Option<bool>,
    /// The id for the trade and its status; firm quotes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")]
    quote_id: Option<String>,
    /// Output per unit of input for the chosen side, including spread and fee.
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
    /// Maximum order size, in USDT; null means no maximum. Absent if `available` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, example = 100_000)]
    max_order_usdt: Option<Option<JsonNumber>>,
    /// When a firm quote expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    expires_at: Option<String>,
    /// Why there is no price. Present if `available` is false. Do not retry in a tight loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    unavailable_reason: Option<words::UnavailableReason>,
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
    side: words::Side,
    /// Chain locked on the quote.
    crypto_network: words::CryptoNetwork,
    /// Fiat leg: paid on `on_ramp`, received on `off_ramp`.
    #[schema(example = "100.00")]
    fiat_amount: String,
    /// Crypto leg: received on `on_ramp`, sold on `off_ramp`.
    #[schema(example = "107.90325")]
    crypto_amount: String,
    /// Output per unit of input, including spread and fee.
    #[schema(example = "1.0790325")]
    rate: String,
    /// Spread in the rate, in basis points.
    #[schema(example = 25)]
    spread_bps: u16,
    /// Draw fee in the rate, in basis points.
    #[schema(example = 30)]
    fee_bps: u16,
    /// Derived at the time of reading. `rejected` takes precedence over `consumed`, `consumed` over
    /// `expired`, and `expired` over `active`.
    status: words::QuoteStatus,
    /// The quote is expired from this instant on.
    #[schema(format = DateTime)]
    expires_at: String,
    /// When the quote was executed, or null.
    #[schema(required = true, format = DateTime)]
    consumed_at: Option<String>,
    /// When the quote was rejected, or null.
    #[schema(required = true, format = DateTime)]
    rejected_at: Option<String>,
    /// When the quote was created.
    #[schema(format = DateTime)]
    created_at: String,
}

pub(crate) const CREATE_QUOTE: Operation = Operation {
    route: || routes!(create_quote),
    admission: Class::Entitled,
    errors: &[
        &[
            codes::POOLS_NOT_ENABLED,
            codes::POOL_ACCESS_SUSPENDED,
            codes::KYC_NOT_APPROVED,
            codes::RESOURCE_NOT_FOUND,
        ],
        codes::BODY,
        &[
            codes::UNKNOWN_CURRENCY,
            codes::CURRENCY_MISMATCH,
            codes::NETWORK_NOT_SUPPORTED,
            codes::INVALID_ADDRESS,
            codes::ADDRESS_CHECKSUM_MISMATCH,
            codes::AMOUNT_PRECISION,
            codes::AMOUNT_OUT_OF_RANGE,
            codes::AMOUNT_BELOW_MINIMUM,
            codes::AMOUNT_ABOVE_MAXIMUM,
            codes::OUTCOME_UNKNOWN,
        ],
    ],
};

/// Quote an order
///
/// A firm quote can be executed once, until `expiresAt`. An indicative quote is a price only and is
/// not stored. The other leg is `amount` × `rate`, rounded down to the fractional digits of its
/// currency or asset. An order that cannot be priced now is 200 with `available` false.
#[utoipa::path(post, path = "/v1/pools/{id}/quote", operation_id = "createQuote", tag = "Quotes",
    params(("id" = String, Path, description = "Pool id", example = "EUR-USDT")),
    request_body = QuoteRequest,
    responses((status = 200, description = "The quote, or why the order cannot be priced", body = QuoteResponse)))]
pub(crate) async fn create_quote(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
    request: Request,
) -> Result<Json<QuoteResponse>, ApiError> {
    let pool = app.pool(&id).await?;
    let allowed = who.access().profile.pool_allowed(&pool.id);
    allowed.map_err(|_| ApiError::not_found("pool"))?;
    let Body(request, unknown) = Body::<QuoteRequest>::from_request(request, &()).await?;
    let quoting = &app.parts().quoting;
    let offer = quoting.quote(who.access(), &pool, &request.into()).await;
    let offer = offer.map_err(|error| errors::quote_error(error, &unknown));
    let offer = measured::quote(offer)?;
    if let QuoteResult::Firm(quote, _) = &offer {
        log_id(quote.id);
    }
    Ok(Json(offer.into()))
}

pub(crate) const GET_QUOTE: Operation = Operation {
    route: || routes!(get_quote),
    admission: Class::Secret,
    errors: &[&[codes::RESOURCE_NOT_FOUND]],
};

/// Read a firm quote
///
/// Reading does not consume, extend or re-price the quote.
#[utoipa::path(get, path = "/v1/pools/quotes/{quoteId}", operation_id = "getQuote", tag = "Quotes",
    params(("quoteId" = String, Path, description = "Quote id", example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")),
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

pub(crate) const REJECT_QUOTE: Operation = Operation {
    route: || routes!(reject_quote),
    admission: Class::Secret,
    errors: &[&[
        codes::RESOURCE_NOT_FOUND,
        codes::QUOTE_CONSUMED,
        codes::QUOTE_REJECTED,
        codes::QUOTE_EXPIRED,
        codes::OUTCOME_UNKNOWN,
    ]],
};

/// Reject a firm quote
///
/// Succeeds once, on an active quote. No money moves and no event is sent.
#[utoipa::path(post, path = "/v1/pools/quotes/{quoteId}/reject", operation_id = "rejectQuote", tag = "Quotes",
    params(("quoteId" = String, Path, description = "Quote id", example = "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9")),
    responses((status = 200, description = "The quote, rejected", body = QuoteRecord)))]
pub(crate) async fn reject_quote(
    who: Secret,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<QuoteRecord>, ApiError> {
    let id = id.parse("quote", QuoteId::parse)?;
    let rejected = app.parts().rejecting.reject(who.tenant(), id).await;
    let quote = rejected.map_err(errors::reject_error)?;
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
                unavailable_reason: Some(reason.into()),
                ..Self::default()
            },
            QuoteResult::Indicative(priced, terms) => priced_response(
                QuoteKind::Indicative,
                priced.rate.to_string(),
                (priced.spread_bps, priced.fee_bps),
                &terms,
            ),
            QuoteResult::Firm(quote, terms) => Self {
                quote_id: Some(quote.id.to_string()),
                expires_at: Some(instant(quote.expires_at)),
                ..priced_response(
                    QuoteKind::Firm,
                    quote.terms.rate.to_string(),
                    (quote.terms.spread_bps, quote.terms.fee_bps),
                    &terms,
                )
            },
        }
    }
}

fn priced_response(
    kind: QuoteKind,
    rate: String,
    (spread, fee): (u16, u16),
    terms: &PoolTerms,
) -> QuoteResponse {
    QuoteResponse {
        available: true,
        kind: Some(kind.into()),
        executable: Some(kind == QuoteKind::Firm),
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
    let (consumed_at, rejected_at) = match quote.outcome {
        QuoteOutcome::Open => (None, None),
        QuoteOutcome::Consumed(at) => (Some(instant(at)), None),
        QuoteOutcome::Rejected(at) => (None, Some(instant(at))),
    };
    QuoteRecord {
        quote_id: quote.id.to_string(),
        pool_id: terms.pool.to_string(),
        pair: terms.pool.pair(),
        side: terms.side.into(),
        crypto_network: terms.network.into(),
        fiat_amount: terms.fiat.to_string(),
        crypto_amount: terms.crypto.to_string(),
        rate: terms.rate.to_string(),
        spread_bps: terms.spread_bps,
        fee_bps: terms.fee_bps,
        status: status.into(),
        expires_at: instant(quote.expires_at),
        consumed_at,
        rejected_at,
        created_at: instant(quote.created_at),
    }
}
