//! What a rail answers about a payment: what it has once acknowledged, what has arrived, and why it gives money back.

use acceptance::{ACME, FarRail, Gate, Logs};
use serde_json::{Value, json};
use test_support::http::Reply;

use super::rail_changes::{rails, sell};
use super::rails::{PAY_INS, id, paying, read, transaction_of, with};
use super::widget_payments::{Widget, kinds, purchase};

const MINUTE: u64 = 60_000;

/// A gate with a rail over HTTP.
pub(super) async fn gate_with_rail() -> (Gate, FarRail) {
    let gate = Gate::new().await;
    let rail = FarRail::start();
    gate.rail().becomes(rail.adapter());
    (gate, rail)
}

/// Lets the next poll come.
pub(super) async fn poll(gate: &Gate) {
    gate.world().after(MINUTE);
    gate.settle_rails().await;
}

/// The lines of the log with this level and text.
pub(super) fn logged(logs: &Logs, level: &str, text: &str) -> Vec<Value> {
    let mut lines = logs.of(text);
    lines.retain(|line| line["level"] == level);
    lines
}

/// The finding of the only payment.
pub(super) async fn open_item(gate: &Gate) -> String {
    let item = "SELECT coalesce(open_item, 'none') FROM rail_records";
    gate.world().database().texts(item).await.remove(0)
}

/// The lines of the log about findings.
pub(super) fn findings(logs: &Logs) -> Vec<Value> {
    logged(logs, "ERROR", "The rail has other money than the payment")
}

// rule: rail.acknowledged-stays-begun, rail.http.unknown
#[tokio::test]
async fn payment_that_the_rail_has_acknowledged_never_begins_again() {
    let (logs, _caught) = Logs::catch();
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let paid = widget.buy("k").await;
    gate.settle_rails().await;
    assert_eq!(rail.calls(), ["instructions", "begin", "report"]);
    rail.forgets();
    poll(&gate).await;
    poll(&gate).await;
    let restarted = gate.with_rails(rails(Some(rail.adapter()), None)).await;
    poll(&restarted).await;
    assert_eq!(rail.calls(), ["report"; 3]);
    assert_eq!(widget.payment().await["status"], "processing");
    let forgotten = "no longer knows a payment that it had acknowledged";
    let errors = logged(&logs, "ERROR", forgotten);
    assert_eq!(errors.len(), 3, "{errors:#?}");
    let rail_id = id(&paid).replace("pay_", "pi_");
    assert!(errors.iter().all(|error| error["rail.id"] == rail_id));
    // The rail remembers again.
    rail.reports(json!({ "status": "settled" }));
    poll(&restarted).await;
    assert_eq!(widget.payment().await["status"], "completed");
    restarted.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.acknowledged-stays-begun, rail.http.once
#[tokio::test]
async fn acceptance_without_a_report_acknowledges_the_payment() {
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    widget.buy("k").await;
    // The rail accepts the payment, and its report is lost.
    rail.replies(Reply::broken());
    gate.settle_rails().await;
    assert_eq!(rail.calls(), ["instructions", "begin", "report"]);
    rail.forgets();
    poll(&gate).await;
    assert_eq!(rail.calls(), ["report"]);
    assert_eq!(widget.payment().await["status"], "processing");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.http.unknown, rail.http.once
#[tokio::test]
async fn response_404_of_a_proxy_begins_nothing() {
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    widget.buy("k").await;
    // The first poll gets no response, so whether the rail knows the payment is open.
    gate.rail().set_silent(true);
    gate.settle_rails().await;
    gate.rail().set_silent(false);
    assert_eq!(rail.calls(), ["instructions"]);
    let other = json!({ "id": "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK" });
    for proxy in [
        Reply::with(404, &[("Content-Type", "text/html")], "<html></html>"),
        Reply::with(404, &[("Content-Type", "text/plain")], "{}"),
        Reply::with(404, &[], ""),
        Reply::json(404, "null"),
        Reply::json(404, &other.to_string()),
    ] {
        rail.replies(proxy.clone());
        poll(&gate).await;
        assert_eq!(rail.calls(), ["report"], "{proxy:?}");
    }
    rail.forgets();
    poll(&gate).await;
    assert_eq!(rail.calls(), ["report", "begin", "report"]);
    rail.reports(json!({ "status": "settled" }));
    poll(&gate).await;
    assert_eq!(widget.payment().await["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.received
#[tokio::test]
async fn widget_shows_what_has_arrived_and_what_is_required() {
    let (gate, rail) = gate_with_rail().await;
    let buying = Widget::of_amount(&gate, "100.00").await;
    let bought = buying.buy("k").await;
    assert_eq!(bought["received"], Value::Null);
    let selling = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    let sold = sell(&selling, "k").await;
    rail.reports(json!({ "status": "processing", "received": { "amount": "1.2345678" } }));
    gate.settle_rails().await;
    let fiat = json!({
        "amount": "1.23", "required": "100.00", "currency": "EUR", "asset": null, "network": null,
        "at": gate.now().to_string(),
    });
    let crypto = json!({
        "amount": "1.234567", "required": sold["crypto_amount"], "currency": null, "asset": "USDT", "network": "tron",
        "at": gate.now().to_string(),
    });
    assert_eq!(buying.payment().await["received"], fiat);
    assert_eq!(selling.payment().await["received"], crypto);
    // The rail says when it arrived. Without a word, what has arrived before stays.
    let at = "2026-05-25T12:00:30.000Z";
    let part = json!({ "amount": "60", "at": at });
    for report in [
        json!({ "status": "processing", "received": part }),
        json!({ "status": "processing" }),
        json!({ "status": "processing", "received": { "amount": "60.00" } }),
    ] {
        rail.reports(report);
        poll(&gate).await;
        let received = buying.payment().await["received"].clone();
        assert_eq!([&received["amount"], &received["at"]], ["60.00", at]);
    }
    rail.reports(json!({ "status": "processing", "received": { "amount": "0" } }));
    poll(&gate).await;
    assert_eq!(buying.payment().await["received"], Value::Null);
    assert_eq!(buying.payment().await["status"], "processing");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.settled-amount, rail.received
#[tokio::test]
async fn settlement_of_another_amount_or_currency_stays_processing() {
    let (logs, _caught) = Logs::catch();
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    widget.buy("k").await;
    let settled = |amount: &str, currency: &str| {
        let received = json!({ "amount": amount, "currency": currency });
        json!({ "status": "settled", "reference": "e2e-1", "received": received })
    };
    let other_amount = "a settled payment of which another amount has arrived";
    let other_asset = "an arrival in another currency, asset or network";
    for (amount, currency, shown, error, errors) in [
        ("99.99", "EUR", "99.99", other_amount, 1),
        ("100.01", "EUR", "100.01", other_amount, 2),
        ("100.00", "USD", "100.01", other_asset, 1),
    ] {
        rail.reports(settled(amount, currency));
        poll(&gate).await;
        let payment = widget.payment().await;
        assert_eq!(payment["status"], "processing", "{amount} {currency}");
        assert_eq!(payment["received"]["amount"], shown);
        assert_eq!(logged(&logs, "ERROR", error).len(), errors);
    }
    let crypto = json!({ "amount": "100.00", "asset": "USDT", "network": "tron" });
    rail.reports(json!({ "status": "processing", "received": crypto }));
    poll(&gate).await;
    assert_eq!(widget.payment().await["received"]["amount"], "100.01");
    assert_eq!(logged(&logs, "ERROR", other_asset).len(), 2);
    let events = widget.events().await;
    let expected = ["gate_session.created", "gate_session.processing"];
    assert_eq!(kinds(&events), expected);
    rail.reports(settled("100.00", "EUR"));
    poll(&gate).await;
    let payment = widget.payment().await;
    assert_eq!(payment["status"], "completed");
    assert_eq!(payment["received"]["amount"], "100.00");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.findings, rail.received
#[tokio::test]
async fn part_payment_is_logged_once_with_its_amounts() {
    let (logs, _caught) = Logs::catch();
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    widget.buy("k").await;
    let arrived = async |amount: &str| {
        rail.reports(json!({ "status": "processing", "received": { "amount": amount } }));
        poll(&gate).await;
    };
    arrived("20.00").await;
    arrived("30.00").await;
    let lines = findings(&logs);
    let [line] = &lines[..] else {
        panic!("{lines:#?}")
    };
    for (field, expected) in [
        ("rail.finding", "underpaid"),
        ("rail.amount", "100.00"),
        ("rail.currency", "EUR"),
        ("rail.received", "20.00"),
        ("session.id", widget.session.as_str()),
    ] {
        assert_eq!(line[field], expected, "{field}");
    }
    assert_eq!(open_item(&gate).await, "underpaid");
    arrived("120.00").await;
    assert_eq!(findings(&logs).len(), 2);
    assert_eq!(open_item(&gate).await, "overpaid");
    arrived("100.00").await;
    assert_eq!(findings(&logs).len(), 2);
    assert_eq!(open_item(&gate).await, "none");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.events, rail.received, rail.failure-reason
#[tokio::test]
async fn failed_payment_says_why_the_rail_returns_its_money() {
    let (gate, rail) = gate_with_rail().await;
    for (number, (reason, message)) in [
        (json!("amount_differs"), "Another amount arrived"),
        (json!("expired"), "did not come in time"),
        (json!("returned"), "came back"),
        (json!("refused"), "The account is closed."),
        (Value::Null, "The account is closed."),
    ]
    .into_iter()
    .enumerate()
    {
        let widget = Widget::of_amount(&gate, &format!("10{number}.00")).await;
        let paid = widget.buy("k").await;
        let received = json!({ "amount": "20.00", "currency": "EUR" });
        let report = json!({ "status": "failed", "code": "account_closed", "received": received });
        rail.reports(with(report, &json!({ "reason": reason })));
        poll(&gate).await;
        let failed = widget.payment().await;
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["failure_code"], "account_closed");
        assert_eq!(failed["failure_reason"], reason);
        let said = failed["failure_message"].as_str().unwrap();
        assert!(said.contains(message), "{said}");
        assert_eq!(failed["received"]["amount"], "20.00");
        let events = widget.events().await;
        let expected = [
            "gate_session.created",
            "gate_session.processing",
            "gate_session.failed",
        ];
        assert_eq!(kinds(&events), expected);
        assert_eq!(events[1].1["pay_until"], paid["pay_until"]);
        assert_eq!(events[1].1.get("received"), None);
        let event = &events[2].1;
        assert_eq!(event["received"], failed["received"]);
        assert_eq!(event["failure_message"], failed["failure_message"]);
        let of_event = event.get("failure_reason").cloned().unwrap_or_default();
        assert_eq!(of_event, reason);
        assert_eq!(event.get("pay_until"), None);
        // The session can be paid again.
        assert_eq!(widget.session().await["status"], "open");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.http.reports, gate.rail.states, gate.rail.failure
#[tokio::test]
async fn money_that_comes_back_before_its_settlement_is_seen_fails_the_payment() {
    let (gate, rail) = gate_with_rail().await;
    let acme = gate.acme();
    let widget = Widget::of_amount(&gate, "100.00").await;
    widget.buy("k").await;
    let (session, made) = paying(&acme, "p", "200.00").await;
    rail.reports(json!({ "status": "returned" }));
    gate.settle_rails().await;
    let payment = widget.payment().await;
    let ends = ["status", "failure_code", "failure_reason"].map(|field| &payment[field]);
    assert_eq!(ends, ["failed", "returned", "returned"]);
    let pay_in = read(&acme, PAY_INS, &id(&made)).await;
    assert_eq!(
        [&pay_in["status"], &pay_in["failure_code"]],
        ["failed", "returned"]
    );
    assert_eq!(transaction_of(&acme, &session).await["status"], "failed");
    let said = gate.notice(ACME, &id(&made)).await;
    assert_eq!(said, ["rail.pay_in.processing", "rail.pay_in.failed"]);
    let quote = widget.quote().await;
    widget.pay("again", purchase(&quote)).await.created();
    gate.world().notice_all().await;
    gate.finish().await;
}
