//! The error responses to the refusals of signed quotes and rails.

use gate_core::catalogue::Ineligible;
use gate_core::rail::Mismatch;
use gate_core::signed_quote::QuoteClosed;
use gate_core::usecases::lock_quote::LockError;
use gate_core::usecases::redeem_quote::RedeemError;
use gate_core::usecases::redemption::Uninstructed;
use http_kit::ApiError;

use super::orders::{order_error, out_of_range};
use super::{denied, gate_error, session_refusal};
use crate::codes;

pub(crate) fn lock_error(error: LockError) -> ApiError {
    match error {
        LockError::Order(error) => order_error(error),
        LockError::UnknownMethod => ApiError::invalid_request(format!("{error}.")),
        LockError::NotOffered(reason) => not_offered(reason),
        LockError::RateUnavailable => ApiError::new(
            codes::RATE_UNAVAILABLE,
            "There is no rate at present. Nothing was locked.",
        ),
        LockError::OutOfRange(error) => out_of_range(error),
        LockError::Denied(denial) => denied(denial),
        LockError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn redeem_error(error: RedeemError) -> ApiError {
    match error {
        RedeemError::NoRail(_) => no_rail(),
        RedeemError::Uninstructed(reason) => uninstructed(reason),
        RedeemError::Denied(denial) => denied(denial),
        RedeemError::NotFound => ApiError::not_found("signed quote or session"),
        RedeemError::Session(refusal) => session_refusal(refusal),
        RedeemError::UserNotApproved => ApiError::new(
            codes::USER_NOT_APPROVED,
            "The session's user is not approved.",
        ),
        RedeemError::Mismatch(Mismatch(what)) => ApiError::new(
            codes::QUOTE_SESSION_MISMATCH,
            format!("The quote is not for this session: its {what} differs."),
        ),
        RedeemError::Closed(closed) => quote_closed(closed),
        RedeemError::Failed(error) => gate_error(error),
    }
}

/// The refusal of an order that is not offered. The message names the field and the expected value.
pub(super) fn not_offered(reason: Ineligible) -> ApiError {
    let (code, message) = match reason {
        Ineligible::CountryUnresolved | Ineligible::CountryNotSupported => (
            codes::COUNTRY_NOT_SUPPORTED,
            "`country_code`: expected a country that is served.",
        ),
        Ineligible::CurrencyNotSupported => (
            codes::UNKNOWN_CURRENCY,
            "`currency`: expected one that is served.",
        ),
        Ineligible::AssetNotSupported => (
            codes::ASSET_NOT_SUPPORTED,
            "`asset`: expected one that is offered at present.",
        ),
        Ineligible::CorridorNotAvailable => (
            codes::CORRIDOR_NOT_AVAILABLE,
            "`side`, `currency`, `asset` and `country_code`: expected what is offered together, in the country's own currency.",
        ),
    };
    ApiError::new(code, message)
}

pub(super) fn quote_closed(closed: QuoteClosed) -> ApiError {
    match closed {
        QuoteClosed::Consumed => {
            ApiError::new(codes::QUOTE_CONSUMED, "The quote has been redeemed.")
        }
        QuoteClosed::Superseded => ApiError::new(
            codes::QUOTE_SUPERSEDED,
            "A newer quote of the session has superseded the quote; pay the newest one.",
        ),
        QuoteClosed::Expired => ApiError::new(codes::QUOTE_EXPIRED, "The quote has expired."),
    }
}

pub(super) fn uninstructed(reason: Uninstructed) -> ApiError {
    match reason {
        Uninstructed::Silent => ApiError::unavailable(
            codes::SERVICE_UNAVAILABLE,
            "The rail did not answer. Nothing was changed; retry with the same Idempotency-Key.",
        ),
        Uninstructed::OtherTerms => ApiError::unavailable(
            codes::RAIL_UNAVAILABLE,
            "The rail asks for something else than what the customer confirmed. Nothing was changed.",
        ),
    }
}

pub(super) fn no_rail() -> ApiError {
    ApiError::new(
        codes::RAILS_NOT_AVAILABLE,
        "No rail is connected to this installation. Do not retry.",
    )
}
