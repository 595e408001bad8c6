//! The error responses to the refusals of the widget's quotes, payments and verifications.

use gate_core::amount::SessionAmount;
use gate_core::catalogue::WalletError;
use gate_core::payout::PayoutError;
use gate_core::rail::Mismatch;
use gate_core::usecases::cancel_payment::CancelError;
use gate_core::usecases::pay_session::{InputError, PayError};
use gate_core::usecases::pretend::PretendError;
use gate_core::usecases::quote_session::QuoteSessionError;
use gate_core::usecases::verify_user::{VerificationRefusal, VerifyError};
use http_kit::ApiError;

use super::orders::out_of_range;
use super::rails::{no_rail, not_offered, quote_closed, uninstructed};
use super::{denied, gate_error, session_refusal};
use crate::codes;

pub(crate) fn quote_session_error(error: QuoteSessionError) -> ApiError {
    match error {
        QuoteSessionError::NotFound => ApiError::not_found("session"),
        QuoteSessionError::TokenExpired => http_kit::dead_token(),
        QuoteSessionError::Session(refusal) => session_refusal(refusal),
        QuoteSessionError::UnknownAsset | QuoteSessionError::UnknownSourceAsset => {
            ApiError::new(codes::UNKNOWN_CURRENCY, format!("{error}."))
        }
        QuoteSessionError::UnknownNetwork | QuoteSessionError::UnknownSourceNetwork => {
            ApiError::new(codes::NETWORK_NOT_SUPPORTED, format!("{error}."))
        }
        QuoteSessionError::UnknownMethod | QuoteSessionError::SameAsset => {
            ApiError::invalid_request(format!("{error}."))
        }
        QuoteSessionError::Mismatch(Mismatch(what)) => ApiError::new(
            codes::QUOTE_SESSION_MISMATCH,
            format!("The session is for another {what}."),
        ),
        QuoteSessionError::Wallet(error) => {
            let message = format!("The session's `wallet_address`: {error}.");
            wallet_error(&error, message)
        }
        QuoteSessionError::NotOffered(reason) => not_offered(reason),
        QuoteSessionError::RateUnavailable => ApiError::new(
            codes::RATE_UNAVAILABLE,
            "There is no rate at present. Retry in a few seconds.",
        ),
        QuoteSessionError::OutOfRange(error) => out_of_range(error),
        QuoteSessionError::Denied(denial) => denied(denial),
        QuoteSessionError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn pay_error(error: PayError) -> ApiError {
    match error {
        PayError::TokenExpired => http_kit::dead_token(),
        PayError::NoRail(_) => no_rail(),
        PayError::Uninstructed(reason) => uninstructed(reason),
        PayError::Denied(denial) => denied(denial),
        PayError::NotFound => ApiError::not_found("signed quote"),
        PayError::Session(refusal) => session_refusal(refusal),
        PayError::Closed(closed) => quote_closed(closed),
        PayError::Input(error) => input_error(error),
        PayError::Unverified {
            refusal,
            test_amount,
        } => unverified(refusal, test_amount.as_ref()),
        PayError::Failed(error) => gate_error(error),
    }
}

/// The message names an amount that asks for the verification, because in mode test nothing else does.
fn unverified(refusal: VerificationRefusal, test_amount: Option<&SessionAmount>) -> ApiError {
    let (code, message) = match refusal {
        VerificationRefusal::Required => (
            codes::VERIFICATION_REQUIRED,
            "The user must be verified before this payment. Start the verification.",
        ),
        VerificationRefusal::Rejected => (
            codes::VERIFICATION_REJECTED,
            "The verification of the user was rejected.",
        ),
    };
    match test_amount {
        None => ApiError::new(code, message),
        Some(amount) => {
            let amount = amount.as_str();
            let why = format!("{message} In mode test the session's amount {amount} decides this.");
            ApiError::new(code, why)
        }
    }
}

fn input_error(error: InputError) -> ApiError {
    let message = format!("{error}.");
    match error {
        InputError::QuoteId
        | InputError::NoAddress
        | InputError::AddressOfSale
        | InputError::Payout(
            PayoutError::Missing
            | PayoutError::NotASale
            | PayoutError::NotOffered
            | PayoutError::Unknown(_)
            | PayoutError::Field { .. },
        ) => ApiError::invalid_request(message),
        InputError::Address(error) => wallet_error(&error, message),
        InputError::NetworkNotOffered => ApiError::new(codes::NETWORK_NOT_SUPPORTED, message),
        InputError::OtherAddress => ApiError::new(
            codes::WALLET_MISMATCH,
            "The session's `wallet_address` cannot be changed; omit the field.",
        ),
    }
}

fn wallet_error(error: &WalletError, message: String) -> ApiError {
    let code = if error.is_checksum() {
        codes::ADDRESS_CHECKSUM_MISMATCH
    } else {
        codes::INVALID_ADDRESS
    };
    ApiError::new(code, message)
}

pub(crate) fn cancel_error(error: CancelError) -> ApiError {
    match error {
        CancelError::TokenExpired => http_kit::dead_token(),
        CancelError::NotFound => ApiError::not_found("payment"),
        CancelError::TooLate => ApiError::new(
            codes::PAYMENT_NOT_CANCELLABLE,
            "The payment can no longer be cancelled. Read the session for its outcome.",
        ),
        CancelError::RailElsewhere => ApiError::unavailable(
            codes::SERVICE_UNAVAILABLE,
            "The rail that holds the payment cannot be asked now, so nothing was cancelled. Cancel again later.",
        ),
        CancelError::RailSilent => ApiError::unavailable(
            codes::SERVICE_UNAVAILABLE,
            "The rail did not answer, so the payment may be cancelled or not. Read the session, or cancel again.",
        ),
        CancelError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn pretend_error(error: PretendError) -> ApiError {
    match error {
        PretendError::LiveMode => ApiError::new(
            codes::LIVE_KEYS_NOT_ALLOWED,
            "Mode live has no pretences: real money moves.",
        ),
        PretendError::TokenExpired => http_kit::dead_token(),
        PretendError::NoPayment => ApiError::not_found("payment"),
        PretendError::NoVerification => ApiError::not_found("verification"),
        PretendError::NotSimulated => ApiError::new(
            codes::NOT_SIMULATED,
            "The sandbox's rail and verifier alone take part in a pretence, and another one holds this.",
        ),
        PretendError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn verify_error(error: VerifyError) -> ApiError {
    match error {
        VerifyError::FormNotAsked => ApiError::new(
            codes::VERIFICATION_FORM_NOT_ASKED,
            "`answers`: the verification asks for no form; omit the field.",
        ),
        VerifyError::Answers(error) => ApiError::invalid_request(format!("{error}.")),
        VerifyError::VerifierSilent => ApiError::unavailable(
            codes::SERVICE_UNAVAILABLE,
            "The verifier did not answer. Nothing was decided; retry.",
        ),
        VerifyError::NotFound => ApiError::not_found("session"),
        VerifyError::TokenExpired => http_kit::dead_token(),
        VerifyError::Session(refusal) => session_refusal(refusal),
        VerifyError::Failed(error) => gate_error(error),
    }
}
