//! Order size and the partner's limits, exact to the last unit.

use acceptance::{ACME, World, purchase, sale};
use rust_decimal::Decimal;
use serde_json::json;

fn decimal(text: &str) -> Decimal {
    Decimal::from_str_exact(text).unwrap()
}

async fn size_refusal(world: &World, buying: bool, pool: &str, amount: &str) -> Option<String> {
    let body = if buying {
        purchase(pool, amount)
    } else {
        sale(pool, amount)
    };
    let mut codes = Vec::new();
    for kind in ["firm", "indicative"] {
        let mut body = body.clone();
        body["type"] = json!(kind);
        let answer = world.acme().ask(pool, &body).await;
        assert!(answer.status == 200 || answer.status == 400);
        codes.push(answer["code"].as_str().map(str::to_owned));
    }
    assert_eq!(
        codes[0], codes[1],
        "firm and indicative quotes are validated alike"
    );
    codes.remove(0)
}

/// Sets limits, then checks for each order whether it is below, above or within them.
async fn limits(pool: &str, min: &str, max: Option<&str>, orders: &[(bool, &str, Option<&str>)]) {
    let world = World::new().await;
    let terms = |terms: &mut pools_core::profile::PoolTerms| {
        terms.min_order_usdt = decimal(min);
        terms.max_order_usdt = max.map(decimal);
    };
    world.operator().terms(ACME, pool, terms).await;
    for (buying, amount, wanted) in orders {
        let wanted = wanted.map(|word| format!("amount_{word}"));
        assert_eq!(
            size_refusal(&world, *buying, pool, amount).await,
            wanted,
            "{amount}"
        );
    }
    world.finish().await;
}

const BELOW: Option<&str> = Some("below_minimum");
const ABOVE: Option<&str> = Some("above_maximum");

// rule: pools.quote.below-minimum, pools.quote.above-maximum, pools.quote.limits-inclusive, pools.price.usdt-fiat
#[tokio::test]
async fn purchase_is_valued_by_its_fiat() {
    // 10.00 EUR are 10.85 USDT, 100,000.00 EUR are 108,500 USDT.
    let orders = [
        (true, "10.00", None),
        (true, "9.99", BELOW),
        (true, "100000.00", None),
        (true, "100000.01", ABOVE),
    ];
    limits("EUR-USDT", "10.85", Some("108500"), &orders).await;
    let orders = [
        (true, "10.00", BELOW),
        (true, "10.01", None),
        (true, "100000.00", ABOVE),
        (true, "99999.99", None),
    ];
    limits("EUR-USDT", "10.85000001", Some("108499.99999999"), &orders).await;
}

// rule: pools.quote.limits-inclusive, pools.price.usdt-crypto
#[tokio::test]
async fn sale_of_usdt_is_valued_by_its_amount() {
    let orders = [
        (false, "10", None),
        (false, "9.999999", BELOW),
        (false, "100000", None),
        (false, "100000.000001", ABOVE),
    ];
    limits("EUR-USDT", "10", Some("100000"), &orders).await;
}

// rule: pools.price.usdt-crypto, pools.price.usdt-rounding
#[tokio::test]
async fn sale_of_another_asset_is_valued_through_two_mids() {
    // One USDC is 1.0850 / 1.0845 USDT; 10.845 USDC are exactly 10.85 USDT.
    let orders = [(false, "9.995391", BELOW), (false, "9.995392", None)];
    limits("EUR-USDC", "10", None, &orders).await;
    let orders = [
        (false, "10.845", None),
        (false, "10.844999", BELOW),
        (false, "108.45", None),
        (false, "108.450001", ABOVE),
    ];
    limits("EUR-USDC", "10.85", Some("108.5"), &orders).await;
}

// rule: pools.price.usdt-fiat
#[tokio::test]
async fn purchase_of_another_asset_is_valued_by_its_fiat() {
    let orders = [
        (true, "10.00", None),
        (true, "9.99", BELOW),
        (true, "20.00", None),
        (true, "20.01", ABOVE),
    ];
    limits("EUR-USDC", "10.85", Some("21.7"), &orders).await;
}

// rule: pools.quote.above-maximum
#[tokio::test]
async fn orders_of_any_size_pass_without_a_maximum() {
    let orders = [
        (true, "9000000000.00", None),
        (false, "9999999999.999999", None),
    ];
    limits("EUR-USDT", "1", None, &orders).await;
}

// rule: pools.quote.order
#[tokio::test]
async fn size_limit_is_checked_after_rate_and_depth() {
    let world = World::new().await;
    let reason = async |amount: &str| {
        let quote = world
            .acme()
            .ask("EUR-USDT", &purchase("EUR-USDT", amount))
            .await
            .ok();
        quote["unavailableReason"].clone()
    };
    // Every order is below the minimum of 10 USDT or above the maximum of 100,000.
    for (amount, wanted) in [
        ("1.11", "pool_dry"),
        ("1.12", "engine_unavailable"),
        ("1.13", "rate_unavailable"),
        ("900000.11", "pool_dry"),
        ("900000.13", "rate_unavailable"),
    ] {
        assert_eq!(reason(amount).await, wanted);
    }
    world.finish().await;
}
