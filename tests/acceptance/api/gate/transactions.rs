//! The sandbox's test helpers and the transactions they create.

use acceptance::{ACME, Call, Gate, SHOP, session};
use serde_json::{Value, json};

use super::sessions::walk;

const PATH: &str = "/v1/transactions";

fn refids(list: &Value) -> Vec<&str> {
    let data = list["data"].as_array().unwrap();
    data.iter()
        .map(|it| it["refid"].as_str().unwrap())
        .collect()
}

// rule: gate.helper.complete, gate.transaction.refid, gate.transaction.action, gate.transaction.completed-at, gate.event.completed-refid
#[tokio::test]
async fn session_is_completed_manually() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mut body = session(SHOP);
    body["flow"] = json!("off_ramp");
    body["target_token"] = json!("usdt");
    body["target_network"] = json!("tron");
    let made = acme.create(&body, "k").await.created();
    let id = made["id"].as_str().unwrap();
    gate.world().after(1_234);
    let done = acme.complete(id).await.ok();
    assert_eq!(done["session"]["status"], "completed");
    assert_eq!(acme.read(id).await.ok(), done["session"]);
    let list = acme.get(PATH).await.ok();
    let refid = refids(&list)[0].to_owned();
    assert!(refid.starts_with("test_tx_"), "{refid}");
    let expected = json!({
        "object": "transaction",
        "refid": refid,
        "session_id": id,
        "action": "off_ramp",
        "status": "completed",
        "token": "USDT",
        "network": "TRON",
        "currency": "EUR",
        "payment_method": null,
        "fiat_amount": "100.00",
        "token_amount": null,
        "exchange_rate": null,
        "total_fees": null,
        "local_rail_transaction_id": null,
        "created_at": "2026-05-25T12:00:01.234Z",
        "completed_at": "2026-05-25T12:00:01.234Z",
    });
    assert_eq!(acme.get(&format!("{PATH}/{refid}")).await.ok(), expected);
    assert_eq!(list["data"], json!([expected]));
    let events = gate.events(ACME, id).await;
    let (kind, data) = events.last().unwrap();
    assert_eq!(kind, "gate_session.completed");
    assert_eq!(data["tx_refid"], refid);
    assert_eq!(data["status"], "completed");
    gate.finish().await;
}

// rule: gate.event.completed-refid
#[tokio::test]
async fn completed_session_names_its_transaction_in_every_read() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let id = acme.open_id("paid").await;
    let others = [acme.open_id("cancelled").await, acme.open_id("open").await];
    let act = async |path: String| acme.send(Call::post(&path)).await;
    act(format!("/v1/gate_sessions/{}/cancel", others[0]))
        .await
        .created();
    let answer = act(format!("/v1/test_helpers/sessions/{}/fail", others[1])).await;
    let failed = answer.ok()["session"].clone();
    assert_eq!(failed.get("tx_refid"), None);
    let answer = act(format!("/v1/test_helpers/sessions/{id}/complete")).await;
    let completed = answer.ok()["session"].clone();
    let list = acme.get(&format!("{PATH}?session_id={id}")).await.ok();
    let refid = &list["data"][0]["refid"];
    assert_eq!(&completed["tx_refid"], refid);
    assert_eq!(acme.read(&id).await.ok(), completed);
    let sessions = acme.get("/v1/gate_sessions").await.ok();
    for session in sessions["data"].as_array().unwrap() {
        let is_paid = session["id"] == id.as_str();
        assert_eq!(
            session.get("tx_refid"),
            is_paid.then_some(refid),
            "{session}"
        );
    }
    for other in &others {
        let read = acme.read(other).await.ok();
        assert_eq!(read.get("tx_refid"), None);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.helper.fail, gate.helper.fail-defaults, gate.transaction.action
#[tokio::test]
async fn failed_payment_leaves_the_session_open() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let id = acme.open_id("k").await;
    let path = format!("/v1/test_helpers/sessions/{id}/fail");
    let plain = acme.send(Call::post(&path)).await.ok();
    assert_eq!(plain["session"], acme.read(&id).await.ok());
    assert_eq!(plain["session"]["status"], "open");
    let intent = &plain["intent"];
    assert_eq!(
        (&intent["status"], &intent["failure_code"]),
        (&json!("failed"), &json!("provider_declined"))
    );
    assert!(intent["failure_message"].as_str().unwrap().contains("test"));
    let refid = intent["tx_refid"].as_str().unwrap();
    let transaction = acme.get(&format!("{PATH}/{refid}")).await.ok();
    let found = (
        &transaction["status"],
        &transaction["action"],
        &transaction["completed_at"],
    );
    assert_eq!(found, (&json!("failed"), &json!("on_ramp"), &Value::Null));
    for (body, code, message) in [
        (
            json!({ "code": "kyc_failed", "message": "no passport" }),
            "kyc_failed",
            Some("no passport"),
        ),
        (
            json!({ "code": "insufficient_funds" }),
            "insufficient_funds",
            None,
        ),
        (
            json!({ "code": null, "more": 1 }),
            "provider_declined",
            None,
        ),
    ] {
        let failed = acme.send(Call::post(&path).json(&body)).await.ok();
        assert_eq!(failed["intent"]["failure_code"], code);
        if let Some(message) = message {
            assert_eq!(failed["intent"]["failure_message"], message);
        }
    }
    for (body, code) in [("[]", "invalid_json"), ("{\"code\": 1}", "invalid_request")] {
        let call = Call::post(&path)
            .body(body)
            .header("content-type", "application/json");
        acme.send(call).await.refused(400, code);
    }
    let strange = acme.send(Call::post(&path).body("{}")).await;
    strange.refused(415, "unsupported_media_type");
    // No event was emitted, and the session can still be completed.
    acme.complete(&id).await.ok();
    let kinds = gate.notice(ACME, &id).await;
    assert_eq!(kinds, ["gate_session.created", "gate_session.completed"]);
    assert_eq!(gate.world().database().count("transactions").await, 5);
    gate.finish().await;
}

// rule: gate.transaction.list, list.order, list.no-loss, list.malformed-cursor, list.foreign-cursor
#[tokio::test]
async fn transactions_are_listed_filtered_and_paged() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let (one, other) = (acme.open_id("k").await, acme.open_id("l").await);
    for at in 0..4_u64 {
        gate.world().after(at % 2);
        acme.fail(&one).await.ok();
    }
    acme.complete(&other).await.ok();
    let whole = acme.get(PATH).await.ok();
    let all = refids(&whole);
    let envelope = (&whole["object"], &whole["has_more"], &whole["url"]);
    assert_eq!(
        envelope,
        (&json!("list"), &json!(false), &json!("/v1/transactions"))
    );
    assert_eq!(all.len(), 5);
    assert_eq!(walk(&acme, PATH, "refid").await, all);
    for (query, count) in [
        ("status=completed".to_owned(), 1),
        ("status=failed".to_owned(), 4),
        ("status=processing".to_owned(), 0),
        (format!("session_id={one}"), 4),
        (format!("session_id={other}&status=completed"), 1),
        (format!("session_id={one}&status=completed"), 0),
        (
            "session_id=gs_test_01HF7YAT00408104G208104081".to_owned(),
            0,
        ),
        (
            "starting_after=test_tx_01HF7YAT00408104G208104081".to_owned(),
            0,
        ),
        (
            "starting_after=live_tx_01HF7YAT00408104G208104081".to_owned(),
            0,
        ),
    ] {
        let page = acme.get(&format!("{PATH}?{query}")).await.ok();
        assert_eq!(refids(&page).len(), count, "{query}");
    }
    for query in [
        "limit=0",
        "limit=101",
        "status=open",
        "session_id=1",
        "starting_after=gs_test_01HF7YAT00408104G208104081",
    ] {
        let answer = acme.get(&format!("{PATH}?{query}")).await;
        let name = query.split('=').next().unwrap();
        answer.refused(400, "invalid_request").saying(name);
    }
    for id in [&one, &other] {
        gate.notice(ACME, id).await;
    }
    gate.finish().await;
}
