//! The error responses to the refusals of the widget's quotes, payments and verifications.

use gate_core::payout::PayoutError;
use gate_core::rail::Mismatch;
use gate_core::usecases::cancel_payment::CancelError;
use gate_core::usecases::pay_session::{InputError, PayError};
use gate_core::usecases::quote_session::QuoteSessionError;
use gate_core::usecases::verify_user::{VerificationRefusal, VerifyError};
use http_kit::ApiError;

use super::orders::out_of_range;
use super::rails::{no_rail, not_offered, quote_closed, rail_silent};
use super::{denied, gate_error, in_progress, session_refusal};

pub(crate) fn quote_session_error(error: QuoteSessionError) -> ApiError {
    match error {
        QuoteSessionError::NotFound => ApiError::not_found("session"),
        QuoteSessionError::Session(refusal) => session_refusal(refusal),
        QuoteSessionError::UnknownAsset | QuoteSessionError::UnknownSourceAsset => {
            ApiError::invalid("unknown_currency", format!("{error}."))
        }
        QuoteSessionError::UnknownNetwork | QuoteSessionError::UnknownSourceNetwork => {
            ApiError::invalid("network_not_supported", format!("{error}."))
        }
        QuoteSessionError::UnknownMethod | QuoteSessionError::SameAsset => {
            ApiError::invalid_request(format!("{error}."))
        }
        QuoteSessionError::Mismatch(Mismatch(what)) => ApiError::conflict(
            "quote_session_mismatch",
            format!("The session is for another {what}."),
        ),
        QuoteSessionError::NotOffered(reason) => {
            ApiError::invalid(reason.as_str(), not_offered(reason))
        }
        QuoteSessionError::RateUnavailable => ApiError::conflict(
            "rate_unavailable",
            "There is no rate at present. Retry in a few seconds.",
        ),
        QuoteSessionError::OutOfRange(error) => out_of_range(error),
        QuoteSessionError::Denied(denial) => denied(denial),
        QuoteSessionError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn pay_error(error: PayError) -> ApiError {
    match error {
        PayError::InProgress => in_progress(),
        PayError::NoRail(_) => no_rail(),
        PayError::RailSilent => rail_silent(),
        PayError::Denied(denial) => denied(denial),
        PayError::NotFound => ApiError::not_found("signed quote"),
        PayError::Session(refusal) => session_refusal(refusal),
        PayError::Closed(closed) => quote_closed(closed),
        PayError::Input(error) => input_error(error),
        PayError::Unverified(VerificationRefusal::Required) => ApiError::forbidden(
            "verification_required",
            "The user must be verified before this payment. Start the verification.",
        ),
        PayError::Unverified(VerificationRefusal::Rejected) => ApiError::forbidden(
            "verification_rejected",
            "The verification of the user was rejected.",
        ),
        PayError::Failed(error) => gate_error(error),
    }
}

fn input_error(error: InputError) -> ApiError {
    let message = format!("{error}.");
    match error {
        InputError::NoAddress
        | InputError::AddressOfSale
        | InputError::Payout(
            PayoutError::Missing
            | PayoutError::NotASale
            | PayoutError::NotOffered
            | PayoutError::Unknown(_)
            | PayoutError::Field { .. },
        ) => ApiError::invalid_request(message),
        InputError::Address(error) if error.is_checksum() => {
            ApiError::invalid("address_checksum_mismatch", message)
        }
        InputError::Address(_) => ApiError::invalid("invalid_address", message),
        InputError::NetworkNotOffered => ApiError::invalid("network_not_supported", message),
        InputError::OtherAddress => ApiError::conflict(
            "wallet_mismatch",
            "The session's `wallet_address` cannot be changed; omit the field.",
        ),
    }
}

pub(crate) fn cancel_error(error: CancelError) -> ApiError {
    match error {
        CancelError::NotFound => ApiError::not_found("payment"),
        CancelError::TooLate => ApiError::conflict(
            "payment_not_cancellable",
            "The payment can no longer be cancelled. Read the session for its outcome.",
        ),
        CancelError::RailSilent => rail_silent(),
        CancelError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn verify_error(error: VerifyError) -> ApiError {
    match error {
        VerifyError::FormNotAsked => ApiError::invalid(
            "verification_form_not_asked",
            "`answers`: the verification asks for no form; omit the field.",
        ),
        VerifyError::Answers(error) => ApiError::invalid_request(format!("{error}.")),
        VerifyError::VerifierSilent => ApiError::unavailable(
            "service_unavailable",
            "The verifier did not answer. Nothing was decided; retry.",
            1,
        ),
        VerifyError::NotFound => ApiError::not_found("session"),
        VerifyError::Session(refusal) => session_refusal(refusal),
        VerifyError::Failed(error) => gate_error(error),
    }
}

/// The error response to every refusal of the widget's payments.
#[cfg(test)]
pub(super) fn every_refusal() -> impl Iterator<Item = ApiError> {
    use gate_core::verification::form::AnswerError;
    use kernel::address::AddressError;

    let quotes = [
        QuoteSessionError::UnknownAsset,
        QuoteSessionError::UnknownNetwork,
        QuoteSessionError::UnknownMethod,
        QuoteSessionError::UnknownSourceAsset,
        QuoteSessionError::UnknownSourceNetwork,
        QuoteSessionError::SameAsset,
        QuoteSessionError::Mismatch(Mismatch("token")),
        QuoteSessionError::RateUnavailable,
    ];
    let payments = [
        PayError::Input(InputError::NoAddress),
        PayError::Input(InputError::Address(AddressError::Checksum)),
        PayError::Input(InputError::Address(AddressError::NotBitcoin)),
        PayError::Input(InputError::NetworkNotOffered),
        PayError::Input(InputError::OtherAddress),
        PayError::Unverified(VerificationRefusal::Required),
        PayError::Unverified(VerificationRefusal::Rejected),
    ];
    let verifications = [
        VerifyError::FormNotAsked,
        VerifyError::Answers(AnswerError::Missing("name".to_owned())),
        VerifyError::VerifierSilent,
    ];
    quotes
        .into_iter()
        .map(quote_session_error)
        .chain(payments.map(pay_error))
        .chain([cancel_error(CancelError::TooLate)])
        .chain(verifications.map(verify_error))
}
