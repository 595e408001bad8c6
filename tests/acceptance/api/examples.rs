//! The examples of the documents: recorded exchanges with the services.
//!
//! With `PENSTOCK_RECORD_EXAMPLES=1` the test writes the files; `cargo xtask openapi` then copies them
//! into the documents.

use std::collections::BTreeMap;
use std::path::PathBuf;

use acceptance::{
    ACME, ACME_PUBLISHABLE, Answer, Call, Client, Contract, Gate, GateClient, SHOP, World,
    documents,
};
use partner_core::webhooks::delivery::AttemptOutcome;
use serde_json::{Value, json};
use test_support::recorded::recorded;

/// Maximum number of list members in an example.
const SHOWN: usize = 2;

/// Recorded exchanges by operation id.
#[derive(Default)]
struct Exchanges(BTreeMap<String, Value>);

impl Exchanges {
    fn keep(&mut self, contract: &Contract, call: &Call, answer: Answer) -> Value {
        let operation = contract.operation(call.method(), call.path()).unwrap();
        assert!(answer.status < 300, "{}: {}", answer.asked, answer.body);
        let mut shown = answer.body.clone();
        shorten(&mut shown);
        let mut record = call.recorded();
        if !operation.takes_key {
            record.headers.remove("idempotency-key");
        }
        let mut exchange = serde_json::to_value(record).unwrap();
        exchange["response"] = shown;
        let before = self.0.insert(operation.id.clone(), exchange);
        assert!(before.is_none(), "{} was recorded twice", operation.id);
        answer.body
    }

    /// Compares the records with the file of a crate.
    fn compare(&self, name: &str) {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../crates/{name}/src/examples.json"));
        let text = serde_json::to_string_pretty(&self.0).unwrap() + "\n";
        if std::env::var_os("PENSTOCK_RECORD_EXAMPLES").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        let (kept, found): (Value, Value) = (
            serde_json::from_str(&kept).unwrap(),
            serde_json::from_str(&text).unwrap(),
        );
        for (operation, exchange) in found.as_object().unwrap() {
            assert_eq!(
                &kept[operation], exchange,
                "the example of {operation} is stale: run this test with PENSTOCK_RECORD_EXAMPLES=1, then `cargo xtask openapi`"
            );
        }
        assert_eq!(kept.as_object().unwrap().len(), self.0.len());
    }
}

/// Truncates long lists.
fn shorten(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Array(items) => {
            items.truncate(SHOWN);
            items.iter_mut().for_each(shorten);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("no {field}: {value}"))
}

/// Acme's client, whose calls are recorded.
struct Pools<'r> {
    acme: Client,
    recorded: &'r mut Exchanges,
}

impl Pools<'_> {
    async fn get(&mut self, path: &str) -> Value {
        self.send(Call::get(path)).await
    }

    async fn post(&mut self, path: &str, body: Option<&Value>) -> Value {
        let call = Call::post(path).key("9f0c1a52-6f0e-4b5e-9d55-3a8a3e6f2b11");
        self.send(match body {
            Some(body) => call.json(body),
            None => call,
        })
        .await
    }

    async fn send(&mut self, call: Call) -> Value {
        let answer = self.acme.send(call.clone()).await;
        self.recorded.keep(Contract::published(), &call, answer)
    }
}

// rule: openapi.examples
#[tokio::test]
async fn examples_of_the_pools_are_what_the_service_answers() {
    let world = World::new().await;
    world.operator().credit(ACME, "10000.00", "EUR").await;
    let mut recorded = Exchanges::default();
    let mut pools = Pools {
        acme: world.acme(),
        recorded: &mut recorded,
    };
    pools.get("/v1/pools").await;
    pools.get("/v1/pools/EUR-USDT/capabilities").await;
    pools.get("/v1/pools/funding").await;
    let order = json!({
        "side": "on_ramp",
        "fiatCurrency": "EUR",
        "cryptoCurrency": "USDT",
        "amount": "100.00",
        "cryptoNetwork": "ethereum",
        "type": "firm",
        "destAddress": acceptance::ADDRESS,
        "destNetwork": "ethereum",
    });
    let quote = pools.post("/v1/pools/EUR-USDT/quote", Some(&order)).await;
    assert_eq!(quote["available"], true);
    assert_eq!(quote.get("unavailableReason"), None);
    let quote = text(&quote, "quoteId").to_owned();
    pools.get(&format!("/v1/pools/quotes/{quote}")).await;
    world.after(1_200);
    let asked = json!({ "quoteId": quote });
    let trade = pools
        .post("/v1/pools/EUR-USDT/transact", Some(&asked))
        .await;
    let trade = text(&trade, "transactId").to_owned();
    world.after(2_300);
    pools.get(&format!("/v1/pools/transactions/{quote}")).await;
    pools.get(&format!("/v1/pools/trades/{trade}")).await;
    pools.get("/v1/pools/trades").await;
    pools.get("/v1/pools/EUR-USDT/balance").await;
    pools.get("/v1/pools/ledger").await;
    let other = world.acme().buy("EUR-USDT", "50.00").await;
    pools
        .post(&format!("/v1/pools/quotes/{other}/reject"), None)
        .await;
    recorded.compare("pools-http");
    world.notice(ACME, &trade).await;
    world.finish().await;
}

/// Acme's gate client, whose calls are recorded.
struct Ramp<'r> {
    acme: GateClient,
    recorded: &'r mut Exchanges,
}

impl Ramp<'_> {
    async fn send(&mut self, method: &str, path: &str, body: Option<&Value>, key: &str) -> Value {
        let call = Call::new(method, path).key(key);
        self.keep(match body {
            Some(body) => call.json(body),
            None => call,
        })
        .await
    }

    async fn get(&mut self, path: &str) -> Value {
        self.keep(Call::get(path)).await
    }

    async fn post(&mut self, path: &str, body: Option<&Value>, key: &str) -> Value {
        self.send("POST", path, body, key).await
    }

    async fn keep(&mut self, call: Call) -> Value {
        let answer = self.acme.send(call.clone()).await;
        self.recorded.keep(Contract::gate(), &call, answer)
    }
}

async fn capabilities(ramp: &mut Ramp<'_>) {
    for path in [
        "countries",
        "currencies",
        "assets",
        "assets/USDT",
        "payment-methods?country=DE&currency=EUR",
        "payout-methods?country=DE&currency=EUR",
        "eligibility?country=DE&currency=EUR&asset=USDT&side=on_ramp",
    ] {
        ramp.get(&format!("/v1/capabilities/{path}")).await;
    }
}

async fn customers(ramp: &mut Ramp<'_>) {
    let ann = json!({
        "email": "ann@example.com", "external_id": "user-1", "phone": "+4915112345678",
        "first_name": "Ann", "last_name": "Miller", "country_code": "DE", "metadata": { "plan": "basic" },
    });
    let made = ramp.post("/v1/customers", Some(&ann), "customer-1").await;
    let path = format!("/v1/customers/{}", text(&made, "id"));
    ramp.get(&path).await;
    let change = json!({ "first_name": "Anna", "country_code": "FR" });
    ramp.send("PATCH", &path, Some(&change), "customer-2").await;
    ramp.get("/v1/customers").await;
    ramp.send("DELETE", &path, None, "customer-3").await;
}

/// Redeems one signed quote and session on each rail.
async fn rails(gate: &Gate, ramp: &mut Ramp<'_>) {
    let order = |side: &str| {
        json!({
            "currency": "EUR", "asset": "USDT", "network": "ethereum", "amount": "100.00", "side": side,
            "payment_method": "sepa",
        })
    };
    let quote = ramp
        .post("/v1/quotes", Some(&order("on_ramp")), "quote-1")
        .await;
    let quote = text(&quote, "id").to_owned();
    ramp.get(&format!("/v1/quotes/{quote}")).await;
    let session = gate.acme().open_id("pay-in-session").await;
    let redeemed = json!({ "quote_id": quote, "session_id": session });
    let paid = ramp
        .post("/v1/rails/pay_ins", Some(&redeemed), "pay-in-1")
        .await;
    gate.world().after(1_000);
    gate.settle_rails().await;
    ramp.get(&format!("/v1/rails/pay_ins/{}", text(&paid, "id")))
        .await;

    let call = Call::post("/v1/quotes")
        .json(&order("off_ramp"))
        .key("quote-2");
    let quote = gate.acme().send(call).await.created();
    let session = gate.acme().open_id("pay-out-session").await;
    let redeemed = json!({ "quote_id": quote["id"], "session_id": session });
    let paid = ramp
        .post("/v1/rails/pay_outs", Some(&redeemed), "pay-out-1")
        .await;
    gate.world().after(1_000);
    gate.settle_rails().await;
    ramp.get(&format!("/v1/rails/pay_outs/{}", text(&paid, "id")))
        .await;
}

/// The calls of a widget.
async fn widget(gate: &Gate, ramp: &mut Ramp<'_>) {
    // An amount whose payment stays in progress until it is cancelled.
    let body =
        json!({ "amount": "100.33", "currency": "EUR", "return_url": format!("{SHOP}/done") });
    let made = gate.acme().create(&body, "widget").await.created();
    let start = json!({ "clientSecret": made["client_secret"] });
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let call = Call::post("/v1/embed/bootstrap").header("origin", SHOP);
    let embed = gate.send(call.json(&start).bearer(&key)).await.ok();
    let token = text(&embed, "embed_token");
    let mut send = async |method: &str, path: &str, key: &str, body: Option<Value>| {
        let call = Call::new(method, path).header("x-embed-token", token);
        let call = match &body {
            Some(body) => call.json(body),
            None => call,
        };
        let call = if key.is_empty() { call } else { call.key(key) };
        let answer = gate.send(call.clone()).await;
        ramp.recorded.keep(Contract::gate(), &call, answer)
    };
    send("GET", "/v1/embed/session", "", None).await;
    send("GET", "/v1/embed/options?country_code=DE", "", None).await;
    send("POST", "/v1/embed/verification", "", Some(json!({}))).await;
    let order =
        json!({ "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa" });
    let quote = send("POST", "/v1/embed/quotes", "", Some(order)).await;
    let bought =
        json!({ "quote_id": quote["id"], "wallet_address": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8" });
    let paid = send("POST", "/v1/embed/payments", "payment-1", Some(bought)).await;
    let path = format!("/v1/embed/payments/{}/cancel", text(&paid, "id"));
    send("POST", &path, "", None).await;
    send("POST", "/v1/embed/cancel", "", None).await;
}

/// The calls of the sandbox's own pages.
async fn pretences(gate: &Gate, ramp: &mut Ramp<'_>) {
    for (round, (verified, paid)) in [("approve", "send"), ("reject", "decline")]
        .into_iter()
        .enumerate()
    {
        // A rejected user cannot pay, so the payment is another session's.
        for (amount, helper) in [("100.64", verified), ("100.00", paid)] {
            let body = json!({
                "amount": amount, "currency": "EUR", "return_url": format!("{SHOP}/done"),
            });
            let key = format!("pretence-{round}-{helper}");
            let made = gate.acme().create(&body, &key).await.created();
            let start = json!({ "clientSecret": made["client_secret"] });
            let call = Call::post("/v1/embed/bootstrap").header("origin", SHOP);
            let shown = gate.world().of_mode(ACME_PUBLISHABLE);
            let embed = gate.send(call.json(&start).bearer(&shown)).await.ok();
            let post =
                |path: &str| Call::post(path).header("x-embed-token", text(&embed, "embed_token"));
            let path = if helper == verified {
                gate.send(post("/v1/embed/verification")).await.ok();
                format!("/v1/embed/test_helpers/verification/{helper}")
            } else {
                let order = json!({
                    "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa",
                });
                let quote = gate
                    .send(post("/v1/embed/quotes").json(&order))
                    .await
                    .created();
                let bought = json!({
                    "quote_id": quote["id"], "wallet_address": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
                });
                let call = post("/v1/embed/payments").json(&bought).key(&key);
                let paid = gate.send(call).await.created();
                format!(
                    "/v1/embed/test_helpers/payments/{}/{helper}",
                    text(&paid, "id")
                )
            };
            let call = post(&path);
            let answer = gate.send(call.clone()).await;
            ramp.recorded.keep(Contract::gate(), &call, answer);
        }
    }
}

/// The outcome of a session that was paid in its widget.
async fn outcome(gate: &Gate, ramp: &mut Ramp<'_>) {
    let body = json!({
        "amount": "100.00", "currency": "EUR", "return_url": format!("{SHOP}/done"), "cancel_url": format!("{SHOP}/cart"),
    });
    let made = gate.acme().create(&body, "outcome").await.created();
    let start = json!({ "clientSecret": made["client_secret"] });
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let of_page = |path: &str| Call::post(path).header("origin", SHOP).json(&start);
    let call = of_page("/v1/embed/bootstrap").bearer(&key);
    let embed = gate.send(call).await.ok();
    let token = text(&embed, "embed_token");
    let send = async |path: &str, body: Value| {
        let call = Call::post(path).header("x-embed-token", token).json(&body);
        gate.send(call.key("payment-2")).await.created()
    };
    let order =
        json!({ "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa" });
    let quote = send("/v1/embed/quotes", order).await;
    let bought =
        json!({ "quote_id": quote["id"], "wallet_address": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8" });
    send("/v1/embed/payments", bought).await;
    gate.world().after(1_000);
    gate.settle_rails().await;
    let call = of_page("/v1/embed/outcome").bearer(&key);
    let answer = gate.send(call.clone()).await;
    ramp.recorded.keep(Contract::gate(), &call, answer);
}

async fn sessions(gate: &Gate, ramp: &mut Ramp<'_>) {
    let branding = json!({
        "brand_name": "Acme", "primary_color": "#1A2B3C", "logo_url": "https://cdn.shop.example/logo.svg",
    });
    ramp.send("PATCH", "/v1/branding", Some(&branding), "branding-1")
        .await;
    ramp.get("/v1/branding").await;
    let order =
        json!({ "currency": "EUR", "asset": "USDT", "amount": "100.00", "side": "on_ramp" });
    ramp.keep(Call::post("/v1/quotes/preview").json(&order))
        .await;
    let body = json!({
        "amount": "100.00", "currency": "EUR", "return_url": format!("{SHOP}/done"), "flow": "on_ramp",
        "target_token": "USDT", "target_network": "ethereum", "metadata": { "cart": "c-17" },
    });
    let made = ramp
        .post("/v1/gate_sessions", Some(&body), "session-1")
        .await;
    let id = text(&made, "id").to_owned();
    let start = json!({ "clientSecret": made["client_secret"], "requested_scopes": ["session:read", "branding:read"] });
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let call = Call::post("/v1/embed/bootstrap").header("origin", SHOP);
    let call = call.json(&start).bearer(&key);
    let token = gate.send(call.clone()).await;
    ramp.recorded.keep(Contract::gate(), &call, token);
    ramp.post(
        &format!("/v1/test_helpers/sessions/{id}/complete"),
        None,
        "complete-1",
    )
    .await;
    ramp.get(&format!("/v1/gate_sessions/{id}")).await;
    let other = gate.acme().open_id("other").await;
    let failing = json!({ "code": "insufficient_funds" });
    ramp.post(
        &format!("/v1/test_helpers/sessions/{other}/fail"),
        Some(&failing),
        "fail-1",
    )
    .await;
    ramp.post(
        &format!("/v1/gate_sessions/{other}/cancel"),
        None,
        "cancel-1",
    )
    .await;
    ramp.get("/v1/gate_sessions").await;
    let listed = ramp.get("/v1/transactions").await;
    let refid = text(&listed["data"][0], "refid").to_owned();
    ramp.get(&format!("/v1/transactions/{refid}")).await;
}

async fn webhooks(gate: &Gate, ramp: &mut Ramp<'_>) {
    gate.conclude(AttemptOutcome::Delivered, Some(200), None)
        .await;
    let sent = ramp.post("/v1/webhooks/test", None, "test-1").await;
    gate.conclude(AttemptOutcome::GivenUp, Some(500), Some("answered 500"))
        .await;
    ramp.get("/v1/webhooks/deliveries").await;
    let path = format!("/v1/webhooks/deliveries/{}/replay", text(&sent, "id"));
    ramp.post(&path, None, "replay-1").await;
}

// rule: openapi.examples
#[tokio::test]
async fn examples_of_the_gate_are_what_the_service_answers() {
    let gate = Gate::new().await;
    // Signatures cover the installation's name, which is random per database.
    let named = "UPDATE installation_identity SET identity = '0123456789abcdef0123456789abcdef'";
    gate.world().damage(named).await;
    let mut recorded = Exchanges::default();
    let mut ramp = Ramp {
        acme: gate.acme(),
        recorded: &mut recorded,
    };
    capabilities(&mut ramp).await;
    customers(&mut ramp).await;
    sessions(&gate, &mut ramp).await;
    rails(&gate, &mut ramp).await;
    webhooks(&gate, &mut ramp).await;
    widget(&gate, &mut ramp).await;
    outcome(&gate, &mut ramp).await;
    pretences(&gate, &mut ramp).await;
    recorded.compare("gate-http");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: openapi.examples
#[test]
fn every_success_of_the_documents_has_an_example() {
    for (_, document) in documents() {
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                let record = recorded(text(operation, "operationId"));
                assert!(record.path.starts_with("/v1/"), "{}", record.path);
                let responses = operation["responses"].as_object().into_iter().flatten();
                for (status, response) in responses.filter(|(status, _)| status.starts_with('2')) {
                    let example = &response["content"]["application/json"]["example"];
                    assert!(!example.is_null(), "{path} {status}");
                }
                if let Some(body) = operation.get("requestBody") {
                    let example = &body["content"]["application/json"]["example"];
                    assert!(!example.is_null(), "{path}: the request");
                }
            }
        }
    }
}
