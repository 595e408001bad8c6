//! The session of a widget: read, wait for a change, cancel.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use gate_core::access::GateAccess;
use gate_core::catalogue::Catalogue;
use gate_core::limits::Group;
use gate_core::redirect::still_allowed;
use gate_core::usecases::act_on_session::ActionRequest;
use gate_core::usecases::show_session::{EmbedSession, Version};
use gate_core::usecases::verify_user::ShownVerification;
use http_kit::{ApiError, IdempotentReply, Query, ResponseBuilder, Waiting};
use partner_core::stored_response::RenderError;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::App;
use crate::branding::{self, BrandingRecord};
use crate::codes;
use crate::edge::ProvenCountry;
use crate::embed_caller::{Pay, Read, SessionCaller};
use crate::errors;
use crate::merchant::MerchantRecord;
use crate::operation::{Admission, Operation};
use crate::payments::PaymentRecord;
use crate::wire::instant;
use crate::words;

/// The longest wait for a change, in seconds.
const LONGEST_WAIT: u32 = 25;
/// The pause between two reads of the store while a call waits.
const PAUSE: Duration = Duration::from_millis(500);
/// How many pauses a second has.
const PAUSES: u32 = 2;

/// A session as its widget needs it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedSession)]
pub(crate) struct EmbedSessionRecord {
    /// `embed_session`
    #[schema(example = "embed_session")]
    object: &'static str,
    /// Session id.
    #[schema(example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// The mode of the session.
    mode: words::Mode,
    /// The status of the session. A failed payment leaves it open.
    status: words::SessionStatus,
    /// The bound amount as the partner wrote it.
    #[schema(example = "100.00")]
    amount: String,
    /// ISO 4217 code, in upper case.
    #[schema(example = "EUR")]
    currency: String,
    /// The only flow of the widget; null means the open widget.
    #[schema(required = true)]
    flow: Option<words::Flow>,
    /// The asset, in upper case, or null.
    #[schema(required = true)]
    target_token: Option<String>,
    /// The chain, in upper case, or null.
    #[schema(required = true)]
    target_network: Option<String>,
    /// The destination that the partner named, or null.
    #[schema(required = true)]
    wallet_address: Option<String>,
    /// Where the user is redirected after success, or null if its origin is no longer one of the
    /// partner's allowed domains.
    #[schema(required = true)]
    return_url: Option<String>,
    /// Where the user is redirected after cancelling, or null. Null also if its origin is no longer one
    /// of the partner's allowed domains.
    #[schema(required = true)]
    cancel_url: Option<String>,
    /// The session is not open from this instant on, unless a payment is in progress.
    #[schema(format = DateTime)]
    expires_at: String,
    /// When the session was read.
    #[schema(format = DateTime)]
    server_time: String,
    /// The look of the widget.
    branding: BrandingRecord,
    /// Who takes the money.
    merchant: MerchantRecord,
    /// Whether the user must be verified.
    verification: ShownVerificationRecord,
    /// The current payment, or null.
    #[schema(required = true)]
    payment: Option<PaymentRecord>,
    /// The transaction that completed the session; absent unless it is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    tx_refid: Option<String>,
    /// 16 hexadecimal digits, equal while nothing but `server_time` has changed.
    #[schema(example = "9f86d081884c7d65")]
    version: String,
}

/// Whether the user must be verified.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedSessionVerification)]
pub(crate) struct ShownVerificationRecord {
    /// Whether the user may pay: with `not_required` and `approved`.
    status: words::VerificationStatus,
    /// The provider's reason for a rejection, or null.
    #[schema(required = true)]
    reason: Option<String>,
}

pub(crate) const RETRIEVE_EMBED_SESSION: Operation = Operation {
    route: || routes!(retrieve_embed_session),
    admission: Admission::widget(Group::Embed),
    errors: &[&[
        codes::INVALID_REQUEST,
        codes::SESSION_REQUIRED,
        codes::RESOURCE_NOT_FOUND,
        codes::OUTCOME_UNKNOWN,
    ]],
};

/// Read the session
///
/// The session of the token. With `after` and `wait`, the response waits until the session differs
/// from that version, or until the wait is over. A wait counts as one request.
#[utoipa::path(get, path = "/v1/embed/session", operation_id = "retrieveEmbedSession", tag = "Session",
    params(
        ("after" = Option<String>, Query, description = "The `version` that you have, 16 hexadecimal digits. With an unknown version the response is immediate", pattern = "^[0-9a-f]{16}$"),
        ("wait" = Option<u32>, Query, description = "How many seconds to wait for another version than `after`; 0 by default", minimum = 0, maximum = 25, example = 0),
    ),
    responses((status = 200, description = "The session", body = EmbedSessionRecord)))]
pub(crate) async fn retrieve_embed_session(
    who: SessionCaller<Read>,
    State(app): State<App>,
    waiting: Waiting,
    Extension(ProvenCountry(country)): Extension<ProvenCountry>,
    query: Query,
) -> Result<Json<EmbedSessionRecord>, ApiError> {
    let after = query.parsed("after", |text| {
        Version::parse(text).ok_or("the 16 hexadecimal digits of a `version`")
    })?;
    let wait = query.integer("wait", 0..=LONGEST_WAIT)?.unwrap_or_default();
    let mut pauses = wait.saturating_mul(PAUSES);
    let showing = &app.showing;
    let mut access = Arc::clone(who.access());
    loop {
        let found = showing.show(who.tenant(), who.token(), country).await;
        let found = found.map_err(errors::show_error)?;
        let at = found.at;
        let (record, version) =
            versioned(&access, &app.catalogue, found).map_err(errors::undoable)?;
        if after != Some(version) || pauses == 0 || !waiting.sleep(PAUSE).await {
            return Ok(Json(record));
        }
        pauses = pauses.saturating_sub(1);
        let admitted = showing.still_admitted(who.claims(), at).await;
        access = admitted.map_err(errors::show_error)?;
    }
}

pub(crate) const CANCEL_EMBED_SESSION: Operation = Operation {
    route: || routes!(cancel_embed_session),
    admission: Admission::widget(Group::Embed),
    errors: &[&[
        codes::SESSION_REQUIRED,
        codes::RESOURCE_NOT_FOUND,
        codes::SESSION_NOT_OPEN,
        codes::SESSION_PAYMENT_IN_PROGRESS,
        codes::OUTCOME_UNKNOWN,
    ]],
};

/// Cancel the session
///
/// The user gives up. Afterwards lead the user to `cancel_url`, if there is one.
#[utoipa::path(post, path = "/v1/embed/cancel", operation_id = "cancelEmbedSession", tag = "Session",
    responses((status = 200, description = "The session, cancelled", body = EmbedSessionRecord)))]
pub(crate) async fn cancel_embed_session(
    who: SessionCaller<Pay>,
    State(app): State<App>,
    Extension(ProvenCountry(country)): Extension<ProvenCountry>,
    response: ResponseBuilder,
) -> Result<IdempotentReply, ApiError> {
    let (tenant, token) = (who.tenant(), who.token());
    let id = token.session;
    let before = app.showing.show(tenant, token, country).await;
    let before = before.map_err(errors::show_error)?;
    let acting = &app.acting;
    let reply = acting
        .act(tenant, id, None, &ActionRequest::Cancel, &|done| {
            let cancelled = EmbedSession {
                session: done.session.clone(),
                ..before.clone()
            };
            let (cancelled, _) = versioned(who.access(), &app.catalogue, cancelled)?;
            response.json(StatusCode::OK, &cancelled)
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::act_error)
}

fn versioned(
    access: &GateAccess,
    catalogue: &Catalogue,
    found: EmbedSession,
) -> Result<(EmbedSessionRecord, Version), RenderError> {
    let (session, terms) = (&found.session, &found.session.terms);
    let payment = found.payment.as_ref();
    let shown_url = |url: &str| still_allowed(url, access).map(str::to_owned);
    let mut record = EmbedSessionRecord {
        object: "embed_session",
        id: session.id.to_string(),
        mode: access.tenant.mode.into(),
        status: session.state.status().into(),
        amount: terms.amount.as_str().to_owned(),
        currency: terms.currency.code().to_owned(),
        flow: terms.flow.map(Into::into),
        target_token: terms.target_token.clone(),
        target_network: terms.target_network.clone(),
        wallet_address: terms.wallet_address.clone(),
        return_url: shown_url(&terms.return_url),
        cancel_url: terms.cancel_url.as_deref().and_then(shown_url),
        expires_at: instant(session.expires_at),
        server_time: String::new(),
        branding: branding::record(&found.branding),
        merchant: MerchantRecord::of(&access.profile.merchant),
        verification: verification(&found.verification),
        payment: payment.map(|it| PaymentRecord::of(it, catalogue)),
        tx_refid: session.state.refid().map(|refid| refid.to_string()),
        version: String::new(),
    };
    // Both fields are still empty, so the version covers all others.
    let text = serde_json::to_vec(&record).map_err(|error| RenderError(error.into()))?;
    let version = Version::of(&text);
    record.version = version.to_string();
    record.server_time = instant(found.at);
    Ok((record, version))
}

fn verification(shown: &ShownVerification) -> ShownVerificationRecord {
    ShownVerificationRecord {
        status: shown.status.into(),
        reason: shown.reason.clone(),
    }
}
