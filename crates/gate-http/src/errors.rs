//! The error responses to the refusals of the gate domain.
//!
//! Every match is exhaustive, so a new refusal does not compile without a row here.

mod access;
mod orders;
mod payments;
mod rails;

use gate_core::amount::AmountError;
use gate_core::draft::{DraftError, NotEntitled};
use gate_core::error::GateError;
use gate_core::events::EventError;
use gate_core::preview::PreviewRefusal;
use gate_core::session::{NotOpen, SessionRefusal};
use gate_core::usecases::act_on_session::ActError;
use gate_core::usecases::bootstrap_embed::BootstrapError;
use gate_core::usecases::create_session::CreateError;
use gate_core::usecases::customers::CustomerError;
use gate_core::usecases::send_test_event::TestSendError;
use gate_core::usecases::show_outcome::OutcomeError;
use gate_core::usecases::update_branding::RebrandError;
use http_kit::ApiError;
use instruments::faults::{Violation, violated};
use kernel::StoreError;
use partner_core::stored_response::ResponseStoreError;
use partner_core::usecases::deliveries::ReplayError;

use crate::codes;

pub(crate) use access::{denied, show_error, token_denied};
pub(crate) use orders::preview_error;
pub(crate) use payments::{
    cancel_error, pay_error, pretend_error, quote_session_error, verify_error,
};
pub(crate) use rails::{lock_error, redeem_error};

pub(crate) fn create_error(error: CreateError) -> ApiError {
    match error {
        CreateError::Draft(error) => draft_error(error),
        CreateError::Preview(refusal) => preview_refusal(refusal),
        CreateError::Denied(denial) => denied(denial),
        CreateError::NotEntitled(refusal) => not_entitled(refusal),
        CreateError::Exhausted(_) => ApiError::new(
            codes::QUOTA_EXHAUSTED,
            "The live session quota of this calendar month is used up.",
        ),
        CreateError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn act_error(error: ActError) -> ApiError {
    match error {
        ActError::LiveMode => ApiError::new(
            codes::LIVE_KEYS_NOT_ALLOWED,
            "Live sessions are neither completed nor failed by hand.",
        ),
        ActError::NotFound => ApiError::not_found("session"),
        ActError::Refused(refusal) => session_refusal(refusal),
        ActError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn rebrand_error(error: RebrandError) -> ApiError {
    match error {
        RebrandError::Field(error) => ApiError::invalid_request(format!("{error}.")),
        RebrandError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn customer_error(error: CustomerError) -> ApiError {
    match error {
        CustomerError::Field(error) => ApiError::invalid_request(format!("{error}.")),
        CustomerError::Exists(unique) => ApiError::new(
            codes::CUSTOMER_ALREADY_EXISTS,
            format!(
                "`{}`: another customer has it, or a deleted one had it.",
                unique.as_str()
            ),
        ),
        CustomerError::NotFound => ApiError::not_found("customer"),
        CustomerError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn bootstrap_error(error: BootstrapError) -> ApiError {
    match error {
        BootstrapError::OriginNotAllowed(_) | BootstrapError::PageUnknown { .. } => {
            ApiError::new(codes::ORIGIN_NOT_ALLOWED, format!("{error}."))
        }
        BootstrapError::ClientSecretInvalid(error) => ApiError::new(
            codes::CLIENT_SECRET_INVALID,
            format!("`clientSecret`: {error}."),
        ),
        BootstrapError::NotOpen(NotOpen(status)) => ApiError::new(
            codes::SESSION_NOT_OPEN_TO_PAGE,
            format!("The session is {}.", status.as_str()),
        ),
        BootstrapError::Failed(error) => gate_error(error),
        BootstrapError::Unsigned(_) => undoable(error),
    }
}

pub(crate) fn outcome_error(error: OutcomeError) -> ApiError {
    match error {
        OutcomeError::Refused(error) => bootstrap_error(error),
        OutcomeError::StillOpen => ApiError::new(
            codes::SESSION_OPEN,
            "The session is still open. Bootstrap it.",
        ),
        OutcomeError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn replay_error(error: ReplayError) -> ApiError {
    match error {
        ReplayError::NotFound => ApiError::not_found("delivery"),
        ReplayError::NotDeadLettered => ApiError::new(
            codes::DELIVERY_NOT_DEAD_LETTERED,
            "Only a delivery that is `dead_lettered` is replayed.",
        ),
        ReplayError::Store(error) => error.into(),
    }
}

pub(crate) fn test_send_error(error: TestSendError) -> ApiError {
    match error {
        TestSendError::NotConfigured => ApiError::new(
            codes::WEBHOOK_NOT_CONFIGURED,
            "No webhook endpoint is set for this partner.",
        ),
        TestSendError::Failed(error) => gate_error(error),
    }
}

fn preview_refusal(refusal: PreviewRefusal) -> ApiError {
    let code = match refusal {
        PreviewRefusal::Missing => codes::QUOTE_PREVIEW_MISSING,
        PreviewRefusal::Expired => codes::QUOTE_PREVIEW_EXPIRED,
        PreviewRefusal::Used => codes::QUOTE_PREVIEW_USED,
        PreviewRefusal::Mismatch => codes::QUOTE_PREVIEW_MISMATCH,
    };
    ApiError::new(code, format!("{refusal}."))
}

fn draft_error(error: DraftError) -> ApiError {
    let code = match error {
        DraftError::Amount(AmountError::OutOfRange) => codes::AMOUNT_OUT_OF_RANGE,
        DraftError::UnknownCurrency => codes::UNKNOWN_CURRENCY,
        DraftError::UnknownPreview => codes::QUOTE_PREVIEW_MISSING,
        DraftError::Amount(AmountError::Malformed | AmountError::Zero)
        | DraftError::Redirect { .. }
        | DraftError::TooLong { .. }
        | DraftError::Object { .. } => codes::INVALID_REQUEST,
    };
    ApiError::new(code, format!("{error}."))
}

fn not_entitled(refusal: NotEntitled) -> ApiError {
    let (code, message) = match refusal {
        NotEntitled::KycPackage => (
            codes::KYC_PACKAGE_NOT_TRUSTED,
            "`kyc_package` is not accepted from this partner.",
        ),
        NotEntitled::Flow => (
            codes::KIT_BLOCKS_NOT_ENABLED,
            "`flow`: flow sessions are not enabled for this partner.",
        ),
    };
    ApiError::new(code, message)
}

fn session_refusal(refusal: SessionRefusal) -> ApiError {
    match refusal {
        SessionRefusal::NotOpen(NotOpen(status)) => ApiError::new(
            codes::SESSION_NOT_OPEN,
            format!("The session is {}.", status.as_str()),
        ),
        SessionRefusal::PaymentInProgress => ApiError::new(
            codes::SESSION_PAYMENT_IN_PROGRESS,
            "A payment of this session is in progress. Read the session once the payment has settled or failed.",
        ),
    }
}

fn in_progress() -> ApiError {
    ApiError::new(
        codes::IDEMPOTENCY_IN_PROGRESS,
        "A request with this `Idempotency-Key` is being worked on. Retry it in a moment.",
    )
}

/// The response to a use case that could not finish. An event that cannot be sealed now may be
/// sealed on a retry.
pub(crate) fn gate_error(error: GateError) -> ApiError {
    match error {
        GateError::Response(ResponseStoreError::InProgress) => in_progress(),
        GateError::Store(error) | GateError::Response(ResponseStoreError::Store(error)) => {
            error.into()
        }
        GateError::Event(EventError::Unsealed(refused)) => StoreError::from(refused).into(),
        GateError::Response(ResponseStoreError::Sealed(_) | ResponseStoreError::Unwritable(_))
        | GateError::Event(EventError::Unrendered(_) | EventError::Unwritable(_))
        | GateError::Unsigned(_) => undoable(error),
    }
}

/// The response to a decision that could not be carried out.
pub(crate) fn undoable(error: impl std::error::Error + Send + Sync + 'static) -> ApiError {
    violated(Violation::Undoable);
    ApiError::internal(error)
}
