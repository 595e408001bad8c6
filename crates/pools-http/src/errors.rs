//! The error responses to the refusals of the pools domain.
//!
//! Every match is exhaustive, so a new refusal does not compile without a row here. A test checks
//! that [`ERROR_DOCS`] has the same codes.

use http_kit::{ApiError, ErrorDoc, Kind, UnknownFields, error_doc};
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

const FIX: &str = "Fix the request; do not retry it unchanged.";
const ASK: &str = "Do not retry until the operator has changed your access.";
const NEW_QUOTE: &str = "Read the quote. Request a new one if you still want to trade.";

/// The codes of the pools API, in addition to the codes that all services share.
pub(crate) const ERROR_DOCS: &[ErrorDoc] = {
    use Kind::{Conflict, Forbidden, InvalidRequest, NotFound, RateLimited, ServerError};
    &[
        error_doc(
            "amount_precision",
            400,
            InvalidRequest,
            "The amount has more fractional digits than its currency or asset allows. Trailing zeros count.",
            FIX,
        ),
        error_doc(
            "amount_out_of_range",
            400,
            InvalidRequest,
            "A leg of the order rounds to zero or exceeds 10000000000.",
            FIX,
        ),
        error_doc(
            "amount_below_minimum",
            400,
            InvalidRequest,
            "The order is worth less than `minOrderUsdt`.",
            "Read the limits from capabilities.",
        ),
        error_doc(
            "amount_above_maximum",
            400,
            InvalidRequest,
            "The order is worth more than `maxOrderUsdt`.",
            "Read the limits from capabilities.",
        ),
        error_doc(
            "unknown_currency",
            400,
            InvalidRequest,
            "The code is not an active ISO 4217 currency or a known asset.",
            FIX,
        ),
        error_doc(
            "currency_mismatch",
            400,
            InvalidRequest,
            "The currency or asset does not belong to the pool.",
            FIX,
        ),
        error_doc(
            "network_not_supported",
            400,
            InvalidRequest,
            "`cryptoNetwork` is not one of the pool's networks, or `destNetwork` is not on the delivery allowlist.",
            "Read the networks from capabilities.",
        ),
        error_doc(
            "invalid_address",
            400,
            InvalidRequest,
            "`destAddress` is missing on a purchase, malformed, the zero address, or not an address of the delivery network.",
            FIX,
        ),
        error_doc(
            "address_checksum_mismatch",
            400,
            InvalidRequest,
            "`destAddress` fails the checksum of its chain, which is EIP-55 for a mixed-case EVM address. A character is probably mistyped.",
            "Check the address with its owner.",
        ),
        error_doc(
            "insufficient_balance",
            402,
            InvalidRequest,
            "The balance does not cover the reservation. Neither the balance nor the quote changed.",
            "Fund the balance, then retry. The Idempotency-Key is still unused.",
        ),
        error_doc(
            "key_mode_mismatch",
            403,
            Forbidden,
            "The key belongs to the other environment, or a publishable key was sent to a route that takes a secret one.",
            "Use the right key for this host and route.",
        ),
        error_doc(
            "pools_not_enabled",
            403,
            Forbidden,
            "The pools product is not enabled for you.",
            ASK,
        ),
        error_doc(
            "pool_access_suspended",
            403,
            Forbidden,
            "Your access to pools is suspended.",
            ASK,
        ),
        error_doc(
            "kyc_not_approved",
            403,
            Forbidden,
            "Your KYC is not approved.",
            ASK,
        ),
        error_doc(
            "pool_not_allowed",
            403,
            Forbidden,
            "The pool exists, but you are not entitled to it.",
            ASK,
        ),
        error_doc(
            "funding_not_enabled",
            404,
            NotFound,
            "You have no pre-funded balance, so there is nothing to fund.",
            ASK,
        ),
        error_doc(
            "idempotency_in_progress",
            409,
            Conflict,
            "Another request with the same Idempotency-Key is in progress.",
            "Retry in a moment with the same key, or read the trade.",
        ),
        error_doc(
            "quote_in_progress",
            409,
            Conflict,
            "Another transact of the quote, with another Idempotency-Key, is in progress, and this request waited for it too long.",
            "Retry in a moment, or read the trade by its quote.",
        ),
        error_doc(
            "idempotency_key_reused",
            409,
            Conflict,
            "The Idempotency-Key was used for another request.",
            "Use a new key for each operation.",
        ),
        error_doc(
            "quote_consumed",
            409,
            Conflict,
            "The quote has been executed, so it cannot be rejected.",
            NEW_QUOTE,
        ),
        error_doc(
            "quote_rejected",
            409,
            Conflict,
            "The quote has been rejected.",
            NEW_QUOTE,
        ),
        error_doc(
            "quote_expired",
            409,
            Conflict,
            "The quote has expired.",
            NEW_QUOTE,
        ),
        error_doc(
            "reservation_failed",
            409,
            Conflict,
            "The engine refused to reserve liquidity, or the account could not hold what a return of the sale would credit. Neither the balance nor the quote changed.",
            NEW_QUOTE,
        ),
        error_doc(
            "velocity_cap_exceeded",
            429,
            RateLimited,
            "The trade would exceed your rolling notional cap. This is not a throttle, so a retry after a second does not help.",
            "Wait until earlier trades leave the window, or ask the operator for a higher cap.",
        ),
        error_doc(
            "side_not_enabled",
            501,
            ServerError,
            "Selling is not enabled for you in this pool.",
            "Do not retry; read `sides` from capabilities.",
        ),
        error_doc(
            "engine_unavailable",
            503,
            ServerError,
            "The reservation could not be made in time. Nothing changed, and the Idempotency-Key is still unused.",
            "Retry with bounded backoff and the same Idempotency-Key while the quote is active.",
        ),
    ]
};

pub(crate) fn ask_error(error: QuoteInputError, unknown: &UnknownFields) -> ApiError {
    let message = match &error {
        QuoteInputError::Missing(fields) => unknown.explain(fields),
        QuoteInputError::MissingAddress => unknown.explain(&["destAddress"]),
        other => format!("{other}."),
    };
    let code = match &error {
        QuoteInputError::Missing(_) | QuoteInputError::NotAllowed(_, _) => "invalid_request",
        QuoteInputError::Amount(error) => amount_code(*error),
        QuoteInputError::UnknownCurrency(_) => "unknown_currency",
        QuoteInputError::CurrencyMismatch(_) => "currency_mismatch",
        QuoteInputError::NetworkNotSupported { .. }
        | QuoteInputError::DestNetworkNotSupported { .. } => "network_not_supported",
        QuoteInputError::MissingAddress => "invalid_address",
        QuoteInputError::Address(error) if error.is_checksum() => "address_checksum_mismatch",
        QuoteInputError::Address(_) => "invalid_address",
    };
    ApiError::invalid(code, message)
}

const fn amount_code(error: AmountError) -> &'static str {
    match error {
        AmountError::Malformed | AmountError::Zero => "invalid_request",
        AmountError::TooPrecise(_) => "amount_precision",
        AmountError::OutOfRange => "amount_out_of_range",
    }
}

pub(crate) fn price_error(error: PriceError) -> ApiError {
    let (code, message) = match error {
        PriceError::OutOfRange => (
            "amount_out_of_range",
            "`amount`: a leg of the order rounds to zero or exceeds 10000000000.",
        ),
        PriceError::BelowMinimum => (
            "amount_below_minimum",
            "`amount`: the order is worth less than `minOrderUsdt`.",
        ),
        PriceError::AboveMaximum => (
            "amount_above_maximum",
            "`amount`: the order is worth more than `maxOrderUsdt`.",
        ),
    };
    ApiError::invalid(code, message)
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
        TransactError::InProgress => ApiError::conflict(
            "idempotency_in_progress",
            "A request with this `Idempotency-Key` is being worked on. Retry it, or read the trade.",
        ),
        TransactError::QuoteInProgress => ApiError::conflict(
            "quote_in_progress",
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
            "pools_not_enabled",
            "Pools are not enabled for this partner.",
        ),
        PoolsDenial::AccessSuspended => ("pool_access_suspended", "Access to pools is suspended."),
        PoolsDenial::KycNotApproved => ("kyc_not_approved", "The partner's KYC is not approved."),
        PoolsDenial::PoolNotAllowed => (
            "pool_not_allowed",
            "This pool is not among the partner's pools.",
        ),
    };
    ApiError::forbidden(code, message)
}

fn transact_refusal(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::Denied(denial) => denied(denial),
        Refusal::KeyReused => ApiError::conflict(
            "idempotency_key_reused",
            "This `Idempotency-Key` was used for another request.",
        ),
        Refusal::QuoteUnknown => ApiError::not_found("quote"),
        Refusal::SideNotEnabled => ApiError::not_implemented(
            "side_not_enabled",
            "Selling is not enabled for you in this pool. Do not retry.",
        ),
        Refusal::QuoteClosed(closed) => quote_closed(closed),
        Refusal::VelocityCapExceeded => ApiError::rate_limited(
            "velocity_cap_exceeded",
            "The trade would take you past your rolling notional cap.",
        ),
        Refusal::VelocityBehind => kernel::StoreError::unavailable(refusal).into(),
        Refusal::InsufficientBalance => ApiError::payment_required(
            "insufficient_balance",
            "The balance does not cover the reservation.",
        ),
        Refusal::NoRoomForReturn => ApiError::conflict(
            "reservation_failed",
            "The account could not hold what a return of this sale would credit. Nothing was changed.",
        ),
        Refusal::ReservationFailed => ApiError::conflict(
            "reservation_failed",
            "The reservation was refused; ask for a new quote.",
        ),
        Refusal::EngineUnavailable => ApiError::unavailable(
            "engine_unavailable",
            "The reservation could not be made in time. Nothing was changed; retry with the same Idempotency-Key.",
            1,
        ),
    }
}

fn quote_closed(closed: QuoteClosed) -> ApiError {
    let (code, message) = match closed {
        QuoteClosed::Consumed => ("quote_consumed", "The quote has been executed."),
        QuoteClosed::Rejected => ("quote_rejected", "The quote has been rejected."),
        QuoteClosed::Expired => ("quote_expired", "The quote has expired; ask for a new one."),
    };
    ApiError::conflict(code, message)
}

#[cfg(test)]
mod tests {
    use http_kit::SHARED_ERRORS;
    use partner_core::Denial;
    use pools_core::profile::PoolId;
    use pools_core::usecases::create_quote::Leg;

    use pools_core::destination::AddressError;

    use super::*;

    /// The error response to every refusal of the domain.
    fn every_refusal() -> Vec<ApiError> {
        let pool = PoolId::parse("EUR-USDT").unwrap();
        let leg = Leg {
            field: "fiatCurrency",
            expected: pool.fiat(),
            pool,
        };
        let asks = [
            QuoteInputError::Missing(vec!["side"]),
            QuoteInputError::NotAllowed("side", "on_ramp, off_ramp"),
            QuoteInputError::Amount(AmountError::Malformed),
            QuoteInputError::Amount(AmountError::Zero),
            QuoteInputError::Amount(AmountError::TooPrecise(2)),
            QuoteInputError::Amount(AmountError::OutOfRange),
            QuoteInputError::UnknownCurrency(leg),
            QuoteInputError::CurrencyMismatch(leg),
            QuoteInputError::NetworkNotSupported {
                pool,
                networks: "tron".to_owned(),
            },
            QuoteInputError::DestNetworkNotSupported {
                networks: "ethereum".to_owned(),
            },
            QuoteInputError::MissingAddress,
            QuoteInputError::Address(AddressError::Invalid),
            QuoteInputError::Address(AddressError::Checksum),
            QuoteInputError::Address(AddressError::NotTron),
            QuoteInputError::Address(AddressError::TronChecksum),
            QuoteInputError::Address(AddressError::NotSolana),
        ];
        let prices = [
            PriceError::OutOfRange,
            PriceError::BelowMinimum,
            PriceError::AboveMaximum,
        ];
        let closed = [
            QuoteClosed::Consumed,
            QuoteClosed::Rejected,
            QuoteClosed::Expired,
        ];
        let denials = [
            PoolsDenial::Access(Denial::KeyRevoked),
            PoolsDenial::Access(Denial::KeyExpired),
            PoolsDenial::Access(Denial::OrganizationSuspended),
            PoolsDenial::NotEnabled,
            PoolsDenial::AccessSuspended,
            PoolsDenial::KycNotApproved,
            PoolsDenial::PoolNotAllowed,
        ];
        let refusals = [
            Refusal::KeyReused,
            Refusal::QuoteUnknown,
            Refusal::SideNotEnabled,
            Refusal::VelocityCapExceeded,
            Refusal::VelocityBehind,
            Refusal::InsufficientBalance,
            Refusal::NoRoomForReturn,
            Refusal::ReservationFailed,
            Refusal::EngineUnavailable,
        ];
        let asks = asks
            .into_iter()
            .map(|error| ask_error(error, &UnknownFields::default()));
        let prices = prices.into_iter().map(price_error);
        let closed = closed.into_iter().map(quote_closed);
        let refusals = refusals
            .into_iter()
            .chain(denials.map(Refusal::Denied))
            .map(transact_refusal);
        asks.chain(prices)
            .chain(closed)
            .chain(refusals)
            .chain([TransactError::InProgress, TransactError::QuoteInProgress].map(transact_error))
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
