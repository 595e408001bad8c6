//! The published contract, generated from the routes: `/openapi/gate-v1.yaml` and, beside it, what
//! only the sandbox has and what the widget calls itself.

use http_kit::openapi::{Contract, ContractError, to_yaml};
use http_kit::{ErrorDoc, SHARED_ERRORS};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, ServerBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::errors::ERROR_DOCS;
use crate::event_docs::with_events;
use crate::{rail_events, routes};

/// The contract's version: a date.
const VERSION: &str = "2026-05-25";

const DESCRIPTION: &str = "\
Hosted buy, sell and swap sessions: create a session bound to an amount and a currency with a secret key, hand its \
client secret to the browser, and learn the outcome from signed events and reads.

Fields are snake_case; money is a decimal string; instants are RFC 3339 in UTC; what is absent is null. Clients ignore \
fields they do not know. Another partner's object reads exactly like one that does not exist: 404.";

const HELPERS_DESCRIPTION: &str = "\
What only the sandbox has: a session is completed or its payment failed by hand, so that a partner can test every path.";

const EMBED_DESCRIPTION: &str = "\
What the hosted widget itself calls, with the token of its bootstrap in the header `X-Embed-Token`.

This version serves no such call, so the document has no paths: the answer to the bootstrap holds all that a widget \
is given so far. The bootstrap is a call of your own pages, with a publishable key and without a token; it is \
`createEmbedToken` in `gate-v1.yaml`.

The token is worth something for about an hour, to one partner in one mode, and to one session where the bootstrap was sent \
that session's client secret. Its scopes (`session:read`, `session:pay`, `kyc:submit`, `branding:read`) are what a call may ask for.";

/// The header that carries a widget's token, and its name among the security schemes.
const EMBED_HEADER: &str = "X-Embed-Token";
const EMBED_TOKEN: &str = "embedToken";

/// Exchanges with the service, as a test has recorded them and compares them.
const EXAMPLES: &str = include_str!("examples.json");

/// The tiers of the limits, as they stand in the headers.
const TIERS: [&str; 3] = ["short", "medium", "long"];

/// What the operations are about.
const TAGS: [(&str, &str); 9] = [
    (
        "Sessions",
        "A purchase, sale or swap, bound to an amount and a currency, and finished in the hosted flow.",
    ),
    (
        "Embed",
        "What a page of yours asks for, with a publishable key.",
    ),
    ("Branding", "How the widget looks."),
    (
        "Capabilities",
        "What can be offered to whom: planning reads, which promise nothing.",
    ),
    (
        "Quotes",
        "Prices: previews, and signed quotes that hold until they are redeemed or expire.",
    ),
    (
        "Rails",
        "Pay-ins and pay-outs that redeem a signed quote, for partners entitled to them.",
    ),
    ("Transactions", "What came of sessions, for reconciliation."),
    ("Customers", "Your records of the people you serve."),
    ("Webhooks", "What was sent to you, sent again, and a test."),
];

/// The same of the sandbox's own operations.
const HELPER_TAGS: [(&str, &str); 1] = [(
    "Test helpers",
    "Outcomes chosen by hand, in the sandbox alone.",
)];

/// Refusals every operation shares.
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

/// Refusals of the operations that act on a session under a key that may be left out.
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

/// Refusals of the operations that judge an order by the catalogue.
pub(crate) const ORDER: [&str; 4] = [
    "unknown_currency",
    "network_not_supported",
    "amount_precision",
    "amount_out_of_range",
];

/// What each operation refuses beside [`SHARED`].
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

/// The same of the sandbox's own operations.
const HELPERS: [(&str, &[&[&str]]); 2] = [
    ("completeTestSession", &[&ACT, &["live_keys_not_allowed"]]),
    (
        "failTestSession",
        &[&ACT, &["live_keys_not_allowed"], &BODY],
    ),
];

/// The contract, complete.
///
/// # Errors
/// [`ContractError`] where it mentions what does not exist; the tests would have found it.
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
    finished(contract, &operations)
}

/// What only the sandbox has.
///
/// # Errors
/// As [`openapi`].
pub fn test_helpers() -> Result<OpenApi, ContractError> {
    let title = "Penstock Hosted Ramp Test Helpers";
    let contract = document(title, HELPERS_DESCRIPTION, routes::sandbox())
        .tags(&HELPER_TAGS)
        .secret_keys_only();
    finished(contract, &HELPERS)
}

/// What the widget calls itself.
#[must_use]
pub fn embed() -> OpenApi {
    let title = "Penstock Hosted Ramp Widget Calls";
    let mut api = described(title, EMBED_DESCRIPTION, OpenApiRouter::new());
    let header = ApiKeyValue::with_description(
        EMBED_HEADER,
        "The token of a bootstrap. It belongs to one widget, and never to a server.",
    );
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(header));
    let components = ComponentsBuilder::new().security_scheme(EMBED_TOKEN, scheme);
    api.components = Some(components.build());
    api.security = Some(vec![SecurityRequirement::new(EMBED_TOKEN, [""; 0])]);
    api
}

/// The contract as published.
///
/// # Errors
/// As [`openapi`].
pub fn openapi_yaml() -> Result<String, ContractError> {
    to_yaml(&openapi()?)
}

/// What only the sandbox has, as published.
///
/// # Errors
/// As [`openapi`].
pub fn test_helpers_yaml() -> Result<String, ContractError> {
    to_yaml(&test_helpers()?)
}

/// What the widget calls itself, as published.
///
/// # Errors
/// As [`openapi`].
pub fn embed_yaml() -> Result<String, ContractError> {
    to_yaml(&embed())
}

/// Every code the service gives.
pub fn every_error() -> impl Iterator<Item = ErrorDoc> {
    SHARED_ERRORS.iter().chain(ERROR_DOCS).copied()
}

fn document(title: &str, description: &str, routes: OpenApiRouter<App>) -> Contract {
    Contract::new(described(title, description, routes), every_error())
}

/// The routes with what every document says of itself.
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
    operations: &[(&'static str, &[&[&'static str]])],
) -> Result<OpenApi, ContractError> {
    for (operation, codes) in operations {
        let codes: Vec<&str> = SHARED
            .into_iter()
            .chain(codes.iter().flat_map(|codes| codes.iter().copied()))
            .collect();
        contract = contract.errors(operation, &codes);
    }
    contract.examples(EXAMPLES).headers(&TIERS).finish()
}
