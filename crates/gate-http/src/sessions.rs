//! Sessions: create, read, list, cancel.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gate_core::access::GateAccess;
use gate_core::draft::Draft;
use gate_core::limits::Group;
use gate_core::ports::SessionFilter;
use gate_core::session::{Session, SessionId, SessionStatus};
use gate_core::usecases::act_on_session::ActionRequest;
use http_kit::{
    ApiError, IdempotencyHeader, IdempotentReply, Json as Body, PathId, Query, RawJson,
    ResponseBuilder, Warning, log_id,
};
use partner_core::Tenant;
use partner_core::origin::Origin;
use partner_core::stored_response::IdempotentResponse;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::errors;
use crate::lists::SessionList;
use crate::operation::{Admission, Operation};
use crate::wire::{Verbatim, created, instant, page_size};
use crate::words;

/// The order of a new session.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateSessionRequest {
    /// A decimal string greater than zero: digits, optionally a dot and 1 to 8 more digits. Later
    /// actions of the widget must match it exactly.
    #[schema(example = "100.00", pattern = r"^[0-9]+(\.[0-9]{1,8})?$")]
    amount: String,
    /// An active ISO 4217 code, in upper or lower case.
    #[schema(example = "EUR")]
    currency: String,
    /// Where the user is redirected after success: an https URL whose origin is one of your allowed
    /// domains. In the sandbox, a loopback host may use http.
    #[schema(example = "https://shop.example/done", max_length = 2048)]
    return_url: String,
    /// Where the user is redirected after cancelling, under the same rules as `return_url`.
    #[schema(example = "https://shop.example/cart", max_length = 2048)]
    cancel_url: Option<String>,
    /// The asset, in upper or lower case.
    #[schema(example = "USDT", max_length = 32)]
    target_token: Option<String>,
    /// The chain, in upper or lower case.
    #[schema(example = "TRON", max_length = 32)]
    target_network: Option<String>,
    /// The only flow of the widget; absent means the open widget.
    flow: Option<words::Flow>,
    /// A pre-filled destination. It is checked when the flow knows its network.
    #[schema(max_length = 128)]
    wallet_address: Option<String>,
    /// Your own identifier of the user, included in events.
    #[schema(max_length = 128)]
    user_reference: Option<String>,
    /// Your own data, returned unchanged: at most 50 keys and 16 KiB. Numbers keep every digit.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    metadata: Option<RawJson>,
    /// A locked preview. The session's amount, currency, asset and side must match it.
    #[schema(pattern = "^[0-9a-f]{24}$")]
    quote_preview_id: Option<String>,
    /// Your verification of the user, accepted if the operator trusts you; never returned.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    kyc_package: Option<RawJson>,
}

/// A session: one amount that a user pays or is paid in the hosted flow.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GateSession)]
pub(crate) struct SessionRecord {
    /// Session id.
    #[schema(example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// `gate_session`
    #[schema(example = "gate_session")]
    object: &'static str,
    /// The partner that owns the session.
    #[schema(example = "acme")]
    partner_id: String,
    /// The mode of the key that created it.
    mode: words::Mode,
    /// The bound amount as sent, unchanged.
    #[schema(example = "100.00")]
    amount: String,
    /// ISO 4217 code, in upper case.
    #[schema(example = "EUR")]
    currency: String,
    /// Redirect after success as sent, unchanged.
    return_url: String,
    /// Redirect after cancelling, or null.
    #[schema(required = true)]
    cancel_url: Option<String>,
    /// Branch on this. There is no `failed`, because a failed payment leaves the session open.
    status: words::SessionStatus,
    /// The session is not open from this instant on.
    #[schema(format = DateTime)]
    expires_at: String,
    /// When the session was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// The only flow of the widget; null means the open widget.
    #[schema(required = true)]
    flow: Option<words::Flow>,
    /// The asset, in upper case, or null.
    #[schema(required = true)]
    target_token: Option<String>,
    /// The chain, in upper case, or null.
    #[schema(required = true)]
    target_network: Option<String>,
    /// The pre-filled destination, or null.
    #[schema(required = true)]
    wallet_address: Option<String>,
    /// Your own identifier of the user, or null.
    #[schema(required = true)]
    user_reference: Option<String>,
    /// True if your `kyc_package` was accepted.
    kyc_pre_verified: bool,
    /// The metadata as sent, unchanged; `{}` if none was sent.
    #[schema(value_type = BTreeMap<String, Value>)]
    metadata: Verbatim,
    /// Binds a browser's bootstrap to this session. Only in the response to the create.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    client_secret: Option<String>,
    /// The address of this session's checkout, complete with your newest active publishable key and the client secret. Only in
    /// the response to the create; null in all others, and without such a key.
    #[schema(
        required = true,
        example = "https://pay.example/checkout#publishable_key=pk_test_Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z&client_secret=gsec_gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK_aB3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
    )]
    url: Option<String>,
    /// The transaction that completed the session; absent unless it is completed. On the events `gate_session.processing` and
    /// `gate_session.failed` it is the transaction of the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    pub(crate) tx_refid: Option<String>,
}

pub(crate) const CREATE_SESSION: Operation = Operation {
    route: || routes!(create_session),
    admission: Admission::secret(Group::CreateSession),
    errors: &[
        codes::BODY,
        &[
            codes::IDEMPOTENCY_KEY_REQUIRED,
            codes::IDEMPOTENCY_KEY_INVALID,
            codes::AMOUNT_OUT_OF_RANGE,
            codes::UNKNOWN_CURRENCY,
            codes::QUOTE_PREVIEW_MISSING,
            codes::QUOTE_PREVIEW_EXPIRED,
            codes::QUOTE_PREVIEW_USED,
            codes::QUOTE_PREVIEW_MISMATCH,
            codes::KYC_PACKAGE_NOT_TRUSTED,
            codes::KIT_BLOCKS_NOT_ENABLED,
            codes::QUOTA_EXHAUSTED,
            codes::IDEMPOTENCY_IN_PROGRESS,
            codes::OUTCOME_UNKNOWN,
        ],
    ],
};

/// Create a session
///
/// Binds an amount and a currency to a session of the key's mode, and returns the client secret
/// once. A repeat with the same `Idempotency-Key` replays the first response to the byte, also if its
/// body differs: a changed order needs a new key.
///
/// Amount and address are checked when the user pays. If no choice of the widget can pay the session,
/// the response has a `Penstock-Warning` whose code says why, such as `amount_precision`.
#[utoipa::path(post, path = "/v1/gate_sessions", operation_id = "createSession", tag = "Sessions",
    params(("Idempotency-Key" = String, Header, description = "A value that you choose, the same for every retry of one operation; a UUID is recommended", example = "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1")),
    request_body = CreateSessionRequest,
    responses((status = 201, description = "The session, with its client secret", body = SessionRecord)))]
pub(crate) async fn create_session(
    who: Entitled,
    State(app): State<App>,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<CreateSessionRequest>,
) -> Result<(Option<Warning>, IdempotentReply), ApiError> {
    let key = key.required()?;
    let draft = Draft::from(request);
    let creating = &app.creating;
    let reply = creating
        .create(who.access(), key, &draft, &|created| {
            log_id(created.session.id);
            let secret = created.client_secret.expose_secret().to_owned();
            let key = created.publishable_key.as_deref();
            let widget = app.bootstrapping.widget.as_ref();
            let session = SessionRecord {
                url: widget
                    .zip(key)
                    .map(|(widget, key)| checkout(widget, key, &secret)),
                client_secret: Some(secret),
                ..record(who.tenant(), &created.session)
            };
            response.json(StatusCode::CREATED, &session)
        })
        .await;
    let reply = reply.map_err(errors::create_error)?;
    let warning = match &reply {
        // Its session has other terms than this request.
        IdempotentResponse::Replayed {
            same_request: false,
            ..
        } => None,
        IdempotentResponse::First(_) | IdempotentResponse::Replayed { .. } => {
            unpayable(&app, who.access(), &draft).await
        }
    };
    Ok((warning, IdempotentReply(reply)))
}

/// The warning of a session that no choice of the widget can pay. `None` without a widget.
async fn unpayable(app: &App, access: &GateAccess, draft: &Draft) -> Option<Warning> {
    app.bootstrapping.widget.as_ref()?;
    let valid = draft.validate(&access.profile, access.tenant.mode).ok()?;
    let reason = app.options.unpayable(&valid.terms).await?;
    Some(Warning::new(reason.as_str(), reason.to_string()))
}

pub(crate) const RETRIEVE_SESSION: Operation = Operation {
    route: || routes!(retrieve_session),
    admission: Admission::secret(Group::Global),
    errors: &[&[codes::RESOURCE_NOT_FOUND, codes::OUTCOME_UNKNOWN]],
};

/// Read a session
///
/// If the session is overdue, this call expires it.
#[utoipa::path(get, path = "/v1/gate_sessions/{id}", operation_id = "retrieveSession", tag = "Sessions",
    params(("id" = String, Path, description = "Session id", example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The session", body = SessionRecord)))]
pub(crate) async fn retrieve_session(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<SessionRecord>, ApiError> {
    let id = id.parse("session", SessionId::parse)?;
    let found = app.reading.context.session(who.tenant(), id).await;
    let session = found.map_err(errors::gate_error)?;
    let session = session.ok_or_else(|| ApiError::not_found("session"))?;
    Ok(Json(record(who.tenant(), &session)))
}

pub(crate) const LIST_SESSIONS: Operation = Operation {
    route: || routes!(list_sessions),
    admission: Admission::secret(Group::ListSessions),
    errors: &[&[codes::INVALID_REQUEST, codes::OUTCOME_UNKNOWN]],
};

/// List sessions
///
/// Newest first. For the next page, send the last id as `starting_after` while `has_more` is true.
#[utoipa::path(get, path = "/v1/gate_sessions", operation_id = "listSessions", tag = "Sessions",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 100; 10 by default", minimum = 1, maximum = 100),
        ("starting_after" = Option<String>, Query, description = "The last id of the previous page", pattern = "^gs_(test|live)_[0-7][0-9A-HJKMNP-TV-Z]{25}$", example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("status" = Option<words::SessionStatus>, Query, description = "Only sessions with this status"),
        ("created_after" = Option<String>, Query, format = DateTime, description = "Only sessions created later than this instant: RFC 3339, or a date", example = "2026-05-25T00:00:00Z"),
        ("created_before" = Option<String>, Query, format = DateTime, description = "Only sessions created no later than this instant: RFC 3339, or a date", example = "2026-05-26T00:00:00Z"),
    ),
    responses((status = 200, description = "A page of sessions", body = SessionList)))]
pub(crate) async fn list_sessions(
    who: Entitled,
    State(app): State<App>,
    query: Query,
) -> Result<Json<SessionList>, ApiError> {
    let limit = page_size(&query)?;
    let statuses = SessionStatus::ALL.map(|status| (status.as_str(), status));
    let filter = SessionFilter {
        after: query.parsed("starting_after", |text| {
            SessionId::parse(text).ok_or("expected the id of a session")
        })?,
        status: query.one_of("status", &statuses)?,
        created: created(&query)?,
    };
    let page = app.reading.sessions(who.tenant(), &filter, limit);
    let page = page.await.map_err(errors::gate_error)?;
    Ok(SessionList::of(page, |it| record(who.tenant(), &it)))
}

pub(crate) const CANCEL_SESSION: Operation = Operation {
    route: || routes!(cancel_session),
    admission: Admission::secret(Group::CancelSession),
    errors: &[codes::ACT],
};

/// Cancel a session
///
/// Only an open session can be cancelled. A repeat is 409 without an `Idempotency-Key`; with one,
/// it replays the first response.
#[utoipa::path(post, path = "/v1/gate_sessions/{id}/cancel", operation_id = "cancelSession", tag = "Sessions",
    params(
        ("id" = String, Path, description = "Session id", example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("Idempotency-Key" = Option<String>, Header, description = "A value that you choose, the same for every retry"),
    ),
    responses((status = 201, description = "The session, cancelled", body = SessionRecord)))]
pub(crate) async fn cancel_session(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
    key: IdempotencyHeader,
    response: ResponseBuilder,
) -> Result<IdempotentReply, ApiError> {
    let id = id.parse("session", SessionId::parse)?;
    let key = key.optional()?;
    let acting = &app.acting;
    let reply = acting
        .act(who.tenant(), id, key, &ActionRequest::Cancel, &|done| {
            response.json(StatusCode::CREATED, &record(who.tenant(), &done.session))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::act_error)
}

/// A session as all calls except its create return it.
pub(crate) fn record(who: &Tenant, session: &Session) -> SessionRecord {
    let terms = &session.terms;
    SessionRecord {
        id: session.id.to_string(),
        object: "gate_session",
        partner_id: who.partner.to_string(),
        mode: who.mode.into(),
        amount: terms.amount.as_str().to_owned(),
        currency: terms.currency.code().to_owned(),
        return_url: terms.return_url.clone(),
        cancel_url: terms.cancel_url.clone(),
        status: session.state.status().into(),
        expires_at: instant(session.expires_at),
        created_at: instant(session.created_at),
        flow: terms.flow.map(Into::into),
        target_token: terms.target_token.clone(),
        target_network: terms.target_network.clone(),
        wallet_address: terms.wallet_address.clone(),
        user_reference: terms.user_reference.clone(),
        kyc_pre_verified: session.kyc_pre_verified,
        metadata: Verbatim(terms.metadata.clone()),
        client_secret: None,
        url: None,
        tx_refid: session.state.refid().map(|refid| refid.to_string()),
    }
}

/// The address of a session's checkout. Browsers do not send the fragment. Neither part needs an encoding.
fn checkout(widget: &Origin, key: &str, secret: &str) -> String {
    format!("{widget}/checkout#publishable_key={key}&client_secret={secret}")
}

impl From<CreateSessionRequest> for Draft {
    fn from(request: CreateSessionRequest) -> Self {
        Self {
            amount: request.amount,
            currency: request.currency,
            return_url: request.return_url,
            cancel_url: request.cancel_url,
            target_token: request.target_token,
            target_network: request.target_network,
            flow: request.flow.map(|flow| flow.0),
            wallet_address: request.wallet_address,
            user_reference: request.user_reference,
            metadata: request.metadata.map(RawJson::into_string),
            quote_preview_id: request.quote_preview_id,
            kyc_package: request.kyc_package.map(RawJson::into_string),
        }
    }
}
