//! The error responses to the refusals of signed quotes and rails.

use gate_core::catalogue::Ineligible;
use gate_core::rail::Mismatch;
use gate_core::signed_quote::QuoteClosed;
use gate_core::usecases::lock_quote::LockError;
use gate_core::usecases::redeem_quote::RedeemError;
use http_kit::ApiError;

use super::orders::{order_error, out_of_range};
use super::{denied, gate_error, in_progress, session_refusal};

pub(crate) fn lock_error(error: LockError) -> ApiError {
    match error {
        LockError::InProgress => in_progress(),
        LockError::Order(error) => order_error(error),
        LockError::UnknownMethod => ApiError::invalid_request(format!("{error}.")),
        LockError::NotOffered(reason) => ApiError::invalid(reason.as_str(), not_offered(reason)),
        LockError::RateUnavailable => ApiError::conflict(
            "rate_unavailable",
            "There is no rate at present. Nothing was locked.",
        ),
        LockError::OutOfRange(error) => out_of_range(error),
        LockError::Denied(denial) => denied(denial),
        LockError::Failed(error) => gate_error(error),
    }
}

pub(crate) fn redeem_error(error: RedeemError) -> ApiError {
    match error {
        RedeemError::InProgress => in_progress(),
        RedeemError::NoRail(_) => no_rail(),
        RedeemError::RailSilent => rail_silent(),
        RedeemError::Denied(denial) => denied(denial),
        RedeemError::NotFound => ApiError::not_found("signed quote or session"),
        RedeemError::Session(refusal) => session_refusal(refusal),
        RedeemError::UserNotApproved => {
            ApiError::forbidden("user_not_approved", "The session's user is not approved.")
        }
        RedeemError::Mismatch(Mismatch(what)) => ApiError::conflict(
            "quote_session_mismatch",
            format!("The quote is not for this session: its {what} differs."),
        ),
        RedeemError::Closed(closed) => quote_closed(closed),
        RedeemError::Failed(error) => gate_error(error),
    }
}

/// The message of a refused order: it names the field and the expected value.
pub(super) const fn not_offered(reason: Ineligible) -> &'static str {
    match reason {
        Ineligible::CountryUnresolved | Ineligible::CountryNotSupported => {
            "`country_code`: expected a country that is served."
        }
        Ineligible::CurrencyNotSupported => "`currency`: expected one that is served.",
        Ineligible::AssetNotSupported => "`asset`: expected one that is offered at present.",
        Ineligible::CorridorNotAvailable => {
            "`side`, `currency`, `asset` and `country_code`: expected what is offered together, in the country's own currency."
        }
    }
}

pub(super) fn quote_closed(closed: QuoteClosed) -> ApiError {
    match closed {
        QuoteClosed::Consumed => {
            ApiError::conflict("quote_consumed", "The quote has been redeemed.")
        }
        QuoteClosed::Superseded => ApiError::conflict(
            "quote_superseded",
            "A newer quote of the session has superseded the quote; pay the newest one.",
        ),
        QuoteClosed::Expired => ApiError::conflict("quote_expired", "The quote has expired."),
    }
}

pub(super) fn rail_silent() -> ApiError {
    ApiError::unavailable(
        "service_unavailable",
        "The rail did not answer. Nothing was changed; retry with the same Idempotency-Key.",
        1,
    )
}

pub(super) fn no_rail() -> ApiError {
    ApiError::not_implemented(
        "rails_not_available",
        "No rail is connected to this installation. Do not retry.",
    )
}

/// The error response to every refusal of rails.
#[cfg(test)]
pub(super) fn every_refusal() -> impl Iterator<Item = ApiError> {
    use gate_core::access::GateDenial;
    use gate_core::pricing::OutOfRange;
    use gate_core::session::{NotOpen, SessionRefusal, SessionStatus};
    use gate_core::usecases::redeem_quote::NoRail;

    let locks = [
        LockError::InProgress,
        LockError::UnknownMethod,
        LockError::NotOffered(Ineligible::CountryNotSupported),
        LockError::NotOffered(Ineligible::AssetNotSupported),
        LockError::NotOffered(Ineligible::CorridorNotAvailable),
        LockError::RateUnavailable,
        LockError::OutOfRange(OutOfRange),
        LockError::Denied(GateDenial::RailsNotEnabled),
    ];
    let redemptions = [
        RedeemError::InProgress,
        RedeemError::NoRail(NoRail),
        RedeemError::RailSilent,
        RedeemError::Denied(GateDenial::RailsNotEnabled),
        RedeemError::NotFound,
        RedeemError::Session(NotOpen(SessionStatus::Expired).into()),
        RedeemError::Session(SessionRefusal::PaymentInProgress),
        RedeemError::UserNotApproved,
        RedeemError::Mismatch(Mismatch("amount")),
        RedeemError::Closed(QuoteClosed::Consumed),
        RedeemError::Closed(QuoteClosed::Superseded),
        RedeemError::Closed(QuoteClosed::Expired),
    ];
    locks
        .into_iter()
        .map(lock_error)
        .chain(redemptions.map(redeem_error))
}
