//! Every error of a quote request and its code. The order of the checks is tested in the core.

use acceptance::{ACME, ADDRESS, World, purchase, sale};
use serde_json::{Value, json};

/// A purchase with some fields replaced, or removed if the value is null.
fn body(changes: &[(&str, Value)]) -> Value {
    changed(purchase("EUR-USDT", "100.00"), changes)
}

fn changed(mut body: Value, changes: &[(&str, Value)]) -> Value {
    for (field, value) in changes {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(*field);
        } else {
            body[*field] = value.clone();
        }
    }
    body
}

async fn refuse(world: &World, body: &Value, code: &str, words: &str) {
    for kind in ["firm", "indicative"] {
        let mut body = body.clone();
        if body.get("type").is_none() {
            body["type"] = json!(kind);
        }
        world
            .acme()
            .ask("EUR-USDT", &body)
            .await
            .refused(400, code)
            .saying(words);
    }
}

/// Refuses a purchase with this value of a field, and names the field.
async fn refuse_value(world: &World, field: &str, value: Value, code: &str) {
    refuse(world, &body(&[(field, value)]), code, field).await;
}

// rule: pools.quote.side, request.null-is-absent, error.names-the-field, error.default-codes
#[tokio::test]
async fn malformed_quote_requests_are_refused() {
    let world = World::new().await;
    let before = world.database().digest().await;
    for field in ["side", "fiatCurrency", "cryptoCurrency", "amount"] {
        let mut null = purchase("EUR-USDT", "100.00");
        null[field] = Value::Null;
        for absent in [body(&[(field, Value::Null)]), null] {
            refuse(&world, &absent, "invalid_request", field).await;
        }
        for wrong in [json!(100), json!(true), json!([]), json!({}), json!("")] {
            let code = match (field, &wrong) {
                ("fiatCurrency" | "cryptoCurrency", Value::String(_)) => "unknown_currency",
                _ => "invalid_request",
            };
            refuse_value(&world, field, wrong, code).await;
        }
    }
    for (field, value) in [
        ("side", json!("ON_RAMP")),
        ("side", json!("buy")),
        ("side", json!("on_ramp ")),
        ("type", json!("Firm")),
        ("type", json!("")),
        ("type", json!("soft")),
        ("type", json!(1)),
        ("cryptoNetwork", json!(1)),
        ("destAddress", json!(1)),
        ("destNetwork", json!([])),
    ] {
        refuse_value(&world, field, value, "invalid_request").await;
    }
    assert_eq!(
        world.database().digest().await,
        before,
        "a refusal changes no row"
    );
    assert_eq!(world.engine().asked(), [], "no engine call");
    world.finish().await;
}

// rule: money.grammar, money.zero
#[tokio::test]
async fn amounts_follow_their_grammar() {
    let world = World::new().await;
    for bad in ["", "1 ", "-1", "01", ".5", "1.", "1e3", "1,5", "٣", "0.00"] {
        refuse_value(&world, "amount", json!(bad), "invalid_request").await;
        let sale = changed(sale("EUR-USDT", "1"), &[("amount", json!(bad))]);
        refuse(&world, &sale, "invalid_request", "amount").await;
    }
    for good in ["100", "100.0", "100.00", "10.5", "99999.99"] {
        let quote = world
            .acme()
            .ask("EUR-USDT", &body(&[("amount", json!(good))]))
            .await;
        assert_eq!(quote.status == 200, good != "99999.99", "{good}");
    }
    world.finish().await;
}

// rule: money.fiat-digits, money.crypto-digits, money.digits-as-written
#[tokio::test]
async fn amounts_keep_to_their_scale() {
    let world = World::new().await;
    world.rates().set("EUR-BTC", "0.0000105312345", 25);
    world.rates().set("JPY-USDT", "0.0064123", 25);
    let acme = world.acme();
    for (pool, buying, amount, good) in [
        ("EUR-USDT", true, "100.00", true),
        ("EUR-USDT", true, "100.001", false),
        ("EUR-USDT", true, "100.000", false),
        ("EUR-USDT", true, "100.00000000000000000000000000000", false),
        ("EUR-USDT", false, "100.000000", true),
        ("EUR-USDT", false, "100.0000000", false),
        ("EUR-USDC", false, "100.000001", true),
        ("EUR-USDC", false, "100.0000001", false),
        ("EUR-BTC", false, "0.12345678", true),
        ("EUR-BTC", false, "0.123456789", false),
        ("JPY-USDT", true, "15000", true),
        ("JPY-USDT", true, "15000.0", false),
        ("JPY-USDT", false, "100.5", true),
    ] {
        let body = if buying {
            purchase(pool, amount)
        } else {
            sale(pool, amount)
        };
        let answer = acme.ask(pool, &body).await;
        if good {
            answer.ok();
        } else {
            answer.refused(400, "amount_precision").saying("amount");
        }
    }
    world.finish().await;
}

// rule: money.out-of-range
#[tokio::test]
async fn enormous_amounts_are_refused() {
    let world = World::new().await;
    let rival = world.rival();
    let long = "9".repeat(1000);
    let (enormous, small) = ("amount_out_of_range", "amount_below_minimum");
    for (body, code) in [
        (purchase("EUR-USDT", "10000000000.01"), enormous),
        (purchase("EUR-USDT", "10000000001"), enormous),
        (purchase("EUR-USDT", &long), enormous),
        (purchase("EUR-USDT", &format!("{long}.99")), enormous),
        // This leg is within the limit, the other leg is too large.
        (purchase("EUR-USDT", "10000000000"), enormous),
        (sale("EUR-USDT", "10000000000.000001"), enormous),
        // The other leg rounds to zero.
        (sale("EUR-USDT", "0.000001"), enormous),
        (sale("EUR-USDT", "0.010878"), small),
    ] {
        rival
            .ask("EUR-USDT", &body)
            .await
            .refused(400, code)
            .saying("amount");
    }
    // 0.01 EUR is the smallest payout of a sale; it is below the minimum of 1 USDT.
    world
        .operator()
        .terms(acceptance::RIVAL, "EUR-USDT", |terms| {
            terms.min_order_usdt = 0.into()
        })
        .await;
    rival
        .ask("EUR-USDT", &sale("EUR-USDT", "0.010877"))
        .await
        .refused(400, "amount_out_of_range");
    let quote = rival.sell("EUR-USDT", "0.010878").await;
    assert_eq!(rival.quote(&quote).await.ok()["fiatAmount"], "0.01");
    let quote = rival.sell("EUR-USDT", "10000000000").await;
    assert_eq!(
        rival.quote(&quote).await.ok()["cryptoAmount"],
        "10000000000"
    );
    world.finish().await;
}

// rule: pools.quote.unknown-currency, pools.quote.currency-mismatch
#[tokio::test]
async fn currencies() {
    let world = World::new().await;
    for (field, value, code) in [
        ("fiatCurrency", "XYZ", "unknown_currency"),
        ("fiatCurrency", "EU", "unknown_currency"),
        ("fiatCurrency", "EURO", "unknown_currency"),
        ("fiatCurrency", "USDT", "unknown_currency"),
        ("fiatCurrency", "XAU", "unknown_currency"),
        ("fiatCurrency", "XTS", "unknown_currency"),
        ("fiatCurrency", "€€€", "unknown_currency"),
        ("fiatCurrency", "GBP", "currency_mismatch"),
        ("fiatCurrency", "jpy", "currency_mismatch"),
        ("cryptoCurrency", "DOGE", "unknown_currency"),
        ("cryptoCurrency", "EUR", "unknown_currency"),
        ("cryptoCurrency", "USDT ", "unknown_currency"),
        ("cryptoCurrency", "USDC", "currency_mismatch"),
        ("cryptoCurrency", "btc", "currency_mismatch"),
    ] {
        let leg = if field == "fiatCurrency" {
            "EUR"
        } else {
            "USDT"
        };
        let words = format!("`{field}` must be {leg} for pool EUR-USDT");
        refuse(&world, &body(&[(field, json!(value))]), code, &words).await;
    }
    world.finish().await;
}

// rule: pools.quote.network, pools.quote.dest-network
#[tokio::test]
async fn networks() {
    let world = World::new().await;
    for (field, value) in [
        ("cryptoNetwork", "arbitrum"),
        ("cryptoNetwork", "bitcoin"),
        ("cryptoNetwork", ""),
        ("destNetwork", "tron"),
        ("destNetwork", "solana"),
        ("destNetwork", "base"),
        ("destNetwork", ""),
    ] {
        refuse_value(&world, field, json!(value), "network_not_supported").await;
    }
    for good in ["arbitrum", "ethereum", "bsc", "optimism", "polygon"] {
        world
            .acme()
            .ask("EUR-USDT", &body(&[("destNetwork", json!(good))]))
            .await
            .ok();
    }
    let pool = pools_core::profile::Pool {
        id: pools_core::profile::PoolId::parse("EUR-USDT").unwrap(),
        networks: vec![pools_core::profile::Network::Bsc],
        available: true,
        native_addresses: false,
    };
    world.operator().put_pool(&pool).await;
    let words = "`cryptoNetwork` (`tron` where absent) must be one of bsc for pool EUR-USDT";
    for silent_or_named in [body(&[]), body(&[("cryptoNetwork", json!("tron"))])] {
        refuse(&world, &silent_or_named, "network_not_supported", words).await;
    }
    let delivery = "`destNetwork` must be one of arbitrum, ethereum, bsc, optimism, polygon";
    let body = body(&[
        ("cryptoNetwork", json!("bsc")),
        ("destNetwork", json!("tron")),
    ]);
    refuse(&world, &body, "network_not_supported", delivery).await;
    let body = changed(body, &[("destNetwork", Value::Null)]);
    world.acme().ask("EUR-USDT", &body).await.ok();
    world.finish().await;
}

const T_ADDRESS: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
const SOLANA_ADDRESS: &str = "E6Sre16FFhssAPvtauDPPa9VtcpJEaTMDhWdgsvvJsxm";

// rule: pools.quote.native-addresses
#[tokio::test]
async fn native_pool_delivers_to_addresses_of_the_network_only() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let pool = pools_core::profile::Pool {
        id: pools_core::profile::PoolId::parse("EUR-USDT").unwrap(),
        networks: pools_core::profile::Network::ALL.to_vec(),
        available: true,
        native_addresses: true,
    };
    world.operator().put_pool(&pool).await;
    let slip = T_ADDRESS.replace("v8", "v9");
    let flipped = ADDRESS.replace("aAeb", "AAeb");
    let (good, invalid, checksum) = ("", "invalid_address", "address_checksum_mismatch");
    let mut expected = Vec::new();
    for (quoted, named, address, code) in [
        (None, None, T_ADDRESS, good),
        (None, None, ADDRESS, invalid),
        (None, None, SOLANA_ADDRESS, invalid),
        (None, None, slip.as_str(), checksum),
        (Some("tron"), Some("tron"), T_ADDRESS, good),
        (Some("tron"), Some("tron"), ADDRESS, invalid),
        (Some("tron"), Some("ethereum"), ADDRESS, good),
        (Some("tron"), Some("ethereum"), T_ADDRESS, invalid),
        (Some("tron"), Some("arbitrum"), flipped.as_str(), checksum),
        (Some("solana"), None, SOLANA_ADDRESS, good),
        (Some("solana"), None, T_ADDRESS, invalid),
        (Some("solana"), None, ADDRESS, invalid),
        (Some("ethereum"), Some("solana"), SOLANA_ADDRESS, good),
        (Some("ethereum"), Some("solana"), ADDRESS, invalid),
        (Some("ethereum"), None, ADDRESS, good),
        (Some("ethereum"), None, T_ADDRESS, invalid),
        (Some("ethereum"), None, SOLANA_ADDRESS, invalid),
        (Some("bsc"), None, flipped.as_str(), checksum),
    ] {
        let body = body(&[
            ("cryptoNetwork", json!(quoted)),
            ("destNetwork", json!(named)),
            ("destAddress", json!(address)),
        ]);
        if code.is_empty() {
            let quote = world.acme().ask("EUR-USDT", &body).await.ok();
            let id = quote["quoteId"].as_str().unwrap().to_owned();
            let network = named.or(quoted).unwrap_or("tron");
            expected.push(format!("{address} {network}"));
            let key = format!("k{}", expected.len());
            world.acme().transact("EUR-USDT", &id, &key).await.ok();
        } else {
            let way_out = "in `destNetwork` or `cryptoNetwork`";
            let message = if code == invalid {
                way_out
            } else {
                "destAddress"
            };
            refuse(&world, &body, code, message).await;
        }
    }
    expected.sort();
    for table in ["quotes", "trades"] {
        let told = format!("SELECT dest_address || ' ' || dest_network FROM {table}");
        let mut told = world.database().texts(&told).await;
        told.sort();
        assert_eq!(told, expected, "{table}: in their original spelling");
    }
    let mut held: Vec<String> = Vec::new();
    for asked in world.engine().asked() {
        if let acceptance::Asked::Hold(_, order) = asked {
            let to = order.destination.unwrap();
            held.push(format!("{} {}", to.address.as_str(), to.network.as_str()));
        }
    }
    held.sort();
    assert_eq!(held, expected, "the engine receives the same");
    let allowed =
        "`destNetwork` must be one of arbitrum, ethereum, bsc, optimism, polygon, tron, solana";
    let unknown = body(&[("destNetwork", json!("avalanche"))]);
    refuse(&world, &unknown, "network_not_supported", allowed).await;
    world.finish().await;
}

// rule: pools.quote.address-nobodys, pools.quote.address-contract
#[tokio::test]
async fn address_at_which_coins_are_lost_is_refused_with_a_sentence_of_its_own() {
    let world = World::new().await;
    let usdt = "0xc2132D05D31c914a87C6611C10748AEb04B58e8F";
    let nobodys = "`destAddress`: no one has the key of this address; coins sent to it are lost.";
    let contract = "`destAddress`: this is the address of USDT itself on polygon, not of a wallet; coins sent to it are lost.";
    for (address, words) in [
        ("0x0000000000000000000000000000000000000000", nobodys),
        ("0x00000000000000000000000000000000000000ff", nobodys),
        ("0x000000000000000000000000000000000000DeAD", nobodys),
        (usdt, contract),
        ("0xc2132d05d31c914a87c6611c10748aeb04b58e8f", contract),
    ] {
        let body = body(&[
            ("destNetwork", json!("polygon")),
            ("destAddress", json!(address)),
        ]);
        refuse(&world, &body, "invalid_address", words).await;
    }
    // On another network the address may be a wallet's.
    let body = body(&[
        ("destNetwork", json!("ethereum")),
        ("destAddress", json!(usdt)),
    ]);
    world.acme().ask("EUR-USDT", &body).await.ok();
    world.finish().await;
}

// rule: pools.quote.address-required, pools.quote.address-form, pools.quote.address-nobodys, pools.quote.address-checksum
#[tokio::test]
async fn addresses() {
    let world = World::new().await;
    let lower = ADDRESS.to_lowercase();
    let upper = format!("0x{}", ADDRESS[2..].to_uppercase());
    let zero = format!("0x{}", "0".repeat(40));
    let mut one_wrong = ADDRESS.to_owned();
    one_wrong.replace_range(3..4, "A");
    let (invalid, checksum) = ("invalid_address", "address_checksum_mismatch");
    for (bad, code) in [
        (Value::Null, invalid),
        (json!(""), invalid),
        (json!("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe"), invalid),
        (json!("T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"), invalid),
        (json!("vitalik.eth"), invalid),
        (json!(zero), invalid),
        (json!(one_wrong), checksum),
    ] {
        refuse_value(&world, "destAddress", bad, code).await;
    }
    // Both spellings without a checksum are valid too.
    for good in [ADDRESS, &lower, &upper] {
        world
            .acme()
            .ask("EUR-USDT", &body(&[("destAddress", json!(good))]))
            .await
            .ok();
    }
    world.finish().await;
}

// rule: error.all-missing
#[tokio::test]
async fn quote_request_names_every_missing_field() {
    let world = World::new().await;
    let acme = world.acme();
    for (body, code, expected) in [
        (
            json!({}),
            "invalid_request",
            "`side`, `fiatCurrency`, `cryptoCurrency` and `amount` are required.",
        ),
        (
            json!({ "side": "on_ramp", "fiatCurrency": null, "cryptoCurrency": "USDT" }),
            "invalid_request",
            "`fiatCurrency`, `amount` and `destAddress` are required.",
        ),
        (
            json!({ "side": "off_ramp", "fiatCurrency": "EUR", "cryptoCurrency": "USDT" }),
            "invalid_request",
            "`amount` is required.",
        ),
        (
            json!({ "side": "on_ramp", "fiatcurrency": "EUR", "crypto_currency": "USDT", "amounts": "100", "other": 1 }),
            "invalid_request",
            "`fiatCurrency`, `cryptoCurrency`, `amount` and `destAddress` are required. \
             `fiatcurrency` is no field of this request: did you mean `fiatCurrency`? \
             `crypto_currency` is no field of this request: did you mean `cryptoCurrency`? \
             `amounts` is no field of this request: did you mean `amount`?",
        ),
        (
            body(&[("destAddress", Value::Null)]),
            "invalid_address",
            "`destAddress` is required.",
        ),
        (
            body(&[
                ("destAddress", Value::Null),
                ("destaddress", json!(ADDRESS)),
            ]),
            "invalid_address",
            "`destAddress` is required. `destaddress` is no field of this request: did you mean `destAddress`?",
        ),
    ] {
        let answer = acme.ask("EUR-USDT", &body).await.refused(400, code);
        assert_eq!(answer["message"], expected, "{body}");
    }
    world.finish().await;
}
