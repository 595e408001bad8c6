use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use gate_core::payout::{AccountForm, Payout};
use gate_core::rail::RailKind;
use gate_core::usecases::advance_rails::RAIL_TIMEOUT;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::sandbox_rail::tests::{pay_in, swap};

const ID: &str = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";
const SECRET: &str = "a-secret-of-the-rail";
/// Generous timeout for a busy machine.
const PATIENT: Duration = Duration::from_secs(20);

/// What the rail does with one request.
#[derive(Debug, Clone)]
enum Reply {
    /// Responds with this status, this content type and this body.
    Says(u16, &'static str, String),
    /// Keeps the connection open and never responds.
    Silent,
    /// Closes the connection in the middle of the response.
    Broken,
}

fn says(body: &str) -> Reply {
    Reply::Says(200, "application/json", body.replace("ID", ID))
}

fn status(status: u16) -> Reply {
    let settled = json!({ "id": ID, "status": "settled" }).to_string();
    Reply::Says(status, "application/json", settled)
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

/// One request that the rail has received.
#[derive(Debug, PartialEq)]
struct Received {
    line: String,
    authorization: String,
    body: Value,
}

/// A rail on this machine that gives its replies in order. A request without a reply gets status 500.
struct FarRail {
    url: String,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl FarRail {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/desk", listener.local_addr().unwrap());
        let replies = Arc::<Mutex<VecDeque<Reply>>>::default();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (given, kept) = (Arc::clone(&replies), Arc::clone(&received));
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for mut stream in listener.incoming().flatten() {
                kept.lock().push(receive(&stream));
                let reply = given.lock().pop_front();
                reply_to(&mut stream, reply);
                open.push(stream);
            }
        });
        Self {
            url,
            replies,
            received,
        }
    }

    /// A rail that gives these replies, and its adapter.
    fn giving(replies: &[Reply], timeout: Duration) -> (Self, HttpRail) {
        let far = Self::start();
        far.replies.lock().extend(replies.iter().cloned());
        let url = UpstreamUrl::parse(&far.url).unwrap();
        let secret = UpstreamSecret::parse(SECRET);
        let rail = HttpRail::new(url, secret.as_ref(), timeout).unwrap();
        (far, rail)
    }

    fn lines(&self) -> Vec<String> {
        let received = self.received.lock();
        received.iter().map(|one| one.line.clone()).collect()
    }
}

fn receive(stream: &TcpStream) -> Received {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let header = |name: &str| {
        let found = head.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_default().to_owned()
    };
    let length = header("content-length: ").parse().unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let json = header("content-type: ") == "application/json";
    assert_eq!(json, length > 0, "{head}");
    let line = head.lines().next().unwrap();
    Received {
        line: line.trim_end_matches(" HTTP/1.1").to_owned(),
        authorization: header("authorization: "),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }
}

fn reply_to(stream: &mut TcpStream, reply: Option<Reply>) {
    let (status, content_type, body, length) = match reply {
        Some(Reply::Silent) => return,
        Some(Reply::Broken) => (200, "application/json", r#"{"id":"#.to_owned(), 100),
        Some(Reply::Says(status, content_type, body)) => {
            let length = body.len();
            (status, content_type, body, length)
        }
        None => (500, "text/plain", String::new(), 0),
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nLocation: /desk/v1/elsewhere\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    // The client may have closed the connection after the head.
    let _ = stream.write_all((head + &body).as_bytes());
    let _ = stream.shutdown(std::net::Shutdown::Write);
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

/// Responses that are valid for no operation.
fn faults() -> Vec<Reply> {
    let settled = |content_type| {
        let body = json!({ "id": ID, "status": "settled", "instructions": {} });
        Reply::Says(200, content_type, body.to_string())
    };
    let padded = json!({ "id": ID, "status": "settled", "pad": "x".repeat(200_000) });
    let other = ID.replace("8JK", "8JM");
    let mut faults = vec![
        Reply::Broken,
        settled("text/plain"),
        settled("application/problem+json"),
        settled(""),
        says(&padded.to_string()),
        says(""),
        says("<html>settled</html>"),
        says(r#"["ID","settled"]"#),
        says(r#"{"id":"ID","status":"finished"}"#),
        says(r#"{"id":"ID","status":{"settled":null}}"#),
        says(r#"{"id":"ID","status":"settled","status":"failed","code":"x"}"#),
        says(r#"{"id":"ID","status":"failed","code":"Not A Code"}"#),
    ];
    for body in [
        json!({ "id": other, "status": "settled" }),
        json!({ "id": other, "status": "accepted" }),
        json!({ "id": other, "instructions": {} }),
        json!({ "id": ID.to_lowercase(), "status": "settled" }),
    ] {
        faults.push(says(&body.to_string()));
    }
    faults.extend([201, 204, 301, 302, 307, 308, 400, 401, 409, 410, 500, 503].map(status));
    faults
}

// rule: rail.http.calls, rail.http.secret
#[tokio::test]
async fn payment_begins_at_first_poll_and_is_reported_under_its_id() {
    let processing = says(r#"{"id":"ID","status":"processing"}"#);
    let replies = [accepted(), processing, settled()];
    let (far, rail) = FarRail::giving(&replies, PATIENT);
    let order = order();
    assert_eq!(rail.advance(&order, 1).await, Some(RailReport::InProgress));
    assert_eq!(rail.advance(&order, 2).await, Some(was_settled()));
    assert_eq!(far.lines(), [begin(), report(), report()]);
    let received = far.received.lock();
    let bearer = format!("Bearer {SECRET}");
    assert!(received.iter().all(|one| one.authorization == bearer));
    let payment = json!({
        "kind": "pay_in", "currency": "EUR", "asset": "USDT", "network": "tron", "payment_method": "sepa",
        "fiat_amount": "100.00", "crypto_amount": "1",
    });
    assert_eq!(received[0].body, payment);
    assert_eq!(received[1].body, Value::Null);
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
        Reply::Says(200, "application/json", body.to_string())
    };
    let replies = [reply("accepted"), reply("settled")];
    let (far, rail) = FarRail::giving(&replies, PATIENT);
    assert_eq!(
        rail.advance(&order, 1).await,
        Some(RailReport::Settled { reference: None })
    );
    assert_eq!(far.received.lock()[0].body["kind"], "pay_out");
    let payout = json!({ "sort_code": "123456", "account_number": "12345678" });
    assert_eq!(far.received.lock()[0].body["payout"], payout);
    assert_eq!(far.lines()[1], format!("GET /desk/v1/payments/{id}"));
}

// rule: rail.http.calls, gate.payment.swap
#[tokio::test]
async fn swap_begins_with_both_assets_and_the_wallet() {
    let order = swap("100.00");
    let id = order.id.to_string();
    let reply = |status| {
        let body = json!({ "id": id, "status": status });
        Reply::Says(200, "application/json", body.to_string())
    };
    let replies = [reply("accepted"), reply("cancelled")];
    let (far, rail) = FarRail::giving(&replies, PATIENT);
    let report = rail.advance(&order, 1).await;
    assert_eq!(report, Some(RailReport::Cancelled));
    let payment = json!({
        "kind": "swap", "currency": "EUR", "asset": "USDT", "network": "tron", "source_asset": "BTC",
        "source_network": "bitcoin", "source_amount": "0.002", "fiat_amount": "100.00", "crypto_amount": "1",
        "wallet_address": "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
    });
    assert_eq!(far.received.lock()[0].body, payment);
}

// rule: rail.http.once
#[tokio::test]
async fn unknown_payment_begins_again_with_the_same_id_and_terms() {
    let replies = [Reply::Broken, status(404), accepted(), settled()];
    let (far, rail) = FarRail::giving(&replies, PATIENT);
    let order = order();
    assert_eq!(rail.advance(&order, 1).await, None);
    assert_eq!(rail.advance(&order, 2).await, Some(was_settled()));
    assert_eq!(far.lines(), [begin(), report(), begin(), report()]);
    let received = far.received.lock();
    assert_eq!(received[0].body, received[2].body);
}

// rule: rail.http.silence
#[tokio::test]
async fn payment_that_the_rail_forgets_is_neither_begun_twice_nor_decided() {
    let order = order();
    let (far, rail) = FarRail::giving(&[accepted(), status(404)], PATIENT);
    assert_eq!(rail.advance(&order, 1).await, None);
    assert_eq!(far.lines(), [begin(), report()]);
    let replies = [status(404), accepted(), status(404)];
    let (far, rail) = FarRail::giving(&replies, PATIENT);
    assert_eq!(rail.advance(&order, 2).await, None);
    assert_eq!(far.lines(), [report(), begin(), report()]);
}

// rule: rail.http.silence
#[tokio::test]
async fn invalid_response_decides_nothing_and_is_not_followed() {
    let order = order();
    for fault in faults() {
        let faulty = std::slice::from_ref(&fault);
        let (far, rail) = FarRail::giving(faulty, PATIENT);
        assert_eq!(rail.instructions(&order).await, None, "{fault:?}");
        let asked = format!("POST /desk/v1/payments/{ID}/instructions");
        assert_eq!(far.lines(), [asked], "{fault:?}");
        let (far, rail) = FarRail::giving(faulty, PATIENT);
        assert_eq!(rail.advance(&order, 1).await, None, "{fault:?}");
        // Without an acceptance the rail is not asked for a report.
        assert_eq!(far.lines(), [begin()], "{fault:?}");
        let (far, rail) = FarRail::giving(faulty, PATIENT);
        assert_eq!(rail.advance(&order, 2).await, None, "{fault:?}");
        assert_eq!(far.lines(), [report()], "{fault:?}");
    }
}

// rule: rail.http.silence
#[tokio::test]
async fn late_response_decides_nothing_and_next_poll_asks_again() {
    let order = order();
    let short = Duration::from_secs(2);
    let (_far, rail) = FarRail::giving(&[Reply::Silent], short);
    assert_eq!(rail.instructions(&order).await, None);
    let (far, rail) = FarRail::giving(&[Reply::Silent], short);
    assert_eq!(rail.advance(&order, 2).await, None);
    assert_eq!(far.lines(), [report()]);
    let (far, rail) = FarRail::giving(&[Reply::Broken, settled()], PATIENT);
    assert_eq!(rail.advance(&order, 2).await, None);
    assert_eq!(rail.advance(&order, 3).await, Some(was_settled()));
    assert_eq!(far.lines(), [report(), report()]);
}

// rule: rail.http.silence
#[tokio::test]
async fn rail_that_does_not_listen_decides_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let url = UpstreamUrl::parse(&url).unwrap();
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
        let (far, rail) = FarRail::giving(&[says(&said)], PATIENT);
        assert_eq!(rail.cancel(&order()).await, Some(decided), "{word}");
        assert_eq!(far.lines(), [format!("POST /desk/v1/payments/{ID}/cancel")]);
        let received = far.received.lock();
        assert_eq!(received[0].authorization, format!("Bearer {SECRET}"));
        assert_eq!(received[0].body["fiat_amount"], "100.00");
    }
}

// rule: rail.http.silence, gate.payment.cancel
#[tokio::test]
async fn invalid_or_late_response_to_cancellation_decides_nothing() {
    let order = order();
    let asked = [format!("POST /desk/v1/payments/{ID}/cancel")];
    let mut replies = faults();
    replies.extend([status(404), says(r#"{"id":"ID"}"#)]);
    // But for its fault, each of these would be a cancellation.
    for reply in &mut replies {
        if let Reply::Says(_, _, body) = reply {
            *body = body.replace("settled", "cancelled");
        }
    }
    // Valid for another operation.
    replies.extend([accepted(), settled()]);
    for reply in replies {
        let (far, rail) = FarRail::giving(std::slice::from_ref(&reply), PATIENT);
        assert_eq!(rail.cancel(&order).await, None, "{reply:?}");
        assert_eq!(far.lines(), asked, "{reply:?}");
    }
    let (far, rail) = FarRail::giving(&[Reply::Silent], Duration::from_secs(2));
    assert_eq!(rail.cancel(&order).await, None);
    assert_eq!(far.lines(), asked);
}

// rule: rail.http.instructions
#[tokio::test]
async fn instructions_send_the_terms_and_return_the_rails_texts() {
    let body = r#"{"id":"ID","instructions":{"iban":"DE89","reference":"r-1"},"news":1}"#;
    let with_charset = Reply::Says(
        200,
        "Application/JSON; charset=utf-8",
        body.replace("ID", ID),
    );
    let (far, rail) = FarRail::giving(&[with_charset], PATIENT);
    let instructions = rail.instructions(&order()).await.unwrap().0;
    assert_eq!(
        json!(instructions),
        json!({ "iban": "DE89", "reference": "r-1" })
    );
    assert_eq!(far.received.lock()[0].body["fiat_amount"], "100.00");
}

// rule: rail.http.contract
#[test]
fn contract_documents_every_call() {
    let contract = serde_json::to_value(openapi()).unwrap();
    for (method, path, id) in [
        ("post", "/v1/payments/{id}/instructions", "instructPayer"),
        ("put", "/v1/payments/{id}", "beginPayment"),
        ("get", "/v1/payments/{id}", "reportPayment"),
        ("post", "/v1/payments/{id}/cancel", "cancelPayment"),
    ] {
        assert_eq!(contract["paths"][path][method]["operationId"], id);
    }
    let texts = &contract["components"]["schemas"]["NamedTexts"];
    assert_eq!(texts["maxProperties"], 32);
    assert_eq!(texts["additionalProperties"]["maxLength"], 512);
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
    let (far, rail) = FarRail::giving(&replies, PATIENT);
    for attempt in 1..=3 {
        assert_eq!(rail.advance(&order, attempt).await, None);
        assert!(!rail.answering.load(Ordering::Relaxed), "{attempt}");
    }
    let polls = [begin(), report(), begin(), report(), begin(), report()];
    assert_eq!(far.lines(), polls);
    // Nor is it a sign that the rail does not respond.
    let replies = [accepted(), settled(), status(404), accepted(), settled()];
    let (_far, rail) = FarRail::giving(&replies, PATIENT);
    for attempt in 1..=2 {
        assert!(rail.advance(&order, attempt).await.is_some());
        assert!(rail.answering.load(Ordering::Relaxed), "{attempt}");
    }
}
