//! The error responses to the refusals of the gate domain.
//!
//! Every match is exhaustive, so a new refusal does not compile without a row here. A test checks
//! that [`ERROR_DOCS`] has the same codes.

mod access;
mod customers;
mod docs;
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
use gate_core::usecases::send_test_event::TestSendError;
use gate_core::usecases::update_branding::RebrandError;
use http_kit::ApiError;
use instruments::faults::{Violation, violated};
use kernel::StoreError;
use partner_core::stored_response::{RenderError, ResponseStoreError};
use partner_core::usecases::deliveries::ReplayError;

pub(crate) use access::{denied, show_error, token_denied};
pub(crate) use customers::customer_error;
pub(crate) use docs::ERROR_DOCS;
pub(crate) use orders::preview_error;
pub(crate) use payments::{cancel_error, pay_error, quote_session_error, verify_error};
pub(crate) use rails::{lock_error, redeem_error};

pub(crate) fn create_error(error: CreateError) -> ApiError {
    match error {
        CreateError::InProgress => in_progress(),
        CreateError::Draft(error) => draft_error(error),
        CreateError::Preview(refusal) => preview_refusal(refusal),
        CreateError::Denied(denial) => denied(denial),
        CreateError::NotEntitled(refusal) => not_entitled(refusal),
        CreateError::Exhausted(_) => ApiError::forbidden(
            "quota_exhausted",
            "The live session quota of this calendar month is used up.",
        ),
        CreateError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn act_error(error: ActError) -> ApiError {
    match error {
        ActError::InProgress => in_progress(),
        ActError::LiveMode => ApiError::forbidden(
            "live_keys_not_allowed",
            "Live sessions are neither completed nor failed by hand.",
        ),
        ActError::NotFound => ApiError::not_found("session"),
        ActError::Refused(refusal) => session_refusal(refusal),
        ActError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn rebrand_error(error: RebrandError) -> ApiError {
    match error {
        RebrandError::InProgress => in_progress(),
        RebrandError::Field(error) => ApiError::invalid_request(format!("{error}.")),
        RebrandError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn bootstrap_error(error: BootstrapError) -> ApiError {
    match error {
        BootstrapError::OriginNotAllowed => ApiError::forbidden(
            "origin_not_allowed",
            "The page's origin is not among the partner's allowed domains.",
        ),
        BootstrapError::ClientSecretInvalid => ApiError::forbidden(
            "client_secret_invalid",
            "`clientSecret`: expected the client secret of a session.",
        ),
        BootstrapError::NotOpen(NotOpen(status)) => ApiError::forbidden(
            "session_not_open",
            format!("The session is {}.", status.as_str()),
        ),
        BootstrapError::Failed(error) => gate_error(error),
        BootstrapError::Unsigned(_) => undoable(error),
    }
}

pub(crate) fn replay_error(error: ReplayError) -> ApiError {
    match error {
        ReplayError::NotFound => ApiError::not_found("delivery"),
        ReplayError::NotDeadLettered => ApiError::invalid(
            "delivery_not_dead_lettered",
            "Only a delivery that is `dead_lettered` is replayed.",
        ),
        ReplayError::Store(error) => error.into(),
    }
}

pub(crate) fn test_send_error(error: TestSendError) -> ApiError {
    match error {
        TestSendError::NotConfigured => ApiError::invalid(
            "webhook_not_configured",
            "No webhook endpoint is set for this partner.",
        ),
        TestSendError::Failed(error) => gate_error(error),
    }
}

fn preview_refusal(refusal: PreviewRefusal) -> ApiError {
    let code = match refusal {
        PreviewRefusal::Missing => "quote_preview_missing",
        PreviewRefusal::Expired => "quote_preview_expired",
        PreviewRefusal::Used => "quote_preview_used",
        PreviewRefusal::Mismatch => "quote_preview_mismatch",
    };
    ApiError::invalid(code, format!("{refusal}."))
}

fn draft_error(error: DraftError) -> ApiError {
    let code = match error {
        DraftError::Amount(AmountError::OutOfRange) => "amount_out_of_range",
        DraftError::UnknownCurrency => "unknown_currency",
        DraftError::UnknownPreview => "quote_preview_missing",
        DraftError::Amount(AmountError::Malformed | AmountError::Zero)
        | DraftError::Redirect { .. }
        | DraftError::TooLong { .. }
        | DraftError::Object { .. } => "invalid_request",
    };
    ApiError::invalid(code, format!("{error}."))
}

fn not_entitled(refusal: NotEntitled) -> ApiError {
    let (code, message) = match refusal {
        NotEntitled::KycPackage => (
            "kyc_package_not_trusted",
            "`kyc_package` is not accepted from this partner.",
        ),
        NotEntitled::Flow => (
            "kit_blocks_not_enabled",
            "`flow`: flow sessions are not enabled for this partner.",
        ),
    };
    ApiError::forbidden(code, message)
}

fn session_refusal(refusal: SessionRefusal) -> ApiError {
    match refusal {
        SessionRefusal::NotOpen(NotOpen(status)) => ApiError::conflict(
            "session_not_open",
            format!("The session is {}.", status.as_str()),
        ),
        SessionRefusal::PaymentInProgress => ApiError::conflict(
            "session_payment_in_progress",
            "A payment of this session is in progress. Read the session once the payment has settled or failed.",
        ),
    }
}

fn in_progress() -> ApiError {
    ApiError::conflict(
        "idempotency_in_progress",
        "A request with this `Idempotency-Key` is being worked on. Retry it in a moment.",
    )
}

/// The response to a use case that could not finish. An event that cannot be sealed now may be
/// sealed on a retry.
pub(crate) fn gate_error(error: GateError) -> ApiError {
    match error {
        GateError::Store(error) | GateError::Response(ResponseStoreError::Store(error)) => {
            error.into()
        }
        GateError::Event(EventError::Unsealed(refused)) => StoreError::from(refused).into(),
        GateError::Response(ResponseStoreError::Sealed(_) | ResponseStoreError::Unwritable(_))
        | GateError::Event(EventError::Unrendered(_) | EventError::Unwritable(_))
        | GateError::Unsigned(_) => undoable(error),
    }
}

/// The response whose text could not be written.
pub(crate) fn unrendered(error: RenderError) -> ApiError {
    undoable(error)
}

/// The response to a decision that could not be carried out.
fn undoable(error: impl std::error::Error + Send + Sync + 'static) -> ApiError {
    violated(Violation::Undoable);
    ApiError::internal(error)
}

#[cfg(test)]
mod tests {
    use gate_core::access::GateDenial;
    use gate_core::branding::BrandingInputError;
    use gate_core::customer::{CustomerFormError, Unique};
    use gate_core::embed::{Scope, TokenDenial};
    use gate_core::object::ObjectError;
    use gate_core::order::OrderError;
    use gate_core::quota::Exhausted;
    use gate_core::redirect::RedirectError;
    use gate_core::session::SessionStatus;
    use gate_core::usecases::customers::CustomerError;
    use gate_core::usecases::preview_quotes::PreviewError;
    use gate_core::usecases::show_session::ShowError;
    use http_kit::SHARED_ERRORS;
    use partner_core::Denial;

    use super::orders::order_error;
    use super::*;

    /// The error response to every refusal of the domain.
    fn every_refusal() -> Vec<ApiError> {
        let drafts = [
            DraftError::Amount(AmountError::Malformed),
            DraftError::Amount(AmountError::Zero),
            DraftError::Amount(AmountError::OutOfRange),
            DraftError::UnknownCurrency,
            DraftError::Redirect {
                field: "return_url",
                error: RedirectError::NotAllowed,
            },
            DraftError::TooLong {
                field: "wallet_address",
            },
            DraftError::Object {
                field: "metadata",
                error: ObjectError::TooLarge,
            },
            DraftError::UnknownPreview,
        ];
        let denials = [
            GateDenial::Access(Denial::KeyRevoked),
            GateDenial::Access(Denial::KeyExpired),
            GateDenial::Access(Denial::OrganizationSuspended),
            GateDenial::NotEnabled,
        ];
        let orders = [
            OrderError::UnknownCurrency,
            OrderError::UnknownAsset,
            OrderError::UnknownNetwork,
            OrderError::UnknownCountry,
            OrderError::Amount(kernel::AmountError::Malformed),
            OrderError::Amount(kernel::AmountError::TooPrecise(2)),
            OrderError::Amount(kernel::AmountError::OutOfRange),
        ];
        let previews = [
            PreviewRefusal::Missing,
            PreviewRefusal::Expired,
            PreviewRefusal::Used,
            PreviewRefusal::Mismatch,
        ];
        let creates = [
            CreateError::InProgress,
            CreateError::NotEntitled(NotEntitled::Flow),
            CreateError::NotEntitled(NotEntitled::KycPackage),
            CreateError::Exhausted(Exhausted),
        ];
        let acts = [
            ActError::InProgress,
            ActError::LiveMode,
            ActError::NotFound,
            ActError::Refused(NotOpen(SessionStatus::Expired).into()),
            ActError::Refused(SessionRefusal::PaymentInProgress),
        ];
        let brandings = [
            RebrandError::InProgress,
            RebrandError::Field(BrandingInputError::LogoUrl),
        ];
        let customers = [
            CustomerError::InProgress,
            CustomerError::Field(CustomerFormError::Email),
            CustomerError::Exists(Unique::Email),
            CustomerError::Exists(Unique::ExternalId),
            CustomerError::NotFound,
        ];
        let bootstraps = [
            BootstrapError::OriginNotAllowed,
            BootstrapError::ClientSecretInvalid,
        ];
        let replays = [ReplayError::NotFound, ReplayError::NotDeadLettered];
        let creates = creates
            .into_iter()
            .chain(drafts.map(CreateError::Draft))
            .chain(previews.map(CreateError::Preview))
            .chain(denials.map(CreateError::Denied))
            .map(create_error);
        creates
            .chain(orders.map(order_error))
            .chain([preview_error(PreviewError::UnknownMethod)])
            .chain(acts.map(act_error))
            .chain(brandings.map(rebrand_error))
            .chain(customers.map(customer_error))
            .chain(bootstraps.map(bootstrap_error))
            .chain(replays.map(replay_error))
            .chain(rails::every_refusal().chain(payments::every_refusal()))
            .chain([test_send_error(TestSendError::NotConfigured)])
            .chain(
                [
                    TokenDenial::ScopeMissing(Scope::SessionPay),
                    TokenDenial::SessionRequired,
                ]
                .map(token_denied),
            )
            .chain([ShowError::NotFound, ShowError::TokenExpired].map(show_error))
            .collect()
    }

    #[test]
    fn error_docs_match_every_refusal() {
        for error in every_refusal() {
            let doc = ERROR_DOCS
                .iter()
                .chain(SHARED_ERRORS)
                .find(|doc| doc.code == error.code());
            let doc = doc.unwrap_or_else(|| panic!("{} is not explained", error.code()));
            assert_eq!(
                (doc.status, doc.kind),
                (error.status().as_u16(), error.kind()),
                "{}",
                doc.code
            );
        }
    }
}
