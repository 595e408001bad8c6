//! A verifier over HTTP, named in the settings: another server plays it through every response and every absence of one.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gate_core::object::JsonObject;
use gate_core::session::SessionId;
use gate_core::usecases::verify_user::{StartedVerification, VerifyError, VerifyUser};
use gate_core::verification::{Verification, VerificationStatus};
use partner_core::Tenant;
use runtime::{Ports, Runtime};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::lifecycle::{output, text};
use crate::sweeping::{CountingEntropy, StoppedClock, config_with, event_types, make, provision};

const SECRET: &str = "a-secret-of-the-verifier";
/// A step of the clock. A service refuses to write after its clock has jumped far.
const STEP_MS: i64 = 1_000;

/// One response of the verifier. The id of the verification replaces `{id}`.
#[derive(Debug, Clone)]
enum Reply {
    /// A status, further lines of the head, and a body.
    Says(u16, &'static str, String),
    /// Closes the connection without a response.
    Silent,
}

fn says(body: &Value) -> Reply {
    Reply::Says(200, "", body.to_string())
}

fn status(status: &str) -> Reply {
    says(&json!({ "id": "{id}", "status": status }))
}

/// What the verifier has received and will do.
#[derive(Default)]
struct Book {
    /// The next responses. Afterwards every request gets the last one again.
    replies: VecDeque<Reply>,
    last: Option<Reply>,
    /// The head and the body of every request.
    received: Vec<(String, String)>,
}

/// A verifier that listens on this machine.
struct TestVerifier {
    setting: String,
    book: Arc<Mutex<Book>>,
}

impl TestVerifier {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let setting = format!("http:http://{}/desk", listener.local_addr().unwrap());
        let book = Arc::<Mutex<Book>>::default();
        let kept = Arc::clone(&book);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                respond(stream, &kept);
            }
        });
        Self { setting, book }
    }

    /// Gives these responses, the last one to every later request.
    fn gives(&self, replies: &[Reply]) {
        let mut book = self.book.lock().unwrap();
        book.replies = replies.iter().cloned().collect();
    }

    /// The methods and paths of the requests so far.
    fn lines(&self) -> Vec<String> {
        let book = self.book.lock().unwrap();
        let line = |(head, _): &(String, String)| head.split(" HTTP").next().unwrap().to_owned();
        book.received.iter().map(line).collect()
    }

    fn reports(&self) -> usize {
        let lines = self.lines();
        lines.iter().filter(|line| line.starts_with("GET")).count()
    }
}

/// Reads one request and responds.
fn respond(mut stream: TcpStream, book: &Mutex<Book>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap();
    let id = path.strip_prefix("/desk/v1/verifications/").unwrap();
    let id = id.trim_end_matches("/answers").to_owned();
    let mut book = book.lock().unwrap();
    if let Some(next) = book.replies.pop_front() {
        book.last = Some(next);
    }
    let reply = book.last.clone().expect("a reply");
    book.received.push((head, String::from_utf8(body).unwrap()));
    drop(book);
    let Reply::Says(status, more, body) = reply else {
        return;
    };
    let body = body.replace("{id}", &id);
    let response = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // A client that has seen enough closes the connection.
    let _ = stream.write_all(response.as_bytes());
}

/// A gate service in this process, with the verifier.
struct Gate {
    runtime: Runtime,
    who: Tenant,
    clock: Arc<StoppedClock>,
    address: String,
    serving: JoinHandle<std::io::Result<()>>,
    verifying: VerifyUser,
}

impl Gate {
    async fn start(folder: &Path, verifier: &TestVerifier) -> Self {
        let clock = Arc::new(StoppedClock(AtomicI64::new(1_779_710_400_000)));
        let ports = Ports {
            clock: clock.clone(),
            entropy: Arc::new(CountingEntropy(AtomicU64::new(1))),
        };
        let settings = [
            ("VERIFIER", verifier.setting.as_str()),
            ("VERIFIER_SECRET", SECRET),
            ("THROTTLE", "off"),
        ];
        let runtime = Runtime::open(config_with(folder, &settings), ports)
            .await
            .unwrap();
        let who = provision(&runtime).await;
        let listening = gate_service::start(&runtime).await.unwrap();
        let address = listening.address().to_string();
        let serving = tokio::spawn(listening.run());
        let verifying = VerifyUser {
            context: runtime.gate_context(gate_http::render_resource),
            catalogue: Arc::clone(&runtime.catalogue),
            verifier: runtime.verifier.clone(),
        };
        Self {
            runtime,
            who,
            clock,
            address,
            serving,
            verifying,
        }
    }

    /// A session whose user must be verified.
    async fn session(&self) -> SessionId {
        let address = self.address.clone();
        let body =
            r#"{"amount":"10.61","currency":"EUR","return_url":"https://shop.example/done"}"#;
        let id = tokio::task::spawn_blocking(move || make(&address, "/v1/gate_sessions", body));
        SessionId::parse(&id.await.unwrap()).unwrap()
    }

    async fn begin(&self, id: SessionId) -> Result<StartedVerification, VerifyError> {
        self.verifying.start(&self.who, id, None, None).await
    }

    async fn stored(&self, id: SessionId) -> Verification {
        let store = &self.runtime.base.store;
        let found = store.verification_get(&self.who, id).await;
        found.unwrap().unwrap()
    }

    async fn status(&self, id: SessionId) -> VerificationStatus {
        self.stored(id).await.state.status()
    }

    /// Lets time pass until the verifier has been asked for this many reports.
    async fn polled(&self, verifier: &TestVerifier, reports: usize) {
        for _ in 0..1_000 {
            if verifier.reports() >= reports {
                return;
            }
            self.clock.0.fetch_add(STEP_MS, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the verifier was not asked: {:?}", verifier.lines());
    }

    /// Lets time pass until the verification has this status.
    async fn reaches(&self, id: SessionId, status: VerificationStatus) {
        for _ in 0..1_000 {
            if self.status(id).await == status {
                return;
            }
            self.clock.0.fetch_add(STEP_MS, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("still {:?}", self.status(id).await);
    }

    async fn end(self) {
        self.runtime.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
        self.runtime.close().await;
    }
}

// rule: gate.verification.poll, gate.verification.start, gate.verification.event-once, config.verifier-http
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verification_ends_as_the_verifier_reports() {
    let rejected =
        json!({ "id": "{id}", "status": "rejected", "reason": "The document has expired." });
    ends_as_reported(status("approved"), VerificationStatus::Approved).await;
    ends_as_reported(says(&rejected), VerificationStatus::Rejected).await;
}

async fn ends_as_reported(end: Reply, expected: VerificationStatus) {
    let folder = tempfile::tempdir().unwrap();
    let verifier = TestVerifier::start();
    let gate = Gate::start(folder.path(), &verifier).await;
    let id = gate.session().await;
    let pending = json!({
        "id": "{id}", "status": "pending", "url": "https://verifier.example/c", "reference": "case-7",
    });
    verifier.gives(&[says(&pending)]);
    for _ in 0..2 {
        // A repeated start gets the page again, under the same id.
        let started = gate.begin(id).await.unwrap();
        assert_eq!(started.shown.status, VerificationStatus::Pending);
        assert_eq!(started.url.as_deref(), Some("https://verifier.example/c"));
    }
    verifier.gives(&[end]);
    gate.reaches(id, expected).await;
    let stored = gate.stored(id).await;
    assert_eq!(stored.reference.as_deref(), Some("case-7"));
    let events = event_types(&gate.runtime, &gate.who, &id.to_string(), 2).await;
    assert_eq!(events, ["gate_session.created", "kyc.required"]);
    // An end is final: there is no further poll, and a later start makes no call.
    let lines = verifier.lines();
    assert_eq!(gate.begin(id).await.unwrap().shown.status, expected);
    gate.clock.0.fetch_add(STEP_MS, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(verifier.lines(), lines);
    let starts: Vec<_> = lines.iter().filter(|it| it.starts_with("PUT")).collect();
    assert_eq!((starts.len(), starts[0]), (2, starts[1]));
    let received = std::mem::take(&mut verifier.book.lock().unwrap().received);
    let shown = format!("authorization: Bearer {SECRET}\r\n");
    assert!(received.iter().all(|(head, _)| head.contains(&shown)));
    gate.end().await;
}

// rule: gate.verification.silence, gate.verification.start
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_response_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = TestVerifier::start();
    let gate = Gate::start(folder.path(), &verifier).await;
    let id = gate.session().await;
    let huge = format!(
        r#"{{"id":"{{id}}","status":"approved","x":"{}"}}"#,
        "x".repeat(128 * 1024)
    );
    let elsewhere = "Location: http://127.0.0.1:1/\r\n";
    let invalid = [
        Reply::Silent,
        Reply::Says(503, "", String::new()),
        Reply::Says(404, "", r#"{"id":"{id}","status":"approved"}"#.to_owned()),
        Reply::Says(307, elsewhere, String::new()),
        Reply::Says(200, "", "approved".to_owned()),
        Reply::Says(200, "", r#"["{id}","approved"]"#.to_owned()),
        Reply::Says(200, "", huge),
        says(&json!({ "id": "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", "status": "approved" })),
        status("verified"),
        status("rejected"),
        says(&json!({ "id": "{id}", "status": ["approved"] })),
    ];
    for reply in &invalid {
        verifier.gives(std::slice::from_ref(reply));
        let started = gate.begin(id).await;
        let silent = matches!(started, Err(VerifyError::VerifierSilent));
        assert!(silent, "{reply:?}: {started:?}");
        let reports = verifier.reports();
        gate.polled(&verifier, reports + 1).await;
        assert_eq!(
            gate.status(id).await,
            VerificationStatus::Pending,
            "{reply:?}"
        );
    }
    verifier.gives(&[status("approved")]);
    gate.reaches(id, VerificationStatus::Approved).await;
    let lines = verifier.lines();
    let path = lines[0].split(' ').nth(1).unwrap();
    assert!(lines.iter().all(|line| line.ends_with(path)), "{lines:#?}");
    let events = event_types(&gate.runtime, &gate.who, &id.to_string(), 2).await;
    assert_eq!(events, ["gate_session.created", "kyc.required"]);
    gate.end().await;
}

// rule: gate.verification.answers, gate.verification.stores-no-answers
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_reach_only_the_verifier() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = TestVerifier::start();
    let gate = Gate::start(folder.path(), &verifier).await;
    let id = gate.session().await;
    let form = json!({ "type": "object", "properties": { "birthday": { "type": "string" } } });
    let pending = json!({ "id": "{id}", "status": "pending", "form": form });
    verifier.gives(&[says(&pending)]);
    let started = gate.begin(id).await.unwrap();
    let shown: Value = serde_json::from_str(started.form.unwrap().as_str()).unwrap();
    assert_eq!(shown, form);
    // A start with answers asks for the form again, and submits them to it.
    verifier.gives(&[says(&pending), status("approved")]);
    let answers = JsonObject::stored(r#"{"birthday":"1815-12-10"}"#).unwrap();
    let submitting = gate.verifying.start(&gate.who, id, Some(&answers), None);
    let submitted = submitting.await.unwrap();
    assert_eq!(submitted.shown.status, VerificationStatus::Approved);
    let received = std::mem::take(&mut verifier.book.lock().unwrap().received);
    let (head, body) = received
        .iter()
        .find(|(head, _)| head.starts_with("POST"))
        .unwrap();
    assert!(head.contains("/answers HTTP"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({ "answers": { "birthday": "1815-12-10" } }));
    gate.end().await;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let found = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(!found("1815-12-10") && !found("birthday"));
    }
}

// rule: config.verifier-secret, program.config-masked
#[test]
fn config_command_never_shows_the_secret_of_the_verifier() {
    let folder = tempfile::tempdir().unwrap();
    let given = [
        ("VERIFIER", "http:http://127.0.0.1:9200"),
        ("VERIFIER_SECRET", SECRET),
    ];
    let shown = output(folder.path(), &["config"], &given);
    let (out, err) = (text(&shown.stdout), text(&shown.stderr));
    assert_eq!(shown.status.code(), Some(0), "{err}");
    let setting = "verifier = \"http:http://127.0.0.1:9200\"\n";
    assert!(out.contains(setting), "{out}");
    assert!(out.contains("verifier_secret = \"***\"\n"), "{out}");
    assert!(!out.contains(SECRET) && !err.contains(SECRET));
}
