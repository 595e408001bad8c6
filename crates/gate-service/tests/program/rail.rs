//! A rail over HTTP, named in the settings: another server plays it through every end of a pay-in.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use test_support::http::{Reply, Request, Upstream};

use crate::gate::{Gate, post, redeem, redemption};

const SECRET: &str = "a-secret-of-the-rail";

/// What the rail has done and will do.
#[derive(Default)]
struct Book {
    /// The final status of each payment, in the order they begin.
    ends: VecDeque<Value>,
    /// The payments that have begun, with their reports.
    begun: BTreeMap<String, Value>,
    /// Whether calls about payments get no response.
    silent: bool,
    /// Whether requests for instructions get a malformed response.
    malformed: bool,
}

impl Book {
    /// Acts on one request, and returns the status and the body of the response.
    fn act(&mut self, method: &str, id: &str, body: &Value) -> (u16, Value) {
        match method {
            "POST" if self.malformed => (200, json!({ "id": id, "instructions": { "IBAN": 7 } })),
            "POST" => {
                let instructions = json!({ "iban": "DE89", "amount": body["fiat_amount"] });
                (200, json!({ "id": id, "instructions": instructions }))
            }
            "PUT" => {
                if !self.begun.contains_key(id) {
                    let mut end = self.ends.pop_front().expect("an end for each payment");
                    end["id"] = id.into();
                    self.begun.insert(id.to_owned(), end);
                }
                (200, json!({ "id": id, "status": "accepted" }))
            }
            _ => match self.begun.get(id) {
                Some(report) => (200, report.clone()),
                None => (404, json!({ "id": id })),
            },
        }
    }
}

/// A rail that listens on this machine.
struct TestRail {
    setting: String,
    book: Arc<Mutex<Book>>,
    played: Upstream,
}

impl TestRail {
    fn start() -> Self {
        let book = Arc::<Mutex<Book>>::default();
        let kept = Arc::clone(&book);
        let played = Upstream::start(move |request| respond(request, &kept));
        Self {
            setting: format!("http:{}/desk", played.url()),
            book,
            played,
        }
    }

    fn ends(&self, end: Value) {
        self.book.lock().unwrap().ends.push_back(end);
    }

    fn is_silent(&self, silent: bool) {
        self.book.lock().unwrap().silent = silent;
    }

    /// The requests about a payment with this method.
    fn count(&self, method: &str, id: &str) -> usize {
        let wanted = format!("{method} /desk/v1/payments/{id}");
        let lines = self.played.lines();
        lines.iter().filter(|it| it.starts_with(&wanted)).count()
    }
}

/// Responds, or closes the connection after acting.
fn respond(request: &Request, book: &Mutex<Book>) -> Reply {
    let id = request.path().strip_prefix("/desk/v1/payments/").unwrap();
    let id = id.trim_end_matches("/instructions");
    let mut book = book.lock().unwrap();
    let (status, body) = book.act(request.method(), id, &request.json());
    if book.silent && request.method() != "POST" {
        return Reply::Closes;
    }
    Reply::json(status, &body.to_string())
}

/// A gate service in this process, with the rail.
async fn start(folder: &Path, rail: &TestRail) -> Gate {
    let settings = [
        ("RAIL", rail.setting.as_str()),
        ("RAIL_SECRET", SECRET),
        ("THROTTLE", "off"),
    ];
    Gate::start(folder, &settings).await
}

// rule: config.rail-http, rail.http.calls, rail.http.secret, gate.rail.settled, gate.rail.failure
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pay_in_ends_as_the_rail_reports() {
    let folder = tempfile::tempdir().unwrap();
    let rail = TestRail::start();
    let gate = start(folder.path(), &rail).await;
    for (end, event, session_ends) in [
        (
            json!({ "status": "settled", "reference": "e2e-1" }),
            "settled",
            true,
        ),
        (
            json!({ "status": "failed", "code": "account_closed" }),
            "failed",
            false,
        ),
        (json!({ "status": "cancelled" }), "cancelled", false),
    ] {
        rail.ends(end);
        let [pay_in, session] = gate.call(redeem).await;
        let ended = format!("rail.pay_in.{event}");
        let expected = ["rail.pay_in.processing", &ended];
        assert_eq!(gate.events(&pay_in, 2).await, expected);
        if session_ends {
            let expected = ["gate_session.created", "gate_session.completed"];
            assert_eq!(gate.events(&session, 2).await, expected);
        } else {
            assert_eq!(gate.events(&session, 1).await, ["gate_session.created"]);
        }
        assert_eq!(
            [rail.count("POST", &pay_in), rail.count("PUT", &pay_in)],
            [1, 1]
        );
    }
    let asked = rail.played.take();
    let shown = format!("Bearer {SECRET}");
    let shows = |request: &Request| request.header("authorization") == shown;
    assert!(asked.iter().all(shows), "{asked:#?}");
    gate.end().await;
}

// rule: rail.http.silence, rail.http.once
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_rail_decides_nothing_and_pay_in_settles_once_it_responds() {
    let folder = tempfile::tempdir().unwrap();
    let rail = TestRail::start();
    let gate = start(folder.path(), &rail).await;
    rail.ends(json!({ "status": "settled" }));
    rail.is_silent(true);
    let [pay_in, session] = gate.call(redeem).await;
    // The rail begins the payment, but its acceptance and the next report are lost.
    let asked = async || rail.count("GET", &pay_in) > 0;
    gate.until("the rail was not asked", asked).await;
    assert_eq!(gate.events(&pay_in, 1).await, ["rail.pay_in.processing"]);
    assert_eq!(gate.events(&session, 1).await, ["gate_session.created"]);
    rail.is_silent(false);
    let settled = ["rail.pay_in.processing", "rail.pay_in.settled"];
    let mut events = gate.events(&pay_in, 1).await;
    for _ in 0..400 {
        if events.len() == settled.len() {
            break;
        }
        // The service confirms its master key once a second, and seals no event when its clock is 5 s past the last confirmation.
        if gate.runtime.base.sealer.can_seal().is_ok() {
            gate.step();
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        events = gate.events(&pay_in, 1).await;
    }
    assert_eq!(events, settled);
    assert_eq!(rail.count("PUT", &pay_in), 1);
    gate.end().await;
}

// rule: rail.http.instructions
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pay_in_has_the_instructions_of_the_rail_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rail = TestRail::start();
    let gate = start(folder.path(), &rail).await;
    rail.ends(json!({ "status": "processing" }));
    let book = Arc::clone(&rail.book);
    gate.call(move |address| {
        let (body, _) = redemption(address);
        book.lock().unwrap().malformed = true;
        let refused = post(address, "/v1/rails/pay_ins", &body);
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        assert!(book.lock().unwrap().begun.is_empty());
        book.lock().unwrap().malformed = false;
        let made = post(address, "/v1/rails/pay_ins", &body);
        assert!(made.starts_with("HTTP/1.1 201"), "{made}");
        assert!(made.contains(r#""iban":"DE89""#), "{made}");
        assert!(made.contains(r#""amount":"100.00""#), "{made}");
    })
    .await;
    gate.end().await;
}
