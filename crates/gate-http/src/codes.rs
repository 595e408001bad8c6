//! The error codes of the gate API, in addition to those that all services share.

use http_kit::{ErrorCode, StatusCode, error_codes};

pub(crate) use http_kit::codes::*;

const FIX: &str = "Fix the request; do not retry it unchanged.";
const ASK: &str = "Do not retry until the operator has changed your access.";

/// A session that is not open, as the calls of pages report it.
pub(crate) const SESSION_NOT_OPEN_TO_PAGE: &ErrorCode =
    &SESSION_NOT_OPEN.with_status(StatusCode::FORBIDDEN);

error_codes! {
    /// The codes of this crate.
    pub(crate) OF_GATE;
    AMOUNT_OUT_OF_RANGE = BAD_REQUEST "amount_out_of_range",
        "The amount or the other leg of the order exceeds 10000000000, rounds to zero or does not cover the fees.",
        FIX;
    UNKNOWN_CURRENCY = BAD_REQUEST "unknown_currency",
        "The code is not an active ISO 4217 currency, or an order's currency or asset is not in the catalogue.",
        FIX;
    AMOUNT_PRECISION = BAD_REQUEST "amount_precision",
        "The amount has more fractional digits than its currency or asset.",
        FIX;
    NETWORK_NOT_SUPPORTED = BAD_REQUEST "network_not_supported",
        "The asset is not available on that network.",
        "Send a network that the asset lists, in its exact spelling.";
    AMOUNT_NOT_ALLOWED = BAD_REQUEST "amount_not_allowed",
        "The request has an amount, but the session's amount is quoted.",
        "Omit `amount`.";
    INVALID_ADDRESS = BAD_REQUEST "invalid_address",
        "The address does not have the form of the network, no one has its key, or it is the contract of an asset; `message` says which.",
        "Ask the user for the address of a wallet on that network.";
    ADDRESS_CHECKSUM_MISMATCH = BAD_REQUEST "address_checksum_mismatch",
        "The address fails the checksum of its network, so it has a typing error.",
        "Ask the user to copy the address again.";
    QUOTE_PREVIEW_MISSING = BAD_REQUEST "quote_preview_missing",
        "`quote_preview_id` is not the id of one of your locked previews.",
        "Request a new preview, or create the session without one.";
    QUOTE_PREVIEW_EXPIRED = BAD_REQUEST "quote_preview_expired",
        "The locked preview has expired.",
        "Request a new preview.";
    QUOTE_PREVIEW_USED = BAD_REQUEST "quote_preview_used",
        "Another session has used the locked preview.",
        "Request a new preview. Each preview is for one session.";
    QUOTE_PREVIEW_MISMATCH = BAD_REQUEST "quote_preview_mismatch",
        "`amount`, `currency`, `target_token` or `flow` is missing or differs from the locked preview.",
        "Send all four with the values of the preview, or request a new preview.";
    TEST_KEY_ON_LIVE = FORBIDDEN "test_key_on_live",
        "A test key was sent to the live host.",
        "Send it to the sandbox host, or use a live key.";
    LIVE_KEY_ON_SANDBOX = FORBIDDEN "live_key_on_sandbox",
        "A live key was sent to the sandbox host.",
        "Send it to the live host, or use a test key.";
    LIVE_KEYS_NOT_ALLOWED = FORBIDDEN "live_keys_not_allowed",
        "The route exists in the sandbox only.",
        "Use it with a test key on the sandbox host.";
    KEY_KIND_NOT_ALLOWED = FORBIDDEN "key_kind_not_allowed",
        "A publishable key was sent to a route that takes a secret key, or the reverse.",
        "Use the right kind of key for this route. A browser must never have a secret key.";
    GATE_NOT_ENABLED = FORBIDDEN "gate_not_enabled",
        "The gate product is not enabled for you.",
        ASK;
    KYC_PACKAGE_NOT_TRUSTED = FORBIDDEN "kyc_package_not_trusted",
        "A `kyc_package` was sent, but it is not accepted from you.",
        "Leave `kyc_package` out, or ask the operator to trust your verification.";
    KIT_BLOCKS_NOT_ENABLED = FORBIDDEN "kit_blocks_not_enabled",
        "A `flow` was sent, but flow sessions are not enabled for you.",
        "Leave `flow` out, or ask the operator to enable flow sessions.";
    QUOTA_EXHAUSTED = FORBIDDEN "quota_exhausted",
        "The live session quota of this calendar month (UTC) is used up.",
        "Wait for the next month, or ask the operator for a higher quota.";
    WEBHOOK_NOT_CONFIGURED = BAD_REQUEST "webhook_not_configured",
        "You have no webhook endpoint, so there is nothing to test.",
        "Ask the operator to set an endpoint.";
    DELIVERY_NOT_DEAD_LETTERED = BAD_REQUEST "delivery_not_dead_lettered",
        "The delivery was delivered or may still be delivered.",
        "Replay only deliveries that are `dead_lettered`.";
    ORIGIN_NOT_ALLOWED = FORBIDDEN "origin_not_allowed",
        "The page's `Origin`, or without an `Origin` its `Referer`, is not one of your allowed domains.",
        "Ask the operator to allow the page's exact origin.";
    CLIENT_SECRET_INVALID = FORBIDDEN "client_secret_invalid",
        "The client secret is wrong, or the widget's own page sent none.",
        "Give the browser the `client_secret` from the response that created the session.";
    VERIFICATION_REQUIRED = FORBIDDEN "verification_required",
        "The session's user must be verified before the payment.",
        "Start the verification with `createEmbedVerification`, and pay when it is approved.";
    VERIFICATION_REJECTED = FORBIDDEN "verification_rejected",
        "The verification of the session's user was rejected.",
        "Do not retry: the user cannot pay this session.";
    SCOPE_MISSING = FORBIDDEN "scope_missing",
        "The widget's token lacks the scope of the call; `message` names it.",
        "Bootstrap the widget with that scope among `requested_scopes`, or without `requested_scopes`.";
    SESSION_REQUIRED = FORBIDDEN "session_required",
        "The widget's token belongs to no session.",
        "Bootstrap the widget with the `client_secret` of a session.";
    CUSTOMER_ALREADY_EXISTS = CONFLICT "customer_already_exists",
        "One of your customers, perhaps a deleted one, has this `email` or `external_id`; `message` names the field.",
        "Find the customer with the filters of the list. The values of a deleted customer stay taken.";
    RAILS_NOT_ENABLED = FORBIDDEN "rails_not_enabled",
        "Signed quotes and rails are not enabled for you.",
        ASK;
    COUNTRY_NOT_SUPPORTED = BAD_REQUEST "country_not_supported",
        "A signed quote was requested for a country that is not served.",
        "List the countries, or check eligibility first.";
    ASSET_NOT_SUPPORTED = BAD_REQUEST "asset_not_supported",
        "A signed quote was requested for an asset that is not offered now.",
        "List the assets, or check eligibility first.";
    CORRIDOR_NOT_AVAILABLE = BAD_REQUEST "corridor_not_available",
        "A signed quote was requested for a combination of side, currency, asset and country that is not offered.",
        "Check eligibility first.";
    VERIFICATION_FORM_NOT_ASKED = BAD_REQUEST "verification_form_not_asked",
        "The request has `answers`, but the verification asks for no form. The provider received no answers.",
        "Omit `answers`, and show the `url` or the `form` of the response.";
    RAILS_NOT_AVAILABLE = NOT_IMPLEMENTED "rails_not_available",
        "No rail is connected to this installation, so pay-ins and pay-outs are impossible. This check is last, so the rest of the request was valid.",
        "Do not retry; ask the operator.";
    RAIL_UNAVAILABLE = SERVICE_UNAVAILABLE "rail_unavailable",
        "The rail asks for another amount, asset or address than what the customer confirmed, so nothing was paid and the quote is unchanged.",
        "Retry later with the same Idempotency-Key; the operator is alerted.";
    RATE_UNAVAILABLE = CONFLICT "rate_unavailable",
        "There is no rate now, so no quote was locked.",
        "Retry later with the same Idempotency-Key.";
    USER_NOT_APPROVED = FORBIDDEN "user_not_approved",
        "The session's user is not approved. In the sandbox, every user is approved.",
        "Have the user verified, and create a new session.";
    QUOTE_SESSION_MISMATCH = CONFLICT "quote_session_mismatch",
        "The quote does not match the session or the kind of rail; `message` names the difference.",
        "Lock a quote that matches the session.";
    QUOTE_CONSUMED = CONFLICT "quote_consumed",
        "The quote has been redeemed already.",
        "Read the pay-in or pay-out that redeemed it, or lock a new quote.";
    QUOTE_SUPERSEDED = CONFLICT "quote_superseded",
        "A newer quote of the session has superseded the quote.",
        "Pay the newest quote, or request a new one.";
    WALLET_MISMATCH = CONFLICT "wallet_mismatch",
        "The session has a `wallet_address` already, and the request has another one.",
        "Omit `wallet_address`.";
    PAYMENT_NOT_CANCELLABLE = CONFLICT "payment_not_cancellable",
        "The payment is over, or its rail no longer cancels it.",
        "Read the session for the payment's outcome.";
    NOT_SIMULATED = CONFLICT "not_simulated",
        "Another rail or verifier than the sandbox's holds the payment or the verification.",
        "End it there, or configure `PENSTOCK_RAIL=sandbox` and `PENSTOCK_VERIFIER=sandbox`.";
    QUOTE_EXPIRED = CONFLICT "quote_expired",
        "The quote has expired.",
        "Lock a new quote.";
    IDEMPOTENCY_IN_PROGRESS = CONFLICT "idempotency_in_progress",
        "Another request with the same Idempotency-Key is in progress.",
        "Retry in a moment with the same key.";
    SESSION_NOT_OPEN = CONFLICT "session_not_open",
        "The session is completed, cancelled or expired; `message` names the status. A bootstrap returns this code with 403, and so does the outcome of a session that ended more than 30 days ago.",
        "Read the session and branch on its status.";
    SESSION_OPEN = CONFLICT "session_open",
        "The session is still open, so it has no outcome yet.",
        "Bootstrap the session.";
    SESSION_PAYMENT_IN_PROGRESS = CONFLICT "session_payment_in_progress",
        "A pay-in or pay-out of the session is in progress. Until it ends, the session accepts no other payment and cannot be cancelled or expire.",
        "Wait for the record's event, or read the session; pay again only after the record is `failed` or `cancelled`.";
}

/// Refusals of the writes that are safe without a key.
pub(crate) const OPTIONAL_KEY: &[&ErrorCode] = &[
    IDEMPOTENCY_KEY_INVALID,
    IDEMPOTENCY_IN_PROGRESS,
    OUTCOME_UNKNOWN,
];

/// Refusals of the session actions.
pub(crate) const ACT: &[&ErrorCode] = &[
    RESOURCE_NOT_FOUND,
    IDEMPOTENCY_KEY_INVALID,
    IDEMPOTENCY_IN_PROGRESS,
    SESSION_NOT_OPEN,
    SESSION_PAYMENT_IN_PROGRESS,
    OUTCOME_UNKNOWN,
];

/// Refusals of the operations that check an order against the catalogue.
pub(crate) const ORDER: &[&ErrorCode] = &[
    UNKNOWN_CURRENCY,
    NETWORK_NOT_SUPPORTED,
    AMOUNT_PRECISION,
    AMOUNT_OUT_OF_RANGE,
];

/// Refusals of the operations that lock or redeem a quote under a key.
pub(crate) const RAIL_KEY: &[&ErrorCode] = &[
    IDEMPOTENCY_KEY_REQUIRED,
    IDEMPOTENCY_KEY_INVALID,
    IDEMPOTENCY_IN_PROGRESS,
    OUTCOME_UNKNOWN,
    RAILS_NOT_ENABLED,
];
