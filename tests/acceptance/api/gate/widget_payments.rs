//! The widget's quotes and payments: the session's amount is quoted, paid once, and cancelled while the rail allows it.

use std::time::Duration;

use acceptance::{ACME, Answer, Call, Gate, SHOP};
use serde_json::{Value, json};

use super::races::one_winner;
use super::rails::{self, id, in_turn, transaction_of};
use super::widget::{SESSION, widget, with};

const QUOTES: &str = "/v1/embed/quotes";
const PAYMENTS: &str = "/v1/embed/payments";
const VERIFICATION: &str = "/v1/embed/verification";
pub(super) const WALLET: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

/// A widget of a session of acme.
#[derive(Clone)]
pub(super) struct Widget {
    gate: Gate,
    token: String,
    pub(super) session: String,
    pub(super) client_secret: String,
}

impl Widget {
    pub(super) async fn open(gate: &Gate, changes: Value) -> Self {
        let body =
            json!({ "amount": "100.00", "currency": "EUR", "return_url": format!("{SHOP}/done") });
        let body = super::rails::with(body, &changes);
        let (token, made) = widget(gate, &body).await;
        Self {
            gate: gate.clone(),
            token,
            session: id(&made),
            client_secret: made["client_secret"].as_str().unwrap().to_owned(),
        }
    }

    pub(super) async fn of_amount(gate: &Gate, amount: &str) -> Self {
        Self::open(gate, json!({ "amount": amount })).await
    }

    /// The same widget at another process of the service.
    pub(super) fn at(&self, gate: &Gate) -> Self {
        Self {
            gate: gate.clone(),
            ..self.clone()
        }
    }

    pub(super) async fn send(&self, call: Call) -> Answer {
        self.gate.send(with(&self.token, call)).await
    }

    pub(super) async fn session(&self) -> Value {
        self.send(Call::get(SESSION)).await.ok()
    }

    pub(super) async fn payment(&self) -> Value {
        self.session().await["payment"].clone()
    }

    pub(super) async fn ask_quote(&self, changes: Value) -> Answer {
        let order = json!({ "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa" });
        let body = super::rails::with(order, &changes);
        self.send(Call::post(QUOTES).json(&body)).await
    }

    pub(super) async fn quote(&self) -> Value {
        self.ask_quote(json!({})).await.created()
    }

    pub(super) async fn pay(&self, key: &str, body: Value) -> Answer {
        self.send(Call::post(PAYMENTS).json(&body).key(key)).await
    }

    /// Buys with a new quote.
    pub(super) async fn buy(&self, key: &str) -> Value {
        let quote = self.quote().await;
        self.pay(key, purchase(&quote)).await.created()
    }

    pub(super) async fn cancel(&self, payment: &str) -> Answer {
        self.send(Call::post(&format!("{PAYMENTS}/{payment}/cancel")))
            .await
    }

    pub(super) async fn events(&self) -> Vec<(String, Value)> {
        self.gate.events(ACME, &self.session).await
    }
}

pub(super) fn purchase(quote: &Value) -> Value {
    json!({ "quote_id": quote["id"], "wallet_address": WALLET })
}

pub(super) fn kinds(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

// rule: gate.payment.once, gate.payment.events, gate.rail.completes
#[tokio::test]
async fn purchase_completes_its_session() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    assert_eq!(
        [&quote["object"], &quote["side"], &quote["fiat_amount"]],
        ["signed_quote", "on_ramp", "100.00"]
    );
    let answer = widget.pay("k", purchase(&quote)).await;
    let bytes = answer.bytes.clone();
    let paid = answer.created();
    assert!(id(&paid).starts_with("pay_test_"));
    assert_eq!(
        [
            &paid["object"],
            &paid["status"],
            &paid["instructions"]["type"]
        ],
        ["embed_payment", "processing", "sandbox"]
    );
    assert_eq!(paid["crypto_amount"], quote["crypto_amount"]);
    // A repeat is replayed, also with a body that would be refused.
    let other = json!({ "quote_id": "qt_test_x" });
    assert_eq!(widget.pay("k", other).await.bytes, bytes);
    assert_eq!(widget.payment().await, paid);
    gate.settle_rails().await;
    let session = widget.session().await;
    assert_eq!(session["status"], "completed");
    assert_eq!(session["payment"]["status"], "completed");
    let events = widget.events().await;
    let expected = [
        "gate_session.created",
        "gate_session.processing",
        "gate_session.completed",
    ];
    assert_eq!(kinds(&events), expected);
    for (_, event) in &events[1..] {
        assert_eq!(event["tx_refid"], paid["tx_refid"]);
    }
    let transaction = transaction_of(&gate.acme(), &widget.session).await;
    assert_eq!(transaction["refid"], paid["tx_refid"]);
    assert_eq!(transaction["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: idempotency.gate-replay, gate.payment.key, gate.payment.once
#[tokio::test]
async fn repeated_key_has_same_bytes_after_restart_and_after_end_of_session() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    let first = widget.pay("k", purchase(&quote)).await;
    let id_of = |answer: &Answer| answer.header("x-request-id").unwrap().to_owned();
    let whole = |answer: &Answer| (answer.status, answer.bytes.clone(), id_of(answer));
    for end in ["processing", "completed"] {
        assert_eq!(widget.payment().await["status"], end);
        // Another process shares only the database with the first one, as a service after its restart does.
        let restarted = gate.replica().await;
        let again = widget.at(&restarted);
        let repeated = again.pay("k", purchase(&quote)).await;
        assert_eq!(whole(&repeated), whole(&first), "{end}");
        restarted.close().await;
        gate.settle_rails().await;
    }
    assert_eq!(gate.world().database().count("rail_records").await, 1);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed-quote.bound, gate.embed-quote.superseded
#[tokio::test]
async fn each_bad_quote_and_payment_is_refused_by_its_code() {
    let gate = Gate::new().await;
    let widget = Widget::open(&gate, json!({ "target_token": "USDT", "flow": "on_ramp" })).await;
    for (field, value, code) in [
        ("amount", json!("5"), "amount_not_allowed"),
        ("amount", json!(5), "amount_not_allowed"),
        ("asset", json!("DOGE"), "unknown_currency"),
        ("network", json!("Tron"), "network_not_supported"),
        ("payment_method", json!("ach"), "invalid_request"),
        ("side", json!("swop"), "invalid_request"),
    ] {
        let refused = widget.ask_quote(json!({ field: value })).await;
        refused.refused(400, code);
    }
    for other in [
        json!({ "side": "off_ramp" }),
        json!({ "asset": "ETH", "network": "ethereum" }),
    ] {
        let refused = widget.ask_quote(other).await;
        refused.refused(409, "quote_session_mismatch");
    }
    let first = widget.quote().await;
    let quote = widget.quote().await;
    let refused = widget.pay("first", purchase(&first)).await;
    refused.refused(409, "quote_superseded");
    let pay = |changes: Value| {
        let body = super::rails::with(purchase(&quote), &changes);
        let widget = widget.clone();
        async move { widget.pay("bad", body).await }
    };
    let evm = "0x52908400098527886E0F7030069857D2E4169EE7";
    let mistyped = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv9";
    for (field, value, code) in [
        ("wallet_address", Value::Null, "invalid_request"),
        ("wallet_address", json!(evm), "invalid_address"),
        (
            "wallet_address",
            json!(mistyped),
            "address_checksum_mismatch",
        ),
        ("payout", json!({ "iban": "x" }), "invalid_request"),
    ] {
        let refused = pay(json!({ field: value })).await;
        refused.refused(400, code).saying(&format!("`{field}`"));
    }
    let unkeyed = Call::post(PAYMENTS).json(&purchase(&quote));
    widget
        .send(unkeyed)
        .await
        .refused(400, "idempotency_key_required");
    // None of the refusals has consumed the quote.
    gate.world().after(59_999);
    widget.pay("k", purchase(&quote)).await.created();
    let refused = widget.ask_quote(json!({})).await;
    refused.refused(409, "session_payment_in_progress");
    let refused = widget.pay("again", purchase(&quote)).await;
    refused.refused(409, "session_payment_in_progress");
    gate.settle_rails().await;
    let refused = widget.ask_quote(json!({})).await;
    refused.refused(409, "session_not_open");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.quote-shape, id.malformed-path, id.other-mode, idempotency.only-success
#[tokio::test]
async fn quote_id_of_wrong_shape_is_named_and_payment_id_of_wrong_shape_is_unknown() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    let of = |text: &str| super::rails::with(purchase(&quote), &json!({ "quote_id": text }));
    let good = id(&quote);
    let lower = good.to_lowercase();
    let session = widget.session.clone();
    for bad in [
        "",
        " ",
        "qt_test_",
        "qt_test_x",
        &good[1..],
        &good[8..],
        &lower,
        &session,
    ] {
        let refused = widget.pay("k", of(bad)).await;
        refused.refused(400, "invalid_request").saying("`quote_id`");
    }
    for absent in [
        good.replace("_test_", "_live_"),
        "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK".to_owned(),
    ] {
        let refused = widget.pay("k", of(&absent)).await;
        refused.refused(404, "resource_not_found");
    }
    for payment in ["x", "%00", "%ff", "pay_test_", good.as_str(), &session] {
        let refused = widget.cancel(payment).await;
        refused.refused(404, "resource_not_found");
    }
    // No refusal has used the key.
    widget.pay("k", purchase(&quote)).await.created();
    let later = widget.pay("l", of("x")).await;
    later.refused(400, "invalid_request").saying("`quote_id`");
    gate.world().notice_all().await;
    gate.finish().await;
}

#[tokio::test]
async fn address_of_session_cannot_be_changed() {
    let gate = Gate::new().await;
    let widget = Widget::open(&gate, json!({ "wallet_address": WALLET })).await;
    let quote = widget.quote().await;
    let other =
        json!({ "quote_id": quote["id"], "wallet_address": "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE" });
    let refused = widget.pay("k", other).await;
    let refused = refused.refused(409, "wallet_mismatch");
    refused.saying("`wallet_address`");
    let own = json!({ "quote_id": quote["id"] });
    widget.pay("k", own).await.created();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.once
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_twenty_concurrent_payments_wins() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    let payments = (0..20).map(|number| {
        let (widget, body) = (widget.clone(), purchase(&quote));
        async move {
            let key = format!("k-{number}");
            in_turn(|| widget.pay(&key, body.clone())).await
        }
    });
    one_winner(payments, 409, "session_payment_in_progress").await;
    gate.settle_rails().await;
    assert_eq!(widget.session().await["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.events
#[tokio::test]
async fn failed_payment_leaves_session_open_for_another() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.31").await;
    let paid = widget.buy("k").await;
    gate.settle_rails().await;
    let session = widget.session().await;
    assert_eq!(session["status"], "open");
    let failed = &session["payment"];
    assert_eq!(failed["id"], paid["id"]);
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["failure_code"], "provider_declined");
    assert!(failed["failure_message"].is_string());
    let events = widget.events().await;
    let (kind, event) = events.last().unwrap();
    assert_eq!(kind, "gate_session.failed");
    for field in ["failure_code", "failure_message"] {
        assert_eq!(event[field], failed[field], "{field}");
    }
    assert_eq!(event["tx_refid"], paid["tx_refid"]);
    let again = widget.buy("another").await;
    assert_ne!(again["id"], paid["id"]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed.scopes, gate.embed.session-required, idempotency.gate-any-body, idempotency.scope
#[tokio::test]
async fn scope_and_session_come_before_the_body_and_a_repeat_before_its_shape() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    let first = widget.pay("k", purchase(&quote)).await;
    let id_of = |answer: &Answer| answer.header("x-request-id").unwrap().to_owned();
    let whole = |answer: &Answer| (answer.status, answer.bytes.clone(), id_of(answer));
    for body in ["{", "[]", r#"{"quote_id":1}"#] {
        let bent = Call::post(PAYMENTS).body(body);
        let bent = bent.header("content-type", "application/json");
        let again = widget.send(bent.clone().key("k")).await;
        assert_eq!(whole(&again), whole(&first), "{body}");
        assert_eq!(widget.send(bent.key("l")).await.status, 400, "{body}");
    }
    for (scopes, code) in [
        (json!(["session:read"]), "scope_missing"),
        (json!(["session:pay", "kyc:submit"]), "session_required"),
    ] {
        let token = super::widget::token_with(&gate, &scopes).await;
        for path in [PAYMENTS, "/v1/embed/quotes", "/v1/embed/verification"] {
            let call = with(&token, Call::post(path).json(&json!({}))).key("k");
            gate.send(call).await.refused(403, code);
        }
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.cancel, gate.session.one-payment
#[tokio::test]
async fn payment_is_cancelled_while_rail_allows_it() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.33").await;
    let paid = widget.buy("k").await;
    let acme = gate.acme();
    for answer in [
        acme.cancel(&widget.session).await,
        acme.complete(&widget.session).await,
        acme.fail(&widget.session).await,
        widget.send(Call::post("/v1/embed/cancel")).await,
    ] {
        answer.refused(409, "session_payment_in_progress");
    }
    gate.settle_rails().await;
    assert_eq!(widget.payment().await["status"], "processing");
    let cancelled = widget.cancel(&id(&paid)).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    let again = widget.cancel(&id(&paid)).await;
    again.refused(409, "payment_not_cancellable");
    widget
        .cancel("pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")
        .await
        .refused(404, "resource_not_found");
    let other = Widget::of_amount(&gate, "100.35").await;
    other
        .cancel(&id(&paid))
        .await
        .refused(404, "resource_not_found");
    let rival = super::widget::rival_token(&gate).await;
    let path = format!("{PAYMENTS}/{}/cancel", id(&paid));
    let foreign = gate.send(with(&rival, Call::post(&path))).await;
    foreign.refused(404, "resource_not_found");
    let last = widget.events().await.pop().unwrap().0;
    assert_eq!(last, "gate_session.processing");
    let done = other.buy("done").await;
    other
        .cancel(&id(&done))
        .await
        .refused(409, "payment_not_cancellable");
    gate.settle_rails().await;
    other
        .cancel(&id(&done))
        .await
        .refused(409, "payment_not_cancellable");
    // The session is open again, and another payment can settle.
    widget.buy("another").await;
    let again = widget.cancel(&id(&paid)).await;
    again.refused(409, "payment_not_cancellable");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.session.one-payment, gate.payment.cancel, gate.embed-quote.bound
#[tokio::test]
async fn session_is_paid_by_its_widget_or_by_the_partners_server() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let redeem = async |key: &str, quote: &Value, session: &str| {
        rails::redeem(&acme, rails::PAY_INS, key, &id(quote), session).await
    };
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    let of_widget = redeem("other-kind", &quote, &widget.session).await;
    of_widget.refused(404, "resource_not_found");
    let locked = rails::purchase(&acme, "server", "100.00").await;
    let of_server = widget.pay("server", purchase(&locked)).await;
    of_server.refused(404, "resource_not_found");
    redeem("pay-in", &locked, &widget.session).await.created();
    let refused = widget.pay("k", purchase(&quote)).await;
    refused.refused(409, "session_payment_in_progress");
    // The widget shows the payment, and cannot cancel what it did not begin.
    let shown = widget.payment().await;
    assert_eq!(shown["status"], "processing");
    let refused = widget.cancel(&id(&shown)).await;
    refused.refused(409, "payment_not_cancellable");
    gate.settle_rails().await;
    assert_eq!(widget.payment().await["status"], "completed");
    let widget = Widget::of_amount(&gate, "200.00").await;
    widget.buy("k").await;
    let locked = rails::purchase(&acme, "late", "200.00").await;
    let refused = redeem("late", &locked, &widget.session).await;
    refused.refused(409, "session_payment_in_progress");
    gate.settle_rails().await;
    assert_eq!(widget.session().await["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: sandbox.slow-payment
#[tokio::test]
async fn slow_payment_of_the_sandbox_settles_at_first_poll_after_ten_seconds() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.33").await;
    widget.buy("k").await;
    let tick = Duration::from_millis(100);
    for _ in 0..100 {
        gate.settle_rails().await;
        assert_eq!(widget.payment().await["status"], "processing");
        gate.world().clock().advance(tick);
    }
    gate.settle_rails().await;
    assert_eq!(widget.payment().await["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.events
#[tokio::test]
async fn partner_without_rails_gets_no_event_of_them() {
    let gate = Gate::new().await;
    let operator = gate.world().operator();
    operator.change_gate(ACME, |it| it.rails = false).await;
    gate.world().after(6_000);
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    widget.pay("k", purchase(&quote)).await.created();
    gate.settle_rails().await;
    assert_eq!(widget.session().await["status"], "completed");
    let events = gate.events(ACME, &id(&quote)).await;
    assert!(events.is_empty(), "{events:?}");
    let of_record = transaction_of(&gate.acme(), &widget.session).await;
    let record = of_record["local_rail_transaction_id"].as_str().unwrap();
    let events = gate.events(ACME, record).await;
    assert!(events.is_empty(), "{events:?}");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.test-amounts, gate.verification.refusal, gate.verification.event-once, idempotency.only-success
#[tokio::test]
async fn payment_waits_for_verification() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.61").await;
    let verification = async || widget.session().await["verification"]["status"].clone();
    assert_eq!(verification().await, "required");
    let quote = widget.quote().await;
    let refused = widget.pay("k", purchase(&quote)).await;
    refused.refused(403, "verification_required");
    let refused = widget.pay("k", purchase(&quote)).await;
    refused.refused(403, "verification_required");
    let started = widget.send(Call::post(VERIFICATION)).await.ok();
    assert_eq!(started["status"], "approved");
    assert_eq!(verification().await, "approved");
    widget.pay("k", purchase(&quote)).await.created();
    let events = widget.events().await;
    let expected = [
        "gate_session.created",
        "kyc.required",
        "gate_session.processing",
    ];
    assert_eq!(kinds(&events), expected);
    let rejected = Widget::of_amount(&gate, "100.62").await;
    let started = rejected.send(Call::post(VERIFICATION)).await.ok();
    assert_eq!(started["status"], "rejected");
    let quote = rejected.quote().await;
    let refused = rejected.pay("k", purchase(&quote)).await;
    refused.refused(403, "verification_rejected");
    let none = Widget::of_amount(&gate, "100.00").await;
    let started = none.send(Call::post(VERIFICATION)).await.ok();
    assert_eq!(started["status"], "not_required");
    gate.world().notice_all().await;
    gate.finish().await;
}
