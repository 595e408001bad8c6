//! Responses to quote requests: firm, indicative, unavailable.

use acceptance::{ACME, World, keys, purchase, sale};
use serde_json::{Value, json};

const INDICATIVE: [&str; 8] = [
    "available",
    "executable",
    "feeBps",
    "maxOrderUsdt",
    "minOrderUsdt",
    "rate",
    "spreadBps",
    "type",
];

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

// rule: pools.quote.firm, pools.quote.status, pools.quote.ttl, pools.capabilities.maximum, id.shape
#[tokio::test]
async fn firm_quote_has_ten_fields() {
    let world = World::new().await;
    let body = with(purchase("EUR-USDT", "100.00"), "type", json!("firm"));
    let quote = world.acme().ask("EUR-USDT", &body).await.ok();
    let id = quote["quoteId"].as_str().unwrap();
    assert!(
        pools_core::quote::QuoteId::parse(id).is_some() && id.starts_with("pq_test_"),
        "{id}"
    );
    assert_eq!(
        quote,
        json!({
            "available": true, "type": "firm", "executable": true, "quoteId": id, "rate": "1.0790325",
            "spreadBps": 25, "feeBps": 30, "minOrderUsdt": 10, "maxOrderUsdt": 100_000,
            "expiresAt": "2026-05-25T12:00:15.000Z",
        })
    );
    assert_eq!(world.database().count("quotes").await, 1);
    // The rival has no maximum.
    let unlimited = world.rival().ask("EUR-USDT", &body).await.ok();
    assert_eq!(keys(&unlimited), keys(&quote));
    assert_eq!(unlimited["maxOrderUsdt"], Value::Null);
    world.finish().await;
}

// rule: pools.quote.firm-is-default, request.null-is-absent, pools.quote.network-default
#[tokio::test]
async fn absent_and_null_fields_take_their_defaults() {
    let world = World::new().await;
    let mut body = purchase("EUR-USDT", "100.00");
    for field in ["type", "cryptoNetwork", "destNetwork"] {
        body[field] = Value::Null;
    }
    for body in [purchase("EUR-USDT", "100.00"), body] {
        let quote = world.acme().ask("EUR-USDT", &body).await.ok();
        assert_eq!(
            (&quote["type"], &quote["executable"]),
            (&json!("firm"), &json!(true))
        );
        let record = world
            .acme()
            .quote(quote["quoteId"].as_str().unwrap())
            .await
            .ok();
        assert_eq!(record["cryptoNetwork"], "tron");
    }
    world.finish().await;
}

// rule: pools.quote.indicative
#[tokio::test]
async fn indicative_quote_is_a_price_and_leaves_no_trace() {
    let world = World::new().await;
    let before = world.database().digest().await;
    for (body, rate) in [
        (purchase("EUR-USDT", "100.00"), "1.0790325"),
        (sale("EUR-USDT", "100"), "0.91658986"),
    ] {
        let body = with(body, "type", json!("indicative"));
        let quote = world.acme().ask("EUR-USDT", &body).await.ok();
        assert_eq!(keys(&quote), INDICATIVE);
        assert_eq!(
            (
                &quote["available"],
                &quote["type"],
                &quote["executable"],
                &quote["rate"]
            ),
            (
                &json!(true),
                &json!("indicative"),
                &json!(false),
                &json!(rate)
            )
        );
    }
    assert_eq!(world.database().digest().await, before);
    world.finish().await;
}

// rule: pools.quote.unavailable, pools.quote.status, pools.quote.rate-unavailable, pools.quote.engine-unavailable, pools.quote.pool-dry, sandbox.dry, sandbox.engine-away, sandbox.rate-away
#[tokio::test]
async fn unavailable_quote_shows_its_reason_only() {
    let world = World::new().await;
    let before = world.database().digest().await;
    for kind in ["firm", "indicative"] {
        for (amount, reason) in [
            ("100.11", "pool_dry"),
            ("100.12", "engine_unavailable"),
            ("100.13", "rate_unavailable"),
        ] {
            for body in [purchase("EUR-USDT", amount), sale("EUR-USDT", amount)] {
                let body = with(body, "type", json!(kind));
                let quote = world.acme().ask("EUR-USDT", &body).await.ok();
                assert_eq!(
                    quote,
                    json!({ "available": false, "unavailableReason": reason })
                );
            }
        }
    }
    assert_eq!(world.database().digest().await, before);
    world.finish().await;
}

// rule: request.unknown-fields, access.not-by-api
#[tokio::test]
async fn unknown_fields_are_ignored() {
    let world = World::new().await;
    let mut body = purchase("EUR-USDT", "100.00");
    for (field, value) in [
        ("status", json!("consumed")),
        ("quoteId", json!("pq_test_01HF7YAT00408104G208104081")),
        ("rate", json!("9")),
        ("feeBps", json!(0)),
        ("spreadBps", json!(-1)),
        ("expiresAt", json!("2099-01-01T00:00:00Z")),
        ("partnerId", json!("rival")),
        ("mode", json!("live")),
        ("tier", json!("gold")),
        ("kyc", json!({ "status": ["approved"] })),
        ("minOrderUsdt", json!(1e308)),
        ("object", json!("quote")),
    ] {
        body[field] = value;
    }
    let quote = world.acme().ask("EUR-USDT", &body).await.ok();
    assert_eq!(
        (&quote["rate"], &quote["feeBps"], &quote["spreadBps"]),
        (&json!("1.0790325"), &json!(30), &json!(25))
    );
    assert_eq!(quote["expiresAt"], "2026-05-25T12:00:15.000Z");
    assert_eq!(
        world
            .acme()
            .get("/v1/pools/EUR-USDT/capabilities")
            .await
            .ok()["tier"],
        "standard"
    );
    world.finish().await;
}

// rule: idempotency.ignored-elsewhere
#[tokio::test]
async fn quoting_ignores_an_idempotency_key() {
    let world = World::new().await;
    let path = "/v1/pools/EUR-USDT/quote";
    let mut seen = std::collections::BTreeSet::new();
    for key in ["same", "same", "", "not ascii: é", "\"half"] {
        let call = acceptance::Call::post(path)
            .json(&purchase("EUR-USDT", "100"))
            .key(key);
        let quote = world.acme().send(call).await.ok();
        assert!(seen.insert(quote["quoteId"].to_string()));
    }
    assert_eq!(world.database().count("idempotency_keys").await, 0);
    world.finish().await;
}

// rule: pools.quote.pool-hidden
#[tokio::test]
async fn disallowed_pool_is_absent_from_quotes() {
    let world = World::new().await;
    let hidden = world
        .acme()
        .ask("USD-USDT", &purchase("USD-USDT", "100"))
        .await;
    let absent = world
        .acme()
        .ask("CHF-USDT", &purchase("CHF-USDT", "100"))
        .await;
    assert_eq!(
        hidden
            .clone()
            .refused(404, "resource_not_found")
            .anonymous(),
        absent.anonymous()
    );
    world
        .operator()
        .change(ACME, |profile| profile.allowed.clear())
        .await;
    let body = purchase("EUR-USDT", "100");
    assert_eq!(
        world.acme().ask("EUR-USDT", &body).await.anonymous(),
        hidden.anonymous()
    );
    world.finish().await;
}
