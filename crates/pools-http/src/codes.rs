//! The error codes of the pools API, in addition to those that all services share.

use http_kit::{ErrorCode, error_codes};

pub(crate) use http_kit::codes::*;

const FIX: &str = "Fix the request; do not retry it unchanged.";
const ASK: &str = "Do not retry until the operator has changed your access.";
const NEW_QUOTE: &str = "Read the quote. Request a new one if you still want to trade.";

error_codes! {
    /// The codes of this crate.
    pub(crate) OF_POOLS;
    AMOUNT_PRECISION = BAD_REQUEST "amount_precision",
        "The amount has more fractional digits than its currency or asset allows. Trailing zeros count.",
        FIX;
    AMOUNT_OUT_OF_RANGE = BAD_REQUEST "amount_out_of_range",
        "A leg of the order rounds to zero or exceeds 10000000000.",
        FIX;
    AMOUNT_BELOW_MINIMUM = BAD_REQUEST "amount_below_minimum",
        "The order is worth less than `minOrderUsdt`.",
        "Read the limits from capabilities.";
    AMOUNT_ABOVE_MAXIMUM = BAD_REQUEST "amount_above_maximum",
        "The order is worth more than `maxOrderUsdt`.",
        "Read the limits from capabilities.";
    UNKNOWN_CURRENCY = BAD_REQUEST "unknown_currency",
        "The code is not an active ISO 4217 currency or a known asset.",
        FIX;
    CURRENCY_MISMATCH = BAD_REQUEST "currency_mismatch",
        "The currency or asset does not belong to the pool.",
        FIX;
    NETWORK_NOT_SUPPORTED = BAD_REQUEST "network_not_supported",
        "`cryptoNetwork` is not one of the pool's networks, or `destNetwork` is not on the delivery allowlist.",
        "Read the networks from capabilities.";
    INVALID_ADDRESS = BAD_REQUEST "invalid_address",
        "`destAddress` is missing on a purchase, malformed, not an address of the delivery network, an address of which no one has the key, or the contract of an asset.",
        FIX;
    ADDRESS_CHECKSUM_MISMATCH = BAD_REQUEST "address_checksum_mismatch",
        "`destAddress` fails the checksum of its chain, which is EIP-55 for a mixed-case EVM address. A character is probably mistyped.",
        "Check the address with its owner.";
    INSUFFICIENT_BALANCE = PAYMENT_REQUIRED "insufficient_balance",
        "The balance does not cover the reservation. Neither the balance nor the quote changed.",
        "Fund the balance, then retry. The Idempotency-Key is still unused.";
    KEY_MODE_MISMATCH = FORBIDDEN "key_mode_mismatch",
        "The key belongs to the other environment, or a publishable key was sent to a route that takes a secret one.",
        "Use the right key for this host and route.";
    POOLS_NOT_ENABLED = FORBIDDEN "pools_not_enabled",
        "The pools product is not enabled for you.",
        ASK;
    POOL_ACCESS_SUSPENDED = FORBIDDEN "pool_access_suspended",
        "Your access to pools is suspended.",
        ASK;
    KYC_NOT_APPROVED = FORBIDDEN "kyc_not_approved",
        "Your KYC is not approved.",
        ASK;
    POOL_NOT_ALLOWED = FORBIDDEN "pool_not_allowed",
        "The pool exists, but you are not entitled to it.",
        ASK;
    FUNDING_NOT_ENABLED = NOT_FOUND "funding_not_enabled",
        "You have no pre-funded balance, so there is nothing to fund.",
        ASK;
    IDEMPOTENCY_IN_PROGRESS = CONFLICT "idempotency_in_progress",
        "Another request with the same Idempotency-Key is in progress.",
        "Retry in a moment with the same key, or read the trade.";
    QUOTE_IN_PROGRESS = CONFLICT "quote_in_progress",
        "Another transact of the quote, with another Idempotency-Key, is in progress, and this request waited for it too long.",
        "Retry in a moment, or read the trade by its quote.";
    IDEMPOTENCY_KEY_REUSED = CONFLICT "idempotency_key_reused",
        "The Idempotency-Key was used for another request.",
        "Use a new key for each operation.";
    QUOTE_CONSUMED = CONFLICT "quote_consumed",
        "The quote has been executed, so it cannot be rejected.",
        NEW_QUOTE;
    QUOTE_REJECTED = CONFLICT "quote_rejected",
        "The quote has been rejected.",
        NEW_QUOTE;
    QUOTE_EXPIRED = CONFLICT "quote_expired",
        "The quote has expired.",
        NEW_QUOTE;
    RESERVATION_FAILED = CONFLICT "reservation_failed",
        "The engine refused to reserve liquidity, or the account could not hold what a return of the sale would credit. Neither the balance nor the quote changed.",
        NEW_QUOTE;
    VELOCITY_CAP_EXCEEDED = TOO_MANY_REQUESTS "velocity_cap_exceeded",
        "The trade would exceed your rolling notional cap. This is not a throttle, so a retry after a second does not help.",
        "Wait as long as `Retry-After` says: then the amount fits, if you make no other trade. Without the header it never fits; ask the operator for a higher cap.";
    SIDE_NOT_ENABLED = NOT_IMPLEMENTED "side_not_enabled",
        "Selling is not enabled for you in this pool.",
        "Do not retry; read `sides` from capabilities.";
    ENGINE_UNAVAILABLE = SERVICE_UNAVAILABLE "engine_unavailable",
        "The reservation could not be made in time. Nothing changed, and the Idempotency-Key is still unused.",
        "Retry with bounded backoff and the same Idempotency-Key while the quote is active.";
}

/// Refusals of the operations that check entitlement.
pub(crate) const ENTITLED: &[&ErrorCode] = &[
    POOLS_NOT_ENABLED,
    POOL_ACCESS_SUSPENDED,
    KYC_NOT_APPROVED,
    POOL_NOT_ALLOWED,
];
