//! Rates, legs, spreads and fees, compared with independently computed values.

use acceptance::{ACME, World, purchase, sale};
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

// rule: pools.price.spread, pools.capabilities.spread-cap
#[tokio::test]
async fn spread_is_the_smallest_of_three() {
    let world = World::new().await;
    for (source, cap, shown) in [
        (25, 50, 25),
        (60, 50, 50),
        (49, 50, 49),
        (60, 12, 12),
        (5, 12, 5),
        (0, 50, 0),
        (60, 0, 0),
        (10_000, 50, 50),
    ] {
        world.rates().set("EUR-USDT", "1.08", source);
        let terms = |terms: &mut pools_core::profile::PoolTerms| {
            terms.spread_cap_bps = cap;
            terms.draw_fee_bps = 0;
        };
        world.operator().terms(ACME, "EUR-USDT", terms).await;
        let record = priced(&world, true, "EUR-USDT", "100").await;
        assert_eq!(
            (&record["spreadBps"], &record["feeBps"]),
            (&json!(shown), &json!(0))
        );
        let rate = decimal_units(record["rate"].as_str().unwrap(), 10);
        assert_eq!(
            rate,
            1_080_000 * (10_000 - i128::from(shown)),
            "source {source}, cap {cap}"
        );
    }
    world.finish().await;
}

// rule: pools.price.fee-uncapped
#[tokio::test]
async fn fee_has_no_cap() {
    let world = World::new().await;
    for (fee, rate, crypto) in [
        (0, "1.0822875", "108.22875"),
        (51, "1.076754", "107.6754"),
        (5000, "0.5397875", "53.97875"),
    ] {
        world
            .operator()
            .terms(ACME, "EUR-USDT", |terms| terms.draw_fee_bps = fee)
            .await;
        let record = priced(&world, true, "EUR-USDT", "100").await;
        let found = (&record["feeBps"], &record["rate"], &record["cryptoAmount"]);
        assert_eq!(found, (&json!(fee), &json!(rate), &json!(crypto)));
    }
    world.finish().await;
}

// rule: pools.price.rate-rounding
#[tokio::test]
async fn rate_has_eight_decimals_or_eight_significant_digits() {
    let world = World::new().await;
    world
        .operator()
        .terms(ACME, "EUR-USDT", |terms| {
            terms.draw_fee_bps = 0;
            terms.spread_cap_bps = 0;
            terms.min_order_usdt = 0.into();
            terms.max_order_usdt = None;
        })
        .await;
    for (mid, buying, rate) in [
        ("1.123456789", true, "1.12345678"),
        ("0.1234567899", true, "0.12345678"),
        ("0.01234567899", true, "0.012345678"),
        ("0.00001234567899", true, "0.000012345678"),
        ("12345.123456789", true, "12345.12345678"),
        ("3", false, "0.33333333"),
        ("30", false, "0.033333333"),
        ("30000", false, "0.000033333333"),
        ("0.00003", false, "33333.33333333"),
        ("1.10", true, "1.1"),
        ("2", true, "2"),
    ] {
        world.rates().set("EUR-USDT", mid, 0);
        let amount = if buying { "50000" } else { "90000" };
        let record = priced(&world, buying, "EUR-USDT", amount).await;
        assert_eq!(record["rate"], rate, "{mid}");
    }
    world.finish().await;
}

/// A decimal as an integer of 10^-scale; panics if the decimal is finer.
fn decimal_units(text: &str, scale: usize) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.len() <= scale, "{text}");
    format!("{whole}{fraction}{}", "0".repeat(scale - fraction.len()))
        .parse()
        .unwrap()
}

// rule: pools.price.other-leg, pools.price.remainder
#[tokio::test]
async fn other_leg_equals_the_clients_own_computation() {
    let world = World::new().await;
    let seeded = acceptance::Seeded::new(20_260_525);
    for round in 0..200 {
        let cents = 1_000 + seeded.next() % 8_000_000;
        let buying = round % 2 == 0;
        let (amount, scale) = if buying {
            (format!("{}.{:02}", cents / 100, cents % 100), 6)
        } else {
            (
                format!("{}.{:06}", cents / 100, seeded.next() % 1_000_000),
                2,
            )
        };
        // Other tests cover the fractions that choose an outcome.
        if buying && matches!(cents % 100, 11..=13) {
            continue;
        }
        let record = priced(&world, buying, "EUR-USDT", &amount).await;
        let rate = decimal_units(record["rate"].as_str().unwrap(), 8);
        let (input, output) = if buying {
            ("fiatAmount", "cryptoAmount")
        } else {
            ("cryptoAmount", "fiatAmount")
        };
        let input = decimal_units(record[input].as_str().unwrap(), 6);
        let output = decimal_units(record[output].as_str().unwrap(), scale);
        assert_eq!(
            input,
            decimal_units(&amount, 6),
            "the amount is the input leg"
        );
        // input (10^-6) × rate (10^-8), rounded down to the output's digits.
        let step = 10_i128.pow(14 - u32::try_from(scale).unwrap());
        assert_eq!(output, input * rate / step, "{amount}");
        // The operator gains less than two units over the exact rate: one per rounding.
        let exact = if buying {
            input * 10_850 * 9_945
        } else {
            input * 100_000_000 * 9_945 / 10_850
        };
        let lost = exact - output * step;
        assert!(lost >= 0 && lost < step + input, "{amount}: {lost}");
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
