//! The published contract, generated from the routes: `/openapi/gate-v1.yaml` and, beside it, what
//! only the sandbox has.

use gate_core::events::TEST_EVENT;
use gate_core::session::SessionEvent;
use http_kit::openapi::{Contract, ContractFault, WebhookDoc, to_yaml};
use http_kit::{ErrorDoc, SHARED_ERRORS};
use serde_json::{Value, json};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, ServerBuilder};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::errors::ERROR_DOCS;
use crate::sessions::SessionRecord;
use crate::{routes, wire};

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

/// Refusals of the operations that judge an order by the catalogue.
const ORDER: [&str; 4] = [
    "unknown_currency",
    "network_not_supported",
    "amount_precision",
    "amount_out_of_range",
];

/// What each operation refuses beside [`SHARED`].
const OPERATIONS: [(&str, &[&[&str]]); 20] = [
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
/// [`ContractFault`] where it mentions what does not exist; the tests would have found it.
pub fn openapi() -> Result<OpenApi, ContractFault> {
    let routes = OpenApiRouter::new()
        .merge(routes::create_session())
        .merge(routes::cancel_session())
        .merge(routes::list_sessions())
        .merge(routes::list_transactions())
        .merge(routes::capabilities())
        .merge(routes::previews())
        .merge(routes::secret())
        .merge(routes::browsers());
    let contract = document("Penstock Hosted Ramp Session API", DESCRIPTION, routes)
        .schema("SessionEvent", SessionEventBody::schema())
        .schema("TestEvent", TestEventBody::schema())
        .webhooks(&webhooks())
        .status_of("createEmbedToken", "session_not_open", 403);
    finished(contract, &OPERATIONS)
}

/// What only the sandbox has.
///
/// # Errors
/// As [`openapi`].
pub fn test_helpers() -> Result<OpenApi, ContractFault> {
    let title = "Penstock Hosted Ramp Test Helpers";
    let contract = document(title, HELPERS_DESCRIPTION, routes::sandbox());
    finished(contract, &HELPERS)
}

/// The contract as published.
///
/// # Errors
/// As [`openapi`].
pub fn openapi_yaml() -> Result<String, ContractFault> {
    to_yaml(&openapi()?)
}

/// What only the sandbox has, as published.
///
/// # Errors
/// As [`openapi`].
pub fn test_helpers_yaml() -> Result<String, ContractFault> {
    to_yaml(&test_helpers()?)
}

/// Every code the service gives.
pub fn every_error() -> impl Iterator<Item = ErrorDoc> {
    SHARED_ERRORS.iter().chain(ERROR_DOCS).copied()
}

fn document(title: &str, description: &str, routes: OpenApiRouter<App>) -> Contract {
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
    Contract::new(api, every_error())
}

fn finished(
    mut contract: Contract,
    operations: &[(&'static str, &[&[&'static str]])],
) -> Result<OpenApi, ContractFault> {
    for (operation, codes) in operations {
        let codes: Vec<&str> = SHARED
            .into_iter()
            .chain(codes.iter().flat_map(|codes| codes.iter().copied()))
            .collect();
        contract = contract.errors(operation, &codes);
    }
    contract.headers(&TIERS).finish()
}

/// The body of an event of a session.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents a body that the domain writes")]
struct SessionEventBody {
    /// The event's id, a UUID. Deliveries repeat: handle an id once.
    id: String,
    /// `event`
    #[schema(example = "event")]
    object: String,
    /// The event's type.
    #[schema(rename = "type", example = "gate_session.completed")]
    kind: String,
    /// When it happened, in unix seconds.
    created_at: i64,
    /// The session as it is read at that moment.
    #[schema(inline)]
    data: SessionEventData,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents a body that the domain writes")]
struct SessionEventData {
    #[serde(flatten)]
    session: SessionRecord,
    /// The transaction that completed it; on `gate_session.completed` alone.
    #[schema(nullable = false, example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    tx_refid: Option<String>,
}

/// The body of the event that a partner sends itself.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents a body that the domain writes")]
struct TestEventBody {
    /// The event's id, a UUID.
    id: String,
    /// `event`
    #[schema(example = "event")]
    object: String,
    /// `webhook.test`
    #[schema(rename = "type", example = "webhook.test")]
    kind: String,
    /// When it was sent, in unix seconds.
    created_at: i64,
    /// Whose endpoint is tested.
    #[schema(inline)]
    data: TestEventData,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents a body that the domain writes")]
struct TestEventData {
    /// `webhook_test`
    #[schema(example = "webhook_test")]
    object: String,
    /// The partner.
    #[schema(example = "acme")]
    partner_id: String,
    /// The mode.
    #[schema(value_type = wire::Mode)]
    mode: String,
}

/// Headers of every delivery.
const DELIVERY_HEADERS: &[(&str, &str)] = &[
    (
        "Gate-Signature",
        "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256, keyed with your signing secret, over `<t>.<raw body>`.",
    ),
    (
        "webhook-id",
        "The event's id, as in Standard Webhooks; the same on every attempt.",
    ),
    (
        "webhook-timestamp",
        "When this attempt was signed, in unix seconds.",
    ),
    (
        "webhook-signature",
        "`v1,<base64>`: the signature of Standard Webhooks.",
    ),
];

fn webhooks() -> [WebhookDoc; 6] {
    use SessionEvent::{Cancelled, Completed, Created, Expired, KycPackageAccepted};
    [
        of_session(
            Created,
            "A session was created",
            "Its client secret is in the answer to the create, and in no event.",
            "open",
        ),
        of_session(
            KycPackageAccepted,
            "A verification was taken over",
            "The `kyc_package` of a create was accepted; it is returned nowhere.",
            "open",
        ),
        of_session(
            Completed,
            "A session was completed",
            "The payment is done: `tx_refid` names the transaction.",
            "completed",
        ),
        of_session(
            Cancelled,
            "A session was cancelled",
            "Your server has cancelled it.",
            "cancelled",
        ),
        of_session(
            Expired,
            "A session expired",
            "Nobody has completed it in time.",
            "expired",
        ),
        WebhookDoc {
            name: TEST_EVENT,
            summary: "You have sent yourself an event",
            description: "Sent by `sendTestWebhook`, to see your endpoint work.",
            schema: "TestEvent",
            example: envelope(
                TEST_EVENT,
                &json!({ "object": "webhook_test", "partner_id": "acme", "mode": "test" }),
            ),
            headers: DELIVERY_HEADERS,
        },
    ]
}

fn of_session(
    event: SessionEvent,
    summary: &'static str,
    description: &'static str,
    status: &'static str,
) -> WebhookDoc {
    let mut session = json!({
        "id": "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "object": "gate_session",
        "partner_id": "acme",
        "mode": "test",
        "amount": "100.00",
        "currency": "EUR",
        "return_url": "https://shop.example/done",
        "cancel_url": null,
        "status": status,
        "expires_at": "2026-05-26T12:00:00.000Z",
        "created_at": "2026-05-25T12:00:00.000Z",
        "flow": "on_ramp",
        "target_token": "USDT",
        "target_network": "TRON",
        "wallet_address": null,
        "user_reference": "user-1",
        "kyc_pre_verified": event == SessionEvent::KycPackageAccepted,
        "metadata": {},
    });
    if let (SessionEvent::Completed, Some(fields)) = (event, session.as_object_mut()) {
        let refid = "test_tx_01KSFVT5B3X8D0E2F4G6H8J0KM";
        fields.insert("tx_refid".to_owned(), refid.into());
    }
    WebhookDoc {
        name: event.as_str(),
        summary,
        description,
        schema: "SessionEvent",
        example: envelope(event.as_str(), &session),
        headers: DELIVERY_HEADERS,
    }
}

fn envelope(kind: &str, data: &Value) -> Value {
    json!({
        "id": "0b8f6f0e-2f5d-4c39-9d6c-6c1a1f0f7a11",
        "object": "event",
        "type": kind,
        "created_at": 1_779_710_400,
        "data": data,
    })
}
