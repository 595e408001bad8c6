//! The error responses to the refusals of the pools domain.
//!
//! Every match is exhaustive, so a new refusal does not compile without a row here.

use http_kit::{ApiError, ErrorCode, UnknownFields};
use instruments::faults::{Violation, violated};
use kernel::AmountError;
use pools_core::access::PoolsDenial;
use pools_core::batch::Refusal;
use pools_core::pricing::PriceError;
use pools_core::quote::QuoteClosed;
use pools_core::usecases::create_quote::{QuoteError, QuoteInputError};
use pools_core::usecases::poll_trade::PollError;
use pools_core::usecases::reject_quote::RejectError;
use pools_core::usecases::transact_quote::TransactError;

use crate::codes;

pub(crate) fn ask_error(error: QuoteInputError, unknown: &UnknownFields) -> ApiError {
    let message = match &error {
        QuoteInputError::Missing(fields) => unknown.explain(fields),
        QuoteInputError::MissingAddress => unknown.explain(&["destAddress"]),
        other => format!("{other}."),
    };
    let code = match &error {
        QuoteInputError::Missing(_) | QuoteInputError::NotAllowed(_, _) => codes::INVALID_REQUEST,
        QuoteInputError::Amount(error) => amount_code(*error),
        QuoteInputError::UnknownCurrency(_) => codes::UNKNOWN_CURRENCY,
        QuoteInputError::CurrencyMismatch(_) => codes::CURRENCY_MISMATCH,
        QuoteInputError::NetworkNotSupported { .. }
        | QuoteInputError::DestNetworkNotSupported { .. } => codes::NETWORK_NOT_SUPPORTED,
        QuoteInputError::MissingAddress => codes::INVALID_ADDRESS,
        QuoteInputError::Address(error) if error.is_checksum() => codes::ADDRESS_CHECKSUM_MISMATCH,
        QuoteInputError::Address(_)
        | QuoteInputError::NotNative { .. }
        | QuoteInputError::Contract { .. } => codes::INVALID_ADDRESS,
    };
    ApiError::new(code, message)
}

const fn amount_code(error: AmountError) -> &'static ErrorCode {
    match error {
        AmountError::Malformed | AmountError::Zero => codes::INVALID_REQUEST,
        AmountError::TooPrecise(_) => codes::AMOUNT_PRECISION,
        AmountError::OutOfRange => codes::AMOUNT_OUT_OF_RANGE,
    }
}

pub(crate) fn price_error(error: PriceError) -> ApiError {
    let (code, message) = match error {
        PriceError::OutOfRange => (
            codes::AMOUNT_OUT_OF_RANGE,
            "`amount`: a leg of the order rounds to zero or exceeds 10000000000.",
        ),
        PriceError::BelowMinimum => (
            codes::AMOUNT_BELOW_MINIMUM,
            "`amount`: the order is worth less than `minOrderUsdt`.",
        ),
        PriceError::AboveMaximum => (
            codes::AMOUNT_ABOVE_MAXIMUM,
            "`amount`: the order is worth more than `maxOrderUsdt`.",
        ),
    };
    ApiError::new(code, message)
}

pub(crate) fn quote_error(error: QuoteError, unknown: &UnknownFields) -> ApiError {
    match error {
        QuoteError::Ask(error) => ask_error(error, unknown),
        QuoteError::Price(error) => price_error(error),
        QuoteError::Store(error) => error.into(),
    }
}

pub(crate) fn reject_error(error: RejectError) -> ApiError {
    match error {
        RejectError::NotFound => ApiError::not_found("quote"),
        RejectError::Closed(closed) => quote_closed(closed),
        RejectError::Store(error) => error.into(),
    }
}

pub(crate) fn transact_error(error: TransactError) -> ApiError {
    match error {
        TransactError::InProgress => ApiError::new(
            codes::IDEMPOTENCY_IN_PROGRESS,
            "A request with this `Idempotency-Key` is being worked on. Retry it, or read the trade.",
        ),
        TransactError::QuoteInProgress => ApiError::new(
            codes::QUOTE_IN_PROGRESS,
            "Another transact of this quote is being worked on. Retry it, or read the trade by its quote.",
        ),
        TransactError::Refused(refusal) => transact_refusal(refusal),
        TransactError::Store(error) => error.into(),
    }
}

pub(crate) fn poll_error(error: PollError) -> ApiError {
    match error {
        PollError::NotFound => ApiError::not_found("trade"),
        PollError::Store(error) => error.into(),
        PollError::Post(_) | PollError::Event(_) => {
            violated(Violation::Undoable);
            ApiError::internal(error)
        }
    }
}

/// The 403 for a refused key. The code names the entitlement that the operator can change.
pub(crate) fn denied(denial: PoolsDenial) -> ApiError {
    let (code, message) = match denial {
        PoolsDenial::Access(denial) => return denial.into(),
        PoolsDenial::NotEnabled => (
            codes::POOLS_NOT_ENABLED,
            "Pools are not enabled for this partner.",
        ),
        PoolsDenial::AccessSuspended => (
            codes::POOL_ACCESS_SUSPENDED,
            "Access to pools is suspended.",
        ),
        PoolsDenial::KycNotApproved => (
            codes::KYC_NOT_APPROVED,
            "The partner's KYC is not approved.",
        ),
        PoolsDenial::PoolNotAllowed => (
            codes::POOL_NOT_ALLOWED,
            "This pool is not among the partner's pools.",
        ),
    };
    ApiError::new(code, message)
}

fn transact_refusal(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::Denied(denial) => denied(denial),
        Refusal::KeyReused => ApiError::new(
            codes::IDEMPOTENCY_KEY_REUSED,
            "This `Idempotency-Key` was used for another request.",
        ),
        Refusal::QuoteUnknown => ApiError::not_found("quote"),
        Refusal::SideNotEnabled => ApiError::new(
            codes::SIDE_NOT_ENABLED,
            "Selling is not enabled for you in this pool. Do not retry.",
        ),
        Refusal::QuoteClosed(closed) => quote_closed(closed),
        Refusal::VelocityCapExceeded => ApiError::new(
            codes::VELOCITY_CAP_EXCEEDED,
            "The trade would take you past your rolling notional cap.",
        ),
        Refusal::VelocityBehind => kernel::StoreError::unavailable(refusal).into(),
        Refusal::InsufficientBalance => ApiError::new(
            codes::INSUFFICIENT_BALANCE,
            "The balance does not cover the reservation.",
        ),
        Refusal::NoRoomForReturn => ApiError::new(
            codes::RESERVATION_FAILED,
            "The account could not hold what a return of this sale would credit. Nothing was changed.",
        ),
        Refusal::ReservationFailed => ApiError::new(
            codes::RESERVATION_FAILED,
            "The reservation was refused; ask for a new quote.",
        ),
        Refusal::EngineUnavailable => ApiError::unavailable(
            codes::ENGINE_UNAVAILABLE,
            "The reservation could not be made in time. Nothing was changed; retry with the same Idempotency-Key.",
        ),
    }
}

fn quote_closed(closed: QuoteClosed) -> ApiError {
    let (code, message) = match closed {
        QuoteClosed::Consumed => (codes::QUOTE_CONSUMED, "The quote has been executed."),
        QuoteClosed::Rejected => (codes::QUOTE_REJECTED, "The quote has been rejected."),
        QuoteClosed::Expired => (
            codes::QUOTE_EXPIRED,
            "The quote has expired; ask for a new one.",
        ),
    };
    ApiError::new(code, message)
}
