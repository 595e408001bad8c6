//! `GET /v1/embed/options`: what a widget can offer.

use acceptance::{ACME_PUBLISHABLE, Call, Gate, SHOP};
use gate_core::amount::SessionAmount;
use serde_json::{Value, json};

use super::widget::{OPTIONS, plain, widget, with};

fn order(more: &Value) -> Value {
    let mut order = plain();
    for (name, value) in more.as_object().unwrap() {
        order[name] = value.clone();
    }
    order
}

/// The options of a new session, for this query.
async fn options(gate: &Gate, more: &Value, query: &str) -> Value {
    let (token, _) = widget(gate, &order(more)).await;
    let call = Call::get(OPTIONS).query(query);
    gate.send(with(&token, call)).await.ok()
}

fn sides_of(options: &Value) -> impl Iterator<Item = &Value> {
    options["sides"].as_array().unwrap().iter()
}

fn sides(options: &Value) -> Vec<&str> {
    let named = sides_of(options).map(|side| side["side"].as_str().unwrap());
    named.collect()
}

fn texts<'v>(list: &'v Value, field: &str) -> Vec<&'v str> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap()).collect()
}

// rule: gate.embed.options, gate.embed.options-checked, gate.embed.options-contract, gate.embed.options-usual-time
#[tokio::test]
async fn open_session_can_be_bought_and_sold() {
    let gate = Gate::new().await;
    gate.world().rates().set("EUR-USDT", "1.0850", 25);
    let found = options(&gate, &json!({}), "country_code=de").await;
    assert_eq!(found["object"], "embed_options");
    assert_eq!(found["country_code"], "DE");
    assert_eq!(sides(&found), ["on_ramp", "off_ramp", "swap"]);
    let [buy, sell] = [0, 1].map(|at| &found["sides"][at]);
    assert_eq!(texts(&buy["assets"], "symbol")[..2], ["USDT", "USDC"]);
    let usdt = &buy["assets"][0];
    assert_eq!(usdt["name"], "Tether USD");
    let contract = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
    let ethereum = json!({ "chain": "ethereum", "contract_address": contract, "evm": true });
    assert_eq!(usdt["networks"][1], ethereum);
    let bitcoin = json!([{ "chain": "bitcoin", "contract_address": null, "evm": false }]);
    assert_eq!(buy["assets"][2]["networks"], bitcoin);
    let limits = json!({ "currency": "EUR", "min_amount": "10.00", "max_amount": "50000.00" });
    assert_eq!(usdt["limits"], limits);
    for side in [buy, sell] {
        let methods = side["methods"].as_array().unwrap();
        assert!(methods.iter().all(|method| method["currency"] == "EUR"));
        assert!(texts(&side["methods"], "id").contains(&"sepa"));
    }
    let usual_time = json!({ "from_seconds": 600, "to_seconds": 86_400 });
    let sepa = |account: Value| {
        json!({
            "id": "sepa", "name": "SEPA transfer", "currency": "EUR", "account": account,
            "usual_time": usual_time,
        })
    };
    assert_eq!(buy["methods"][0], sepa(Value::Null));
    assert_eq!(sell["methods"][0], sepa(json!("iban")));
    let of_sides: Vec<_> = sides_of(&found).map(|side| &side["usual_time"]).collect();
    let swaps = json!({ "from_seconds": 300, "to_seconds": 1_800 });
    assert_eq!(of_sides, [&Value::Null, &Value::Null, &swaps]);
    gate.finish().await;
}

/// A network whose addresses have no known form, and a payout method without an account form.
const UNCHECKED: &str = r#"
[[assets]]
symbol = "LTC"
name = "Litecoin"
decimals = 8
limits = { currency = "EUR", min_amount = "10.00", max_amount = "50000.00" }
networks = [{ chain = "litecoin" }]

[[payout_methods]]
id = "wire"
name = "Wire transfer"
currency = "EUR"
"#;

// rule: gate.embed-quote.checked, gate.embed.options-checked
#[tokio::test]
async fn unchecked_network_and_payout_method_are_neither_offered_nor_quoted() {
    let gate = Gate::with(|setup| setup.catalogue.push_str(UNCHECKED)).await;
    gate.world().rates().set("EUR-LTC", "0.01", 25);
    let (token, _) = widget(&gate, &plain()).await;
    let found = gate.send(with(&token, Call::get(OPTIONS))).await.ok();
    for side in found["sides"].as_array().unwrap() {
        assert!(!texts(&side["assets"], "symbol").contains(&"LTC"));
        assert!(!texts(&side["methods"], "id").contains(&"wire"));
    }
    let quote = async |order: Value| {
        let call = Call::post("/v1/embed/quotes").json(&order);
        gate.send(with(&token, call)).await
    };
    let ramp = |side: &str, asset: &str, network: &str, method: &str| json!({ "side": side, "asset": asset, "network": network, "payment_method": method });
    quote(ramp("on_ramp", "USDT", "tron", "sepa"))
        .await
        .created();
    quote(ramp("off_ramp", "USDT", "tron", "sepa"))
        .await
        .created();
    let swap = |source: [&str; 2], target: [&str; 2]| {
        json!({
            "side": "swap", "source_asset": source[0], "source_network": source[1],
            "asset": target[0], "network": target[1],
        })
    };
    let (usdt, ltc) = (["USDT", "tron"], ["LTC", "litecoin"]);
    for (order, code) in [
        (
            ramp("on_ramp", "LTC", "litecoin", "sepa"),
            "network_not_supported",
        ),
        (ramp("off_ramp", "USDT", "tron", "wire"), "invalid_request"),
        (swap(ltc, usdt), "network_not_supported"),
        (swap(usdt, ltc), "network_not_supported"),
    ] {
        quote(order).await.refused(400, code);
    }
    gate.finish().await;
}

// rule: gate.embed.options-prices
#[tokio::test]
async fn amount_is_paid_in_a_purchase_and_received_in_a_sale() {
    let gate = Gate::new().await;
    gate.world().rates().set("EUR-USDT", "1.0850", 25);
    let target = json!({ "target_token": "usdt", "target_network": "ethereum" });
    let found = options(&gate, &target, "").await;
    let priced = |at: usize| {
        let list = found["sides"][at]["indicative"].as_array().unwrap();
        let sepa = list.iter().find(|it| it["payment_method"] == "sepa");
        sepa.unwrap().clone()
    };
    let bought = priced(0);
    assert_eq!(bought["asset"], "USDT");
    assert_eq!(bought["fiat_amount"], "100.00");
    assert_eq!(bought["exchange_rate"], "1.0822875");
    // The price equals that of a preview.
    let order = json!({
        "currency": "EUR", "asset": "USDT", "network": "ethereum", "amount": "100.00",
        "side": "on_ramp", "payment_method": "sepa",
    });
    let previewed = gate
        .acme()
        .send(Call::post("/v1/quotes/preview").json(&order))
        .await
        .ok();
    let option = &previewed["options"][0];
    for field in ["fiat_amount", "crypto_amount", "exchange_rate", "fees"] {
        assert_eq!(bought[field], option[field], "{field}");
    }
    let sold = priced(1);
    assert_eq!(sold["fiat_amount"], "100.00", "the user receives this");
    assert_eq!(sold["exchange_rate"], "0.91935483");
    // Selling as much leaves at least the amount; a millionth less leaves too little.
    let sale = async |amount: String| {
        let order = json!({
            "currency": "EUR", "asset": "USDT", "network": "ethereum", "amount": amount,
            "side": "off_ramp", "payment_method": "sepa",
        });
        let call = Call::post("/v1/quotes/preview").json(&order);
        let previewed = gate.acme().send(call).await.ok();
        let fiat = previewed["options"][0]["fiat_amount"]
            .as_str()
            .unwrap()
            .to_owned();
        SessionAmount::parse(&fiat).unwrap().units()
    };
    let crypto = SessionAmount::parse(sold["crypto_amount"].as_str().unwrap()).unwrap();
    let micros = crypto.units() / 100;
    let text = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let wanted = SessionAmount::parse("100").unwrap().units();
    assert!(sale(text(micros)).await >= wanted);
    assert!(sale(text(micros - 1)).await < wanted);
    gate.world().rates().lose("EUR-USDT");
    let found = options(&gate, &json!({ "target_token": "USDT" }), "").await;
    for side in found["sides"].as_array().unwrap() {
        assert_eq!(side["indicative"], json!([]), "no rate");
        assert!(!side["assets"].as_array().unwrap().is_empty());
    }
    gate.finish().await;
}

// rule: gate.embed.options-pair
#[tokio::test]
async fn prices_are_those_of_the_pair_that_the_query_names() {
    let gate = Gate::new().await;
    for pair in ["EUR-USDT", "EUR-USDC"] {
        gate.world().rates().set(pair, "1.0850", 25);
    }
    let (token, _) = widget(&gate, &plain()).await;
    let ask = async |query: &str| {
        let call = Call::get(OPTIONS).query(query);
        gate.send(with(&token, call)).await
    };
    let whole = ask("").await.ok();
    for asset in ["USDT", "usdt"] {
        let found = ask(&format!("asset={asset}&network=polygon")).await.ok();
        for (at, side) in found["sides"].as_array().unwrap().iter().enumerate() {
            let unpaired = &whole["sides"][at];
            for field in ["side", "assets", "methods"] {
                assert_eq!(side[field], unpaired[field], "{asset}: {field}");
            }
            let prices = &side["indicative"];
            let methods = texts(&side["methods"], "id");
            assert_eq!(texts(prices, "payment_method"), methods);
            assert!(texts(prices, "asset").iter().all(|it| *it == "USDT"));
        }
        // The fee of the payout is that of the network.
        let first = |options: &Value| options["sides"][0]["indicative"][0].clone();
        assert_eq!(first(&found)["fees"]["network"], "0.05");
        assert_eq!(first(&whole)["fees"]["network"], "1.00");
    }
    for unoffered in [
        "asset=DOGE&network=ethereum",
        "asset=USDC&network=tron",
        "asset=USDT&network=Polygon",
        "asset=&network=",
    ] {
        let found = ask(unoffered).await.ok();
        assert_eq!(found["sides"][0]["assets"], whole["sides"][0]["assets"]);
        for side in found["sides"].as_array().unwrap() {
            assert_eq!(side["indicative"], json!([]), "{unoffered}");
        }
    }
    for (alone, network) in [("asset=USDT", None), ("network=polygon", Some("polygon"))] {
        let found = ask(alone).await.ok();
        let prices = &found["sides"][0]["indicative"];
        assert!(texts(prices, "asset").contains(&"USDT"), "{alone}");
        assert_eq!(
            texts(prices, "asset").contains(&"USDC"),
            network.is_some(),
            "{alone}"
        );
    }
    gate.finish().await;
}

// rule: gate.embed.options, gate.embed.options-target
#[tokio::test]
async fn flow_and_targets_restrict_the_options() {
    let gate = Gate::new().await;
    for flow in ["on_ramp", "off_ramp", "swap"] {
        let found = options(&gate, &json!({ "flow": flow }), "").await;
        assert_eq!(sides(&found), [flow]);
    }
    let target = json!({ "target_token": "usdt", "target_network": "tron" });
    let found = options(&gate, &target, "").await;
    assert_eq!(sides(&found), ["on_ramp", "off_ramp", "swap"]);
    for at in [0, 1] {
        let side = &found["sides"][at];
        assert_eq!(texts(&side["assets"], "symbol"), ["USDT"]);
        let networks = &side["assets"][0]["networks"];
        assert_eq!(texts(networks, "chain"), ["tron"]);
    }
    for unknown in [
        json!({ "target_token": "DOGE" }),
        json!({ "target_token": "USDT", "target_network": "nowhere" }),
        json!({ "currency": "CHF" }),
        json!({ "currency": "JPY" }),
    ] {
        let found = options(&gate, &unknown, "").await;
        assert_eq!(found["sides"], json!([]), "{unknown}");
    }
    gate.finish().await;
}

// rule: gate.embed.options-wallet
#[tokio::test]
async fn wallet_of_the_session_leaves_the_networks_that_it_fits() {
    let gate = Gate::new().await;
    for (wallet, expected) in [
        ("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", &["USDT tron"][..]),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", &[]),
        // The contract of USDT on Ethereum is the address of no wallet there.
        (
            "0xdac17f958d2ee523a2206206994597c13d831ec7",
            &["USDT bsc polygon", "USDC polygon"],
        ),
        ("0x000000000000000000000000000000000000dEaD", &[]),
    ] {
        let order = json!({ "flow": "on_ramp", "wallet_address": wallet });
        let found = options(&gate, &order, "").await;
        assert_eq!(networks_of_assets(&found), expected, "{wallet}");
        // A sale sends nothing to a wallet.
        let order = json!({ "flow": "off_ramp", "wallet_address": wallet });
        let sale = options(&gate, &order, "").await;
        let any_sale = options(&gate, &json!({ "flow": "off_ramp" }), "").await;
        assert_eq!(networks_of_assets(&sale), networks_of_assets(&any_sale));
        assert!(!networks_of_assets(&sale).is_empty());
    }
    gate.finish().await;
}

/// One text for each asset of the first side: its symbol, then its chains.
fn networks_of_assets(found: &Value) -> Vec<String> {
    let assets = found["sides"][0]["assets"].as_array();
    let listed = assets.into_iter().flatten().map(|asset| {
        let chains = texts(&asset["networks"], "chain").join(" ");
        format!("{} {chains}", asset["symbol"].as_str().unwrap())
    });
    listed.collect()
}

// rule: gate.embed.options, gate.embed.options-target
#[tokio::test]
async fn swap_offers_what_can_be_sent_and_received() {
    let gate = Gate::new().await;
    let target = json!({ "flow": "swap", "target_token": "usdt", "target_network": "tron" });
    let found = options(&gate, &target, "country_code=DE").await;
    let [swap] = &found["sides"].as_array().unwrap()[..] else {
        panic!("{found}")
    };
    assert_eq!([&swap["methods"], &swap["indicative"]], [&json!([]); 2]);
    // The session's chain is that of its asset. Every other asset can be sent on any of its chains.
    assert_eq!(
        texts(&swap["assets"], "symbol"),
        ["USDT", "USDC", "BTC", "ETH"]
    );
    let chains = |at: usize| texts(&swap["assets"][at]["networks"], "chain");
    assert_eq!(chains(0), ["tron"]);
    assert_eq!(chains(1), ["ethereum", "polygon", "solana"]);
    for unknown in [
        json!({ "flow": "swap", "target_token": "DOGE" }),
        json!({ "flow": "swap", "target_token": "USDT", "target_network": "nowhere" }),
        json!({ "flow": "swap", "currency": "JPY" }),
    ] {
        let found = options(&gate, &unknown, "").await;
        assert_eq!(found["sides"], json!([]), "{unknown}");
    }
    gate.finish().await;
}

// rule: gate.embed.options-country
#[tokio::test]
async fn country_comes_from_the_query_or_the_edge() {
    let gate = Gate::new().await;
    let (token, _) = widget(&gate, &plain()).await;
    let ask = async |query: &str, edge: &str| {
        let call = Call::get(OPTIONS).query(query).header("cf-ipcountry", edge);
        gate.send(with(&token, call)).await
    };
    for (query, edge, country, offered) in [
        ("", "FR", json!("FR"), true),
        ("country_code=DE", "JP", json!("DE"), true),
        ("country_code=DE", "US", json!("DE"), true),
        ("", "JP", json!("JP"), false),
        ("country_code=US", "DE", json!("US"), false),
        ("country_code=AQ", "DE", json!("AQ"), false),
        ("", "T1", Value::Null, true),
    ] {
        let found = ask(query, edge).await.ok();
        assert_eq!(found["country_code"], country, "{query} {edge}");
        assert_eq!(sides(&found).is_empty(), !offered, "{query} {edge}");
    }
    for bad in ["", "D", "ZZ", "DEU", "T1", "%20DE"] {
        let answer = ask(&format!("country_code={bad}"), "DE").await;
        answer
            .refused(400, "invalid_request")
            .saying("`country_code`");
    }
    gate.finish().await;
}

// rule: gate.embed.options, gate.embed.session-required
#[tokio::test]
async fn open_widget_lists_options_without_prices() {
    let gate = Gate::new().await;
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let call = Call::post("/v1/embed/bootstrap").header("origin", SHOP);
    let embed = gate.send(call.bearer(&key)).await.ok();
    let token = embed["embed_token"].as_str().unwrap();
    let ask = async |query: &str| {
        let call = Call::get(OPTIONS).query(query);
        gate.send(with(token, call)).await.ok()
    };
    let all = ask("").await;
    assert_eq!(sides(&all), ["on_ramp", "off_ramp", "swap"]);
    let currencies = texts(&all["sides"][0]["methods"], "currency");
    assert!(currencies.contains(&"EUR") && currencies.contains(&"GBP"));
    let british = ask("country_code=GB").await;
    let methods = texts(&british["sides"][0]["methods"], "currency");
    assert!(methods.iter().all(|currency| *currency == "GBP"));
    assert_eq!(
        british["sides"][0]["assets"][0]["limits"]["currency"],
        "GBP"
    );
    for options in [all, british] {
        for side in options["sides"].as_array().unwrap() {
            assert_eq!(side["indicative"], json!([]));
        }
    }
    assert_eq!(ask("country_code=JP").await["sides"], json!([]));
    gate.finish().await;
}
