//! Webhook tools: the list of deliveries, replay, and the test event.

use acceptance::{ACME, Call, Gate, GateClient};
use partner_core::webhooks::delivery::AttemptOutcome;
use serde_json::{Value, json};

use super::rails::{paying, transaction_of};

const LIST: &str = "/v1/webhooks/deliveries";

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

async fn list(client: &GateClient, query: &str) -> Vec<Value> {
    let page = client.get(&format!("{LIST}?{query}")).await.ok();
    assert_eq!(
        (&page["object"], &page["url"]),
        (&json!("list"), &json!(LIST))
    );
    page["data"].as_array().unwrap().clone()
}

async fn send_test(client: &GateClient) -> Value {
    client.send(Call::post("/v1/webhooks/test")).await.ok()
}

async fn replay(client: &GateClient, id: &str) -> acceptance::Answer {
    let path = format!("{LIST}/{id}/replay");
    client.send(Call::post(&path)).await
}

// rule: gate.webhook-tools.list, gate.webhook-tools.test, time.output
#[tokio::test]
async fn test_event_is_queued_and_listed() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let sent = send_test(&acme).await;
    let expected = json!({
        "object": "webhook_delivery",
        "id": sent["id"],
        "event_id": sent["event_id"],
        "event_type": "webhook.test",
        "target_url": "http://127.0.0.1:9/acme",
        "status": "pending",
        "attempts": 0,
        "last_response_status": null,
        "last_error": null,
        "next_attempt_at": "2026-05-25T12:00:00.000Z",
        "delivered_at": null,
        "created_at": "2026-05-25T12:00:00.000Z",
    });
    assert_eq!(sent, expected);
    assert!(text(&sent, "id").starts_with("wd_test_"));
    assert_eq!(list(&acme, "").await, std::slice::from_ref(&sent));
    let [(kind, data)] = gate
        .events(ACME, text(&sent, "event_id"))
        .await
        .try_into()
        .unwrap();
    assert_eq!(kind, "webhook.test");
    assert_eq!(
        data,
        json!({ "object": "webhook_test", "partner_id": "acme", "mode": "test" })
    );
    // Each event is new, because the header is ignored.
    let call = Call::post("/v1/webhooks/test").key("k");
    let (second, third) = (
        acme.send(call.clone()).await.ok(),
        acme.send(call).await.ok(),
    );
    assert_ne!(second["event_id"], third["event_id"]);
    for one in [second, third] {
        gate.notice(ACME, text(&one, "event_id")).await;
    }
    gate.finish().await;
}

/// The resource of an event as text, which keeps the order of its fields.
fn data(events: &[(String, Value)], kind: &str) -> String {
    let (_, data) = events.iter().find(|(found, _)| found == kind).unwrap();
    data.to_string()
}

// rule: gate.event.data, gate.event.completed-refid
#[tokio::test]
async fn event_shows_its_resource_as_a_read_returns_it() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let read = async |path: &str, id: &str| acme.get(&format!("/v1/{path}/{id}")).await.ok();
    let (session, record) = paying(&acme, "a", "100.00").await;
    let open = read("gate_sessions", &session).await;
    gate.settle_rails().await;
    let completed = read("gate_sessions", &session).await;
    let transaction = transaction_of(&acme, &session).await;
    assert_eq!(completed["tx_refid"], transaction["refid"]);
    let events = gate.events(ACME, &session).await;
    for (kind, resource) in [
        ("gate_session.created", open),
        ("gate_session.completed", completed),
    ] {
        assert_eq!(data(&events, kind), resource.to_string());
    }
    for (kind, path, id) in [
        ("rail.pay_in.settled", "rails/pay_ins", text(&record, "id")),
        ("quote.consumed", "quotes", text(&record, "quote_id")),
    ] {
        let events = gate.events(ACME, id).await;
        assert_eq!(data(&events, kind), read(path, id).await.to_string());
    }
    let customer = json!({ "email": "ann@example.com" });
    let created = acme.create_customer(&customer, "c").await.created();
    let id = text(&created, "id");
    let call = Call::new("DELETE", &format!("/v1/customers/{id}"));
    let deleted = acme.send(call).await.ok();
    let events = gate.events(ACME, id).await;
    for (kind, resource) in [
        ("customer.created", &created),
        ("customer.deleted", &deleted),
    ] {
        assert_eq!(data(&events, kind), resource.to_string());
    }
    gate.finish().await;
}

// rule: gate.webhook-tools.list, gate.webhook-tools.skip
#[tokio::test]
async fn deliveries_are_filtered_and_paged_newest_first() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.insert(0, text(&send_test(&acme).await, "id").to_owned());
        gate.world().after(1);
    }
    gate.conclude(AttemptOutcome::Delivered, Some(204), None)
        .await;
    let last = send_test(&acme).await;
    let newest = text(&last, "id").to_owned();
    let ids = async |query: &str| -> Vec<String> {
        let found = list(&acme, query).await;
        found.iter().map(|one| text(one, "id").to_owned()).collect()
    };
    let all = [std::slice::from_ref(&newest), &sent].concat();
    assert_eq!(ids("").await, all);
    assert_eq!(ids("status=pending").await, [newest]);
    assert_eq!(ids("status=succeeded").await, sent);
    assert!(ids("status=in_flight").await.is_empty());
    assert_eq!(ids("skip=1&limit=2").await, all[1..3]);
    assert!(ids("skip=4").await.is_empty() && ids("skip=10000").await.is_empty());
    assert!(ids("status=succeeded&skip=10000").await.is_empty());
    let more =
        async |query: &str| acme.get(&format!("{LIST}?{query}")).await.ok()["has_more"].clone();
    assert_eq!(
        (more("limit=3").await, more("limit=4").await),
        (json!(true), json!(false))
    );
    let done = list(&acme, "status=succeeded&limit=1").await.remove(0);
    assert_eq!(
        (&done["attempts"], &done["last_response_status"]),
        (&json!(1), &json!(204))
    );
    assert_eq!(done["next_attempt_at"], Value::Null);
    assert_eq!(done["delivered_at"], "2026-05-25T12:00:00.003Z");
    for bad in [
        "limit=0",
        "limit=201",
        "limit=x",
        "skip=-1",
        "skip=x",
        "skip=1&skip=2",
        "status=failed",
        "status=",
        "limit=1&limit=2",
    ] {
        let answer = acme.get(&format!("{LIST}?{bad}")).await;
        answer.refused(400, "invalid_request");
    }
    for skip in ["10001", "4294967295", "4294967296", "99999999999999999999"] {
        let answer = acme.get(&format!("{LIST}?skip={skip}")).await;
        let refused = answer.refused(400, "invalid_request");
        refused
            .saying("`skip` must be at most 10000")
            .saying("`starting_after`");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.webhook-tools.starting-after, list.foreign-cursor
#[tokio::test]
async fn deliveries_are_paged_by_the_last_one() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.insert(0, text(&send_test(&acme).await, "id").to_owned());
    }
    let all: Vec<Value> = list(&acme, "").await;
    let all: Vec<&str> = all.iter().map(|one| text(one, "id")).collect();
    for query in ["limit=2", "limit=2&status=pending"] {
        let (mut read, mut after) = (Vec::new(), String::new());
        loop {
            let page = acme.get(&format!("{LIST}?{query}{after}")).await.ok();
            let items = page["data"].as_array().unwrap();
            read.extend(items.iter().map(|one| text(one, "id").to_owned()));
            if page["has_more"] == false {
                break;
            }
            after = format!("&starting_after={}", read.last().unwrap());
        }
        assert_eq!(read, all, "{query}");
    }
    let live = sent[0].replace("_test_", "_live_");
    for unknown in ["wd_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", &live] {
        let path = format!("{LIST}?starting_after={unknown}");
        let page = acme.get(&path).await.ok();
        assert_eq!(
            (&page["data"], &page["has_more"]),
            (&json!([]), &json!(false))
        );
    }
    let newest = &sent[0];
    for (bad, words) in [
        (
            "starting_after=".to_owned(),
            "expected the id of a delivery",
        ),
        (
            "starting_after=x".to_owned(),
            "expected the id of a delivery",
        ),
        (format!("starting_after={newest}&skip=0"), "send only one"),
        (format!("starting_after={newest}&skip=2"), "send only one"),
    ] {
        let answer = acme.get(&format!("{LIST}?{bad}")).await;
        answer.refused(400, "invalid_request").saying(words);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.webhook-tools.replay, webhook.replay, webhook.dead-letter
#[tokio::test]
async fn only_dead_letters_are_replayed() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let sent = send_test(&acme).await;
    let id = text(&sent, "id");
    replay(&acme, id)
        .await
        .refused(400, "delivery_not_dead_lettered");
    gate.conclude(AttemptOutcome::GivenUp, Some(500), Some("answered 500"))
        .await;
    let dead = list(&acme, "status=dead_lettered").await.remove(0);
    assert_eq!(
        (
            &dead["attempts"],
            &dead["last_response_status"],
            &dead["last_error"],
            &dead["next_attempt_at"]
        ),
        (&json!(1), &json!(500), &json!("answered 500"), &Value::Null)
    );
    gate.world().after(5_000);
    let again = replay(&acme, id).await.ok();
    assert_eq!(
        (
            &again["id"],
            &again["event_id"],
            &again["status"],
            &again["attempts"]
        ),
        (&sent["id"], &sent["event_id"], &json!("pending"), &json!(0))
    );
    assert_eq!(again["next_attempt_at"], "2026-05-25T12:00:05.000Z");
    replay(&acme, id)
        .await
        .refused(400, "delivery_not_dead_lettered");
    gate.conclude(AttemptOutcome::Delivered, Some(200), None)
        .await;
    replay(&acme, id)
        .await
        .refused(400, "delivery_not_dead_lettered");
    gate.notice(ACME, text(&sent, "event_id")).await;
    gate.finish().await;
}

// rule: gate.webhook-tools.replay, gate.webhook-tools.list, gate.webhook-tools.test, tenancy.nothing-crosses
#[tokio::test]
async fn deliveries_of_other_partners_are_absent() {
    let gate = Gate::new().await;
    let (acme, rival) = (gate.acme(), gate.rival());
    let sent = send_test(&acme).await;
    gate.conclude(AttemptOutcome::GivenUp, Some(500), None)
        .await;
    let id = text(&sent, "id");
    // The rival has no endpoint.
    let unsent = rival.send(Call::post("/v1/webhooks/test")).await;
    unsent.refused(400, "webhook_not_configured");
    assert!(list(&rival, "").await.is_empty());
    assert!(
        list(&rival, &format!("starting_after={id}"))
            .await
            .is_empty()
    );
    for unknown in [
        id,
        &id.replace("_test_", "_live_"),
        "wd_test_01HF7YAT00408104G208104081",
        "x",
        "%00",
        text(&sent, "event_id"),
    ] {
        replay(&rival, unknown)
            .await
            .refused(404, "resource_not_found");
    }
    let live = gate.other_mode().await;
    assert!(list(&live.acme(), "").await.is_empty());
    replay(&live.acme(), id)
        .await
        .refused(404, "resource_not_found");
    live.close().await;
    gate.notice(ACME, text(&sent, "event_id")).await;
    gate.finish().await;
}

// rule: webhook.own-service, gate.webhook-tools.list
#[tokio::test]
async fn deliveries_of_the_pools_are_absent_from_the_gate() {
    let gate = Gate::new().await;
    let world = gate.world();
    world.operator().credit(ACME, "100.00", "EUR").await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100").await;
    world.acme().poll(&quote).await.ok();
    world.notice(ACME, &trade).await;
    assert!(list(&gate.acme(), "").await.is_empty());
    let [delivery] = gate.deliveries_of(ACME, &trade).await.try_into().unwrap();
    let answer = replay(&gate.acme(), &delivery).await;
    answer.refused(404, "resource_not_found");
    gate.finish().await;
}
