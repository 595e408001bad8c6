//! The published contract, generated from the routes: `/openapi/gate-v1.yaml` and, beside it, what
//! only the sandbox has.

use http_kit::openapi::{Contract, ContractFault, to_yaml};
use http_kit::{ErrorDoc, SHARED_ERRORS};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, ServerBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::errors::ERROR_DOCS;
use crate::routes;

/// The contract's version: a date.
const VERSION: &str = "2026-05-25";

const DESCRIPTION: &str = "\
Hosted buy, sell and swap sessions: create a session bound to an amount and a currency with a secret key, hand its \
client secret to the browser, and learn the outcome from signed events and reads.

Fields are snake_case; money is a decimal string; instants are RFC 3339 in UTC; what is absent is null. Clients ignore \
fields they do not know. Another partner's object reads exactly like one that does not exist: 404.";

const HELPERS_DESCRIPTION: &str = "\
What only the sandbox has: a session is completed or its payment failed by hand, so that a partner can test every path.";

/// The tiers of the limits, as they stand in the headers.
const TIERS: [&str; 3] = ["short", "medium", "long"];

/// Refusals every operation shares.
const SHARED: [&str; 12] = [
    "unauthorized",
    "secret_key_in_query",
    "test_key_on_live",
    "live_key_on_sandbox",
    "key_revoked",
    "key_kind_not_allowed",
    "organization_suspended",
    "gate_not_enabled",
    "rate_limited",
    "internal_error",
    "overloaded",
    "service_unavailable",
];

/// Refusals of the operations that read a body.
const BODY: [&str; 5] = [
    "invalid_request",
    "invalid_json",
    "unsupported_media_type",
    "body_too_large",
    "request_timeout",
];

/// Refusals of the operations that act on a session under a key that may be left out.
const ACT: [&str; 5] = [
    "resource_not_found",
    "idempotency_key_invalid",
    "idempotency_in_progress",
    "session_not_open",
    "outcome_unknown",
];

/// What each operation refuses beside [`SHARED`].
const OPERATIONS: [(&str, &[&[&str]]); 8] = [
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
/// [`ContractFault`] where it mentions what does not exist; the tests would have found it.
pub fn openapi() -> Result<OpenApi, ContractFault> {
    let routes = OpenApiRouter::new()
        .merge(routes::create_session())
        .merge(routes::cancel_session())
        .merge(routes::list_sessions())
        .merge(routes::list_transactions())
        .merge(routes::secret());
    document(
        "Penstock Hosted Ramp Session API",
        DESCRIPTION,
        routes,
        &OPERATIONS,
    )
}

/// What only the sandbox has.
///
/// # Errors
/// As [`openapi`].
pub fn test_helpers() -> Result<OpenApi, ContractFault> {
    document(
        "Penstock Hosted Ramp Test Helpers",
        HELPERS_DESCRIPTION,
        routes::sandbox(),
        &HELPERS,
    )
}

/// The contract as published.
///
/// # Errors
/// As [`openapi`].
pub fn openapi_yaml() -> Result<String, ContractFault> {
    to_yaml(&openapi()?)
}

/// Every code the service gives.
pub fn every_error() -> impl Iterator<Item = ErrorDoc> {
    SHARED_ERRORS.iter().chain(ERROR_DOCS).copied()
}

fn document(
    title: &str,
    description: &str,
    routes: OpenApiRouter<App>,
    operations: &[(&str, &[&[&'static str]])],
) -> Result<OpenApi, ContractFault> {
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
    let mut contract = Contract::new(api, every_error());
    for (operation, codes) in operations {
        let codes: Vec<&str> = SHARED
            .into_iter()
            .chain(codes.iter().flat_map(|codes| codes.iter().copied()))
            .collect();
        contract = contract.errors(operation, &codes);
    }
    contract.headers(&TIERS).finish()
}
