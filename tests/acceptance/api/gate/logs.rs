//! What is logged about a session, and what is never logged.

use acceptance::{ACME, ACME_PUBLISHABLE, Call, Gate, Logs, SHOP, session};
use serde_json::json;

use super::rail_notifications::{about, signed};
use super::rails::{PAY_INS, id, lock, redeem};
use super::widget::SESSION;
use super::widget_payments::{Widget, purchase};

// rule: auth.keys-never-logged, gate.session.secret-once, idempotency.gate-any-body, warning.body-ignored
#[tokio::test]
async fn logs_of_a_session_hold_its_id_only() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mut body = session(SHOP);
    for field in ["wallet_address", "user_reference"] {
        body[field] = json!("canary-text");
    }
    body["metadata"] = json!({ "canary-key": "canary-value" });
    body["kyc_package"] = json!({ "passport": "canary-passport" });
    body["return_url"] = json!(format!("{SHOP}/canary-path"));
    let made = acme.create(&body, "canary-idempotency").await.created();
    let id = made["id"].as_str().unwrap();
    let secret = made["client_secret"].as_str().unwrap();
    // A repeat with another body is logged.
    body["amount"] = json!("7777.77");
    acme.create(&body, "canary-idempotency").await.created();
    acme.create(&json!({ "amount": "canary-amount" }), "k")
        .await;
    let fail = Call::post(&format!("/v1/test_helpers/sessions/{id}/fail"));
    acme.send(fail.json(&json!({ "message": "canary-message" })))
        .await
        .ok();
    let brand = Call::new("PATCH", "/v1/branding").json(&json!({ "brand_name": "canary-brand" }));
    acme.send(brand).await.ok();
    acme.get(&format!("/v1/gate_sessions/{secret}")).await;
    acme.get(&format!("/v1/gate_sessions?starting_after={secret}"))
        .await;
    acme.cancel(id).await.created();
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let frame = format!("/embed?publishable_key={key}");
    gate.page(Call::get(&frame)).await;
    let text = logs.text();
    assert!(text.contains("/embed"), "requests for pages are logged");
    assert!(text.lines().count() >= 10, "requests are logged");
    let told = text
        .lines()
        .filter(|line| line.contains("idempotency_body_ignored") && line.contains("WARN"));
    assert_eq!(told.count(), 1);
    for canary in ["gsec_", "canary", "AcmeAcme", "7777.77", "whsec_"] {
        let line = text.lines().find(|line| line.contains(canary));
        assert_eq!(line, None, "{canary} is logged");
    }
    gate.notice(ACME, id).await;
    gate.finish().await;
}

// rule: logs.object-ids
#[tokio::test]
async fn line_of_request_names_its_session_customer_and_delivery() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let acme = gate.acme();
    let created = acme.create(&session(SHOP), "k").await;
    let session = created["id"].as_str().unwrap();
    for answer in [
        &created,
        &acme.read(session).await,
        &acme.fail(session).await,
        &acme.cancel(session).await,
        // The ids of a refused request are logged too.
        &acme.complete(session).await,
        &gate.rival().read(session).await,
    ] {
        logs.expect_ids(answer, &[("session.id", session)]);
    }
    let body = json!({ "email": "canary@shop.example", "external_id": "canary" });
    let created = acme.create_customer(&body, "k").await;
    let customer = created["id"].as_str().unwrap();
    let at = format!("/v1/customers/{customer}");
    let update = Call::new("PATCH", &at).json(&json!({ "first_name": "Canary" }));
    for answer in [
        &created,
        &acme.get(&at).await,
        &acme.send(update).await,
        &acme.send(Call::new("DELETE", &at)).await,
    ] {
        logs.expect_ids(answer, &[("customer.id", customer)]);
    }
    let sent = acme.send(Call::post("/v1/webhooks/test")).await;
    let delivery = sent["id"].as_str().unwrap();
    let replay = format!("/v1/webhooks/deliveries/{delivery}/replay");
    let replayed = acme.send(Call::post(&replay)).await;
    for answer in [&sent, &replayed] {
        logs.expect_ids(answer, &[("delivery.id", delivery)]);
    }
    assert!(!logs.text().to_lowercase().contains("canary"));
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: logs.object-ids
#[tokio::test]
async fn line_of_request_names_its_payment() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let acme = gate.acme();
    let widget = Widget::of_amount(&gate, "100.33").await;
    let of_session = ("session.id", widget.session.as_str());
    let mut bootstraps = logs.of("/v1/embed/bootstrap").into_iter();
    assert!(bootstraps.any(|line| line["session.id"] == of_session.1));
    let quoted = widget.ask_quote(json!({})).await;
    let of_quote = ("quote.id", quoted["id"].as_str().unwrap());
    let paid = widget.pay("k", purchase(&quoted.body)).await;
    let payment = paid["id"].as_str().unwrap();
    let rail = payment.replace("pay_", "pi_");
    let (of_payment, of_rail) = (("payment.id", payment), ("rail.id", rail.as_str()));
    let refid = paid["tx_refid"].as_str().unwrap();
    let of_transaction = ("transaction.refid", refid);
    let read = acme.get(&format!("/v1/transactions/{refid}")).await;
    let notified = gate.notify(signed(&gate, &about(&rail))).await;
    for (answer, ids) in [
        (&quoted, &[of_session, of_quote][..]),
        (
            &paid,
            &[of_session, of_quote, of_payment, of_rail, of_transaction],
        ),
        (&widget.send(Call::get(SESSION)).await, &[of_session]),
        (&widget.cancel(payment).await, &[of_session, of_payment]),
        (&read, &[of_transaction]),
        (&notified, &[of_rail]),
    ] {
        logs.expect_ids(answer, ids);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: logs.object-ids
#[tokio::test]
async fn line_of_request_names_its_pay_in() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let acme = gate.acme();
    let session = acme.open_id("s").await;
    let locked = lock(&acme, "q", json!({})).await;
    let quote = id(&locked.body);
    let (of_session, of_quote) = (("session.id", &*session), ("quote.id", &*quote));
    let redeemed = redeem(&acme, PAY_INS, "p", &quote, &session).await;
    let rail = id(&redeemed.body);
    let of_rail = ("rail.id", rail.as_str());
    for (answer, ids) in [
        (&locked, &[of_quote][..]),
        (&acme.get(&format!("/v1/quotes/{quote}")).await, &[of_quote]),
        (&redeemed, &[of_session, of_quote, of_rail]),
        (&acme.get(&format!("{PAY_INS}/{rail}")).await, &[of_rail]),
        // Other text in a body is not logged.
        (
            &redeem(&acme, PAY_INS, "o", "canary", &session).await,
            &[of_session],
        ),
    ] {
        logs.expect_ids(answer, ids);
    }
    assert!(!logs.text().contains("canary"));
    gate.world().notice_all().await;
    gate.finish().await;
}
