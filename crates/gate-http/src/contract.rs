//! The published contract, generated from the routes: `/openapi/gate-v1.yaml`.
//!
//! Two more documents cover the sandbox-only operations and the calls of the widget itself.

use http_kit::openapi::{Contract, ContractError, to_yaml};
use http_kit::{ErrorDoc, SHARED_ERRORS};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, ServerBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::errors::ERROR_DOCS;
use crate::event_docs::with_events;
use crate::{rail_events, routes};

/// The contract's version, which is a date.
const VERSION: &str = "2026-05-25";

const DESCRIPTION: &str = "\
Hosted buy, sell and swap sessions: create a session bound to an amount and a currency with a secret key, pass its \
client secret to the browser, and receive the outcome in signed events and reads.

Fields are snake_case; money is a decimal string; instants are RFC 3339 in UTC; absent values are null. Clients ignore \
unknown fields. Another partner's object is 404, like an object that does not exist.";

const HELPERS_DESCRIPTION: &str = "\
Operations of the sandbox only. They complete a session or fail its payment, so that a partner can test every path.";

const EMBED_DESCRIPTION: &str = "\
The calls of the hosted widget itself, with the token of its bootstrap in the header `X-Embed-Token`.

Only pages of the widget's own origin can read the responses. The bootstrap is a call of your own pages, with a \
publishable key and without a token; it is `createEmbedToken` in `gate-v1.yaml`.

The token is valid for about an hour, for one partner in one mode, and for one session if the bootstrap contained that session's \
client secret. Its scopes (`session:read`, `session:pay`, `kyc:submit`, `branding:read`) limit what a call may do. It \
ends with its key: within 5 s after the key is revoked or the partner is suspended, its calls are refused.

Tier `short` allows 60 requests a minute for the token and the client's address, and besides 10 quotes and 5 payments; an \
IPv6 /64 counts as one address. Refused requests count, preflights do not.";

/// The header with a widget's token.
const EMBED_HEADER: &str = "X-Embed-Token";
const EMBED_TOKEN: &str = "embedToken";

/// Recorded requests and responses. A test compares them with the service.
const EXAMPLES: &str = include_str!("examples.json");

/// The tiers of the limits, as named in the headers.
const TIERS: [&str; 3] = ["short", "medium", "long"];

/// The groups of operations.
const TAGS: [(&str, &str); 9] = [
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
];

/// The groups of the sandbox-only operations.
const HELPER_TAGS: [(&str, &str); 1] = [(
    "Test helpers",
    "Outcomes chosen by the caller, in the sandbox only.",
)];

/// The groups of the widget's own calls.
const EMBED_TAGS: [(&str, &str); 3] = [
    ("Session", "The session that the widget shows."),
    ("Verification", "The verification of the session's user."),
    ("Payment", "The session's quote and its payment."),
];

/// Refusals that all calls of a widget share.
const EMBED_SHARED: [&str; 11] = [
    "unauthorized",
    "secret_key_in_query",
    "key_revoked",
    "key_expired",
    "organization_suspended",
    "gate_not_enabled",
    "scope_missing",
    "rate_limited",
    "internal_error",
    "overloaded",
    "service_unavailable",
];

/// The refusals of each call of a widget, in addition to [`EMBED_SHARED`].
const EMBED_OPERATIONS: [(&str, &[&[&str]]); 7] = [
    (
        "createEmbedVerification",
        &[
            &BODY,
            &[
                "session_required",
                "resource_not_found",
                "session_not_open",
                "verification_form_not_asked",
                "outcome_unknown",
            ],
        ],
    ),
    (
        "createEmbedQuote",
        &[
            &BODY,
            &PAY,
            &[
                "amount_not_allowed",
                "amount_out_of_range",
                "unknown_currency",
                "network_not_supported",
                "country_not_supported",
                "asset_not_supported",
                "corridor_not_available",
                "quote_session_mismatch",
                "rate_unavailable",
            ],
        ],
    ),
    (
        "createEmbedPayment",
        &[
            &BODY,
            &PAY,
            &[
                "idempotency_key_required",
                "idempotency_key_invalid",
                "idempotency_in_progress",
                "invalid_address",
                "address_checksum_mismatch",
                "network_not_supported",
                "wallet_mismatch",
                "quote_consumed",
                "quote_superseded",
                "quote_expired",
                "verification_required",
                "verification_rejected",
                "rails_not_available",
            ],
        ],
    ),
    (
        "cancelEmbedPayment",
        &[&[
            "session_required",
            "resource_not_found",
            "payment_not_cancellable",
            "outcome_unknown",
        ]],
    ),
    (
        "retrieveEmbedSession",
        &[&[
            "invalid_request",
            "session_required",
            "resource_not_found",
            "outcome_unknown",
        ]],
    ),
    (
        "listEmbedOptions",
        &[&["invalid_request", "resource_not_found", "outcome_unknown"]],
    ),
    (
        "cancelEmbedSession",
        &[&[
            "session_required",
            "resource_not_found",
            "session_not_open",
            "session_payment_in_progress",
            "outcome_unknown",
        ]],
    ),
];

/// Refusals of the calls of a widget that need an open session.
const PAY: [&str; 5] = [
    "session_required",
    "resource_not_found",
    "session_not_open",
    "session_payment_in_progress",
    "outcome_unknown",
];

/// Refusals that all operations share.
const SHARED: [&str; 13] = [
    "unauthorized",
    "secret_key_in_query",
    "test_key_on_live",
    "live_key_on_sandbox",
    "key_revoked",
    "key_expired",
    "key_kind_not_allowed",
    "organization_suspended",
    "gate_not_enabled",
    "rate_limited",
    "internal_error",
    "overloaded",
    "service_unavailable",
];

/// Refusals of the operations that read a body.
pub(crate) const BODY: [&str; 5] = [
    "invalid_request",
    "invalid_json",
    "unsupported_media_type",
    "body_too_large",
    "request_timeout",
];

/// Refusals of the session actions with an optional key.
const ACT: [&str; 6] = [
    "resource_not_found",
    "idempotency_key_invalid",
    "idempotency_in_progress",
    "session_not_open",
    "session_payment_in_progress",
    "outcome_unknown",
];

/// Refusals of the operations that change a customer.
const CUSTOMER: [&str; 3] = [
    "idempotency_key_invalid",
    "idempotency_in_progress",
    "outcome_unknown",
];

/// Refusals of the operations that check an order against the catalogue.
pub(crate) const ORDER: [&str; 4] = [
    "unknown_currency",
    "network_not_supported",
    "amount_precision",
    "amount_out_of_range",
];

/// The refusals of each operation, in addition to [`SHARED`].
const OPERATIONS: [(&str, &[&[&str]]); 25] = [
    (
        "createSession",
        &[
            &BODY,
            &[
                "idempotency_key_required",
                "idempotency_key_invalid",
                "amount_out_of_range",
                "unknown_currency",
                "quote_preview_missing",
                "quote_preview_expired",
                "quote_preview_used",
                "quote_preview_mismatch",
                "kyc_package_not_trusted",
                "kit_blocks_not_enabled",
                "quota_exhausted",
                "idempotency_in_progress",
                "outcome_unknown",
            ],
        ],
    ),
    (
        "retrieveSession",
        &[&["resource_not_found", "outcome_unknown"]],
    ),
    ("listSessions", &[&["invalid_request", "outcome_unknown"]]),
    ("cancelSession", &[&ACT]),
    ("previewQuotes", &[&BODY, &ORDER, &["outcome_unknown"]]),
    ("listCountries", &[&["invalid_request"]]),
    ("listCurrencies", &[&["invalid_request"]]),
    ("listAssets", &[&["invalid_request"]]),
    ("getAsset", &[&["resource_not_found"]]),
    ("listPaymentMethods", &[&["invalid_request"]]),
    ("listPayoutMethods", &[&["invalid_request"]]),
    ("checkEligibility", &[&["invalid_request"]]),
    ("listTransactions", &[&["invalid_request"]]),
    ("retrieveTransaction", &[&["resource_not_found"]]),
    ("getBranding", &[]),
    (
        "updateBranding",
        &[
            &BODY,
            &[
                "idempotency_key_invalid",
                "idempotency_in_progress",
                "outcome_unknown",
            ],
        ],
    ),
    (
        "createEmbedToken",
        &[
            &BODY,
            &[
                "origin_not_allowed",
                "client_secret_invalid",
                "session_not_open",
                "outcome_unknown",
            ],
        ],
    ),
    (
        "createCustomer",
        &[
            &BODY,
            &CUSTOMER,
            &["idempotency_key_required", "customer_already_exists"],
        ],
    ),
    ("listCustomers", &[&["invalid_request"]]),
    ("getCustomer", &[&["resource_not_found"]]),
    (
        "updateCustomer",
        &[&BODY, &CUSTOMER, &["resource_not_found"]],
    ),
    ("deleteCustomer", &[&CUSTOMER, &["resource_not_found"]]),
    ("listPartnerWebhookDeliveries", &[&["invalid_request"]]),
    (
        "replayWebhookDelivery",
        &[&[
            "resource_not_found",
            "delivery_not_dead_lettered",
            "outcome_unknown",
        ]],
    ),
    (
        "sendTestWebhook",
        &[&["webhook_not_configured", "outcome_unknown"]],
    ),
];

/// The refusals of each sandbox-only operation, in addition to [`SHARED`].
const HELPERS: [(&str, &[&[&str]]); 2] = [
    ("completeTestSession", &[&ACT, &["live_keys_not_allowed"]]),
    (
        "failTestSession",
        &[&ACT, &["live_keys_not_allowed"], &BODY],
    ),
];

/// The complete contract.
///
/// # Errors
/// [`ContractError`] if the contract refers to something that does not exist, which the tests rule
/// out.
pub fn openapi() -> Result<OpenApi, ContractError> {
    let routes = OpenApiRouter::new()
        .merge(routes::create_session())
        .merge(routes::cancel_session())
        .merge(routes::list_sessions())
        .merge(routes::list_transactions())
        .merge(routes::capabilities())
        .merge(routes::previews())
        .merge(routes::secret())
        .merge(routes::rails())
        .merge(routes::browsers());
    let contract = document("Penstock Hosted Ramp Session API", DESCRIPTION, routes).tags(&TAGS);
    let contract = with_events(contract).status_of("createEmbedToken", "session_not_open", 403);
    let operations = [&OPERATIONS[..], &rail_events::OPERATIONS].concat();
    finished(contract, &SHARED, &operations, &TIERS)
}

/// The contract of the sandbox-only operations.
///
/// # Errors
/// [`ContractError`] as in [`openapi`].
pub fn test_helpers() -> Result<OpenApi, ContractError> {
    let title = "Penstock Hosted Ramp Test Helpers";
    let contract = document(title, HELPERS_DESCRIPTION, routes::sandbox())
        .tags(&HELPER_TAGS)
        .secret_keys_only();
    finished(contract, &SHARED, &HELPERS, &TIERS)
}

/// The contract of the widget's own calls.
///
/// # Errors
/// [`ContractError`] as in [`openapi`].
pub fn embed() -> Result<OpenApi, ContractError> {
    let title = "Penstock Hosted Ramp Widget Calls";
    let routes = routes::widget()
        .merge(routes::widget_quotes())
        .merge(routes::widget_payments());
    let header = ApiKeyValue::with_description(
        EMBED_HEADER,
        "The token of a bootstrap. It belongs to one widget; a server must never use it.",
    );
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(header));
    let contract = document(title, EMBED_DESCRIPTION, routes)
        .tags(&EMBED_TAGS)
        .scheme_alone(EMBED_TOKEN, scheme);
    finished(contract, &EMBED_SHARED, &EMBED_OPERATIONS, &["short"])
}

/// The contract as published, in YAML.
///
/// # Errors
/// [`ContractError`] as in [`openapi`].
pub fn openapi_yaml() -> Result<String, ContractError> {
    to_yaml(&openapi()?)
}

/// The contract of the sandbox-only operations, in YAML.
///
/// # Errors
/// [`ContractError`] as in [`openapi`].
pub fn test_helpers_yaml() -> Result<String, ContractError> {
    to_yaml(&test_helpers()?)
}

/// The contract of the widget's own calls, in YAML.
///
/// # Errors
/// [`ContractError`] as in [`openapi`].
pub fn embed_yaml() -> Result<String, ContractError> {
    to_yaml(&embed()?)
}

/// All error codes of the service.
pub fn every_error() -> impl Iterator<Item = ErrorDoc> {
    SHARED_ERRORS.iter().chain(ERROR_DOCS).copied()
}

fn document(title: &str, description: &str, routes: OpenApiRouter<App>) -> Contract {
    Contract::new(described(title, description, routes), every_error())
}

/// The routes with the metadata that every document has.
fn described(title: &str, description: &str, routes: OpenApiRouter<App>) -> OpenApi {
    let mut api = routes.into_openapi();
    api.info = InfoBuilder::new()
        .title(title)
        .version(VERSION)
        .description(Some(description))
        .license(Some(
            LicenseBuilder::new()
                .name("Apache-2.0")
                .identifier(Some("Apache-2.0"))
                .build(),
        ))
        .build();
    api.servers = Some(vec![
        ServerBuilder::new()
            .url("/")
            .description(Some("The service that serves this document"))
            .build(),
    ]);
    api
}

fn finished(
    mut contract: Contract,
    shared: &[&'static str],
    operations: &[(&'static str, &[&[&'static str]])],
    tiers: &[&str],
) -> Result<OpenApi, ContractError> {
    for (operation, codes) in operations {
        let codes: Vec<&str> = shared
            .iter()
            .copied()
            .chain(codes.iter().flat_map(|codes| codes.iter().copied()))
            .collect();
        contract = contract.errors(operation, &codes);
    }
    contract.examples(EXAMPLES).headers(tiers).finish()
}
