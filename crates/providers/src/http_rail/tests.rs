use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use gate_core::payout::{AccountForm, Payout};
use gate_core::rail::RailKind;
use gate_core::usecases::advance_rails::RAIL_TIMEOUT;
use hyper::header::HeaderValue;
use serde_json::{Value, json};
use test_support::http::{Reply, Upstream, nowhere};
use tokio::task::JoinSet;

use super::*;
use crate::client::tests::late;
use crate::sandbox_rail::tests::{pay_in, swap};
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
fn was_settled() -> RailReport {
    RailReport::Settled {
        reference: Some("e2e-1".to_owned()),
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
    assert_eq!(rail.advance(&order, 1).await, Some(RailReport::InProgress));
    assert_eq!(rail.advance(&order, 2).await, Some(was_settled()));
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
    assert_eq!(
        rail.advance(&order, 1).await,
        Some(RailReport::Settled { reference: None })
    );
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
    let report = rail.advance(&order, 1).await;
    assert_eq!(report, Some(RailReport::Cancelled));
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
    let replies = [Reply::broken(), status(404), accepted(), settled()];
    let (far, rail) = giving(&replies, PATIENT);
    let order = order();
    assert_eq!(rail.advance(&order, 1).await, None);
    assert_eq!(rail.advance(&order, 2).await, Some(was_settled()));
    assert_eq!(lines(&far), [begin(), report(), begin(), report()]);
    let received = far.received();
    assert_eq!(received[0].json(), received[2].json());
}

// rule: rail.http.silence
#[tokio::test]
async fn payment_that_the_rail_forgets_is_neither_begun_twice_nor_decided() {
    let order = order();
    let (far, rail) = giving(&[accepted(), status(404)], PATIENT);
    assert_eq!(rail.advance(&order, 1).await, None);
    assert_eq!(lines(&far), [begin(), report()]);
    let replies = [status(404), accepted(), status(404)];
    let (far, rail) = giving(&replies, PATIENT);
    assert_eq!(rail.advance(&order, 2).await, None);
    assert_eq!(lines(&far), [report(), begin(), report()]);
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
        assert_eq!(rail.advance(&order, 1).await, None, "{fault:?}");
        // Without an acceptance the rail is not asked for a report.
        assert_eq!(lines(&far), [begin()], "{fault:?}");
        let (far, rail) = giving(faulty, PATIENT);
        assert_eq!(rail.advance(&order, 2).await, None, "{fault:?}");
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
    let polling = late(|| far.lines().len() == 1, rail.advance(&order, 2));
    assert_eq!(polling.await, None);
    assert_eq!(lines(&far), [report()]);
    let (far, rail) = giving(&[Reply::broken(), settled()], PATIENT);
    assert_eq!(rail.advance(&order, 2).await, None);
    assert_eq!(rail.advance(&order, 3).await, Some(was_settled()));
    assert_eq!(lines(&far), [report(), report()]);
}

// rule: rail.http.silence
#[tokio::test]
async fn rail_that_does_not_listen_decides_nothing() {
    let url = UpstreamUrl::parse(&format!("http://{}", nowhere())).unwrap();
    let rail = HttpRail::new(url, None, PATIENT).unwrap();
    assert_eq!(rail.advance(&order(), 1).await, None);
    assert_eq!(rail.instructions(&order()).await, None);
    assert_eq!(rail.cancel(&order()).await, None);
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
        assert_eq!(rail.cancel(&order()).await, Some(decided), "{word}");
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
        assert_eq!(rail.cancel(&order).await, None, "{reply:?}");
        assert_eq!(lines(&far), asked, "{reply:?}");
    }
    let (far, rail) = giving(&[Reply::Waits], PATIENT);
    let cancelling = late(|| far.lines().len() == 1, rail.cancel(&order));
    assert_eq!(cancelling.await, None);
    assert_eq!(lines(&far), asked);
}

// rule: rail.http.even-share
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
        flood.spawn(async move { rail.cancel(&pay_in("66.66")).await });
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
    assert_eq!(rail.cancel(&others).await, Some(CancelReport::Cancelled));
    assert_eq!(far.received().len(), 128 + 1);
    assert!(flood.try_join_next().is_none());
    flood.shutdown().await;
    // The calls that were given up have left their places.
    assert_eq!(rail.cancel(&order()).await, Some(CancelReport::Cancelled));
}

// rule: rail.http.even-share
#[tokio::test]
async fn polls_ask_while_other_calls_have_no_permit() {
    let replies = [accepted(), settled()];
    let (far, mut rail) = giving(&replies, Duration::from_millis(100));
    let permits = rail.upstream.client.all_permits();
    assert_eq!(rail.instructions(&order()).await, None);
    assert_eq!(rail.cancel(&order()).await, None);
    assert_eq!(far.lines(), [""; 0]);
    rail.upstream.timeout = PATIENT;
    assert_eq!(rail.advance(&order(), 1).await, Some(was_settled()));
    drop(permits);
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
    let replies = [
        down(),
        status(404),
        down(),
        status(404),
        accepted(),
        status(404),
    ];
    let (far, rail) = giving(&replies, PATIENT);
    for attempt in 1..=3 {
        assert_eq!(rail.advance(&order, attempt).await, None);
        assert!(
            !rail.upstream.answering.load(Ordering::Relaxed),
            "{attempt}"
        );
    }
    let polls = [begin(), report(), begin(), report(), begin(), report()];
    assert_eq!(lines(&far), polls);
    // Nor is it a sign that the rail does not respond.
    let replies = [accepted(), settled(), status(404), accepted(), settled()];
    let (_far, rail) = giving(&replies, PATIENT);
    for attempt in 1..=2 {
        assert!(rail.advance(&order, attempt).await.is_some());
        assert!(rail.upstream.answering.load(Ordering::Relaxed), "{attempt}");
    }
}
