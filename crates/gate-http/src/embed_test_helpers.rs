//! Test helpers of the widget: pretend that a payment was made or declined, and decide about a verification.

use axum::Json;
use axum::extract::State;
use gate_core::limits::Group;
use gate_core::ports::Pretence;
use gate_core::rail::PaymentId;
use gate_core::usecases::pretend::Pretend;
use gate_core::verification::VerificationReport;
use http_kit::{ApiError, ErrorCode, PathId};
use utoipa_axum::routes;

use crate::app::App;
use crate::codes;
use crate::embed_caller::{Pay, SessionCaller, Verify};
use crate::embed_verification::VerificationRecord;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::payments::PaymentRecord;
use crate::rails::log_payment;

const REFUSALS: &[&ErrorCode] = &[
    codes::SESSION_REQUIRED,
    codes::LIVE_KEYS_NOT_ALLOWED,
    codes::RESOURCE_NOT_FOUND,
    codes::NOT_SIMULATED,
    codes::OUTCOME_UNKNOWN,
];

pub(crate) const SEND_TEST_PAYMENT: Operation = Operation {
    route: || routes!(send_test_payment),
    admission: Admission::widget(Group::Embed),
    errors: &[REFUSALS],
};

/// Pretend to have paid
///
/// Ends a payment of the sandbox as its amount says, without the wait. A payment whose money never
/// arrives stays `processing`, and one that has ended is returned as it is.
#[utoipa::path(post, path = "/v1/embed/test_helpers/payments/{id}/send", operation_id = "sendTestPayment", tag = "Test helpers",
    params(("id" = String, Path, description = "Payment id", example = "pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The payment", body = PaymentRecord)))]
pub(crate) async fn send_test_payment(
    who: SessionCaller<Pay>,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<PaymentRecord>, ApiError> {
    pretend(who, &app, id, Pretence::Paid).await
}

pub(crate) const DECLINE_TEST_PAYMENT: Operation = Operation {
    route: || routes!(decline_test_payment),
    admission: Admission::widget(Group::Embed),
    errors: &[REFUSALS],
};

/// Pretend that the payment was declined
///
/// Ends a payment of the sandbox as `failed` with `provider_declined`. One that has ended is
/// returned as it is.
#[utoipa::path(post, path = "/v1/embed/test_helpers/payments/{id}/decline", operation_id = "declineTestPayment", tag = "Test helpers",
    params(("id" = String, Path, description = "Payment id", example = "pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The payment", body = PaymentRecord)))]
pub(crate) async fn decline_test_payment(
    who: SessionCaller<Pay>,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<PaymentRecord>, ApiError> {
    pretend(who, &app, id, Pretence::Declined).await
}

async fn pretend(
    who: SessionCaller<Pay>,
    app: &App,
    id: PathId,
    pretence: Pretence,
) -> Result<Json<PaymentRecord>, ApiError> {
    Pretend::permits(who.tenant()).map_err(errors::pretend_error)?;
    let id = id.parse("payment", PaymentId::parse)?;
    let pretending = &app.pretending;
    let record = pretending
        .pay(who.tenant(), who.token(), id, pretence)
        .await;
    let record = record.map_err(errors::pretend_error)?;
    log_payment(&record);
    Ok(Json(PaymentRecord::of(&record, &app.catalogue)))
}

pub(crate) const APPROVE_TEST_VERIFICATION: Operation = Operation {
    route: || routes!(approve_test_verification),
    admission: Admission::widget(Group::Embed),
    errors: &[REFUSALS],
};

/// Approve the user of a test
///
/// Ends the pending verification of the session's user as `approved`. One that has ended is returned
/// as it is.
#[utoipa::path(post, path = "/v1/embed/test_helpers/verification/approve", operation_id = "approveTestVerification", tag = "Test helpers",
    responses((status = 200, description = "The verification", body = VerificationRecord)))]
pub(crate) async fn approve_test_verification(
    who: SessionCaller<Verify>,
    State(app): State<App>,
) -> Result<Json<VerificationRecord>, ApiError> {
    decide(who, &app, VerificationReport::Approved).await
}

pub(crate) const REJECT_TEST_VERIFICATION: Operation = Operation {
    route: || routes!(reject_test_verification),
    admission: Admission::widget(Group::Embed),
    errors: &[REFUSALS],
};

/// Reject the user of a test
///
/// Ends the pending verification of the session's user as `rejected`. One that has ended is returned
/// as it is.
#[utoipa::path(post, path = "/v1/embed/test_helpers/verification/reject", operation_id = "rejectTestVerification", tag = "Test helpers",
    responses((status = 200, description = "The verification", body = VerificationRecord)))]
pub(crate) async fn reject_test_verification(
    who: SessionCaller<Verify>,
    State(app): State<App>,
) -> Result<Json<VerificationRecord>, ApiError> {
    decide(who, &app, VerificationReport::Rejected { reason: None }).await
}

async fn decide(
    who: SessionCaller<Verify>,
    app: &App,
    report: VerificationReport,
) -> Result<Json<VerificationRecord>, ApiError> {
    let deciding = &app.pretending;
    let decided = deciding.decide(who.tenant(), who.token(), &report).await;
    let shown = decided.map_err(errors::pretend_error)?;
    Ok(Json(VerificationRecord::decided(shown)))
}
