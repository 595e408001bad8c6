//! Payments that have ended: the gate asks the rail about them, and leaves them as they are.

use std::collections::BTreeMap;

use acceptance::{FarRail, Gate, Logs};
use serde_json::{Value, json};
use test_support::http::Reply;

use super::rail_answers::{findings, gate_with_rail, open_item, poll};
use super::rail_notifications::{about, signed};
use super::rails::{DAY, PAY_INS, id, paying, read};
use super::widget_payments::Widget;

const HOUR: u64 = 60 * 60 * 1000;

fn settled() -> Value {
    json!({ "status": "settled" })
}

fn failed() -> Value {
    json!({ "status": "failed", "code": "account_closed" })
}

async fn notify(gate: &Gate, rail_id: &str) {
    let notified = gate.notify(signed(gate, &about(rail_id))).await;
    assert_eq!(notified.status, 202);
}

/// A widget with a payment of which the rail has reported this, and the id by which the rail knows it.
async fn reported(gate: &Gate, rail: &FarRail, report: Value) -> (Widget, String) {
    let widget = Widget::of_amount(gate, "100.00").await;
    let paid = widget.buy("k").await;
    rail.reports(report);
    gate.settle_rails().await;
    rail.calls();
    (widget, id(&paid).replace("pay_", "pi_"))
}

/// What partners and customers can read: sessions, transactions, quotes, and the events with their deliveries.
async fn books(gate: &Gate) -> BTreeMap<String, String> {
    let mut tables = gate.world().database().digest().await;
    let read = [
        "sessions",
        "transactions",
        "signed_quotes",
        "events",
        "deliveries",
    ];
    tables.retain(|table, _| read.contains(&table.as_str()));
    assert_eq!(tables.len(), read.len());
    tables
}

// rule: rail.watch, rail.findings
#[tokio::test]
async fn money_that_comes_after_the_end_changes_nothing_and_is_logged_once() {
    for (end, cancels) in [
        (failed(), false),
        (json!({ "status": "cancelled" }), false),
        (json!({ "status": "processing" }), true),
    ] {
        let (logs, _caught) = Logs::catch();
        let (gate, rail) = gate_with_rail().await;
        let (widget, rail_id) = reported(&gate, &rail, end).await;
        if cancels {
            rail.cancels("cancelled");
            let payment = widget.payment().await;
            widget.cancel(&id(&payment)).await.ok();
            rail.calls();
        }
        let (before, payment) = (books(&gate).await, widget.payment().await);
        rail.reports(settled());
        // Nothing is due without a notification.
        gate.watch_rails().await;
        assert_eq!(rail.calls(), [""; 0]);
        for _ in 0..2 {
            notify(&gate, &rail_id).await;
            notify(&gate, &rail_id).await;
            gate.watch_rails().await;
            gate.watch_rails().await;
            assert_eq!(rail.calls(), ["report"]);
        }
        assert_eq!(widget.payment().await, payment);
        assert_eq!(books(&gate).await, before);
        let lines = findings(&logs);
        let [line] = &lines[..] else {
            panic!("{lines:#?}")
        };
        assert_eq!(line["rail.finding"], "late");
        assert_eq!(line["rail.id"], rail_id.as_str());
        assert_eq!(open_item(&gate).await, "late");
        // The rail has given the money back.
        rail.reports(failed());
        notify(&gate, &rail_id).await;
        gate.watch_rails().await;
        assert_eq!(open_item(&gate).await, "none");
        assert_eq!(books(&gate).await, before);
        gate.world().notice_all().await;
        gate.finish().await;
    }
}

// rule: rail.findings, rail.watch
#[tokio::test]
async fn money_of_a_settled_payment_that_comes_back_changes_nothing() {
    let (logs, _caught) = Logs::catch();
    let (gate, rail) = gate_with_rail().await;
    let (widget, rail_id) = reported(&gate, &rail, settled()).await;
    let (before, payment) = (books(&gate).await, widget.payment().await);
    assert_eq!(payment["status"], "completed");
    for (report, item, found) in [
        (settled(), "none", 0),
        (failed(), "retracted", 1),
        (json!({ "status": "cancelled" }), "retracted", 1),
        (settled(), "none", 1),
        (json!({ "status": "returned" }), "returned", 2),
        (settled(), "returned", 2),
    ] {
        rail.reports(report.clone());
        notify(&gate, &rail_id).await;
        gate.watch_rails().await;
        assert_eq!(rail.calls(), ["report"]);
        assert_eq!(open_item(&gate).await, item, "{report}");
        assert_eq!(findings(&logs).len(), found, "{report}");
    }
    assert_eq!(widget.payment().await, payment);
    assert_eq!(books(&gate).await, before);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.watch
#[tokio::test]
async fn rail_is_asked_daily_for_thirty_days_after_the_end() {
    let (gate, rail) = gate_with_rail().await;
    let (_, made) = paying(&gate.acme(), "p", "100.00").await;
    rail.reports(failed());
    gate.settle_rails().await;
    rail.calls();
    let mut asked = 0;
    for day in 1..=40 {
        gate.world().after(DAY - 1);
        gate.watch_rails().await;
        assert_eq!(rail.calls(), [""; 0], "before day {day}");
        gate.world().after(1);
        gate.watch_rails().await;
        asked += rail.calls().len();
    }
    assert_eq!(asked, 30);
    let pay_in = read(&gate.acme(), PAY_INS, &id(&made)).await;
    assert_eq!(pay_in["status"], "failed");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.watch
#[tokio::test]
async fn rail_without_a_response_is_asked_about_an_ended_payment_an_hour_later() {
    let (gate, rail) = gate_with_rail().await;
    paying(&gate.acme(), "p", "100.00").await;
    rail.reports(failed());
    gate.settle_rails().await;
    rail.calls();
    gate.world().after(DAY);
    rail.replies(Reply::broken());
    gate.watch_rails().await;
    assert_eq!(rail.calls(), ["report"]);
    gate.world().after(HOUR - 1);
    gate.watch_rails().await;
    assert_eq!(rail.calls(), [""; 0]);
    gate.world().after(1);
    rail.reports(settled());
    gate.watch_rails().await;
    assert_eq!(rail.calls(), ["report"]);
    assert_eq!(open_item(&gate).await, "late");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.watch, rail.findings
#[tokio::test]
async fn report_that_comes_after_a_cancellation_is_one_after_the_end() {
    let (logs, _caught) = Logs::catch();
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    widget.buy("k").await;
    gate.settle_rails().await;
    let payment = widget.payment().await;
    rail.cancels("cancelled");
    rail.reports(settled());
    // The customer cancels while the poll that settles the payment is under way.
    gate.rail().meanwhile({
        let widget = widget.clone();
        async move {
            widget.cancel(&id(&payment)).await.ok();
        }
    });
    poll(&gate).await;
    assert_eq!(widget.payment().await["status"], "cancelled");
    assert_eq!(findings(&logs).len(), 1);
    assert_eq!(open_item(&gate).await, "late");
    gate.world().notice_all().await;
    gate.finish().await;
}
