//! How a session ended, for pages with a publishable key and the session's client secret.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use gate_core::access::GateAccess;
use gate_core::rail::RailRecord;
use gate_core::redirect::still_allowed;
use gate_core::usecases::show_outcome::Outcome;
use http_kit::{ApiError, OptionalJson, log_id};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Publishable};
use crate::branding::{self, BrandingRecord};
use crate::codes;
use crate::embed::page_headers;
use crate::errors;
use crate::merchant::MerchantRecord;
use crate::operation::{Admission, Operation};
use crate::wire::{FeesRecord, instant};
use crate::words;

/// The session whose outcome is read.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct RetrieveEmbedOutcomeRequest {
    /// The client secret of the session.
    #[serde(rename = "clientSecret")]
    #[schema(
        required = true,
        nullable = false,
        example = "gsec_gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK_0123456789abcdefABCDEF0123456789"
    )]
    client_secret: Option<String>,
}

/// How a session ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedOutcome)]
pub(crate) struct OutcomeRecord {
    /// `embed_outcome`
    #[schema(example = "embed_outcome")]
    object: &'static str,
    /// Session id.
    #[schema(example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    session_id: String,
    /// The mode of the session.
    mode: words::Mode,
    /// How the session ended.
    status: words::EmbedOutcomeStatus,
    /// The look of the widget.
    branding: BrandingRecord,
    /// Who takes the money.
    merchant: MerchantRecord,
    /// The bound amount as you wrote it.
    #[schema(example = "100.00")]
    amount: String,
    /// ISO 4217 code, in upper case.
    #[schema(example = "EUR")]
    currency: String,
    /// The only flow of the widget, or null.
    #[schema(required = true)]
    flow: Option<words::Flow>,
    /// Where the user is redirected after success, or null if its origin is no longer one of your
    /// allowed domains.
    #[schema(required = true)]
    return_url: Option<String>,
    /// Where the user is redirected after cancelling, or null. Null also if its origin is no longer one
    /// of your allowed domains.
    #[schema(required = true)]
    cancel_url: Option<String>,
    /// When the session ended.
    #[schema(format = DateTime)]
    ended_at: String,
    /// The session's newest payment, whatever its outcome, or null if none was begun.
    #[schema(required = true, example = "pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    payment_id: Option<String>,
    /// The payment that completed the session, or null.
    #[schema(required = true)]
    receipt: Option<ReceiptRecord>,
}

/// The payment that completed a session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedReceipt)]
pub(crate) struct ReceiptRecord {
    /// The reference of the payment's transaction.
    #[schema(example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    reference: String,
    /// Purchase, sale or swap.
    side: words::Flow,
    /// The method; null for a swap.
    #[schema(required = true, example = "sepa")]
    payment_method: Option<String>,
    /// The fiat side.
    #[schema(example = "100.00")]
    fiat_amount: String,
    /// The currency of the fiat side.
    #[schema(example = "EUR")]
    currency: String,
    /// The crypto side.
    #[schema(example = "106.605318")]
    crypto_amount: String,
    /// Output per input before fees.
    #[schema(example = "1.0822875")]
    exchange_rate: String,
    /// The fees.
    fees: FeesRecord,
    /// The asset that the user received, or sold in a sale.
    #[schema(example = "USDT")]
    asset: String,
    /// Its chain.
    #[schema(example = "ethereum")]
    network: String,
    /// The asset that the user sent in a swap, or null.
    #[schema(required = true)]
    source_asset: Option<String>,
    /// Its chain, or null.
    #[schema(required = true)]
    source_network: Option<String>,
    /// How much of it the user sent, or null.
    #[schema(required = true)]
    source_amount: Option<String>,
    /// The first six characters and the last four of the address that received the asset. Null for a
    /// sale, and for a payment that the user did not make in the widget.
    #[schema(required = true, example = "TJRabP…RTv8")]
    wallet_address: Option<String>,
    /// When the payment was created.
    #[schema(format = DateTime)]
    created_at: String,
}

pub(crate) const RETRIEVE_EMBED_OUTCOME: Operation = Operation {
    route: || routes!(retrieve_embed_outcome),
    admission: Admission::BROWSER,
    errors: &[
        codes::BODY,
        &[
            codes::ORIGIN_NOT_ALLOWED,
            codes::CLIENT_SECRET_INVALID,
            codes::SESSION_NOT_OPEN_TO_PAGE,
            codes::SESSION_OPEN,
            codes::OUTCOME_UNKNOWN,
        ],
    ],
};

/// Read how a session ended
///
/// For browsers, with a publishable key and the session's client secret, for 30 days after the
/// session's end. The page's `Origin`, or without an `Origin` its `Referer`, must equal one of your
/// allowed domains. It issues no token. The receipt is for the user alone: deliver after the webhook
/// `gate_session.completed`, and after nothing else.
///
/// It counts in the same tiers as the bootstrap.
#[utoipa::path(post, path = "/v1/embed/outcome", operation_id = "retrieveEmbedOutcome", tag = "Embed",
    params(
        ("Origin" = Option<String>, Header, description = "The origin of the page, as browsers send it", example = "https://shop.example"),
        ("Referer" = Option<String>, Header, description = "Used if there is no `Origin`"),
        ("publishable_key" = Option<String>, Query, description = "The publishable key, if no header can be sent"),
    ),
    request_body = RetrieveEmbedOutcomeRequest,
    responses((status = 200, description = "How the session ended", body = OutcomeRecord)))]
pub(crate) async fn retrieve_embed_outcome(
    who: Publishable,
    State(app): State<App>,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<RetrieveEmbedOutcomeRequest>,
) -> Result<Json<OutcomeRecord>, ApiError> {
    let secret = request.unwrap_or_default().client_secret;
    // Like a wrong secret, a missing one is refused after the origin.
    let secret = secret.unwrap_or_default();
    let page = page_headers(&headers);
    let outcome = app.outcomes.show(who.access(), page, &secret).await;
    let outcome = outcome.map_err(errors::outcome_error)?;
    log_id(outcome.session.id);
    Ok(Json(record(who.access(), &outcome)))
}

fn record(access: &GateAccess, outcome: &Outcome) -> OutcomeRecord {
    let (session, terms) = (&outcome.session, &outcome.session.terms);
    let shown_url = |url: &str| still_allowed(url, access).map(str::to_owned);
    OutcomeRecord {
        object: "embed_outcome",
        session_id: session.id.to_string(),
        mode: access.tenant.mode.into(),
        status: session.state.status().into(),
        branding: branding::record(&outcome.branding),
        merchant: MerchantRecord::of(&access.profile.merchant),
        amount: terms.amount.as_str().to_owned(),
        currency: terms.currency.code().to_owned(),
        flow: terms.flow.map(Into::into),
        return_url: shown_url(&terms.return_url),
        cancel_url: terms.cancel_url.as_deref().and_then(shown_url),
        ended_at: instant(outcome.ended_at),
        payment_id: outcome
            .payment
            .as_ref()
            .map(|payment| payment.payment_id().to_string()),
        receipt: outcome.completed_by().map(ReceiptRecord::of),
    }
}

impl ReceiptRecord {
    fn of(payment: &RailRecord) -> Self {
        let (terms, priced) = (&payment.terms, &payment.terms.priced);
        let source = terms.source();
        let hosted = payment.hosted.as_ref();
        let wallet = hosted.and_then(|hosted| hosted.wallet_address.as_deref());
        Self {
            reference: payment.refid.to_string(),
            side: terms.flow().into(),
            payment_method: terms.payment_method().map(str::to_owned),
            fiat_amount: priced.fiat.to_string(),
            currency: terms.currency().code().to_owned(),
            crypto_amount: priced.crypto.to_string(),
            exchange_rate: priced.rate.to_string(),
            fees: FeesRecord::of(&priced.fees),
            asset: terms.asset().code().to_owned(),
            network: terms.network.clone(),
            source_asset: source.map(|it| it.amount.asset().code().to_owned()),
            source_network: source.map(|it| it.network.clone()),
            source_amount: source.map(|it| it.amount.to_string()),
            wallet_address: wallet.and_then(shortened),
            created_at: instant(payment.created_at),
        }
    }
}

/// The first six characters and the last four of an address.
fn shortened(address: &str) -> Option<String> {
    let end = address.len().checked_sub(4)?;
    Some(format!("{}…{}", address.get(..6)?, address.get(end..)?))
}
