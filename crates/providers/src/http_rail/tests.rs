use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use gate_core::payout::{AccountForm, Payout};
use gate_core::rail::{RailKind, RailReport};
use gate_core::usecases::advance_rails::RAIL_TIMEOUT;
use hyper::header::HeaderValue;
use kernel::{Bound, Timestamp};
use partner_core::PartnerId;
use serde_json::{Value, json};
use test_support::http::{Reply, Upstream, nowhere};
use tokio::task::JoinSet;

use super::*;
use crate::client::tests::late;
use crate::sandbox_rail::tests::{pay_in, poll, swap};
use crate::upstream::replies::{self, PATIENT, check_heads, typed};

const ID: &str = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";

fn says(body: &str) -> Reply {
    Reply::json(200, &body.replace("ID", ID))
}

fn status(status: u16) -> Reply {
    let settled = json!({ "id": ID, "status": "settled" });
    typed(status, "application/json", &settled.to_string())
}

fn accepted() -> Reply {
    says(r#"{"id":"ID","status":"accepted"}"#)
}

/// The report in [`settled`].
fn was_settled() -> RailAnswer {
    let reference = Some("e2e-1".to_owned());
    RailReport::Settled { reference }.into()
}

/// The rail does not know the payment.
fn unknown() -> Reply {
    Reply::json(404, &json!({ "id": ID }).to_string())
}

/// A poll that may not begin the payment.
fn report_only(attempt: u32) -> RailPoll {
    RailPoll {
        may_begin: false,
        ..poll(attempt)
    }
}

fn settled() -> Reply {
    says(r#"{"id":"ID","status":"settled","reference":"e2e-1"}"#)
}

/// A rail that gives these replies, and its adapter.
fn giving(replies: &[Reply], timeout: Duration) -> (Upstream, HttpRail) {
    let (far, url, secret) = replies::giving(replies);
    let rail = HttpRail::new(url, secret.as_ref(), timeout).unwrap();
    (far, rail)
}

/// The methods and paths of the requests.
fn lines(far: &Upstream) -> Vec<String> {
    check_heads(far);
    far.lines()
}

fn order() -> RailOrder {
    pay_in("100.00")
}

/// The customer gives up.
async fn cancel(rail: &HttpRail, order: &RailOrder) -> Option<CancelReport> {
    rail.cancel(order, GivenUp::ByCustomer).await
}

fn begin() -> String {
    format!("PUT /desk/v1/payments/{ID}")
}

fn report() -> String {
    format!("GET /desk/v1/payments/{ID}")
}

/// Responses that are valid for no call. But for its fault, each would report this outcome.
fn faults(outcome: &str) -> Vec<Reply> {
    let good = json!({ "id": ID, "status": outcome, "instructions": {} });
    let mut faults = replies::faults(&good, MAX_RESPONSE_BYTES);
    let accepted = json!({ "id": ID.replace("8JK", "8JM"), "status": "accepted" });
    faults.push(replies::says(&accepted));
    faults.push(says(r#"{"id":"ID","status":"failed","code":"Not A Code"}"#));
    faults
}

// rule: rail.http.calls, rail.http.secret
#[tokio::test]
async fn payment_begins_at_first_poll_and_is_reported_under_its_id() {
    let processing = says(r#"{"id":"ID","status":"processing"}"#);
    let replies = [accepted(), processing, settled()];
    let (far, rail) = giving(&replies, PATIENT);
    let order = order();
    let first = rail.advance(&order, poll(1)).await;
    assert_eq!(first, RailAnswer::from(RailReport::InProgress));
    assert_eq!(rail.advance(&order, poll(2)).await, was_settled());
    assert_eq!(lines(&far), [begin(), report(), report()]);
    let received = far.received();
    let payment = json!({
        "kind": "pay_in", "currency": "EUR", "asset": "USDT", "network": "tron", "payment_method": "sepa",
        "fiat_amount": "100.00", "crypto_amount": "1",
    });
    assert_eq!(received[0].json(), payment);
    assert_eq!(received[1].json(), Value::Null);
}

// rule: rail.http.calls
#[tokio::test]
async fn pay_out_begins_with_its_kind() {
    let mut order = order();
    let id = ID.replace("pi_", "po_");
    order.id = RailId::parse(RailKind::PayOut, &id).unwrap();
    let account = [("sort_code", "123456"), ("account_number", "12345678")];
    let given = account.map(|(field, text)| (field.to_owned(), text.to_owned()));
    order.payout = Payout::parse(AccountForm::Uk, &given.into()).ok();
    let reply = |status| {
        let body = json!({ "id": id, "status": status });
        Reply::json(200, &body.to_string())
    };
    let replies = [reply("accepted"), reply("settled")];
    let (far, rail) = giving(&replies, PATIENT);
    let settled = RailReport::Settled { reference: None };
    let answer = rail.advance(&order, poll(1)).await;
    assert_eq!(answer, RailAnswer::from(settled));
    assert_eq!(far.received()[0].json()["kind"], "pay_out");
    let payout = json!({ "sort_code": "123456", "account_number": "12345678" });
    assert_eq!(far.received()[0].json()["payout"], payout);
    assert_eq!(lines(&far)[1], format!("GET /desk/v1/payments/{id}"));
}

// rule: rail.http.calls, gate.payment.swap
#[tokio::test]
async fn swap_begins_with_both_assets_and_the_wallet() {
    let order = swap("100.00");
    let id = order.id.to_string();
    let reply = |status| {
        let body = json!({ "id": id, "status": status });
        Reply::json(200, &body.to_string())
    };
    let replies = [reply("accepted"), reply("cancelled")];
    let (far, rail) = giving(&replies, PATIENT);
    let answer = rail.advance(&order, poll(1)).await;
    assert_eq!(answer, RailAnswer::from(RailReport::Cancelled));
    let payment = json!({
        "kind": "swap", "currency": "EUR", "asset": "USDT", "network": "tron", "source_asset": "BTC",
        "source_network": "bitcoin", "source_amount": "0.002", "fiat_amount": "100.00", "crypto_amount": "1",
        "wallet_address": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
    });
    assert_eq!(far.received()[0].json(), payment);
}

// rule: rail.http.once
#[tokio::test]
async fn unknown_payment_begins_again_with_the_same_id_and_terms() {
    let replies = [Reply::broken(), unknown(), accepted(), settled()];
    let (far, rail) = giving(&replies, PATIENT);
    let order = order();
    assert_eq!(rail.advance(&order, poll(1)).await, RailAnswer::Silent);
    assert_eq!(rail.advance(&order, poll(2)).await, was_settled());
    assert_eq!(lines(&far), [begin(), report(), begin(), report()]);
    let received = far.received();
    assert_eq!(received[0].json(), received[2].json());
}

// rule: rail.http.silence, rail.acknowledged-stays-begun
#[tokio::test]
async fn payment_that_the_rail_forgets_after_its_acceptance_counts_as_accepted() {
    let order = order();
    for forgets in [unknown(), Reply::broken()] {
        let (far, rail) = giving(&[accepted(), forgets.clone()], PATIENT);
        assert_eq!(rail.advance(&order, poll(1)).await, RailAnswer::Accepted);
        assert_eq!(lines(&far), [begin(), report()]);
        let (far, rail) = giving(&[unknown(), accepted(), forgets], PATIENT);
        assert_eq!(rail.advance(&order, poll(2)).await, RailAnswer::Accepted);
        assert_eq!(lines(&far), [report(), begin(), report()]);
    }
}

// rule: rail.acknowledged-stays-begun, rail.watch
#[tokio::test]
async fn payment_that_may_not_begin_is_only_reported() {
    let order = order();
    for attempt in [1, 2] {
        let (far, rail) = giving(&[unknown(), settled()], PATIENT);
        let asked = report_only(attempt);
        assert_eq!(rail.advance(&order, asked).await, RailAnswer::Unknown);
        assert_eq!(rail.advance(&order, asked).await, was_settled());
        assert_eq!(lines(&far), [report(), report()]);
    }
    let (far, rail) = giving(&[unknown(), settled(), Reply::broken()], PATIENT);
    for expected in [RailAnswer::Unknown, was_settled(), RailAnswer::Silent] {
        assert_eq!(rail.watch(&order).await, expected);
    }
    assert_eq!(lines(&far), [report(), report(), report()]);
}

// rule: rail.http.unknown
#[tokio::test]
async fn only_a_404_with_a_json_object_about_the_payment_says_that_it_is_unknown() {
    let order = order();
    let object = json!({ "id": ID }).to_string();
    let charset = "Application/JSON; charset=utf-8";
    for unknown in [
        Reply::json(404, &object),
        Reply::json(404, "{}"),
        Reply::json(404, r#"{"id":null,"message":"no such payment"}"#),
        typed(404, charset, r#"{"error":{"code":404}}"#),
        status(404),
    ] {
        let replies = [unknown.clone(), accepted(), settled()];
        let (far, rail) = giving(&replies, PATIENT);
        let answer = rail.advance(&order, poll(2)).await;
        assert_eq!(answer, was_settled(), "{unknown:?}");
        assert_eq!(lines(&far), [report(), begin(), report()], "{unknown:?}");
    }
    let other = json!({ "id": ID.replace("8JK", "8JM") }).to_string();
    for foreign in [
        Reply::json(404, &other),
        Reply::json(404, r#"{"id":""}"#),
        Reply::json(404, r#"{"id":7}"#),
        Reply::json(404, ""),
        Reply::json(404, "null"),
        Reply::json(404, "[]"),
        Reply::json(404, r#""not found""#),
        Reply::json(404, "{"),
        Reply::json(404, "<html>404</html>"),
        typed(404, "text/html", "<html>404</html>"),
        typed(404, "text/plain", &object),
        typed(404, "application/problem+json", &object),
        typed(404, "", &object),
        Reply::json(410, &object),
    ] {
        for asked in [poll(2), report_only(2)] {
            let replies = [foreign.clone(), accepted(), settled()];
            let (far, rail) = giving(&replies, PATIENT);
            let answer = rail.advance(&order, asked).await;
            assert_eq!(answer, RailAnswer::Silent, "{foreign:?}");
            assert_eq!(lines(&far), [report()], "{foreign:?}");
        }
    }
}

// rule: rail.http.silence
#[tokio::test]
async fn invalid_response_decides_nothing_and_is_not_followed() {
    let order = order();
    for fault in faults("settled") {
        let faulty = std::slice::from_ref(&fault);
        let (far, rail) = giving(faulty, PATIENT);
        assert_eq!(rail.instructions(&order).await, None, "{fault:?}");
        let asked = format!("POST /desk/v1/payments/{ID}/instructions");
        assert_eq!(lines(&far), [asked], "{fault:?}");
        let (far, rail) = giving(faulty, PATIENT);
        let answer = rail.advance(&order, poll(1)).await;
        assert_eq!(answer, RailAnswer::Silent, "{fault:?}");
        // Without an acceptance the rail is not asked for a report.
        assert_eq!(lines(&far), [begin()], "{fault:?}");
        let (far, rail) = giving(faulty, PATIENT);
        let answer = rail.advance(&order, poll(2)).await;
        assert_eq!(answer, RailAnswer::Silent, "{fault:?}");
        assert_eq!(lines(&far), [report()], "{fault:?}");
    }
}

// rule: rail.http.silence
#[tokio::test]
async fn late_response_decides_nothing_and_next_poll_asks_again() {
    let order = order();
    let (far, rail) = giving(&[Reply::Waits], PATIENT);
    let instructing = late(|| far.lines().len() == 1, rail.instructions(&order));
    assert_eq!(instructing.await, None);
    let (far, rail) = giving(&[Reply::Waits], PATIENT);
    let polling = late(|| far.lines().len() == 1, rail.advance(&order, poll(2)));
    assert_eq!(polling.await, RailAnswer::Silent);
    assert_eq!(lines(&far), [report()]);
    let (far, rail) = giving(&[Reply::broken(), settled()], PATIENT);
    assert_eq!(rail.advance(&order, poll(2)).await, RailAnswer::Silent);
    assert_eq!(rail.advance(&order, poll(3)).await, was_settled());
    assert_eq!(lines(&far), [report(), report()]);
}

// rule: rail.http.silence
#[tokio::test]
async fn rail_that_does_not_listen_decides_nothing() {
    let url = UpstreamUrl::parse(&format!("http://{}", nowhere())).unwrap();
    let rail = HttpRail::new(url, None, PATIENT).unwrap();
    assert_eq!(rail.advance(&order(), poll(1)).await, RailAnswer::Silent);
    assert_eq!(rail.watch(&order()).await, RailAnswer::Silent);
    assert_eq!(rail.instructions(&order()).await, None);
    assert_eq!(cancel(&rail, &order()).await, None);
}

// rule: rail.http.calls, rail.http.secret, gate.payment.cancel
#[tokio::test]
async fn cancellation_sends_the_terms_and_returns_what_the_rail_decides() {
    for (word, decided) in [
        ("cancelled", CancelReport::Cancelled),
        ("not_cancellable", CancelReport::TooLate),
    ] {
        let said = json!({ "id": ID, "status": word, "news": 1 }).to_string();
        let (far, rail) = giving(&[says(&said)], PATIENT);
        assert_eq!(cancel(&rail, &order()).await, Some(decided), "{word}");
        assert_eq!(lines(&far), [format!("POST /desk/v1/payments/{ID}/cancel")]);
        assert_eq!(far.received()[0].json()["fiat_amount"], "100.00");
    }
}

// rule: rail.http.silence, gate.payment.cancel
#[tokio::test]
async fn invalid_or_late_response_to_cancellation_decides_nothing() {
    let order = order();
    let asked = [format!("POST /desk/v1/payments/{ID}/cancel")];
    let mut replies = faults("cancelled");
    let cancelled = json!({ "id": ID, "status": "cancelled" }).to_string();
    replies.extend([Reply::json(404, &cancelled), says(r#"{"id":"ID"}"#)]);
    // Valid for another operation.
    replies.extend([accepted(), settled()]);
    for reply in replies {
        let (far, rail) = giving(std::slice::from_ref(&reply), PATIENT);
        assert_eq!(cancel(&rail, &order).await, None, "{reply:?}");
        assert_eq!(lines(&far), asked, "{reply:?}");
    }
    let (far, rail) = giving(&[Reply::Waits], PATIENT);
    let cancelling = late(|| far.lines().len() == 1, cancel(&rail, &order));
    assert_eq!(cancelling.await, None);
    assert_eq!(lines(&far), asked);
}

// rule: rail.http.share
#[tokio::test]
async fn cancellations_of_one_partner_that_hang_delay_no_other_partner() {
    let far = Upstream::start(|request| match request.json()["fiat_amount"].as_str() {
        Some("66.66") => Reply::Waits,
        _ => says(r#"{"id":"ID","status":"cancelled"}"#),
    });
    let url = UpstreamUrl::parse(&far.url()).unwrap();
    let rail = Arc::new(HttpRail::new(url, None, PATIENT).unwrap());
    let mut flood = JoinSet::new();
    // More calls than the client makes at the same time.
    for _ in 0..300 {
        let rail = Arc::clone(&rail);
        flood.spawn(async move { cancel(&rail, &pay_in("66.66")).await });
    }
    for _ in 0..6_000 {
        if far.received().len() >= 128 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(far.received().len(), 128);
    let others = RailOrder {
        partner: PartnerId::parse("globex").unwrap(),
        ..order()
    };
    assert_eq!(cancel(&rail, &others).await, Some(CancelReport::Cancelled));
    assert_eq!(far.received().len(), 128 + 1);
    assert!(flood.try_join_next().is_none());
    flood.shutdown().await;
    // The calls that were given up have left their places.
    assert_eq!(cancel(&rail, &order()).await, Some(CancelReport::Cancelled));
}

// rule: rail.http.share
#[tokio::test]
async fn polls_ask_while_other_calls_have_no_permit() {
    let cancelled = says(r#"{"id":"ID","status":"cancelled"}"#);
    let replies = [accepted(), settled(), cancelled];
    let (far, mut rail) = giving(&replies, Duration::from_millis(100));
    let permits = rail.upstream.client.all_permits().await;
    assert_eq!(rail.instructions(&order()).await, None);
    assert_eq!(cancel(&rail, &order()).await, None);
    assert_eq!(far.lines(), [""; 0]);
    rail.upstream.timeout = PATIENT;
    assert_eq!(rail.advance(&order(), poll(1)).await, was_settled());
    // After the deadline a poll cancels the payment.
    let cancelled = rail.cancel(&order(), GivenUp::AtDeadline).await;
    assert_eq!(cancelled, Some(CancelReport::Cancelled));
    drop(permits);
}

// rule: gate.payment.deadline, rail.http.calls
#[tokio::test]
async fn rail_learns_until_when_the_customer_can_pay() {
    let until = "2026-05-25T12:30:00.000Z";
    let order = RailOrder {
        pay_until: Timestamp::parse(until, Bound::Lower).ok(),
        ..order()
    };
    let replies = [
        says(r#"{"id":"ID","instructions":{}}"#),
        accepted(),
        settled(),
        says(r#"{"id":"ID","status":"not_cancellable"}"#),
    ];
    let (far, rail) = giving(&replies, PATIENT);
    assert!(rail.instructions(&order).await.is_some());
    assert_eq!(rail.advance(&order, poll(1)).await, was_settled());
    let late = rail.cancel(&order, GivenUp::AtDeadline).await;
    assert_eq!(late, Some(CancelReport::TooLate));
    let told: Vec<Value> = far
        .received()
        .iter()
        .map(|request| request.json()["pay_until"].clone())
        .collect();
    // The request of a report has no body.
    assert_eq!(
        told,
        [json!(until), json!(until), Value::Null, json!(until)]
    );
}

// rule: rail.name
#[test]
fn rail_is_named_after_its_place_unless_it_has_a_name() {
    for (url, name) in [
        ("http://rail.internal:8443/desk/", "rail.internal:8443/desk"),
        ("http://Rail.Internal:80", "rail.internal"),
    ] {
        let url = UpstreamUrl::parse(url).unwrap();
        let rail = HttpRail::new(url, None, PATIENT).unwrap();
        assert_eq!(rail.name().as_str(), name);
        let desk = UpstreamName::parse("desk-2").unwrap();
        assert_eq!(rail.named(desk.clone()).name(), desk);
    }
}

// rule: rail.http.instructions
#[tokio::test]
async fn instructions_send_the_terms_and_return_the_rails_texts() {
    let body = r#"{"id":"ID","instructions":{"iban":"DE89","reference":"r-1"},"news":1}"#;
    let with_charset = typed(
        200,
        "Application/JSON; charset=utf-8",
        &body.replace("ID", ID),
    );
    let (far, rail) = giving(&[with_charset], PATIENT);
    let instructions = rail.instructions(&order()).await.unwrap().0;
    assert_eq!(
        json!(instructions),
        json!({ "iban": "DE89", "reference": "r-1" })
    );
    assert_eq!(far.received()[0].json()["fiat_amount"], "100.00");
}

#[test]
fn three_calls_fit_into_the_timeout_of_a_poll() {
    assert!(TIMEOUT * 3 < RAIL_TIMEOUT);
}

// rule: rail.http.malformed
#[test]
fn reason_of_malformed_response_repeats_nothing_of_it() {
    let body = format!(r#"{{"id":"{ID}","status":"Jane Doe"}}"#);
    let response = HttpResponse {
        status: StatusCode::OK,
        content_type: Some(HeaderValue::from_static("application/json")),
        body: Bytes::from(body),
    };
    let error = answer::<wire::Report>(order().id, &response).err();
    let shown = error.unwrap().to_string();
    assert!(shown.contains("in column "), "{shown}");
    assert!(!shown.contains("Jane"), "{shown}");
}

// rule: rail.http.unknown
#[tokio::test]
async fn unknown_payment_is_no_sign_that_the_rail_responds_again() {
    let order = order();
    let down = || status(503);
    let replies = [down(), unknown(), down(), unknown(), accepted(), unknown()];
    let (far, rail) = giving(&replies, PATIENT);
    for (attempt, expected) in [
        (1, RailAnswer::Silent),
        (2, RailAnswer::Silent),
        (3, RailAnswer::Accepted),
    ] {
        assert_eq!(rail.advance(&order, poll(attempt)).await, expected);
        assert!(
            !rail.upstream.answering.load(Ordering::Relaxed),
            "{attempt}"
        );
    }
    let polls = [begin(), report(), begin(), report(), begin(), report()];
    assert_eq!(lines(&far), polls);
    // Nor is it a sign that the rail does not respond.
    let replies = [accepted(), settled(), unknown(), accepted(), settled()];
    let (_far, rail) = giving(&replies, PATIENT);
    for attempt in 1..=2 {
        assert_eq!(rail.advance(&order, poll(attempt)).await, was_settled());
        assert!(rail.upstream.answering.load(Ordering::Relaxed), "{attempt}");
    }
}
