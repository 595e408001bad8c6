//! `Idempotency-Key` in the gate: replays are equal to the byte.

use std::time::Duration;

use acceptance::{ACME, ACME_SECRET_2, Answer, Call, Gate, RIVAL, SHOP, session};
use kernel::Mode;
use partner_core::events::Service;
use serde_json::json;

use super::customers::hex;
use super::races::at_once;
use super::rails::{order, purchase};

const PATH: &str = "/v1/gate_sessions";
const DAY: u64 = 24 * 60 * 60 * 1000;
const WARNING: &str = "penstock-warning";

/// All parts of a response that a replay repeats: throttle headers and warnings belong to the request instead.
fn whole(answer: &Answer) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let mut headers: Vec<(String, String)> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .filter(|(name, _)| !name.starts_with("x-ratelimit-") && name != WARNING)
        .collect();
    headers.sort();
    (answer.status, headers, answer.bytes.to_vec())
}

/// Processes with other settings, of the other service or mode, share the database.
// rule: idempotency.own-expiry, idempotency.gate-replay
#[tokio::test]
async fn stored_response_outlives_sweeps_of_other_processes() {
    let gate = Gate::new().await;
    let first = gate.acme().open_id("k").await;
    let second = Duration::from_secs(1);
    let operator = gate.world().operator();
    for minutes in [4, 8] {
        gate.world().after(4 * 60 * 1000);
        for (service, mode, ttl) in [
            (Service::Pools, Mode::Test, second),
            (Service::Gate, Mode::Live, second),
            (Service::Gate, Mode::Test, second),
        ] {
            operator.sweep_keys(service, mode, ttl).await;
        }
        let again = gate.acme().open_id("k").await;
        assert_eq!(again, first, "after {minutes} minutes");
    }
    gate.world().after(DAY - 8 * 60 * 1000);
    let other = gate.acme().open_id("k").await;
    assert_ne!(other, first);
    for id in [first, other] {
        gate.notice(ACME, &id).await;
    }
    gate.finish().await;
}

/// An earlier release stored no expiry, and may have kept keys for a week.
// rule: idempotency.no-expiry
#[tokio::test]
async fn stored_response_without_expiry_counts_for_a_day_or_the_configured_time() {
    for (seconds, counts) in [(1, DAY), (7 * 24 * 60 * 60, 7 * DAY)] {
        let ttl = Duration::from_secs(seconds);
        let gate = Gate::with(|setup| setup.idempotency_ttl = ttl).await;
        let first = gate.acme().open_id("k").await;
        gate.world()
            .damage("UPDATE answers SET expires_at = NULL")
            .await;
        gate.world().after(counts - 1);
        let operator = gate.world().operator();
        operator.sweep_keys(Service::Gate, Mode::Test, ttl).await;
        assert_eq!(gate.acme().open_id("k").await, first);
        gate.world().after(1);
        let other = gate.acme().open_id("k").await;
        assert_ne!(other, first);
        for id in [first, other] {
            gate.notice(ACME, &id).await;
        }
        gate.finish().await;
    }
}

/// No input of a partner counts as a failure of the database, which stores no NUL.
// rule: idempotency.scope, id.malformed-path
#[tokio::test]
async fn key_has_no_scope_when_path_cannot_be_an_id() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for id in ["%00", "a%00b", "%ff", "%C0%80", "%E2%80%AE", "x"] {
        for (method, path) in [
            ("PATCH", format!("/v1/customers/{id}")),
            ("DELETE", format!("/v1/customers/{id}")),
            ("POST", format!("/v1/gate_sessions/{id}/cancel")),
            ("POST", format!("/v1/test_helpers/sessions/{id}/complete")),
            ("POST", format!("/v1/test_helpers/sessions/{id}/fail")),
        ] {
            for body in ["{", "{}", "{\"metadata\":0}"] {
                let call = Call::new(method, &path).key("k").body(body);
                let call = call.header("content-type", "application/json");
                let answer = acme.send(call).await;
                assert!(matches!(answer.status, 400 | 404), "{body}: {answer:?}");
            }
        }
    }
    gate.finish().await;
}

// rule: idempotency.gate-required, idempotency.malformed, idempotency.any-text
#[tokio::test]
async fn idempotency_header_is_validated() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let call = || Call::post(PATH).json(&session(SHOP));
    let without = acme.send(call()).await;
    without.refused(400, "idempotency_key_required");
    let long = "x".repeat(256);
    for bad in ["", " ", "a b", "a\tb", "ключ", "\"\"", "\"a", &long] {
        let answer = acme.send(call().key(bad)).await;
        answer.refused(400, "idempotency_key_invalid");
    }
    let twice = acme.send(call().key("a").key("a")).await;
    twice.refused(400, "idempotency_key_invalid");
    assert_eq!(gate.world().database().count("answers").await, 0);
    for good in [&long[1..], "!", "{}", "%00", "'; DROP TABLE sessions; --"] {
        let id = acme.open_id(&good.replace(' ', "")).await;
        gate.notice(ACME, &id).await;
    }
    // A malformed body is refused before the key is checked.
    let broken = acme.send(
        Call::post(PATH)
            .body("{")
            .header("content-type", "application/json"),
    );
    broken.await.refused(400, "invalid_json");
    gate.finish().await;
}

/// Whether a response says that it belongs to another body.
fn warns_of_body(answer: &Answer) -> bool {
    let warning = answer.header(WARNING);
    warning.is_some_and(|text| text.starts_with("idempotency_body_ignored; "))
}

// rule: idempotency.gate-replay, idempotency.gate-any-body, idempotency.quoted, idempotency.gate-sealed, warning.body-ignored
#[tokio::test]
async fn repeated_key_replays_the_first_response_to_any_body() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let first = acme.create(&session(SHOP), "k").await;
    let id = first["id"].as_str().unwrap().to_owned();
    let secret = first["client_secret"].as_str().unwrap().to_owned();
    let before = gate.world().database().digest().await;
    let answers = before["answers"].to_lowercase();
    assert!(!answers.contains(&secret.to_lowercase()) && !answers.contains(&hex(&secret)));
    gate.world().after(1_000);
    let other = json!({ "amount": "-1", "currency": "??", "return_url": "https://evil.example" });
    for (body, key, is_same) in [
        (session(SHOP), "k", true),
        (other, "k", false),
        (session(SHOP), "\"k\"", true),
    ] {
        let again = acme.create(&body, key).await;
        assert_eq!(whole(&again), whole(&first));
        assert_eq!(warns_of_body(&again), !is_same);
        let named = |answer: &Answer| answer.header("x-request-id").unwrap().to_owned();
        assert_eq!(named(&again), named(&first));
    }
    // The key belongs to the partner, not to the API key of the request.
    let again = gate.client(ACME_SECRET_2).create(&session(SHOP), "k").await;
    assert_eq!(whole(&again), whole(&first));
    assert_eq!(gate.world().database().digest().await, before);
    // The replay does not show later changes of the session.
    acme.cancel(&id).await.created();
    let again = acme.create(&session(SHOP), "k").await;
    assert_eq!(whole(&again), whole(&first));
    gate.notice(ACME, &id).await;
    gate.finish().await;
}

// rule: idempotency.gate-any-body, warning.body-ignored
#[tokio::test]
async fn repeated_key_with_unreadable_body_replays_the_first_response() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let open = acme.open("s").await;
    let quote = purchase(&acme, "q", "100.00").await;
    let paid = json!({ "quote_id": quote["id"], "session_id": open["id"] });
    let customer = json!({ "email": "ann@example.com" });
    let made = acme.create_customer(&customer, "c").await.created();
    let path = format!("/v1/customers/{}", made["id"].as_str().unwrap());
    let unpaid = acme.open("unpaid").await;
    let fail = format!(
        "/v1/test_helpers/sessions/{}/fail",
        unpaid["id"].as_str().unwrap()
    );
    for call in [
        Call::post(PATH).json(&session(SHOP)),
        Call::post("/v1/quotes").json(&order()),
        Call::post("/v1/rails/pay_ins").json(&paid),
        Call::post("/v1/customers").json(&json!({ "email": "bob@example.com" })),
        Call::new("PATCH", &path).json(&json!({ "first_name": "Ann" })),
        Call::new("PATCH", "/v1/branding").json(&json!({ "brand_name": "Acme" })),
        Call::post(&fail).json(&json!({ "code": "kyc_failed" })),
    ] {
        let first = acme.send(call.clone().key("k")).await;
        assert!(matches!(first.status, 200 | 201), "{}", first.body);
        for body in ["{", "[]", "{\"amount\":1,\"email\":1,\"foo\":1,\"code\":1}"] {
            let bent = call.clone().body(body).key("k");
            let again = acme.send(bent).await;
            assert_eq!(whole(&again), whole(&first), "{body}");
            assert!(warns_of_body(&again), "{body}");
            // Another key is not replayed, so the body is validated.
            let other = call.clone().body(body).key("another");
            assert_eq!(acme.send(other).await.status, 400, "{body}");
        }
    }
    let stranger = Call::post("/v1/customers")
        .body("{")
        .header("content-type", "application/json");
    let refused = gate.rival().send(stranger.key("k")).await;
    refused.refused(400, "invalid_json");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: idempotency.scope, tenancy.nothing-crosses
#[tokio::test]
async fn key_belongs_to_one_partner_mode_and_route() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    let (acme, rival) = (gate.acme(), gate.rival());
    let mine = acme.open_id("k").await;
    let other = acme.open_id("l").await;
    let foreign = rival.open_id("k").await;
    let of_live = live.acme().open_id("k").await;
    assert_ne!(mine, foreign);
    // The same key on another path is another operation.
    for id in [&mine, &other] {
        let cancel = Call::post(&format!("{PATH}/{id}/cancel")).key("k");
        let cancelled = acme.send(cancel).await.created();
        assert_eq!(
            (&cancelled["id"], &cancelled["status"]),
            (&json!(id), &json!("cancelled"))
        );
        gate.notice(ACME, id).await;
    }
    gate.notice(RIVAL, &foreign).await;
    live.notice(ACME, &of_live).await;
    live.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: idempotency.gate-twin, idempotency.in-flight
#[tokio::test]
async fn twin_in_flight_is_refused_as_in_progress() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let id = acme.open_id("made").await;
    let cancel = format!("{PATH}/{id}/cancel");
    for (route, call) in [
        (PATH.to_owned(), Call::post(PATH).json(&session(SHOP))),
        (cancel.clone(), Call::post(&cancel)),
    ] {
        let ticket = gate.enter(ACME, &format!("POST {route}"), "k").await;
        let twin = acme.send(call.clone().key("k")).await;
        twin.refused(409, "idempotency_in_progress");
        drop(ticket);
        let after = acme.send(call.key("k")).await.created();
        gate.notice(ACME, after["id"].as_str().unwrap()).await;
    }
    let ticket = gate.enter(ACME, "PATCH /v1/branding", "k").await;
    let patch = || Call::new("PATCH", "/v1/branding").json(&json!({})).key("k");
    acme.send(patch())
        .await
        .refused(409, "idempotency_in_progress");
    // A body of another shape is refused before the search for a twin.
    let strange = Call::new("PATCH", "/v1/branding").json(&json!({ "color": 1 }));
    acme.send(strange.key("k"))
        .await
        .refused(400, "invalid_request");
    drop(ticket);
    acme.send(patch()).await.ok();
    gate.finish().await;
}

// rule: idempotency.gate-twin, idempotency.gate-replay, gate.session.created
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_creates_under_one_key_make_one_session() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    let create = |_| Call::post(PATH).json(&session(SHOP)).key("k");
    let mut made = Vec::new();
    for answer in at_once([&gate, &replica], (0..20).map(create)).await {
        if answer.status == 201 {
            made.push(whole(&answer));
        } else {
            answer.refused(409, "idempotency_in_progress");
        }
    }
    assert!(!made.is_empty());
    assert!(made.iter().all(|answer| *answer == made[0]));
    assert_eq!(gate.world().database().count("sessions").await, 1);
    replica.close().await;
    let id = gate.acme().open_id("k").await;
    assert_eq!(gate.notice(ACME, &id).await, ["gate_session.created"]);
    gate.finish().await;
}

// rule: idempotency.gate-optional, gate.session.cancel, gate.helper.complete, gate.helper.fail
#[tokio::test]
async fn actions_replay_under_a_key_and_conflict_without() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (name, path) in [
        ("cancelled", "gate_sessions/{id}/cancel"),
        ("completed", "test_helpers/sessions/{id}/complete"),
        ("open", "test_helpers/sessions/{id}/fail"),
    ] {
        let id = acme.open_id(name).await;
        let path = format!("/v1/{}", path.replace("{id}", &id));
        let call = || Call::post(&path);
        acme.send(call().key(""))
            .await
            .refused(400, "idempotency_key_invalid");
        let first = acme.send(call().key("k")).await;
        let again = acme.send(call().key("k")).await;
        assert_eq!(whole(&again), whole(&first));
        assert!(first.status < 300);
        assert_eq!(acme.status(&id).await, name);
        if name != "open" {
            for call in [call(), call().key("another")] {
                acme.send(call)
                    .await
                    .refused(409, "session_not_open")
                    .saying(name);
            }
        }
        gate.notice(ACME, &id).await;
    }
    // One transaction for the payment and one for the attempt, however often they were requested.
    assert_eq!(gate.world().database().count("transactions").await, 2);
    gate.finish().await;
}
