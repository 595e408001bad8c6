//! Rates, legs, spreads and fees, compared with independently computed values.

use acceptance::{ACME, World, purchase, sale};
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// Quotes and reads the quote back: rate, fiat leg, crypto leg, spread, fee.
async fn priced(world: &World, buying: bool, pool: &str, amount: &str) -> Value {
    let body = if buying {
        purchase(pool, amount)
    } else {
        sale(pool, amount)
    };
    let quote = world.acme().ask(pool, &body).await.ok();
    let id = quote["quoteId"]
        .as_str()
        .unwrap_or_else(|| panic!("{quote}"));
    let record = world.acme().quote(id).await.ok();
    assert_eq!(record["rate"], quote["rate"]);
    let mut indicative = body;
    indicative["type"] = json!("indicative");
    assert_eq!(
        world.acme().ask(pool, &indicative).await.ok()["rate"],
        quote["rate"]
    );
    record
}

// rule: pools.price.rate, pools.price.rate-rounding, pools.price.other-leg, pools.quote.amount-side, money.print-fiat, money.print-crypto, sandbox.rates
#[tokio::test]
async fn both_sides_of_every_pool() {
    let world = World::new().await;
    world.rates().set("EUR-BTC", "0.0000105312345", 25);
    world.rates().set("JPY-USDT", "0.0064123", 25);
    world.rates().set("JPY-USDC", "0.0064099", 25);
    for (pool, buying, amount, rate, fiat, crypto) in [
        ("EUR-USDT", true, "100", "1.0790325", "100.00", "107.90325"),
        (
            "EUR-USDT",
            true,
            "123.45",
            "1.0790325",
            "123.45",
            "133.206562",
        ),
        ("EUR-USDT", false, "100", "0.91658986", "91.65", "100"),
        (
            "EUR-USDT",
            false,
            "250.500000",
            "0.91658986",
            "229.60",
            "250.5",
        ),
        (
            "EUR-USDC",
            true,
            "100.0",
            "1.08178875",
            "100.00",
            "108.178875",
        ),
        ("EUR-USDC", false, "100", "0.91977869", "91.97", "100"),
        ("GBP-USDT", true, "19.99", "1.25685", "19.99", "25.124431"),
        (
            "GBP-USDT",
            false,
            "33.333333",
            "0.79166666",
            "26.38",
            "33.333333",
        ),
        (
            "EUR-BTC",
            true,
            "1000",
            "0.000010504906",
            "1000.00",
            "0.0105049",
        ),
        (
            "EUR-BTC",
            false,
            "0.01234567",
            "94718.24029746",
            "1169.36",
            "0.01234567",
        ),
        (
            "JPY-USDT",
            true,
            "15000",
            "0.0063962692",
            "15000",
            "95.944038",
        ),
        ("JPY-USDT", false, "100", "155.56040734", "15556", "100"),
    ] {
        let record = priced(&world, buying, pool, amount).await;
        let found = (
            &record["rate"],
            &record["fiatAmount"],
            &record["cryptoAmount"],
        );
        assert_eq!(
            found,
            (&json!(rate), &json!(fiat), &json!(crypto)),
            "{pool} {amount}"
        );
        assert_eq!(record["side"], if buying { "on_ramp" } else { "off_ramp" });
    }
    let record = priced(&world, true, "JPY-USDC", "15000").await;
    assert_eq!(
        (&record["fiatAmount"], &record["spreadBps"]),
        (&json!("15000"), &json!(25))
    );
    world.finish().await;
}

/// 10.00 EUR and 10.845 USDC are exactly 10.85 USDT.
// rule: pools.quote.below-minimum, pools.quote.above-maximum, pools.quote.limits-inclusive, pools.price.usdt-fiat, pools.price.usdt-crypto
#[tokio::test]
async fn order_outside_the_limits_is_refused_by_its_code() {
    let world = World::new().await;
    let limits = |terms: &mut pools_core::profile::PoolTerms| {
        terms.min_order_usdt = Decimal::new(1_085, 2);
        terms.max_order_usdt = Some(Decimal::new(10_850, 2));
    };
    for pool in ["EUR-USDT", "EUR-USDC"] {
        world.operator().terms(ACME, pool, limits).await;
    }
    let (below, above) = (Some("amount_below_minimum"), Some("amount_above_maximum"));
    for (pool, buying, amount, code) in [
        ("EUR-USDT", true, "10.00", None),
        ("EUR-USDT", true, "9.99", below),
        ("EUR-USDT", true, "100.00", None),
        ("EUR-USDT", true, "100.01", above),
        ("EUR-USDC", false, "10.845", None),
        ("EUR-USDC", false, "10.844999", below),
        ("EUR-USDC", false, "108.45", None),
        ("EUR-USDC", false, "108.450001", above),
    ] {
        let body = if buying {
            purchase(pool, amount)
        } else {
            sale(pool, amount)
        };
        let answer = world.acme().ask(pool, &body).await;
        assert_eq!(answer["code"].as_str(), code, "{pool} {amount}");
    }
    world.finish().await;
}

// rule: sandbox.rates
#[tokio::test]
async fn sandbox_prices_four_pairs() {
    let world = World::new().await;
    let all = |profile: &mut pools_core::profile::PoolsProfile| {
        profile
            .allowed
            .extend(pools_core::profile::PoolId::parse("USD-USDT"));
        profile.terms.clear();
    };
    world.operator().change(ACME, all).await;
    for (pool, rate) in [
        ("EUR-USDT", "1.0822875"),
        ("EUR-USDC", "1.08178875"),
        ("GBP-USDT", "1.25685"),
        ("USD-USDT", "0.99700125"),
    ] {
        let quote = world.acme().ask(pool, &purchase(pool, "100")).await.ok();
        assert_eq!(
            (&quote["rate"], &quote["spreadBps"]),
            (&json!(rate), &json!(25))
        );
    }
    for pool in ["EUR-BTC", "JPY-USDT", "JPY-USDC"] {
        let quote = world.acme().ask(pool, &purchase(pool, "100")).await.ok();
        assert_eq!(quote["unavailableReason"], "rate_unavailable", "{pool}");
    }
    world.finish().await;
}
