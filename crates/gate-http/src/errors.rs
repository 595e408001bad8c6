//! The error responses to the refusals of the gate domain.
//!
//! Every match is exhaustive, so a new refusal does not compile without a row here. A test checks
//! that [`ERROR_DOCS`] has the same codes.

mod access;
mod customers;
mod orders;
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
use http_kit::{ApiError, ErrorDoc, Kind, error_doc};
use instruments::faults::{Violation, violated};
use kernel::StoreError;
use partner_core::stored_response::ResponseStoreError;
use partner_core::usecases::deliveries::ReplayError;

pub(crate) use access::denied;
pub(crate) use customers::customer_error;
pub(crate) use orders::preview_error;
pub(crate) use rails::{lock_error, redeem_error};

const FIX: &str = "Fix the request; do not retry it unchanged.";
const ASK: &str = "Do not retry until the operator has changed your access.";

/// The codes of the gate API, in addition to the codes that all services share.
pub(crate) const ERROR_DOCS: &[ErrorDoc] = {
    use Kind::{Conflict, Forbidden, InvalidRequest, ServerError};
    &[
        error_doc(
            "amount_out_of_range",
            400,
            InvalidRequest,
            "The amount or the other leg of the order exceeds 10000000000, rounds to zero or does not cover the fees.",
            FIX,
        ),
        error_doc(
            "unknown_currency",
            400,
            InvalidRequest,
            "The code is not an active ISO 4217 currency, or an order's currency or asset is not in the catalogue.",
            FIX,
        ),
        error_doc(
            "amount_precision",
            400,
            InvalidRequest,
            "The amount has more fractional digits than its currency or asset.",
            FIX,
        ),
        error_doc(
            "network_not_supported",
            400,
            InvalidRequest,
            "The asset is not available on that network.",
            "Send a network that the asset lists, in its exact spelling.",
        ),
        error_doc(
            "quote_preview_missing",
            400,
            InvalidRequest,
            "`quote_preview_id` is not the id of one of your locked previews.",
            "Request a new preview, or create the session without one.",
        ),
        error_doc(
            "quote_preview_expired",
            400,
            InvalidRequest,
            "The locked preview has expired.",
            "Request a new preview.",
        ),
        error_doc(
            "quote_preview_used",
            400,
            InvalidRequest,
            "Another session has used the locked preview.",
            "Request a new preview. Each preview is for one session.",
        ),
        error_doc(
            "quote_preview_mismatch",
            400,
            InvalidRequest,
            "`amount`, `currency`, `target_token` or `flow` is missing or differs from the locked preview.",
            "Send all four with the values of the preview, or request a new preview.",
        ),
        error_doc(
            "test_key_on_live",
            403,
            Forbidden,
            "A test key was sent to the live host.",
            "Send it to the sandbox host, or use a live key.",
        ),
        error_doc(
            "live_key_on_sandbox",
            403,
            Forbidden,
            "A live key was sent to the sandbox host.",
            "Send it to the live host, or use a test key.",
        ),
        error_doc(
            "live_keys_not_allowed",
            403,
            Forbidden,
            "The route exists in the sandbox only.",
            "Use it with a test key on the sandbox host.",
        ),
        error_doc(
            "key_kind_not_allowed",
            403,
            Forbidden,
            "A publishable key was sent to a route that takes a secret key, or the reverse.",
            "Use the right kind of key for this route. A browser must never have a secret key.",
        ),
        error_doc(
            "gate_not_enabled",
            403,
            Forbidden,
            "The gate product is not enabled for you.",
            ASK,
        ),
        error_doc(
            "kyc_package_not_trusted",
            403,
            Forbidden,
            "A `kyc_package` was sent, but it is not accepted from you.",
            "Leave `kyc_package` out, or ask the operator to trust your verification.",
        ),
        error_doc(
            "kit_blocks_not_enabled",
            403,
            Forbidden,
            "A `flow` was sent, but flow sessions are not enabled for you.",
            "Leave `flow` out, or ask the operator to enable flow sessions.",
        ),
        error_doc(
            "quota_exhausted",
            403,
            Forbidden,
            "The live session quota of this calendar month (UTC) is used up.",
            "Wait for the next month, or ask the operator for a higher quota.",
        ),
        error_doc(
            "webhook_not_configured",
            400,
            InvalidRequest,
            "You have no webhook endpoint, so there is nothing to test.",
            "Ask the operator to set an endpoint.",
        ),
        error_doc(
            "delivery_not_dead_lettered",
            400,
            InvalidRequest,
            "The delivery was delivered or may still be delivered.",
            "Replay only deliveries that are `dead_lettered`.",
        ),
        error_doc(
            "origin_not_allowed",
            403,
            Forbidden,
            "The page's `Origin`, or without an `Origin` its `Referer`, is not one of your allowed domains.",
            "Ask the operator to allow the page's exact origin.",
        ),
        error_doc(
            "client_secret_invalid",
            403,
            Forbidden,
            "The client secret is wrong, or the widget's own page sent none.",
            "Give the browser the `client_secret` from the response that created the session.",
        ),
        error_doc(
            "customer_already_exists",
            409,
            Conflict,
            "One of your customers, perhaps a deleted one, has this `email` or `external_id`; `message` names the field.",
            "Find the customer with the filters of the list. The values of a deleted customer stay taken.",
        ),
        error_doc(
            "rails_not_enabled",
            403,
            Forbidden,
            "Signed quotes and rails are not enabled for you.",
            ASK,
        ),
        error_doc(
            "country_not_supported",
            400,
            InvalidRequest,
            "A signed quote was requested for a country that is not served.",
            "List the countries, or check eligibility first.",
        ),
        error_doc(
            "asset_not_supported",
            400,
            InvalidRequest,
            "A signed quote was requested for an asset that is not offered now.",
            "List the assets, or check eligibility first.",
        ),
        error_doc(
            "corridor_not_available",
            400,
            InvalidRequest,
            "A signed quote was requested for a combination of side, currency, asset and country that is not offered.",
            "Check eligibility first.",
        ),
        error_doc(
            "rails_not_available",
            501,
            ServerError,
            "No rail is connected to this installation, so pay-ins and pay-outs are impossible. This check is last, so the rest of the request was valid.",
            "Do not retry; ask the operator.",
        ),
        error_doc(
            "rate_unavailable",
            409,
            Conflict,
            "There is no rate now, so no quote was locked.",
            "Retry later with the same Idempotency-Key.",
        ),
        error_doc(
            "user_not_approved",
            403,
            Forbidden,
            "The session's user is not approved. In the sandbox, every user is approved.",
            "Have the user verified, and create a new session.",
        ),
        error_doc(
            "quote_session_mismatch",
            409,
            Conflict,
            "The quote does not match the session or the kind of rail; `message` names the difference.",
            "Lock a quote that matches the session.",
        ),
        error_doc(
            "quote_consumed",
            409,
            Conflict,
            "The quote has been redeemed already.",
            "Read the pay-in or pay-out that redeemed it, or lock a new quote.",
        ),
        error_doc(
            "quote_expired",
            409,
            Conflict,
            "The quote has expired.",
            "Lock a new quote.",
        ),
        error_doc(
            "idempotency_in_progress",
            409,
            Conflict,
            "Another request with the same Idempotency-Key is in progress.",
            "Retry in a moment with the same key.",
        ),
        error_doc(
            "session_not_open",
            409,
            Conflict,
            "The session is completed, cancelled or expired; `message` names the status. A bootstrap returns this code with 403.",
            "Read the session and branch on its status.",
        ),
        error_doc(
            "session_payment_in_progress",
            409,
            Conflict,
            "A pay-in or pay-out of the session is in progress. Until it ends, the session accepts no other payment and cannot be cancelled or expire.",
            "Wait for the record's event, or read the session; pay again only after the record is `failed` or `cancelled`.",
        ),
    ]
};

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
    use gate_core::object::ObjectError;
    use gate_core::order::OrderError;
    use gate_core::quota::Exhausted;
    use gate_core::redirect::RedirectError;
    use gate_core::session::SessionStatus;
    use gate_core::usecases::customers::CustomerError;
    use gate_core::usecases::preview_quotes::PreviewError;
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
            .chain(rails::every_refusal())
            .chain([test_send_error(TestSendError::NotConfigured)])
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

    #[test]
    fn error_codes_are_documented_once() {
        for (at, doc) in ERROR_DOCS.iter().enumerate() {
            let others = ERROR_DOCS.iter().skip(at + 1).chain(SHARED_ERRORS);
            assert!(
                others.into_iter().all(|other| other.code != doc.code),
                "{}",
                doc.code
            );
        }
    }
}
