//! Test helpers of the sandbox: complete a session, or fail its payment.

use axum::extract::State;
use axum::http::StatusCode;
use gate_core::session::SessionId;
use gate_core::usecases::act_on_session::{ActionRequest, Intent};
use http_kit::{
    ApiError, IdempotencyHeader, IdempotentReply, OptionalJson, PathId, ResponseBuilder,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Sandbox};
use crate::codes;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::sessions::{self, SessionRecord};

/// The failure of the payment.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct FailSessionRequest {
    /// A code such as `provider_declined`, `kyc_failed`, `insufficient_funds` or `user_cancelled`.
    #[schema(default = "provider_declined")]
    code: Option<String>,
    /// An explanation in words.
    message: Option<String>,
}

/// A completed session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompletedSession {
    /// The session.
    session: SessionRecord,
}

/// A session with a failed payment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailedSession {
    /// The session, still open.
    session: SessionRecord,
    /// The failed payment.
    #[schema(required = true, value_type = IntentRecord)]
    intent: Option<IntentRecord>,
}

/// A failed payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TestIntent)]
pub(crate) struct IntentRecord {
    /// Payment id.
    #[schema(example = "int_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// The reference of its transaction.
    #[schema(example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    tx_refid: String,
    /// `failed`
    #[schema(example = "failed")]
    status: &'static str,
    /// A code for the failure.
    #[schema(example = "provider_declined")]
    failure_code: String,
    /// The failure in words.
    failure_message: String,
}

pub(crate) const COMPLETE_SESSION: Operation = Operation {
    route: || routes!(complete_session),
    admission: Admission::SANDBOX,
    errors: &[codes::ACT, &[codes::LIVE_KEYS_NOT_ALLOWED]],
};

/// Complete a session
///
/// Pays an open session of the sandbox. The session is completed with a transaction, and
/// `gate_session.completed` is sent.
#[utoipa::path(post, path = "/v1/test_helpers/sessions/{id}/complete", operation_id = "completeTestSession", tag = "Test helpers",
    params(
        ("id" = String, Path, description = "Session id", example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("Idempotency-Key" = Option<String>, Header, description = "A value that you choose, the same for every retry"),
    ),
    responses((status = 200, description = "The session, completed", body = CompletedSession)))]
pub(crate) async fn complete_session(
    who: Sandbox,
    State(app): State<App>,
    id: PathId,
    key: IdempotencyHeader,
    response: ResponseBuilder,
) -> Result<IdempotentReply, ApiError> {
    let id = id.parse("session", SessionId::parse)?;
    let key = key.optional()?;
    let acting = &app.acting;
    let reply = acting
        .act(who.tenant(), id, key, &ActionRequest::Complete, &|done| {
            let session = sessions::record(who.tenant(), &done.session);
            response.json(StatusCode::OK, &CompletedSession { session })
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::act_error)
}

pub(crate) const FAIL_SESSION: Operation = Operation {
    route: || routes!(fail_session),
    admission: Admission::SANDBOX,
    errors: &[codes::ACT, &[codes::LIVE_KEYS_NOT_ALLOWED], codes::BODY],
};

/// Fail a payment
///
/// Fails the payment of an open session of the sandbox. The session stays open, and no event is
/// sent.
#[utoipa::path(post, path = "/v1/test_helpers/sessions/{id}/fail", operation_id = "failTestSession", tag = "Test helpers",
    params(
        ("id" = String, Path, description = "Session id", example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("Idempotency-Key" = Option<String>, Header, description = "A value that you choose, the same for every retry"),
    ),
    request_body = Option<FailSessionRequest>,
    responses((status = 200, description = "The session, which is still open, and the failed payment", body = FailedSession)))]
pub(crate) async fn fail_session(
    who: Sandbox,
    State(app): State<App>,
    id: PathId,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    OptionalJson(request): OptionalJson<FailSessionRequest>,
) -> Result<IdempotentReply, ApiError> {
    let id = id.parse("session", SessionId::parse)?;
    let key = key.optional()?;
    let FailSessionRequest { code, message } = request.unwrap_or_default();
    let acting = &app.acting;
    let reply = acting
        .act(
            who.tenant(),
            id,
            key,
            &ActionRequest::Fail { code, message },
            &|done| {
                let session = sessions::record(who.tenant(), &done.session);
                let intent = done.intent.as_ref().map(record);
                response.json(StatusCode::OK, &FailedSession { session, intent })
            },
        )
        .await;
    reply.map(IdempotentReply).map_err(errors::act_error)
}

fn record(intent: &Intent) -> IntentRecord {
    IntentRecord {
        id: intent.id.to_string(),
        tx_refid: intent.refid.to_string(),
        status: "failed",
        failure_code: intent.failure_code.clone(),
        failure_message: intent.failure_message.clone(),
    }
}
