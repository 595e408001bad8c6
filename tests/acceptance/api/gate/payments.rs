//! A session has one payment at a time, and only a rail that responds begins or cancels it.

use acceptance::{ACME, Call, Gate, Logs};
use kernel::Mode;
use serde_json::{Value, json};

use super::rails::{
    DAY, PAY_INS, PAY_OUTS, id, paying, purchase, read, redeem, session, transaction_of,
};
use super::widget_payments::{Widget, kinds, purchase as paid_by};

fn cancel(session: &str) -> Call {
    Call::post(&format!("/v1/gate_sessions/{session}/cancel"))
}

fn help(session: &str, act: &str) -> Call {
    Call::post(&format!("/v1/test_helpers/sessions/{session}/{act}"))
}

// rule: gate.session.one-payment, gate.session.payment-waits, gate.rail.session-first
#[tokio::test]
async fn session_takes_one_payment_at_a_time() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (round, amount) in ["100.31", "100.32"].into_iter().enumerate() {
        let name = |what: &str| format!("{what}-{round}");
        let (session, made) = paying(&acme, &name("first"), amount).await;
        let quote = id(&purchase(&acme, &name("quote"), amount).await);
        let unknown = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";
        let consumed = made["quote_id"].as_str().unwrap();
        // The session is checked before the quote and before the kind of payment.
        for (path, quote) in [
            (PAY_INS, quote.as_str()),
            (PAY_INS, unknown),
            (PAY_INS, consumed),
            (PAY_OUTS, quote.as_str()),
        ] {
            let further = redeem(&acme, path, &name("second"), quote, &session).await;
            further.refused(409, "session_payment_in_progress");
        }
        for call in [cancel(&session), help(&session, "complete")] {
            let refused = acme.send(call).await;
            refused.refused(409, "session_payment_in_progress");
        }
        assert_eq!(acme.read(&session).await.ok()["status"], "open");
        // The first payment fails or is cancelled. The same key and quote pay again.
        gate.settle_rails().await;
        let again = redeem(&acme, PAY_INS, &name("second"), &quote, &session).await;
        let again = again.created();
        gate.settle_rails().await;
        let ended = read(&acme, PAY_INS, &id(&again)).await;
        assert_ne!(ended["status"], "processing");
        acme.send(cancel(&session)).await.created();
        let said = gate.notice(ACME, &session).await;
        assert_eq!(said, ["gate_session.created", "gate_session.cancelled"]);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.session.one-payment
#[tokio::test]
async fn completed_session_refuses_further_payments() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let (session, _) = paying(&acme, "first", "100.00").await;
    let quote = id(&purchase(&acme, "quote", "100.00").await);
    gate.settle_rails().await;
    let further = redeem(&acme, PAY_INS, "second", &quote, &session).await;
    further.refused(409, "session_not_open");
    let list = format!("/v1/transactions?session_id={session}");
    let paid = acme.get(&list).await.ok();
    assert_eq!(paid["data"].as_array().unwrap().len(), 1);
    gate.world().notice_all().await;
    gate.finish().await;
}

/// Before the rule of one payment, a session could have two. The first one that settles completes the session.
// rule: gate.rail.late-logged, gate.rail.settles-late
#[tokio::test]
async fn settlement_after_end_of_its_session_is_logged_once() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let acme = gate.acme();
    let (session, first) = paying(&acme, "first", "100.00").await;
    let (_, second) = paying(&acme, "second", "200.00").await;
    let row = session.replace("gs_test_", "");
    let shared = format!(
        "UPDATE rail_records SET session_id = '{row}', predates_rule = (1 = 1);
         UPDATE transactions SET session_id = '{row}'"
    );
    gate.world().damage(&shared).await;
    let late = || {
        let lines = logs.of("A payment settled after its session had ended");
        lines.into_iter().filter(|line| line["level"] == "WARN")
    };
    assert_eq!(late().count(), 0);
    gate.settle_rails().await;
    gate.settle_rails().await;
    let lines: Vec<_> = late().collect();
    let [line] = &lines[..] else {
        panic!("{lines:#?}")
    };
    assert_eq!(line["session.id"], session.as_str());
    assert_eq!(line["session.status"], "completed");
    assert_eq!(line["partner.id"], ACME);
    let amounts = [(id(&first), "100.00"), (id(&second), "200.00")];
    let found = amounts
        .iter()
        .find(|(payment, _)| line["rail.id"] == payment.as_str());
    let (_, amount) = found.unwrap_or_else(|| panic!("{line}"));
    assert_eq!(line["rail.amount"], *amount);
    assert_eq!(line["rail.currency"], "EUR");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.session.payment-waits, gate.session.lazy-expiry, gate.rail.completes
#[tokio::test]
async fn session_expires_only_after_its_payment_has_ended() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    gate.world().after(1);
    for (amount, status, event) in [
        ("100.00", "completed", "gate_session.completed"),
        ("100.31", "expired", "gate_session.expired"),
    ] {
        let session = session(&acme, &format!("s-{amount}"), amount, json!({})).await;
        gate.world().after(DAY - 1);
        let quote = id(&purchase(&acme, &format!("q-{amount}"), amount).await);
        redeem(&acme, PAY_INS, &format!("p-{amount}"), &quote, &session)
            .await
            .created();
        gate.world().after(60_000);
        gate.sweep(Mode::Test).await.unwrap();
        assert_eq!(acme.read(&session).await.ok()["status"], "open");
        let listed = acme.get("/v1/gate_sessions?status=open").await.ok();
        assert_eq!(listed["data"][0]["id"], session.as_str());
        for call in [
            cancel(&session),
            help(&session, "complete"),
            help(&session, "fail"),
        ] {
            let refused = acme.send(call).await;
            refused.refused(409, "session_payment_in_progress");
        }
        gate.settle_rails().await;
        gate.sweep(Mode::Test).await.unwrap();
        assert_eq!(acme.read(&session).await.ok()["status"], status);
        let said = gate.notice(ACME, &session).await;
        assert_eq!(said, ["gate_session.created", event]);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.cancel, gate.payment.once
#[tokio::test]
async fn silent_rail_begins_and_cancels_nothing() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.33").await;
    gate.rail().set_silent(true);
    let quote = widget.quote().await;
    let body = paid_by(&quote);
    for _ in 0..2 {
        let answer = widget.pay("k", body.clone()).await;
        answer.refused(503, "service_unavailable");
    }
    assert_eq!(widget.payment().await, Value::Null);
    gate.rail().set_silent(false);
    let paid = widget.pay("k", body).await.created();
    gate.rail().set_silent(true);
    let events = widget.events().await;
    for _ in 0..2 {
        let answer = widget.cancel(&id(&paid)).await;
        let body = answer.refused(503, "service_unavailable").body;
        let said = body["message"].as_str().unwrap();
        assert!(!said.contains("Idempotency-Key"), "{said}");
        gate.settle_rails().await;
        assert_eq!(widget.payment().await["status"], "processing");
    }
    assert_eq!(widget.events().await, events);
    gate.rail().set_silent(false);
    let cancelled = widget.cancel(&id(&paid)).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.rail.sandbox, gate.payment.events, gate.payment.once
#[tokio::test]
async fn purchase_that_the_rail_cancels_can_be_paid_again() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.32").await;
    let quote = widget.quote().await;
    let paid = widget.pay("k", paid_by(&quote)).await.created();
    gate.settle_rails().await;
    let session = widget.session().await;
    assert_eq!(session["status"], "open");
    let cancelled = &session["payment"];
    assert_eq!(cancelled["id"], paid["id"]);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["failure_code"], Value::Null);
    // A cancelled payment has no event of its session.
    let expected = ["gate_session.created", "gate_session.processing"];
    assert_eq!(kinds(&widget.events().await), expected);
    let transaction = transaction_of(&gate.acme(), &widget.session).await;
    assert_eq!(transaction["status"], "cancelled");
    let spent = widget.pay("late", paid_by(&quote)).await;
    spent.refused(409, "quote_consumed");
    gate.world().after(1);
    let quote = widget.quote().await;
    let again = widget.pay("again", paid_by(&quote)).await.created();
    assert_ne!(again["id"], paid["id"]);
    assert_eq!(widget.payment().await["status"], "processing");
    gate.world().notice_all().await;
    gate.finish().await;
}
