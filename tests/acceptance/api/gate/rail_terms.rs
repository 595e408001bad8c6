//! What a rail may ask of a customer: the terms that the customer confirmed, until the deadline, and only if the customer is verified.

use std::time::Duration;

use acceptance::{ACME, Answer, FarRail, Gate, Logs};
use serde_json::{Value, json};
use test_support::http::Request;

use super::rail_answers::{gate_with_rail, logged};
use super::rail_changes::{rails, sell, swapped};
use super::rails::{
    PAY_INS, PAY_OUTS, QUOTES, id, purchase as lock, read, redeem, sale, session, with,
};
use super::widget_payments::{WALLET, Widget, purchase};
use super::widget_verification::{start, status};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const EVM: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
/// The same address with another case, so that its checksum is wrong.
const MISTYPED: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";

/// Expects that each of these changes of good instructions refuses a payment and changes nothing, and that the good ones do not.
async fn expect_terms(
    (gate, rail, logs): (&Gate, &FarRail, &Logs),
    (quote, good): (&Value, Value),
    changes: &[(&str, &str)],
    pay: impl AsyncFn() -> Answer,
) {
    let differ = "instructions differ from what the customer confirmed";
    let earlier = logged(logs, "ERROR", differ).len();
    for (number, (field, text)) in changes.iter().enumerate() {
        rail.instructs(with(good.clone(), &json!({ *field: text })));
        pay().await.refused(503, "rail_unavailable");
        let errors = logged(logs, "ERROR", differ);
        assert_eq!(errors.len(), earlier + number + 1, "{field} {text}");
        assert_eq!(errors[earlier + number]["rail.fields"], *field, "{text}");
        assert_eq!(rail.calls(), ["instructions"]);
    }
    let quote = read(&gate.acme(), QUOTES, &id(quote)).await;
    assert_eq!(quote["status"], "active");
    let before = gate.world().database().count("rail_records").await;
    rail.instructs(good.clone());
    let paid = pay().await.created();
    let mut instructions = paid["instructions"].clone();
    instructions.as_object_mut().unwrap().remove("scan");
    assert_eq!(instructions, good);
    let after = gate.world().database().count("rail_records").await;
    assert_eq!(after, before + 1);
    rail.calls();
}

// rule: gate.rail.instructions-repeat-terms
#[tokio::test]
async fn payment_with_other_instructions_than_its_terms_is_refused() {
    let (logs, _caught) = Logs::catch();
    let (gate, rail) = gate_with_rail().await;
    let of = (&gate, &rail, &logs);
    let fiat = json!({ "amount": "100.00", "currency": "EUR", "asset": "USDT", "network": "tron", "iban": "DE89" });
    let differ = [
        ("amount", "100.01"),
        ("amount", "9100.00"),
        ("amount", "100.00 EUR"),
        ("currency", "USD"),
        ("asset", "BTC"),
        ("network", "ethereum"),
    ];
    let buying = Widget::open(&gate, json!({ "flow": "on_ramp" })).await;
    let quote = buying.quote().await;
    let pay = async || buying.pay("k", purchase(&quote)).await;
    expect_terms(of, (&quote, fiat.clone()), &differ, pay).await;
    let acme = gate.acme();
    let quote = lock(&acme, "q", "100.00").await;
    let of_server = session(&acme, "s", "100.00", json!({})).await;
    let pay = async || redeem(&acme, PAY_INS, "p", &id(&quote), &of_server).await;
    expect_terms(of, (&quote, fiat), &differ, pay).await;
    let selling = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    let quote = selling.ask_quote(json!({ "side": "off_ramp" })).await;
    let quote = quote.created();
    let payout = json!({ "iban": "DE89370400440532013000" });
    let body = json!({ "quote_id": quote["id"], "payout": payout });
    let pay = async || selling.pay("k", body.clone()).await;
    let crypto = json!({
        "amount": quote["crypto_amount"], "asset": "USDT", "network": "tron", "address": WALLET, "memo": "7",
    });
    let differ = [
        ("amount", "100.00"),
        ("asset", "USDC"),
        ("network", "ethereum"),
        ("address", EVM),
        ("address", "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"),
    ];
    expect_terms(of, (&quote, crypto), &differ, pay).await;
    let swapping = Widget::open(&gate, json!({ "flow": "swap" })).await;
    let quote = swapping.ask_quote(swapped()).await.created();
    let pay = async || swapping.pay("k", purchase(&quote)).await;
    let source = json!({
        "amount": quote["source_amount"], "asset": "USDC", "network": "ethereum", "address": EVM,
    });
    let amount = quote["crypto_amount"].as_str().unwrap();
    let differ = [
        ("amount", amount),
        ("asset", "USDT"),
        ("network", "tron"),
        ("address", WALLET),
        ("address", MISTYPED),
    ];
    expect_terms(of, (&quote, source), &differ, pay).await;
    gate.world().notice_all().await;
    gate.finish().await;
}

/// The deadline that the rail has received with each of these requests, by operation.
fn deadlines(requests: &[Request]) -> Vec<(String, Value)> {
    let told = |request: &Request| {
        let operation = request.path().rsplit('/').next().unwrap_or_default();
        let name = match request.method() {
            "POST" => operation.to_owned(),
            method => method.to_lowercase(),
        };
        (name, request.json()["pay_until"].clone())
    };
    requests.iter().map(told).collect()
}

// rule: gate.payment.deadline
#[tokio::test]
async fn rail_is_asked_to_cancel_after_the_deadline_and_its_word_decides() {
    let (gate, rail) = gate_with_rail().await;
    let made = gate.now();
    let until = |minutes: u64| made.plus(Duration::from_millis(minutes * MINUTE));
    let open = async |flow: &str, amount: &str| {
        Widget::open(&gate, json!({ "flow": flow, "amount": amount })).await
    };
    let selling = open("off_ramp", "100.00").await;
    let sold = sell(&selling, "k").await;
    let swapping = open("swap", "100.00").await;
    let quote = swapping.ask_quote(swapped()).await.created();
    let exchanged = swapping.pay("k", purchase(&quote)).await.created();
    let transferring = open("on_ramp", "100.00").await;
    let bought = transferring.buy("k").await;
    let by_card = open("on_ramp", "101.00").await;
    let quote = by_card.ask_quote(json!({ "payment_method": "card" })).await;
    let quote = quote.created();
    let charged = by_card.pay("k", purchase(&quote)).await.created();
    for (payment, minutes) in [
        (&sold, 30),
        (&exchanged, 30),
        (&bought, 72 * 60),
        (&charged, 30),
    ] {
        assert_eq!(payment["pay_until"], until(minutes).to_string());
    }
    gate.settle_rails().await;
    rail.requests();
    // One millisecond before the deadline the payments are only reported.
    gate.world().after(30 * MINUTE - 1);
    gate.settle_rails().await;
    assert_eq!(rail.calls(), ["report"; 4]);
    gate.world().after(1);
    gate.settle_rails().await;
    let told = deadlines(&rail.requests());
    let cancelled: Vec<_> = told.iter().filter(|(name, _)| name == "cancel").collect();
    let expected = json!(until(30).to_string());
    assert_eq!(cancelled.len(), 3);
    assert!(cancelled.iter().all(|(_, until)| *until == expected));
    // The rail refused, and reports that the money is on its way.
    for widget in [&selling, &swapping, &by_card, &transferring] {
        assert_eq!(widget.payment().await["status"], "processing");
    }
    // It cancels none of them later, and its report decides.
    rail.reports(json!({ "status": "failed", "code": "too_late", "reason": "expired" }));
    gate.world().after(5 * MINUTE);
    gate.settle_rails().await;
    for widget in [&selling, &swapping, &by_card] {
        let payment = widget.payment().await;
        let ends = ["status", "failure_code", "failure_reason"].map(|field| &payment[field]);
        assert_eq!(ends, ["failed", "too_late", "expired"]);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.deadline
#[tokio::test]
async fn unpaid_payment_is_cancelled_at_its_deadline() {
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    sell(&widget, "k").await;
    gate.settle_rails().await;
    rail.calls();
    rail.cancels("cancelled");
    gate.world().after(30 * MINUTE);
    gate.settle_rails().await;
    assert_eq!(rail.calls(), ["cancel"]);
    assert_eq!(widget.payment().await["status"], "cancelled");
    assert_eq!(widget.session().await["status"], "open");
    // The session can be paid again.
    sell(&widget, "again").await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.deadline
#[tokio::test]
async fn payment_of_which_the_rail_has_not_heard_does_not_begin_after_its_deadline() {
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    sell(&widget, "k").await;
    // The service was stopped until now.
    gate.world().after(30 * MINUTE);
    let restarted = gate.with_rails(rails(Some(rail.adapter()), None)).await;
    rail.calls();
    rail.forgets();
    for _ in 0..2 {
        restarted.settle_rails().await;
        assert_eq!(rail.calls(), ["cancel", "report"]);
        assert_eq!(widget.payment().await["status"], "processing");
        restarted.world().after(MINUTE);
    }
    rail.cancels("cancelled");
    restarted.settle_rails().await;
    assert_eq!(widget.payment().await["status"], "cancelled");
    restarted.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.deadline
#[tokio::test]
async fn payments_of_the_partners_server_have_a_deadline_if_the_user_pays() {
    let (gate, rail) = gate_with_rail().await;
    let acme = gate.acme();
    let quote = lock(&acme, "q", "100.00").await;
    let of_server = session(&acme, "s", "100.00", json!({})).await;
    let pay_in = redeem(&acme, PAY_INS, "p", &id(&quote), &of_server).await;
    let quote = sale(&acme, "q-2", "100").await;
    let fiat = quote["fiat_amount"].as_str().unwrap();
    let of_server = session(&acme, "s-2", fiat, json!({})).await;
    let pay_out = redeem(&acme, PAY_OUTS, "p-2", &id(&quote), &of_server).await;
    let until = gate.now().plus(Duration::from_millis(72 * HOUR));
    gate.settle_rails().await;
    let told = deadlines(&rail.requests());
    let until = json!(until.to_string());
    for (name, expected) in [
        ("instructions", vec![until.clone()]),
        ("put", vec![until, Value::Null]),
    ] {
        let mut found = Vec::new();
        for (operation, until) in &told {
            found.extend((operation == name).then(|| until.clone()));
        }
        found.sort_by_key(Value::is_null);
        assert_eq!(found, expected, "{name}");
    }
    gate.world().after(72 * HOUR);
    rail.cancels("cancelled");
    gate.settle_rails().await;
    let pay_in = read(&acme, PAY_INS, &id(&pay_in.created())).await;
    assert_eq!(pay_in["status"], "cancelled");
    let pay_out = read(&acme, PAY_OUTS, &id(&pay_out.created())).await;
    assert_eq!(pay_out["status"], "processing");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.verified-before-rail, gate.verification.test-amounts
#[tokio::test]
async fn rail_is_not_called_for_a_user_who_is_not_verified() {
    let (gate, rail) = gate_with_rail().await;
    for (amount, code) in [
        ("100.61", "verification_required"),
        ("100.63", "verification_required"),
        ("100.62", "verification_rejected"),
    ] {
        let widget = Widget::of_amount(&gate, amount).await;
        let quote = widget.quote().await;
        let refused = widget.pay("k", purchase(&quote)).await;
        let by_amount = format!("the session's amount {amount} decides this");
        let refused = refused.refused(403, "verification_required");
        refused.saying(&by_amount);
        if amount != "100.61" {
            start(&widget).await.ok();
            let refused = widget.pay("k", purchase(&quote)).await;
            refused.refused(403, code).saying(&by_amount);
        }
        assert_eq!(rail.calls(), [""; 0], "{amount}");
        if amount != "100.62" {
            gate.world().after(4_000);
            start(&widget).await.ok();
            assert_eq!(status(&widget).await, "approved");
            widget.pay("k", purchase(&quote)).await.created();
            assert_eq!(rail.calls(), ["instructions"]);
        }
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.verified-before-rail
#[tokio::test]
async fn rail_is_not_called_for_a_pay_in_of_a_user_who_is_not_approved() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    let operator = live.world().operator();
    operator
        .change_gate(ACME, |gate| gate.kyc_trusted = true)
        .await;
    let rail = FarRail::start();
    let with_rail = live.with_rails(rails(Some(rail.adapter()), None)).await;
    let acme = with_rail.acme();
    let quote = lock(&acme, "q", "100.00").await;
    let stranger = session(&acme, "s", "100.00", json!({})).await;
    let refused = redeem(&acme, PAY_INS, "p", &id(&quote), &stranger).await;
    refused.refused(403, "user_not_approved");
    assert_eq!(rail.calls(), [""; 0]);
    let package = json!({ "kyc_package": { "level": "full" } });
    let verified = session(&acme, "v", "100.00", package).await;
    let made = redeem(&acme, PAY_INS, "p", &id(&quote), &verified).await;
    made.created();
    assert_eq!(rail.calls(), ["instructions"]);
    with_rail.close().await;
    live.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}
