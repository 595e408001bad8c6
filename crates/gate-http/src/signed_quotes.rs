//! Signed quotes: locked rates that a rail redeems.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gate_core::order::OrderDraft;
use gate_core::signed_quote::{SignedQuote, SignedQuoteId};
use gate_core::usecases::lock_quote::LockDraft;
use http_kit::{
    ApiError, IdempotencyHeader, IdempotentReply, Json as Body, PathId, ResponseBuilder, log_id,
};
use kernel::{Seen, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::wire::{FeesRecord, instant};
use crate::words;

/// An order for which the rate will be locked.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct LockQuoteRequest {
    /// A currency of the catalogue, in upper or lower case.
    #[schema(example = "EUR")]
    currency: String,
    /// An asset of the catalogue, in upper or lower case.
    #[schema(example = "USDT")]
    asset: String,
    /// What the user pays, a decimal string: fiat on `on_ramp`, crypto on `off_ramp`, with at most
    /// as many fractional digits as the currency or asset has.
    #[schema(example = "100.00", pattern = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$")]
    amount: String,
    /// The direction of the order.
    side: words::Side,
    /// The payment method on `on_ramp`, the payout method on `off_ramp`.
    #[schema(example = "sepa")]
    payment_method: String,
    /// The chain, in its exact spelling; by default the first chain that the asset lists.
    #[schema(example = "tron")]
    network: Option<String>,
    /// The user's country, an ISO 3166 code.
    #[schema(example = "DE")]
    country_code: Option<String>,
}

/// A locked rate. A pay-in (`on_ramp`), a pay-out (`off_ramp`) or a swap can redeem it once before
/// it expires.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SignedQuote)]
pub(crate) struct SignedQuoteRecord {
    /// Quote id.
    #[schema(example = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// `signed_quote`
    #[schema(example = "signed_quote")]
    object: &'static str,
    /// Branch on this.
    status: words::SignedQuoteStatus,
    /// The direction of the order. Only quotes of the widget are for a `swap`.
    side: words::Flow,
    /// ISO 4217 code.
    #[schema(example = "EUR")]
    currency: String,
    /// The asset; in a swap, the one that the user receives.
    #[schema(example = "USDT")]
    asset: String,
    /// The chain of the asset.
    #[schema(example = "tron")]
    network: String,
    /// The payment or payout method; null for a swap.
    #[schema(required = true, example = "sepa")]
    payment_method: Option<String>,
    /// The asset that the user sends; only in a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "USDC")]
    source_asset: Option<String>,
    /// The chain of that asset; only in a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ethereum")]
    source_network: Option<String>,
    /// Exactly how much of it the user sends; only in a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "108.25")]
    source_amount: Option<String>,
    /// The fiat side: paid on `on_ramp`, received on `off_ramp`, the value of a swap.
    #[schema(example = "100.00")]
    fiat_amount: String,
    /// The crypto side: received on `on_ramp` and in a swap, sold on `off_ramp`.
    #[schema(example = "106.605318")]
    crypto_amount: String,
    /// Output per input before fees.
    #[schema(example = "1.0822875")]
    exchange_rate: String,
    /// The fees of the order.
    fees: FeesRecord,
    /// The quote is expired from this instant on.
    #[schema(format = DateTime)]
    expires_at: String,
    /// When the quote was redeemed, or null.
    #[schema(required = true, format = DateTime)]
    consumed_at: Option<String>,
    /// When the quote was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// HMAC-SHA256 in hexadecimal, with a key of the operator, over the canonical JSON (RFC 8785)
    /// of all other fields except `status` and `consumed_at`. It is evidence for the operator; you
    /// cannot verify it.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    signature: String,
}

pub(crate) const LOCK_QUOTE: Operation = Operation {
    route: || routes!(lock_quote),
    admission: Admission::RAILS,
    errors: &[
        codes::BODY,
        codes::ORDER,
        codes::RAIL_KEY,
        &[
            codes::COUNTRY_NOT_SUPPORTED,
            codes::ASSET_NOT_SUPPORTED,
            codes::CORRIDOR_NOT_AVAILABLE,
            codes::RATE_UNAVAILABLE,
        ],
    ],
};

/// Lock a quote
///
/// Locks the rate for a short time. A purchase delivers (fiat − fees) × rate; a sale pays crypto ×
/// rate − fees. Both are rounded down. A repeat with the same `Idempotency-Key` replays the first
/// response to the byte.
#[utoipa::path(post, path = "/v1/quotes", operation_id = "lockQuote", tag = "Quotes",
    params(("Idempotency-Key" = String, Header, description = "A value that you choose, the same for every retry of one operation; a UUID is recommended", example = "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1")),
    request_body = LockQuoteRequest,
    responses((status = 201, description = "The quote", body = SignedQuoteRecord)))]
pub(crate) async fn lock_quote(
    who: Entitled,
    State(app): State<App>,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<LockQuoteRequest>,
) -> Result<IdempotentReply, ApiError> {
    let key = key.required()?;
    let locking = &app.locking;
    let reply = locking
        .lock(who.access(), key, &request.into(), &|quote| {
            log_id(quote.id);
            response.json(StatusCode::CREATED, &record(quote, quote.created_at))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::lock_error)
}

pub(crate) const RETRIEVE_SIGNED_QUOTE: Operation = Operation {
    route: || routes!(retrieve_signed_quote),
    admission: Admission::RAILS,
    errors: &[&[codes::RESOURCE_NOT_FOUND, codes::RAILS_NOT_ENABLED]],
};

/// Read a signed quote
///
/// An `active` quote whose `expires_at` has passed is returned as `expired`. A quote of the widget that
/// was not redeemed is unknown within a minute after the end of its session.
#[utoipa::path(get, path = "/v1/quotes/{id}", operation_id = "retrieveSignedQuote", tag = "Quotes",
    params(("id" = String, Path, description = "Quote id", example = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The quote", body = SignedQuoteRecord)))]
pub(crate) async fn retrieve_signed_quote(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<SignedQuoteRecord>, ApiError> {
    let id = id.parse("signed quote", SignedQuoteId::parse)?;
    let found = app.reading.signed_quote(who.tenant(), id).await?;
    let Seen { value, at } = found.ok_or_else(|| ApiError::not_found("signed quote"))?;
    Ok(Json(record(&value, at)))
}

pub(crate) fn record(quote: &SignedQuote, now: Timestamp) -> SignedQuoteRecord {
    let (terms, priced) = (&quote.terms, &quote.terms.priced);
    let source = terms.source();
    SignedQuoteRecord {
        id: quote.id.to_string(),
        object: "signed_quote",
        status: quote.status(now).into(),
        side: terms.flow().into(),
        currency: terms.currency().code().to_owned(),
        asset: terms.asset().code().to_owned(),
        network: terms.network.clone(),
        payment_method: terms.payment_method().map(str::to_owned),
        source_asset: source.map(|it| it.amount.asset().code().to_owned()),
        source_network: source.map(|it| it.network.clone()),
        source_amount: source.map(|it| it.amount.to_string()),
        fiat_amount: priced.fiat.to_string(),
        crypto_amount: priced.crypto.to_string(),
        exchange_rate: priced.rate.to_string(),
        fees: FeesRecord::of(&priced.fees),
        expires_at: instant(quote.expires_at),
        consumed_at: quote.consumed_at.map(instant),
        created_at: instant(quote.created_at),
        signature: quote.signature.to_string(),
    }
}

impl From<LockQuoteRequest> for LockDraft {
    fn from(request: LockQuoteRequest) -> Self {
        Self {
            order: OrderDraft {
                currency: request.currency,
                asset: request.asset,
                amount: request.amount,
                side: request.side.0,
                network: request.network,
                country_code: request.country_code,
            },
            payment_method: request.payment_method,
        }
    }
}
