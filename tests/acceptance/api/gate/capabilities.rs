//! Capabilities: what the built-in catalogue offers each caller.

use acceptance::{ACME_SECRET, Answer, Call, Gate, GateClient};
use serde_json::{Value, json};

const COUNTRIES: &str = "/v1/capabilities/countries";
const CURRENCIES: &str = "/v1/capabilities/currencies";
const ASSETS: &str = "/v1/capabilities/assets";
const PAYMENT: &str = "/v1/capabilities/payment-methods";
const PAYOUT: &str = "/v1/capabilities/payout-methods";
const ELIGIBILITY: &str = "/v1/capabilities/eligibility";

/// The items of a list, in order; checks its envelope.
fn names(answer: Answer, url: &str, field: &str) -> String {
    let list = answer.ok();
    let envelope = (&list["object"], &list["has_more"], &list["url"]);
    assert_eq!(envelope, (&json!("list"), &json!(false), &json!(url)));
    let items = list["data"].as_array().unwrap().iter();
    let names: Vec<&str> = items.map(|item| item[field].as_str().unwrap()).collect();
    names.join(" ")
}

/// The same for a request whose country the edge reports.
async fn from(acme: &GateClient, edge: &str, path: &str, query: &str, field: &str) -> String {
    let mut call = Call::get(path);
    if !query.is_empty() {
        call = call.query(query);
    }
    if !edge.is_empty() {
        call = call.header("cf-ipcountry", edge);
    }
    names(acme.send(call).await, path, field)
}

fn item(list: Value, field: &str, value: &str) -> Value {
    let items = list["data"].as_array().unwrap();
    let found = items.iter().find(|item| item[field] == value);
    found.unwrap_or_else(|| panic!("{value}")).clone()
}

// rule: gate.capabilities.items, gate.capabilities.envelope
#[tokio::test]
async fn items_have_their_fields() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let de = item(acme.get(COUNTRIES).await.ok(), "country_code", "DE");
    let expected = json!({
        "object": "country", "country_code": "DE", "name": "Germany", "default_currency": "EUR", "supported": true,
    });
    assert_eq!(de, expected);
    let eur = item(acme.get(CURRENCIES).await.ok(), "code", "EUR");
    let expected = json!({ "object": "currency", "code": "EUR", "symbol": "€", "name": "Euro", "minor_units": 2 });
    assert_eq!(eur, expected);
    let sepa = item(acme.get(PAYMENT).await.ok(), "id", "sepa");
    let expected = json!({
        "object": "payment_method", "id": "sepa", "name": "SEPA transfer", "currency": "EUR", "side": "on_ramp",
    });
    assert_eq!(sepa, expected);
    let sepa = item(acme.get(PAYOUT).await.ok(), "id", "sepa");
    assert_eq!(
        (&sepa["object"], &sepa["side"]),
        (&json!("payout_method"), &json!("off_ramp"))
    );
    let btc = json!({
        "object": "asset", "symbol": "BTC", "name": "Bitcoin", "active": true, "decimals": 8,
        "networks": [{ "chain": "bitcoin", "contract_address": null, "evm": false }],
        "limits": { "currency": "EUR", "min_amount": "25.00", "max_amount": "50000.00" },
    });
    assert_eq!(item(acme.get(ASSETS).await.ok(), "symbol", "BTC"), btc);
    gate.finish().await;
}

// rule: gate.capabilities.asset
#[tokio::test]
async fn asset_is_found_by_its_symbol() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for symbol in ["USDT", "usdt"] {
        let asset = acme.get(&format!("{ASSETS}/{symbol}")).await.ok();
        assert_eq!(
            (&asset["symbol"], &asset["decimals"]),
            (&json!("USDT"), &json!(6))
        );
        let tron = &asset["networks"][0];
        assert_eq!(
            tron["contract_address"],
            "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
        );
        assert_eq!(asset["networks"][1]["evm"], true);
    }
    for unknown in ["DOGE", "EUR", "%00", "x"] {
        let answer = acme.get(&format!("{ASSETS}/{unknown}")).await;
        answer.refused(404, "resource_not_found");
    }
    gate.finish().await;
}

// rule: gate.capabilities.filters, gate.capabilities.unknown-region, gate.capabilities.unsupported-country
#[tokio::test]
async fn lists_are_narrowed_by_each_filter() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (path, query, field, expected) in [
        (COUNTRIES, "", "country_code", "DE FR NL ES IT GB US JP"),
        (COUNTRIES, "supported=false", "country_code", "JP"),
        (COUNTRIES, "country_code=gb", "country_code", "GB"),
        (CURRENCIES, "country_code=NL", "code", "EUR"),
        (CURRENCIES, "country_code=nowhere", "code", ""),
        (ASSETS, "", "symbol", "USDT USDC BTC ETH"),
        (ASSETS, "currency=JPY", "symbol", ""),
        (PAYMENT, "", "id", "sepa card faster_payments card ach card"),
        (PAYMENT, "country_code=DE", "id", "sepa card"),
        (PAYOUT, "country_code=US", "id", "ach"),
    ] {
        assert_eq!(
            from(&acme, "", path, query, field).await,
            expected,
            "{path}?{query}"
        );
    }
    for (path, query) in [
        (COUNTRIES, "supported=yes"),
        (COUNTRIES, "country_code=DE&country_code=FR"),
        (ASSETS, "side=swap"),
        (PAYOUT, "currency=EUR&currency=EUR"),
        (ELIGIBILITY, "side=buy"),
    ] {
        let answer = acme.send(Call::get(path).query(query)).await;
        answer.refused(400, "invalid_request");
    }
    gate.finish().await;
}

// rule: gate.capabilities.geography
#[tokio::test]
async fn edge_country_is_used_only_without_a_country_in_the_request() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (edge, path, query, field, expected) in [
        ("gb", CURRENCIES, "", "code", "GBP"),
        ("GB", CURRENCIES, "country_code=DE", "code", "EUR"),
        ("JP", CURRENCIES, "", "code", ""),
        ("US", PAYMENT, "", "id", "ach card"),
        ("XX", CURRENCIES, "", "code", "EUR GBP USD JPY"),
    ] {
        let found = from(&acme, edge, path, query, field).await;
        assert_eq!(found, expected, "{edge} {path}?{query}");
    }
    let two = Call::get(CURRENCIES)
        .header("cf-ipcountry", "DE")
        .header("cf-ipcountry", "GB");
    assert_eq!(
        names(acme.send(two).await, CURRENCIES, "code"),
        "EUR GBP USD JPY"
    );
    gate.finish().await;
}

// rule: gate.eligibility.shape, gate.eligibility.reasons, gate.eligibility.order
#[tokio::test]
async fn eligibility_shows_its_reason() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (edge, query, reason, judged) in [
        (
            "",
            "country_code=de&currency=eur&asset=usdt",
            json!(null),
            ["DE", "EUR", "USDT", "query"],
        ),
        (
            "GB",
            "asset=BTC&side=off_ramp",
            json!(null),
            ["GB", "GBP", "BTC", "edge"],
        ),
        (
            "",
            "currency=EUR&asset=USDT",
            json!("country_unresolved"),
            ["", "EUR", "USDT", "none"],
        ),
        (
            "",
            "country_code=DE&currency=GBP&asset=USDT",
            json!("corridor_not_available"),
            ["DE", "GBP", "USDT", "query"],
        ),
    ] {
        let mut call = Call::get(ELIGIBILITY).query(query);
        if !edge.is_empty() {
            call = call.header("cf-ipcountry", edge);
        }
        let verdict = acme.send(call).await.ok();
        let [country, currency, asset, source] = judged.map(|word| {
            if word.is_empty() {
                json!(null)
            } else {
                json!(word)
            }
        });
        let expected = json!({
            "object": "eligibility", "eligible": reason.is_null(), "unavailable_reason": reason,
            "country_code": country, "currency": currency, "asset": asset, "geo_source": source,
        });
        assert_eq!(verdict, expected, "{edge} {query}");
    }
    gate.finish().await;
}

// rule: gate.capabilities.purity, gate.keys.codes
#[tokio::test]
async fn capabilities_take_a_secret_key_and_write_nothing() {
    let gate = Gate::new().await;
    let before = gate.world().database().digest().await;
    for path in [COUNTRIES, CURRENCIES, ASSETS, PAYMENT, PAYOUT, ELIGIBILITY] {
        gate.acme().get(path).await.ok();
        gate.send(Call::get(path))
            .await
            .refused(401, "unauthorized");
        let publishable = ACME_SECRET.replace("sk_", "pk_");
        gate.send(Call::get(path).bearer(&publishable))
            .await
            .refused(401, "unauthorized");
        gate.send(Call::post(path).bearer(ACME_SECRET))
            .await
            .refused(405, "method_not_allowed");
    }
    assert_eq!(gate.world().database().digest().await, before);
    gate.finish().await;
}

// rule: gate.catalogue.limits
#[tokio::test]
async fn assets_show_limits_in_their_currency_or_of_their_country() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (query, currency, most) in [
        ("", "EUR", "50000.00"),
        ("?currency=EUR", "EUR", "50000.00"),
        ("?currency=GBP", "GBP", "45000.00"),
        ("?currency=gbp&side=on_ramp", "GBP", "45000.00"),
        ("?country_code=GB", "GBP", "45000.00"),
        ("?country_code=US", "USD", "55000.00"),
        ("?country_code=DE", "EUR", "50000.00"),
    ] {
        let path = format!("/v1/capabilities/assets{query}");
        let assets = acme.get(&path).await.ok()["data"].clone();
        let assets = assets.as_array().unwrap();
        assert!(!assets.is_empty(), "{query}");
        for asset in assets {
            let limits = &asset["limits"];
            assert_eq!(limits["currency"], currency, "{query}");
            assert_eq!(limits["max_amount"], most, "{query}");
        }
    }
    let edge = Call::get("/v1/capabilities/assets").header("cf-ipcountry", "GB");
    let assets = acme.send(edge).await.ok();
    assert_eq!(assets["data"][0]["limits"]["currency"], "GBP");
    let one = acme.get("/v1/capabilities/assets/BTC").await.ok();
    assert_eq!(one["limits"]["currency"], "EUR");
    gate.finish().await;
}
