//! Responses to quote requests: firm, indicative, unavailable.

use acceptance::{ACME, ADDRESS, Asked, Reply, World, keys, purchase, sale};
use pools_core::ports::Depth;
use serde_json::{Value, json};
use std::time::Duration;

const FIRM: [&str; 10] = [
    "available",
    "executable",
    "expiresAt",
    "feeBps",
    "maxOrderUsdt",
    "minOrderUsdt",
    "quoteId",
    "rate",
    "spreadBps",
    "type",
];
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

// rule: pools.quote.firm, pools.quote.status, pools.quote.ttl, id.shape
#[tokio::test]
async fn firm_quote_has_ten_fields() {
    let world = World::new().await;
    let body = with(purchase("EUR-USDT", "100.00"), "type", json!("firm"));
    let quote = world.acme().ask("EUR-USDT", &body).await.ok();
    assert_eq!(keys(&quote), FIRM);
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

// rule: pools.quote.firm, pools.capabilities.maximum
#[tokio::test]
async fn maximum_field_is_null_without_a_maximum() {
    let world = World::new().await;
    let firm = world
        .rival()
        .ask("EUR-USDT", &purchase("EUR-USDT", "100.00"))
        .await
        .ok();
    assert_eq!(keys(&firm), FIRM);
    assert_eq!(
        (&firm["minOrderUsdt"], &firm["maxOrderUsdt"]),
        (&json!(1), &Value::Null)
    );
    world.finish().await;
}

// rule: pools.quote.ttl
#[tokio::test]
async fn quote_lives_for_the_configured_time() {
    let world = World::with(|setup| setup.quote_ttl = Duration::from_millis(500)).await;
    let quote = world
        .acme()
        .ask("EUR-USDT", &purchase("EUR-USDT", "100.00"))
        .await
        .ok();
    assert_eq!(quote["expiresAt"], "2026-05-25T12:00:00.500Z");
    let id = quote["quoteId"].as_str().unwrap();
    world.after(499);
    assert_eq!(world.acme().quote(id).await.ok()["status"], "active");
    world.after(1);
    assert_eq!(world.acme().quote(id).await.ok()["status"], "expired");
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

// rule: pools.quote.rate-unavailable
#[tokio::test]
async fn engine_is_not_asked_without_a_rate() {
    let world = World::new().await;
    world.rates().lose("EUR-USDT");
    world.engine().depth(Reply::Silent);
    let unavailable = json!({ "available": false, "unavailableReason": "rate_unavailable" });
    // EUR-USDC has its own rate, but no rate values the order in USDT.
    for pool in ["EUR-USDT", "EUR-USDC", "EUR-BTC"] {
        for body in [purchase(pool, "100"), sale(pool, "100")] {
            assert_eq!(
                world.acme().ask(pool, &body).await.ok(),
                unavailable,
                "{body}"
            );
        }
    }
    assert_eq!(world.engine().asked(), []);
    let found = world
        .acme()
        .ask("GBP-USDT", &purchase("GBP-USDT", "100"))
        .await
        .ok();
    assert_eq!(found["unavailableReason"], "engine_unavailable");
    assert!(matches!(world.engine().asked()[..], [Asked::Depth(_)]));
    world.finish().await;
}

// rule: pools.quote.pool-dry
#[tokio::test]
async fn unavailable_or_shallow_pool_has_insufficient_depth() {
    let world = World::new().await;
    let dry = json!({ "available": false, "unavailableReason": "pool_dry" });
    world.operator().set_available("EUR-USDT", false).await;
    assert_eq!(
        world
            .acme()
            .ask("EUR-USDT", &purchase("EUR-USDT", "100"))
            .await
            .ok(),
        dry
    );
    world.operator().set_available("EUR-USDT", true).await;
    world.engine().depth(Reply::Says(Depth::Insufficient));
    assert_eq!(
        world
            .acme()
            .ask("EUR-USDT", &purchase("EUR-USDT", "100"))
            .await
            .ok(),
        dry
    );
    world.engine().depth(Reply::Sandbox);
    world.acme().buy("EUR-USDT", "100").await;
    world.finish().await;
}

// rule: pools.quote.amount-side, pools.trade.delivers-to-quote, pools.quote.dest-network, pools.quote.dest-network-default
#[tokio::test]
async fn engine_depth_request_names_the_exact_order() {
    let world = World::new().await;
    for (network, named, delivered) in [
        (None, None, "tron"),
        (Some("solana"), None, "solana"),
        (Some("polygon"), None, "polygon"),
        (None, Some("arbitrum"), "arbitrum"),
        (Some("bsc"), Some("optimism"), "optimism"),
    ] {
        let mut body = purchase("EUR-USDT", "100.10");
        body["cryptoNetwork"] = json!(network);
        body["destNetwork"] = json!(named);
        let quote = world.acme().ask("EUR-USDT", &body).await.ok();
        let asked = world.engine().asked();
        let [Asked::Depth(order)] = &asked[..] else {
            panic!("{asked:?}")
        };
        let destination = order.destination.as_ref().unwrap();
        assert_eq!(destination.network.as_str(), delivered);
        assert_eq!(destination.address.as_str(), ADDRESS);
        assert_eq!(order.amount, acceptance::money("100.10", "EUR"));
        assert_eq!(order.network.as_str(), network.unwrap_or("tron"));
        let record = world
            .acme()
            .quote(quote["quoteId"].as_str().unwrap())
            .await
            .ok();
        assert_eq!(record["cryptoNetwork"], network.unwrap_or("tron"));
    }
    world.acme().sell("EUR-USDT", "100.1").await;
    let asked = world.engine().asked();
    let [Asked::Depth(order)] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (order.amount, &order.destination),
        (acceptance::money("100.1", "USDT"), &None)
    );
    world.finish().await;
}

// rule: pools.quote.off-ramp-open
#[tokio::test]
async fn sale_is_quoted_although_selling_is_disabled() {
    let world = World::new().await;
    world
        .operator()
        .terms(ACME, "EUR-USDT", |terms| terms.off_ramp = false)
        .await;
    let quote = world
        .acme()
        .ask("EUR-USDT", &sale("EUR-USDT", "100"))
        .await
        .ok();
    assert_eq!(keys(&quote), FIRM);
    // A destination is validated but has no effect on a sale.
    let body = with(sale("EUR-USDT", "100"), "destAddress", json!(ADDRESS));
    world.acme().ask("EUR-USDT", &body).await.ok();
    world.finish().await;
}

// rule: pools.quote.codes-upper-cased
#[tokio::test]
async fn codes_are_read_in_any_case() {
    let world = World::new().await;
    let mut body = purchase("EUR-USDT", "100");
    body["fiatCurrency"] = json!("eUr");
    body["cryptoCurrency"] = json!("usdt");
    let quote = world.acme().ask("EUR-USDT", &body).await.ok();
    let record = world
        .acme()
        .quote(quote["quoteId"].as_str().unwrap())
        .await
        .ok();
    assert_eq!(
        (&record["poolId"], &record["pair"]),
        (&json!("EUR-USDT"), &json!("EUR/USDT"))
    );
    for (field, value) in [
        ("cryptoNetwork", "Tron"),
        ("cryptoNetwork", "TRON"),
        ("destNetwork", "Arbitrum"),
    ] {
        let body = with(purchase("EUR-USDT", "100"), field, json!(value));
        world
            .acme()
            .ask("EUR-USDT", &body)
            .await
            .refused(400, "network_not_supported")
            .saying(field);
    }
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
