//! The published contract, generated from the routes: `/openapi/pools-v1.yaml`.

use http_kit::openapi::{Contract, ContractError, WebhookDoc, to_yaml};
use http_kit::{ErrorDoc, SHARED_ERRORS};
use serde_json::json;
use utoipa::PartialSchema;
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, ServerBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::errors::ERROR_DOCS;
use crate::routes;
use crate::trades::TradeEventBody;

/// The contract's version, which is a date.
const VERSION: &str = "2026-05-25";

const DESCRIPTION: &str = "\
Headless liquidity for approved partners: discover entitled pools, read capabilities, request a quote \
(firm: executable once, for a short time; indicative: a price only), execute a firm quote exactly once, \
poll until it is settled, and reconcile with trades, balance and ledger.

Money and rates are decimal strings, never floats; every `*Bps` field is an integer in basis points; \
instants are RFC 3339 in UTC. Clients ignore fields they do not know. Another partner's object reads \
exactly like one that does not exist: 404.";

/// Recorded requests and responses. A test compares them with the service.
const EXAMPLES: &str = include_str!("examples.json");

/// The tiers of the limits, as named in the headers.
const TIERS: [&str; 2] = ["short", "medium"];

/// The groups of operations.
const TAGS: [(&str, &str); 4] = [
    ("Discovery", "The pools, and what you may do in them."),
    (
        "Quotes",
        "Prices: a firm quote can be executed once before it expires, an indicative quote is a price only.",
    ),
    ("Trades", "Executed quotes: their status and their records."),
    (
        "Funds",
        "Balances, funding instructions, and all movements.",
    ),
];

/// Refusals that all operations share.
const SHARED: [&str; 10] = [
    "unauthorized",
    "secret_key_in_query",
    "key_mode_mismatch",
    "key_revoked",
    "key_expired",
    "organization_suspended",
    "rate_limited",
    "internal_error",
    "overloaded",
    "service_unavailable",
];

/// Refusals of the operations that check entitlement.
const ENTITLED: [&str; 4] = [
    "pools_not_enabled",
    "pool_access_suspended",
    "kyc_not_approved",
    "pool_not_allowed",
];

/// Refusals of the operations that read a body.
const BODY: [&str; 5] = [
    "invalid_request",
    "invalid_json",
    "unsupported_media_type",
    "body_too_large",
    "request_timeout",
];

/// The refusals of each operation, in addition to [`SHARED`].
const OPERATIONS: [(&str, &[&[&str]]); 12] = [
    ("listPools", &[]),
    ("getCapabilities", &[&ENTITLED, &["resource_not_found"]]),
    (
        "createQuote",
        &[
            &[
                "pools_not_enabled",
                "pool_access_suspended",
                "kyc_not_approved",
                "resource_not_found",
            ],
            &BODY,
            &[
                "unknown_currency",
                "currency_mismatch",
                "network_not_supported",
                "invalid_address",
                "address_checksum_mismatch",
                "amount_precision",
                "amount_out_of_range",
                "amount_below_minimum",
                "amount_above_maximum",
                "outcome_unknown",
            ],
        ],
    ),
    (
        "transact",
        &[
            &ENTITLED,
            &BODY,
            &[
                "idempotency_key_required",
                "idempotency_key_invalid",
                "insufficient_balance",
                "resource_not_found",
                "idempotency_in_progress",
                "idempotency_key_reused",
                "quote_in_progress",
                "quote_rejected",
                "quote_expired",
                "reservation_failed",
                "velocity_cap_exceeded",
                "side_not_enabled",
                "engine_unavailable",
                "outcome_unknown",
            ],
        ],
    ),
    ("getQuote", &[&["resource_not_found"]]),
    (
        "rejectQuote",
        &[&[
            "resource_not_found",
            "quote_consumed",
            "quote_rejected",
            "quote_expired",
            "outcome_unknown",
        ]],
    ),
    (
        "getTransactionByQuote",
        &[&["resource_not_found", "outcome_unknown"]],
    ),
    ("listTrades", &[&["invalid_request"]]),
    ("getTrade", &[&["resource_not_found"]]),
    ("getBalance", &[&ENTITLED, &["resource_not_found"]]),
    (
        "getFundingInstructions",
        &[&["invalid_request", "funding_not_enabled"]],
    ),
    ("listLedgerEntries", &[&["invalid_request"]]),
];

/// The headers of every delivery.
const DELIVERY_HEADERS: &[(&str, &str)] = &[
    (
        "Pools-Signature",
        "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256, keyed with your signing secret, over `<t>.<raw body>`.",
    ),
    (
        "webhook-id",
        "The event's id, as in Standard Webhooks. It is the same on every attempt.",
    ),
    (
        "webhook-timestamp",
        "The time of this attempt's signature, in unix seconds.",
    ),
    (
        "webhook-signature",
        "`v1,<base64>`: the signature as in Standard Webhooks.",
    ),
];

/// The document, complete.
///
/// # Errors
/// [`ContractError`] if the document refers to something that does not exist, which the tests rule
/// out.
pub fn openapi() -> Result<OpenApi, ContractError> {
    let mut api = OpenApiRouter::new()
        .merge(routes::any_key())
        .merge(routes::secret())
        .merge(routes::entitled())
        .into_openapi();
    api.info = InfoBuilder::new()
        .title("Penstock Liquidity Pools Partner API")
        .version(VERSION)
        .description(Some(DESCRIPTION))
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
    let mut contract = Contract::new(api, every_error())
        .schema("TradeEvent", TradeEventBody::schema())
        .tags(&TAGS)
        .examples(EXAMPLES)
        .webhooks(&webhooks());
    for (operation, codes) in OPERATIONS {
        let codes: Vec<&str> = SHARED
            .into_iter()
            .chain(codes.iter().flat_map(|codes| codes.iter().copied()))
            .collect();
        contract = contract.errors(operation, &codes);
    }
    contract.headers(&TIERS).finish()
}

/// The document as published, in YAML.
///
/// # Errors
/// [`ContractError`] as in [`openapi`].
pub fn openapi_yaml() -> Result<String, ContractError> {
    to_yaml(&openapi()?)
}

/// All error codes of the service.
pub fn every_error() -> impl Iterator<Item = ErrorDoc> {
    SHARED_ERRORS.iter().chain(ERROR_DOCS).copied()
}

fn webhooks() -> [WebhookDoc; 3] {
    [
        webhook(
            "pool.transaction.settled",
            "A trade settled",
            "The crypto was delivered, or the payout was issued. No event announces a later return: keep polling, or read the ledger.",
            "settled",
        ),
        webhook(
            "pool.transaction.failed",
            "A trade failed",
            "The trade was attempted and could not complete. The reservation was returned to your balance.",
            "failed",
        ),
        webhook(
            "pool.transaction.released",
            "A trade was released",
            "The reservation was returned to your balance before the trade was attempted.",
            "released",
        ),
    ]
}

fn webhook(
    name: &'static str,
    summary: &'static str,
    description: &'static str,
    status: &'static str,
) -> WebhookDoc {
    let settled = status == "settled";
    let example = json!({
        "eventId": "9f0b1f3f6b7f4f0b8f2d3f7c7b1f7d6e4c0b8a6f5e4d3c2b1a09f8e7d6c5b4a3",
        "type": name,
        "transactId": "txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "quoteId": "pq_test_01KSFVT0G0W8D4R7Q2M3N5P6T9",
        "poolId": "EUR-USDT",
        "pair": "EUR/USDT",
        "side": "on_ramp",
        "status": status,
        "fiatCurrency": "EUR",
        "cryptoCurrency": "USDT",
        "cryptoNetwork": "ethereum",
        "fiatAmount": "100.00",
        "cryptoAmount": "107.90325",
        "quotedRate": "1.0790325",
        "spreadBps": 25,
        "feeBps": 30,
        "totalBps": 55,
        "engineFillTxId": settled.then_some("sbx_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        "createdAt": "2026-05-25T12:00:00.000Z",
        "settledAt": settled.then_some("2026-05-25T12:00:01.000Z"),
    });
    WebhookDoc {
        name,
        summary,
        description,
        schema: "TradeEvent",
        example,
        headers: DELIVERY_HEADERS,
    }
}
