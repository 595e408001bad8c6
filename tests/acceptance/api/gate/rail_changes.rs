//! A change of the rail between two starts of the service: each payment stays with the rail that holds it.

use std::sync::Arc;

use acceptance::{FarRail, Gate};
use gate_core::ports::Rail;
use kernel::Upstreams;
use serde_json::{Value, json};

use super::rails::{PAY_OUTS, id, read, redeem, sale, session};
use super::widget_payments::{Widget, purchase};

const MINUTE: u64 = 60_000;

/// The rails of a service with a present and perhaps a former one.
pub(super) fn rails(
    present: Option<Arc<dyn Rail>>,
    former: Option<Arc<dyn Rail>>,
) -> Upstreams<dyn Rail> {
    Upstreams { present, former }
}

/// A sale with a new quote, to an account.
pub(super) async fn sell(widget: &Widget, key: &str) -> Value {
    let quote = widget.ask_quote(json!({ "side": "off_ramp" })).await;
    let payout = json!({ "iban": "DE89370400440532013000" });
    let body = json!({ "quote_id": quote.created()["id"], "payout": payout });
    widget.pay(key, body).await.created()
}

/// What a quote of USDC on Ethereum for USDT on Tron asks for.
pub(super) fn swapped() -> Value {
    json!({ "side": "swap", "payment_method": null, "source_asset": "USDC", "source_network": "ethereum" })
}

/// A purchase, a sale and a swap that the rail has reported as processing.
async fn under_way(gate: &Gate, rail: &FarRail) -> Vec<(Widget, Value)> {
    gate.rail().becomes(rail.adapter());
    let mut payments = Vec::new();
    let widget = Widget::open(gate, json!({ "flow": "on_ramp" })).await;
    let paid = widget.buy("k").await;
    payments.push((widget, paid));
    let widget = Widget::open(gate, json!({ "flow": "off_ramp" })).await;
    let paid = sell(&widget, "k").await;
    payments.push((widget, paid));
    let widget = Widget::open(gate, json!({ "flow": "swap" })).await;
    let quote = widget.ask_quote(swapped()).await.created();
    let paid = widget.pay("k", purchase(&quote)).await.created();
    payments.push((widget, paid));
    gate.settle_rails().await;
    let calls = rail.calls();
    for (operation, count) in [("instructions", 3), ("begin", 3), ("report", 3)] {
        let found = calls.iter().filter(|call| **call == operation).count();
        assert_eq!(found, count, "{operation}");
    }
    payments
}

/// Expects that the service leaves the payments as they are, although they are due.
async fn expect_untouched(gate: &Gate, payments: &[(Widget, Value)], far: [&FarRail; 2]) {
    for _ in 0..2 {
        gate.world().after(MINUTE);
        gate.settle_rails().await;
    }
    for (widget, paid) in payments {
        let widget = widget.at(gate);
        assert_eq!(widget.payment().await, *paid);
        let refused = widget.cancel(&id(paid)).await;
        refused.refused(503, "service_unavailable");
    }
    for rail in far {
        assert_eq!(rail.calls(), [""; 0]);
    }
}

// rule: rail.name, rail.elsewhere
#[tokio::test]
async fn payments_wait_for_their_rail_while_another_or_none_is_configured() {
    let gate = Gate::new().await;
    let (a, b) = (FarRail::start(), FarRail::start());
    let payments = under_way(&gate, &a).await;
    // A rail that would settle whatever it is asked about.
    b.reports(json!({ "status": "settled" }));
    a.reports(json!({ "status": "settled" }));
    a.cancels("cancelled");
    b.cancels("cancelled");
    let sandbox: Arc<dyn Rail> = Arc::new(acceptance::sandbox_rail(gate.world()));
    for configured in [
        rails(Some(b.adapter()), None),
        rails(Some(sandbox), None),
        rails(None, None),
        rails(None, Some(b.adapter())),
    ] {
        let restarted = gate.with_rails(configured).await;
        expect_untouched(&restarted, &payments, [&a, &b]).await;
        restarted.close().await;
    }
    // The rail settles them as soon as it is configured again.
    gate.settle_rails().await;
    for (widget, _) in &payments {
        assert_eq!(widget.payment().await["status"], "completed");
    }
    assert_eq!(a.calls(), ["report"; 3]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.former, rail.name
#[tokio::test]
async fn former_rail_ends_its_payments_and_begins_none() {
    let gate = Gate::new().await;
    let (a, b) = (FarRail::start(), FarRail::start());
    let payments = under_way(&gate, &a).await;
    let configured = rails(Some(b.adapter()), Some(a.adapter()));
    let restarted = gate.with_rails(configured).await;
    let widget = Widget::of_amount(&restarted, "200.00").await;
    let new = widget.buy("k").await;
    assert_eq!(b.calls(), ["instructions"]);
    // The former rail cancels one of its payments for its customer, and settles the others.
    let (given_up, paid) = &payments[0];
    a.cancels("cancelled");
    let cancelled = given_up.at(&restarted).cancel(&id(paid)).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(a.calls(), ["cancel"]);
    restarted.world().after(MINUTE);
    a.reports(json!({ "status": "settled" }));
    restarted.settle_rails().await;
    for (widget, _) in &payments[1..] {
        let payment = widget.at(&restarted).payment().await;
        assert_eq!(payment["status"], "completed");
    }
    assert_eq!(a.calls(), ["report"; 2]);
    // The present rail has only the new payment.
    assert_eq!(widget.payment().await, new);
    assert_eq!(b.calls(), ["begin", "report"]);
    b.reports(json!({ "status": "settled" }));
    restarted.world().after(MINUTE);
    restarted.settle_rails().await;
    assert_eq!(widget.payment().await["status"], "completed");
    assert_eq!((a.calls(), b.calls()), (Vec::new(), vec!["report"]));
    gate.world().notice_all().await;
    restarted.close().await;
    gate.finish().await;
}

// rule: rail.former, gate.rail.none
#[tokio::test]
async fn service_with_only_a_former_rail_begins_nothing() {
    let gate = Gate::new().await;
    let a = FarRail::start();
    let acme = gate.acme();
    gate.rail().becomes(a.adapter());
    let quote = sale(&acme, "q", "100").await;
    let fiat = quote["fiat_amount"].as_str().unwrap();
    let sold = session(&acme, "s", fiat, json!({})).await;
    let made = redeem(&acme, PAY_OUTS, "p", &id(&quote), &sold)
        .await
        .created();
    let ending = gate.with_rails(rails(None, Some(a.adapter()))).await;
    let widget = Widget::of_amount(&ending, "100.00").await;
    let quote = widget.quote().await;
    let refused = widget.pay("k", purchase(&quote)).await;
    refused.refused(501, "rails_not_available");
    assert_eq!(a.calls(), [""; 0]);
    // A payment that was stored for the rail before still begins there.
    a.reports(json!({ "status": "settled" }));
    ending.settle_rails().await;
    assert_eq!(a.calls(), ["begin", "report"]);
    let settled = read(&ending.acme(), PAY_OUTS, &id(&made)).await;
    assert_eq!(settled["status"], "settled");
    gate.world().notice_all().await;
    ending.close().await;
    gate.finish().await;
}
