//! What is logged about a session, and what is never logged.

use acceptance::{ACME, ACME_PUBLISHABLE, Call, Gate, Logs, SHOP, session};
use serde_json::json;

// rule: auth.keys-never-logged, gate.session.secret-once, idempotency.gate-any-body
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
        .filter(|line| line.contains("used idempotency key"));
    assert_eq!(told.count(), 1);
    for canary in ["gsec_", "canary", "AcmeAcme", "7777.77", "whsec_"] {
        let line = text.lines().find(|line| line.contains(canary));
        assert_eq!(line, None, "{canary} is logged");
    }
    gate.notice(ACME, id).await;
    gate.finish().await;
}
