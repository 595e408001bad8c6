use std::collections::BTreeMap;
use std::sync::Arc;

use gate_core::verification::form::{Form, FormField};
use kernel::{Bound, Timestamp};
use serde_json::{Value, json};
use test_support::http::{Reply, Upstream};

use super::*;
use crate::client::tests::late;
use crate::sandbox_verifier::tests::order;
use crate::upstream::replies::{self, PATIENT, check_heads, says, typed};

const ID: &str = "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";

fn approved() -> Reply {
    says(&json!({ "id": ID, "status": "approved" }))
}

/// A verifier that gives these replies, and its adapter.
fn giving(replies: &[Reply], timeout: Duration) -> (Upstream, HttpVerifier) {
    let (far, url, secret) = replies::giving(replies);
    let verifier = HttpVerifier::new(url, secret.as_ref(), timeout).unwrap();
    (far, verifier)
}

fn start() -> String {
    format!("PUT /desk/v1/verifications/{ID}")
}

fn report() -> String {
    format!("GET /desk/v1/verifications/{ID}")
}

/// Responses that are valid for no call.
fn faults() -> Vec<Reply> {
    let good = json!({ "id": ID, "status": "approved" });
    let mut faults = replies::faults(&good, MAX_RESPONSE_BYTES);
    faults.push(typed(404, "application/json", &good.to_string()));
    for body in [
        json!({ "status": "approved" }),
        json!({ "id": ID }),
        json!({ "id": ID, "status": "rejected" }),
        json!({ "id": ID, "status": "rejected", "reason": "" }),
        json!({ "id": ID, "status": "rejected", "reason": "a\nb" }),
        json!({ "id": ID, "status": "rejected", "reason": "x".repeat(513) }),
    ] {
        faults.push(says(&body));
    }
    faults
}

// rule: verifier.http.calls, verifier.http.secret
#[tokio::test]
async fn verification_starts_takes_answers_and_is_reported_under_its_id() {
    let form = r#"{"type":"object","properties":{"level":{"type":"string"}}}"#;
    let started = format!(
        r#"{{"id":"{ID}","status":"pending","url":"https://v.example/case/1","form":{form},
            "expires_at":"2026-05-25T13:00:00Z","reference":"case-1","news":1}}"#
    );
    let charset = "Application/JSON; charset=utf-8";
    let reason = "The document has expired.";
    let replies = [
        typed(200, charset, &started),
        says(&json!({ "id": ID, "status": "pending" })),
        says(&json!({ "id": ID, "status": "rejected", "reason": reason })),
    ];
    let (far, verifier) = giving(&replies, PATIENT);
    let order = order("100.50");
    let start_of = verifier.start(&order).await.unwrap();
    let expires_at = Timestamp::parse("2026-05-25T13:00:00Z", Bound::Upper).unwrap();
    let expected = VerificationStart {
        report: VerificationReport::Pending,
        url: Some("https://v.example/case/1".to_owned()),
        form: Some(Form::new(
            JsonObject::form(form).unwrap(),
            BTreeMap::from([("level".to_owned(), FormField::default())]),
        )),
        expires_at: Some(expires_at),
        reference: Some("case-1".to_owned()),
    };
    assert_eq!(start_of, expected);
    let answers = JsonObject::form(r#"{"level":"two"}"#).unwrap();
    let submitted = verifier.submit(&order, &answers).await;
    assert_eq!(submitted, Some(VerificationReport::Pending));
    let rejected = VerificationReport::Rejected {
        reason: Some(reason.to_owned()),
    };
    assert_eq!(verifier.report(&order).await, Some(rejected));
    let submit = format!("POST /desk/v1/verifications/{ID}/answers");
    assert_eq!(far.lines(), [start(), submit, report()]);
    let received = far.received();
    check_heads(&far);
    let created_at = order.created_at.to_string();
    assert_eq!(
        received[0].json(),
        json!({ "amount": "100.50", "currency": "EUR", "created_at": created_at })
    );
    assert_eq!(received[1].json(), json!({ "answers": { "level": "two" } }));
    assert_eq!(received[2].json(), Value::Null);
}

// rule: verifier.http.silence
#[tokio::test]
async fn invalid_response_decides_nothing_and_is_not_followed() {
    let order = order("100.00");
    for fault in faults() {
        let three = [fault.clone(), fault.clone(), fault.clone()];
        let (far, verifier) = giving(&three, PATIENT);
        assert_eq!(verifier.start(&order).await, None, "{fault:?}");
        let submitted = verifier.submit(&order, &JsonObject::empty()).await;
        assert_eq!(submitted, None, "{fault:?}");
        assert_eq!(verifier.report(&order).await, None, "{fault:?}");
        assert_eq!(far.lines().len(), 3, "{fault:?}");
    }
}

// rule: verifier.http.silence, verifier.http.page, verifier.http.form
#[tokio::test]
async fn start_with_invalid_field_counts_as_no_response() {
    let form = |field: Value| json!({ "type": "object", "properties": { "a": field } });
    let large = form(json!({ "type": "string", "title": "x".repeat(17_000) }));
    for (field, value, valid) in [
        ("url", json!("https://v.example/c"), true),
        ("url", json!("http://127.0.0.1:9/c"), true),
        ("url", json!("http://[::1]/c"), true),
        ("url", json!("http://localhost:9/c"), true),
        ("url", json!(null), true),
        ("url", json!("http://v.example/c"), false),
        ("url", json!("http://localhost.example/c"), false),
        ("url", json!("http://127.0.0.1.example/c"), false),
        ("url", json!("javascript:alert(1)"), false),
        ("url", json!("data:text/html,x"), false),
        ("url", json!("//v.example/c"), false),
        ("url", json!("https://user:hunter2@v.example/"), false),
        (
            "url",
            json!(format!("https://v.example/{}", "x".repeat(2_048))),
            false,
        ),
        ("form", form(json!({ "type": "string" })), true),
        ("form", json!(null), true),
        ("form", form(json!({ "type": "object" })), false),
        ("form", json!("{}"), false),
        ("form", large, false),
        ("expires_at", json!("tomorrow"), false),
        ("expires_at", json!(1_780_000_000), false),
        ("reference", json!("x".repeat(128)), true),
        ("reference", json!("x".repeat(129)), false),
        ("reference", json!(""), false),
        ("reference", json!("a b"), false),
    ] {
        let mut body = json!({ "id": ID, "status": "pending" });
        body[field] = value.clone();
        let (_far, verifier) = giving(&[says(&body)], PATIENT);
        let started = verifier.start(&order("100.00")).await;
        assert_eq!(started.is_some(), valid, "{field} {value}");
    }
}

// rule: verifier.http.page
#[tokio::test]
async fn plain_page_of_live_verification_counts_as_no_response() {
    let live = VerificationId::parse(&ID.replace("test", "live")).unwrap();
    let order = VerificationOrder {
        id: live,
        ..order("100.00")
    };
    for (url, valid) in [
        ("http://127.0.0.1:9/c", false),
        ("http://[::1]/c", false),
        ("HTTP://localhost:9/c", false),
        ("https://127.0.0.1:9/c", true),
        ("https://v.example/c", true),
    ] {
        let body = json!({ "id": live.to_string(), "status": "pending", "url": url });
        let (_far, verifier) = giving(&[says(&body)], PATIENT);
        let started = verifier.start(&order).await;
        assert_eq!(started.is_some(), valid, "{url}");
    }
}

// rule: verifier.name
#[test]
fn verifier_is_named_after_its_place_unless_it_has_a_name() {
    let url = UpstreamUrl::parse("http://Verifier.Internal:8443/checks/").unwrap();
    let verifier = HttpVerifier::new(url, None, PATIENT).unwrap();
    assert_eq!(verifier.name().as_str(), "verifier.internal:8443/checks");
    let name = UpstreamName::parse("checks-2").unwrap();
    assert_eq!(verifier.named(name.clone()).name(), name);
}

#[test]
fn three_calls_fit_into_the_timeout_of_a_start() {
    assert!(TIMEOUT * 3 < gate_core::usecases::verify_user::VERIFIER_TIMEOUT);
}

// rule: verifier.http.silence, verifier.http.once
#[tokio::test]
async fn call_without_response_is_repeated_with_same_id_and_content() {
    let order = order("100.00");
    let (far, verifier) = giving(&[Reply::broken(), approved(), approved()], PATIENT);
    assert_eq!(verifier.start(&order).await, None);
    let first = verifier.start(&order).await.unwrap();
    assert_eq!(first.report, VerificationReport::Approved);
    assert_eq!(verifier.start(&order).await, Some(first));
    assert_eq!(far.lines(), [start(), start(), start()]);
    let received = far.received();
    assert_eq!(received[0], received[1]);
    assert_eq!(received[1], received[2]);
}

// rule: verifier.http.silence
#[tokio::test]
async fn late_response_decides_nothing() {
    let order = order("100.00");
    let silent = [Reply::Waits, Reply::Waits];
    let (far, verifier) = giving(&silent, PATIENT);
    let starting = late(|| far.lines().len() == 1, verifier.start(&order));
    assert_eq!(starting.await, None);
    let polling = late(|| far.lines().len() == 2, verifier.report(&order));
    assert_eq!(polling.await, None);
    assert_eq!(far.lines(), [start(), report()]);
}

// rule: verifier.http.even-share
#[tokio::test]
async fn calls_of_one_partner_that_hang_delay_no_other_partner() {
    let far = Upstream::start(|request| {
        let body = request.json();
        let hangs = body["amount"] == "66.66" || body["answers"]["level"] == "slow";
        if hangs { Reply::Waits } else { approved() }
    });
    let url = UpstreamUrl::parse(&far.url()).unwrap();
    let verifier = Arc::new(HttpVerifier::new(url, None, PATIENT).unwrap());
    // More calls than the client makes at the same time.
    let flood: Vec<_> = (0..300)
        .map(|number| {
            let (verifier, slow) = (Arc::clone(&verifier), order("66.66"));
            tokio::spawn(async move {
                if number % 2 == 0 {
                    verifier.start(&slow).await.is_some()
                } else {
                    let answers = JsonObject::form(r#"{"level":"slow"}"#).unwrap();
                    verifier.submit(&slow, &answers).await.is_some()
                }
            })
        })
        .collect();
    for _ in 0..6_000 {
        if far.received().len() >= 128 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(far.received().len(), 128);
    let others = VerificationOrder {
        partner: PartnerId::parse("globex").unwrap(),
        ..order("100.00")
    };
    let answers = JsonObject::form(r#"{"level":"two"}"#).unwrap();
    assert!(verifier.start(&others).await.is_some());
    assert!(verifier.submit(&others, &answers).await.is_some());
    // The polls of every partner continue, also about a verification whose other calls hang.
    for polled in [&others, &order("66.66")] {
        let report = verifier.report(polled).await;
        assert_eq!(report, Some(VerificationReport::Approved));
    }
    assert_eq!(far.received().len(), 128 + 2 + 2);
    assert!(flood.iter().all(|call| !call.is_finished()));
    for call in flood {
        call.abort();
        drop(call.await);
    }
    assert!(verifier.start(&order("100.00")).await.is_some());
}

// rule: verifier.http.even-share
#[tokio::test]
async fn polls_ask_while_other_calls_have_no_permit() {
    let (far, mut verifier) = giving(&[approved()], Duration::from_millis(100));
    let order = order("100.00");
    let permits = verifier.upstream.client.all_permits();
    assert_eq!(verifier.start(&order).await, None);
    let submitted = verifier.submit(&order, &JsonObject::empty()).await;
    assert_eq!(submitted, None);
    assert_eq!(far.lines(), [""; 0]);
    verifier.upstream.timeout = PATIENT;
    let report = verifier.report(&order).await;
    assert_eq!(report, Some(VerificationReport::Approved));
    drop(permits);
}
