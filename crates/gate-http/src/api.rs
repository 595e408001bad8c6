//! The APIs of the gate: their operations and the documents that describe them.
//!
//! A new operation is declared beside its handler and listed here.

use http_kit::openapi::{Contract, ContractError};
use http_kit::{Document, ErrorCode};

use crate::codes;
use crate::event_docs::with_events;
use crate::operation::Api;
use crate::{
    branding, capabilities, customers, embed, embed_options, embed_outcome, embed_session,
    embed_test_helpers, embed_verification, payments, previews, rails, sessions, signed_quotes,
    test_helpers, transactions, webhooks,
};

/// The version of the documents, which is a date.
const VERSION: &str = "2026-05-25";

/// Recorded requests and responses. A test compares them with the service.
pub(crate) const EXAMPLES: &str = include_str!("examples.json");

/// The tiers of the limits, as named in the headers.
const TIERS: &[&str] = &["short", "medium", "long"];

/// Refusals that all operations with a key share.
const WITH_KEY: &[&ErrorCode] = &[
    codes::UNAUTHORIZED,
    codes::SECRET_KEY_IN_QUERY,
    codes::TEST_KEY_ON_LIVE,
    codes::LIVE_KEY_ON_SANDBOX,
    codes::KEY_REVOKED,
    codes::KEY_EXPIRED,
    codes::KEY_KIND_NOT_ALLOWED,
    codes::ORGANIZATION_SUSPENDED,
    codes::GATE_NOT_ENABLED,
    codes::RATE_LIMITED,
    codes::INTERNAL_ERROR,
    codes::OVERLOADED,
    codes::SERVICE_UNAVAILABLE,
];

/// Refusals that all calls of a widget share.
const WITH_TOKEN: &[&ErrorCode] = &[
    codes::UNAUTHORIZED,
    codes::SECRET_KEY_IN_QUERY,
    codes::KEY_REVOKED,
    codes::KEY_EXPIRED,
    codes::ORGANIZATION_SUSPENDED,
    codes::GATE_NOT_ENABLED,
    codes::SCOPE_MISSING,
    codes::RATE_LIMITED,
    codes::INTERNAL_ERROR,
    codes::OVERLOADED,
    codes::SERVICE_UNAVAILABLE,
];

/// Every API, the contract first.
pub(crate) const APIS: [&Api; 3] = [&GATE, &TEST_HELPERS, &EMBED];

const GATE: Api = Api {
    name: "gate-v1",
    title: "Penstock Hosted Ramp Session API",
    version: VERSION,
    description: "\
Hosted buy, sell and swap sessions: create a session bound to an amount and a currency with a secret key, pass its \
client secret to the browser, and receive the outcome in signed events and reads.

Fields are snake_case; money is a decimal string; instants are RFC 3339 in UTC; absent values are null. Clients ignore \
unknown fields. Another partner's object is 404, like an object that does not exist.",
    tags: &[
    (
        "Sessions",
        "A purchase, sale or swap, bound to an amount and a currency and completed in the hosted flow.",
    ),
    ("Embed", "Calls of your pages, with a publishable key."),
    ("Branding", "The look of the widget."),
    (
        "Capabilities",
        "What is available in which country: planning reads, which promise nothing.",
    ),
    (
        "Quotes",
        "Prices: previews, and signed quotes that are valid until they are redeemed or expire.",
    ),
    (
        "Rails",
        "Pay-ins and pay-outs that redeem a signed quote, for partners entitled to them.",
    ),
    (
        "Transactions",
        "The payments of sessions, for reconciliation.",
    ),
    ("Customers", "Your records of the users you serve."),
    (
        "Webhooks",
        "Deliveries of events, their replay, and a test event.",
    ),
],
    shared_errors: WITH_KEY,
    tiers: TIERS,
    examples: EXAMPLES,
    complete: with_events,
    operations: &[
        &sessions::CREATE_SESSION,
        &sessions::CANCEL_SESSION,
        &sessions::LIST_SESSIONS,
        &sessions::RETRIEVE_SESSION,
        &embed::CREATE_EMBED_TOKEN,
        &embed_outcome::RETRIEVE_EMBED_OUTCOME,
        &branding::GET_BRANDING,
        &branding::UPDATE_BRANDING,
        &capabilities::LIST_COUNTRIES,
        &capabilities::LIST_CURRENCIES,
        &capabilities::LIST_ASSETS,
        &capabilities::GET_ASSET,
        &capabilities::LIST_PAYMENT_METHODS,
        &capabilities::LIST_PAYOUT_METHODS,
        &capabilities::CHECK_ELIGIBILITY,
        &previews::PREVIEW_QUOTES,
        &signed_quotes::LOCK_QUOTE,
        &signed_quotes::RETRIEVE_SIGNED_QUOTE,
        &rails::CREATE_PAY_IN,
        &rails::RETRIEVE_PAY_IN,
        &rails::CREATE_PAY_OUT,
        &rails::RETRIEVE_PAY_OUT,
        &transactions::LIST_TRANSACTIONS,
        &transactions::RETRIEVE_TRANSACTION,
        &customers::LIST_CUSTOMERS,
        &customers::CREATE_CUSTOMER,
        &customers::GET_CUSTOMER,
        &customers::UPDATE_CUSTOMER,
        &customers::DELETE_CUSTOMER,
        &webhooks::LIST_DELIVERIES,
        &webhooks::REPLAY_DELIVERY,
        &webhooks::SEND_TEST,
    ],
};

const TEST_HELPERS: Api = Api {
    name: "gate-test-helpers-v1",
    title: "Penstock Hosted Ramp Test Helpers",
    version: VERSION,
    description: "\
Operations of the sandbox only. They complete a session or fail its payment, so that a partner can test every path.",
    tags: &[(
        "Test helpers",
        "Outcomes chosen by the caller, in the sandbox only.",
    )],
    shared_errors: WITH_KEY,
    tiers: TIERS,
    examples: EXAMPLES,
    complete: |contract| contract,
    operations: &[&test_helpers::COMPLETE_SESSION, &test_helpers::FAIL_SESSION],
};

const EMBED: Api = Api {
    name: "gate-embed-v1",
    title: "Penstock Hosted Ramp Widget Calls",
    version: VERSION,
    description: "\
The calls of the hosted widget itself, with the token of its bootstrap in the header `X-Embed-Token`.

Only pages of the widget's own origin can read the responses. The bootstrap and the outcome of an ended session are calls \
of your own pages, with a publishable key and without a token; they are `createEmbedToken` and `retrieveEmbedOutcome` in \
`gate-v1.yaml`.

The token is valid for about an hour, for one partner in one mode, and for one session if the bootstrap contained that session's \
client secret. Its scopes (`session:read`, `session:pay`, `kyc:submit`, `branding:read`) limit what a call may do. It \
ends with its key: within 5 s after the key is revoked or the partner is suspended, its calls are refused. A session has \
at most 10 tokens that are valid: each further bootstrap ends the oldest, whose calls are then 401 `unauthorized`.

Tier `short` allows 60 requests a minute for the token and the client's address, and besides 10 quotes and 5 payments; an \
IPv6 /64 counts as one address. Tier `medium` allows three times as many for all tokens of the session together, from the \
same address; a token without a session has no such tier. Refused requests count, preflights do not.",
    tags: &[
    ("Session", "The session that the widget shows."),
    ("Verification", "The verification of the session's user."),
    ("Payment", "The session's quote and its payment."),
    ("Test helpers", "What the sandbox's own pages call, in mode test only."),
],
    shared_errors: WITH_TOKEN,
    tiers: &["short", "medium"],
    examples: EXAMPLES,
    complete: Contract::of_widgets,
    operations: &[
        &embed_session::RETRIEVE_EMBED_SESSION,
        &embed_options::LIST_EMBED_OPTIONS,
        &embed_session::CANCEL_EMBED_SESSION,
        &embed_verification::CREATE_EMBED_VERIFICATION,
        &payments::CANCEL_EMBED_PAYMENT,
        &payments::CREATE_EMBED_QUOTE,
        &payments::CREATE_EMBED_PAYMENT,
        &embed_test_helpers::SEND_TEST_PAYMENT,
        &embed_test_helpers::DECLINE_TEST_PAYMENT,
        &embed_test_helpers::APPROVE_TEST_VERIFICATION,
        &embed_test_helpers::REJECT_TEST_VERIFICATION,
    ],
};

/// The published documents, the contract first.
pub fn documents() -> Result<Vec<Document>, ContractError> {
    APIS.iter().map(|api| api.document()).collect()
}

pub fn error_codes() -> impl Iterator<Item = &'static ErrorCode> {
    codes::SHARED_ERRORS.iter().chain(codes::OF_GATE).copied()
}
