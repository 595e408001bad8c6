//! Pretending in the sandbox: payments in widgets and verifications end at once as their customer decides.

use acceptance::{Call, FarRail, Gate, Setup};
use kernel::{Mode, Upstreams};
use serde_json::{Value, json};

use super::rails::id;
use super::verifier_changes::FarVerifier;
use super::widget::with;
use super::widget_payments::{Widget, purchase};

const HELPERS: &str = "/v1/embed/test_helpers";
const VERIFICATION: &str = "/v1/embed/verification";

fn send(payment: &Value) -> Call {
    Call::post(&format!("{HELPERS}/payments/{}/send", id(payment)))
}

fn decline(payment: &Value) -> Call {
    Call::post(&format!("{HELPERS}/payments/{}/decline", id(payment)))
}

fn decide(decision: &str) -> Call {
    Call::post(&format!("{HELPERS}/verification/{decision}"))
}

// rule: gate.embed.pretend, sandbox.settles-after, sandbox.never-arrives, gate.payment.events
#[tokio::test]
async fn customer_of_the_sandbox_pretends_to_have_paid() {
    let gate = Gate::with(Setup::settle_later).await;
    for (amount, call, status, last) in [
        (
            "100.00",
            send as fn(&Value) -> Call,
            "completed",
            "gate_session.completed",
        ),
        ("100.31", send, "failed", "gate_session.failed"),
        ("100.32", send, "cancelled", "gate_session.processing"),
        ("100.34", send, "processing", "gate_session.processing"),
        ("200.00", decline, "failed", "gate_session.failed"),
        ("200.34", decline, "failed", "gate_session.failed"),
    ] {
        let widget = Widget::of_amount(&gate, amount).await;
        let paid = widget.buy("k").await;
        gate.settle_rails().await;
        assert_eq!(widget.payment().await["status"], "processing", "{amount}");
        for _ in 0..2 {
            let ended = widget.send(call(&paid)).await.ok();
            assert_eq!(ended["object"], "embed_payment");
            assert_eq!(ended["status"], status, "{amount}");
            assert_eq!(widget.payment().await["status"], status, "{amount}");
        }
        let events = widget.events().await;
        assert_eq!(events.last().unwrap().0, last, "{amount}");
    }
    // Without a pretence, each ends by itself, except the one whose money never arrives.
    let by_itself = Widget::of_amount(&gate, "300.00").await;
    let never = Widget::of_amount(&gate, "300.34").await;
    by_itself.buy("k").await;
    let paid = never.buy("k").await;
    gate.settle_rails().await;
    gate.world().after(30_000);
    gate.settle_rails().await;
    assert_eq!(by_itself.payment().await["status"], "completed");
    assert_eq!(never.payment().await["status"], "processing");
    assert_eq!(never.cancel(&id(&paid)).await.ok()["status"], "cancelled");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed.pretend
#[tokio::test]
async fn pretence_ends_only_a_payment_of_the_sandbox_and_of_its_session() {
    let gate = Gate::with(Setup::settle_later).await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let paid = widget.buy("k").await;
    let other = Widget::of_amount(&gate, "200.00").await;
    let rival = super::widget::rival_token(&gate).await;
    let unknown = json!({ "id": "pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK" });
    for answer in [
        other.send(send(&paid)).await,
        gate.send(with(&rival, send(&paid))).await,
        widget.send(send(&unknown)).await,
        widget.send(decline(&unknown)).await,
        widget
            .send(send(
                &json!({ "id": "pay_live_01KSFVT4Z2V6B9C1D3F5G7H8JK" }),
            ))
            .await,
        widget.send(send(&json!({ "id": "what" }))).await,
    ] {
        answer.refused(404, "resource_not_found");
    }
    assert_eq!(widget.payment().await["status"], "processing");
    let far = FarRail::start();
    gate.rail().becomes(far.adapter());
    let elsewhere = Widget::of_amount(&gate, "300.00").await;
    let quote = elsewhere.quote().await;
    let held = elsewhere.pay("k", purchase(&quote)).await.created();
    for call in [send(&held), decline(&held)] {
        elsewhere.send(call).await.refused(409, "not_simulated");
    }
    assert_eq!(elsewhere.payment().await["status"], "processing");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed.pretend
#[tokio::test]
async fn live_customer_cannot_pretend() {
    let gate = Gate::with(|setup| setup.mode = Mode::Live).await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let payment = json!({ "id": "pay_live_01KSFVT4Z2V6B9C1D3F5G7H8JK" });
    let malformed = json!({ "id": "what" });
    for call in [
        send(&payment),
        send(&malformed),
        decline(&payment),
        decide("approve"),
        decide("reject"),
    ] {
        widget
            .send(call)
            .await
            .refused(403, "live_keys_not_allowed");
    }
    gate.finish().await;
}

// rule: gate.embed.pretend, gate.verification.sandbox
#[tokio::test]
async fn user_of_the_sandbox_decides_about_a_verification() {
    let gate = Gate::new().await;
    for (amount, decision, status, opposite) in [
        ("100.64", "approve", "approved", "reject"),
        ("200.64", "reject", "rejected", "approve"),
    ] {
        let widget = Widget::of_amount(&gate, amount).await;
        widget
            .send(decide(decision))
            .await
            .refused(404, "resource_not_found");
        let quote = widget.quote().await;
        let refused = widget.pay("early", purchase(&quote)).await;
        refused.refused(403, "verification_required");
        widget
            .send(decide(decision))
            .await
            .refused(404, "resource_not_found");
        let started = widget.send(Call::post(VERIFICATION)).await.ok();
        assert_eq!(started["status"], "pending");
        assert_eq!(started["url"], "http://127.0.0.1:4030/sandbox/identity");
        for decision in [decision, decision, opposite] {
            let decided = widget.send(decide(decision)).await.ok();
            assert_eq!(
                [&decided["object"], &decided["status"]],
                ["embed_verification", status]
            );
            assert_eq!(decided["url"], Value::Null);
        }
        assert_eq!(widget.session().await["verification"]["status"], status);
    }
    // The end of the session ends the wait.
    let widget = Widget::of_amount(&gate, "300.64").await;
    widget.send(Call::post(VERIFICATION)).await.ok();
    widget.send(Call::post("/v1/embed/cancel")).await.ok();
    let decided = widget.send(decide("approve")).await.ok();
    assert_eq!(decided["status"], "pending");
    // A verifier that checks people decides alone.
    let present = Some(FarVerifier::start().adapter());
    let checking = gate
        .with_verifiers(Upstreams {
            present,
            former: None,
        })
        .await;
    let widget = Widget::of_amount(&checking, "100.61").await;
    widget.send(Call::post(VERIFICATION)).await.ok();
    for decision in ["approve", "reject"] {
        widget
            .send(decide(decision))
            .await
            .refused(409, "not_simulated");
    }
    checking.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}
