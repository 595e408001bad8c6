//! The widget's quotes and payments of its session.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use gate_core::catalogue::Catalogue;
use gate_core::limits::Group;
use gate_core::rail::{FailureReason, PaymentId, RailRecord};
use gate_core::session::Flow;
use gate_core::usecases::pay_session::PaymentRequest;
use gate_core::usecases::quote_session::{OrderedConversion, SessionOrder};
use http_kit::{
    ApiError, ErrorCode, IdempotencyHeader, IdempotentReply, Json as Body, PathId, ResponseBuilder,
    log_id,
};
use instruments::trace;
use kernel::rates::Side;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::App;
use crate::codes;
use crate::edge::ProvenCountry;
use crate::embed_caller::{Pay, SessionCaller};
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::rails::log_payment;
use crate::signed_quotes::{self, SignedQuoteRecord};
use crate::wire::{FeesRecord, instant};
use crate::words;

/// What the user wants to do with the session's amount. The amount itself is bound to the session, so the request has no amount.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateEmbedQuoteRequest {
    /// `on_ramp` to buy, `off_ramp` to sell, `swap` to send one asset and receive another.
    side: words::Flow,
    /// The asset to buy or to sell, or to receive in a swap.
    #[schema(example = "USDT")]
    asset: String,
    /// The chain of the asset.
    #[schema(example = "tron")]
    network: String,
    /// The payment or payout method; required to buy or to sell, and never sent for a swap.
    #[schema(example = "sepa")]
    payment_method: Option<String>,
    /// The asset to send in a swap, which is another one than `asset`; required for a swap, and sent for no other side.
    #[schema(example = "USDC")]
    source_asset: Option<String>,
    /// The chain of the asset to send; required for a swap, and sent for no other side.
    #[schema(example = "ethereum")]
    source_network: Option<String>,
    /// Never sent: the session has the amount.
    #[serde(default)]
    #[schema(ignore)]
    amount: Option<IgnoredAny>,
}

/// A payment of the session with its quote.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CreateEmbedPaymentRequest {
    /// The session's newest quote.
    #[schema(example = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    quote_id: String,
    /// Where the asset of a purchase or swap is delivered; required for both unless the session has an address, which cannot be
    /// changed.
    #[schema(example = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8")]
    wallet_address: Option<String>,
    /// Where a sale is paid out, required for a sale: the fields of the method's `account`. `iban` has `iban`; `uk` has
    /// `sort_code` (6 digits) and `account_number` (8 digits); `us` has `routing_number` (9 digits), `account_number` (4 to 17
    /// digits) and `account_type` (`checking` or `savings`). Each may have `account_holder`, 2 to 70 characters.
    payout: Option<BTreeMap<String, String>>,
}

/// A payment of the session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedPayment)]
pub(crate) struct PaymentRecord {
    /// `embed_payment`
    #[schema(example = "embed_payment")]
    object: &'static str,
    /// Payment id.
    #[schema(example = "pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// The status of the payment.
    status: words::EmbedPaymentStatus,
    /// Purchase, sale or swap.
    side: words::Flow,
    /// The asset that the user receives, or sells in a sale.
    #[schema(example = "USDT")]
    asset: String,
    /// Its chain.
    #[schema(example = "ethereum")]
    network: String,
    /// The method; null for a swap.
    #[schema(required = true, example = "sepa")]
    payment_method: Option<String>,
    /// The asset that the user sends in a swap, or null.
    #[schema(required = true)]
    source_asset: Option<String>,
    /// Its chain, or null.
    #[schema(required = true)]
    source_network: Option<String>,
    /// How much of it the user sends, or null.
    #[schema(required = true)]
    source_amount: Option<String>,
    /// The fiat side.
    #[schema(example = "100.00")]
    fiat_amount: String,
    /// The crypto side.
    #[schema(example = "106.605318")]
    crypto_amount: String,
    /// Output per input before fees.
    #[schema(example = "1.0822875")]
    exchange_rate: String,
    /// The fees.
    fees: FeesRecord,
    /// What the user needs in order to pay, by name, or null. The names are the rail's, such as `iban`,
    /// `account_holder`, `bic` and `reference` of a transfer, `address` and `memo` of crypto, or `url` of
    /// the rail's own page. `scan` is the gate's: while the payment is processing, the text of the QR code
    /// for what is still to pay, if there is one. It is the URI of the chain (EIP-681, BIP-21, Solana
    /// Pay), or else the address, and the EPC069-12 code of a transfer in euro.
    #[schema(required = true, value_type = Option<BTreeMap<String, String>>)]
    instructions: Option<BTreeMap<String, String>>,
    /// Until when the user can pay, or null.
    #[schema(required = true, format = DateTime)]
    pay_until: Option<String>,
    /// What has arrived of the payment, if its rail says so, or null.
    #[schema(required = true)]
    received: Option<ReceivedRecord>,
    /// Why the payment failed, or null.
    #[schema(required = true)]
    failure_code: Option<String>,
    /// Why the rail gives back what had arrived, or null.
    #[schema(required = true)]
    failure_reason: Option<words::FailureReason>,
    /// An explanation for people, or null.
    #[schema(required = true)]
    failure_message: Option<&'static str>,
    /// The reference of the payment's transaction.
    #[schema(example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    tx_refid: String,
    /// When the payment was created.
    #[schema(format = DateTime)]
    created_at: String,
}

/// What has arrived of a payment. While it is less than what is required, the payment stays `processing`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedPaymentReceived)]
pub(crate) struct ReceivedRecord {
    /// How much has arrived.
    #[schema(example = "20.00")]
    amount: String,
    /// How much the user pays.
    #[schema(example = "100.00")]
    required: String,
    /// The currency of fiat, or null.
    #[schema(required = true, example = "EUR")]
    currency: Option<String>,
    /// The asset of crypto, or null.
    #[schema(required = true)]
    asset: Option<String>,
    /// Its chain, or null.
    #[schema(required = true)]
    network: Option<String>,
    /// When it arrived.
    #[schema(format = DateTime)]
    at: String,
}

impl ReceivedRecord {
    pub(crate) fn of(record: &RailRecord) -> Option<Self> {
        let received = record.received?;
        let paid = record.terms.paid();
        let code = paid.amount.asset().code().to_owned();
        let (currency, asset) = match paid.network {
            None => (Some(code), None),
            Some(_) => (None, Some(code)),
        };
        Some(Self {
            amount: received.amount.to_string(),
            required: paid.amount.to_string(),
            currency,
            asset,
            network: paid.network.map(str::to_owned),
            at: instant(received.at),
        })
    }
}

/// Refusals of the calls that need an open session.
const PAY: &[&ErrorCode] = &[
    codes::SESSION_REQUIRED,
    codes::RESOURCE_NOT_FOUND,
    codes::SESSION_NOT_OPEN,
    codes::SESSION_PAYMENT_IN_PROGRESS,
    codes::OUTCOME_UNKNOWN,
];

pub(crate) const CREATE_EMBED_QUOTE: Operation = Operation {
    route: || routes!(create_embed_quote),
    admission: Admission::widget(Group::EmbedQuotes),
    errors: &[
        codes::BODY,
        PAY,
        &[
            codes::AMOUNT_NOT_ALLOWED,
            codes::AMOUNT_OUT_OF_RANGE,
            codes::UNKNOWN_CURRENCY,
            codes::INVALID_ADDRESS,
            codes::ADDRESS_CHECKSUM_MISMATCH,
            codes::NETWORK_NOT_SUPPORTED,
            codes::COUNTRY_NOT_SUPPORTED,
            codes::ASSET_NOT_SUPPORTED,
            codes::CORRIDOR_NOT_AVAILABLE,
            codes::QUOTE_SESSION_MISMATCH,
            codes::RATE_UNAVAILABLE,
        ],
    ],
};

/// Quote the session
///
/// Locks the price of the session's amount for a short time. A session has one quote that can be
/// paid: a new one supersedes it. On a sale the session's amount is the fiat that the user receives,
/// and the quote says how much of the asset the user must send, rounded up. In a swap the session's
/// amount is the value of what the user sends: `source_amount` is rounded up, and what the value less
/// the fees buys is rounded down.
#[utoipa::path(post, path = "/v1/embed/quotes", operation_id = "createEmbedQuote", tag = "Payment",
    request_body = CreateEmbedQuoteRequest,
    responses((status = 201, description = "The quote", body = SignedQuoteRecord)))]
pub(crate) async fn create_embed_quote(
    who: SessionCaller<Pay>,
    State(app): State<App>,
    headers: HeaderMap,
    Body(request): Body<CreateEmbedQuoteRequest>,
) -> Result<(StatusCode, Json<SignedQuoteRecord>), ApiError> {
    if request.amount.is_some() {
        return Err(ApiError::new(
            codes::AMOUNT_NOT_ALLOWED,
            "`amount`: omit it; the session's amount is quoted.",
        ));
    }
    let order = SessionOrder {
        conversion: request.conversion()?,
        asset: request.asset,
        network: request.network,
        country: app.edge.country(&headers),
    };
    let quote = app.quoting.quote(who.access(), who.token(), &order).await;
    let quote = quote.map_err(errors::quote_session_error)?;
    log_id(quote.id);
    let record = signed_quotes::record(&quote, quote.created_at);
    Ok((StatusCode::CREATED, Json(record)))
}

pub(crate) const CREATE_EMBED_PAYMENT: Operation = Operation {
    route: || routes!(create_embed_payment),
    admission: Admission::widget(Group::EmbedPayments),
    errors: &[
        codes::BODY,
        PAY,
        &[
            codes::IDEMPOTENCY_KEY_REQUIRED,
            codes::IDEMPOTENCY_KEY_INVALID,
            codes::IDEMPOTENCY_IN_PROGRESS,
            codes::INVALID_ADDRESS,
            codes::ADDRESS_CHECKSUM_MISMATCH,
            codes::NETWORK_NOT_SUPPORTED,
            codes::WALLET_MISMATCH,
            codes::QUOTE_CONSUMED,
            codes::QUOTE_SUPERSEDED,
            codes::QUOTE_EXPIRED,
            codes::VERIFICATION_REQUIRED,
            codes::VERIFICATION_REJECTED,
            codes::RAILS_NOT_AVAILABLE,
            codes::RAIL_UNAVAILABLE,
        ],
    ],
};

/// Pay the session
///
/// Redeems the session's newest quote. A session has at most one payment in progress or completed,
/// so two tabs, a double click or a lost response never pay twice. A refused payment consumes
/// nothing. The payment is `processing` until the rail has moved the money or reports a failure; a
/// completed payment completes the session.
#[utoipa::path(post, path = "/v1/embed/payments", operation_id = "createEmbedPayment", tag = "Payment",
    params(("Idempotency-Key" = String, Header, description = "A value that you choose, the same for every retry of one intent of the user; it counts for this session alone", example = "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1")),
    request_body = CreateEmbedPaymentRequest,
    responses((status = 201, description = "The payment, processing", body = PaymentRecord)))]
pub(crate) async fn create_embed_payment(
    who: SessionCaller<Pay>,
    State(app): State<App>,
    Extension(ProvenCountry(country)): Extension<ProvenCountry>,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<CreateEmbedPaymentRequest>,
) -> Result<IdempotentReply, ApiError> {
    let key = key.required()?;
    log_id(&request.quote_id);
    let asked = PaymentRequest {
        quote: request.quote_id,
        wallet_address: request.wallet_address,
        payout: request.payout,
        country,
        until: who.claims().expires_at,
        trace_parent: trace::cause(),
    };
    let paying = &app.paying;
    let reply = paying
        .pay(who.access(), who.token(), key, &asked, &|record| {
            log_id(record.payment_id());
            log_payment(record);
            let paid = PaymentRecord::of(record, &app.catalogue);
            response.json(StatusCode::CREATED, &paid)
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::pay_error)
}

pub(crate) const CANCEL_EMBED_PAYMENT: Operation = Operation {
    route: || routes!(cancel_embed_payment),
    admission: Admission::widget(Group::Embed),
    errors: &[&[
        codes::SESSION_REQUIRED,
        codes::RESOURCE_NOT_FOUND,
        codes::PAYMENT_NOT_CANCELLABLE,
        codes::OUTCOME_UNKNOWN,
    ]],
};

/// Cancel the payment
///
/// The user gives up the payment, while the rail allows it. The session stays open, and the user may
/// pay again. A payment that is over cannot be cancelled.
#[utoipa::path(post, path = "/v1/embed/payments/{id}/cancel", operation_id = "cancelEmbedPayment", tag = "Payment",
    params(("id" = String, Path, description = "Payment id", example = "pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The payment, cancelled", body = PaymentRecord)))]
pub(crate) async fn cancel_embed_payment(
    who: SessionCaller<Pay>,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<PaymentRecord>, ApiError> {
    let id = id.parse("payment", PaymentId::parse)?;
    let record = app.cancelling.cancel(who.tenant(), who.token(), id).await;
    let record = record.map_err(errors::cancel_error)?;
    log_payment(&record);
    Ok(Json(PaymentRecord::of(&record, &app.catalogue)))
}

impl CreateEmbedQuoteRequest {
    /// The fields that depend on `side`.
    fn conversion(&self) -> Result<OrderedConversion, ApiError> {
        let side = match self.side.0 {
            Flow::OnRamp => Side::OnRamp,
            Flow::OffRamp => Side::OffRamp,
            Flow::Swap => return self.swap(),
        };
        absent("source_asset", self.source_asset.as_ref(), "for a swap")?;
        absent("source_network", self.source_network.as_ref(), "for a swap")?;
        Ok(OrderedConversion::Ramp {
            side,
            payment_method: required("payment_method", self.payment_method.as_ref())?,
        })
    }

    fn swap(&self) -> Result<OrderedConversion, ApiError> {
        let method = self.payment_method.as_ref();
        absent("payment_method", method, "to buy or to sell")?;
        Ok(OrderedConversion::Swap {
            source_asset: required("source_asset", self.source_asset.as_ref())?,
            source_network: required("source_network", self.source_network.as_ref())?,
        })
    }
}

/// A field that the side requires.
fn required(name: &str, field: Option<&String>) -> Result<String, ApiError> {
    let missing = || ApiError::invalid_request(format!("`{name}` is required."));
    field.cloned().ok_or_else(missing)
}

/// A field that only other sides have.
fn absent(name: &str, field: Option<&String>, only: &str) -> Result<(), ApiError> {
    match field {
        None => Ok(()),
        Some(_) => Err(ApiError::invalid_request(format!(
            "`{name}`: expected only {only}; omit it."
        ))),
    }
}

impl PaymentRecord {
    pub(crate) fn of(record: &RailRecord, catalogue: &Catalogue) -> Self {
        let (terms, priced) = (&record.terms, &record.terms.priced);
        let source = terms.source();
        let (failure_code, failure_message) = failure(record).unzip();
        Self {
            object: "embed_payment",
            id: record.payment_id().to_string(),
            status: record.state.transaction().status().into(),
            side: terms.flow().into(),
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
            instructions: instructions(record, catalogue),
            pay_until: record.pay_until.map(instant),
            received: ReceivedRecord::of(record),
            failure_code,
            failure_reason: record.state.failure_reason().map(Into::into),
            failure_message,
            tx_refid: record.refid.to_string(),
            created_at: instant(record.created_at),
        }
    }
}

/// The instruction that is the gate's own.
const SCAN: &str = "scan";

/// The rail's instructions, with the gate's `scan`. A `scan` of the rail is left out: it could name another address.
fn instructions(record: &RailRecord, catalogue: &Catalogue) -> Option<BTreeMap<String, String>> {
    let mut named = record.instructions.clone()?.0;
    named.remove(SCAN);
    let scan = record.scan(catalogue);
    named.extend(scan.map(|text| (SCAN.to_owned(), text)));
    Some(named)
}

/// The code and the words of a failed payment. Rails have codes of their own, so most of them have no words here.
pub(crate) fn failure(record: &RailRecord) -> Option<(String, &'static str)> {
    let code = record.state.failure_code()?;
    let message = match record.state.failure_reason() {
        Some(FailureReason::AmountDiffers) => {
            "Another amount arrived than the payment's. It goes back to its sender."
        }
        Some(FailureReason::Expired) => {
            "The money did not come in time. What came goes back to its sender."
        }
        Some(FailureReason::Returned) => "The money came back.",
        Some(FailureReason::Refused) | None => message_of(code),
    };
    Some((code.to_owned(), message))
}

fn message_of(code: &str) -> &'static str {
    match code {
        "provider_declined" => "The payment was declined.",
        "account_closed" => "The account is closed.",
        "insufficient_funds" => "The account has insufficient funds.",
        _ => "The payment could not be completed.",
    }
}
