//! A verifier over HTTP, named in the settings: another server plays it through every response and every absence of one.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gate_core::object::JsonObject;
use gate_core::session::SessionId;
use gate_core::usecases::verify_user::{StartedVerification, VerifyError, VerifyUser};
use gate_core::verification::{Verification, VerificationStatus};
use partner_core::Tenant;
use runtime::Runtime;
use serde_json::{Value, json};
use test_support::http::{Reply, Request, Upstream};

use crate::gate::{Gate, session_to_verify};

const SECRET: &str = "a-secret-of-the-verifier";

/// The status and the body of a response, with `{id}` for the id of the verification; `None` closes the connection.
type Says = Option<(u16, String)>;

fn says(body: &Value) -> Says {
    Some((200, body.to_string()))
}

fn status(status: &str) -> Says {
    says(&json!({ "id": "{id}", "status": status }))
}

/// A verifier that listens on this machine.
struct TestVerifier {
    setting: String,
    says: Arc<Mutex<VecDeque<Says>>>,
    played: Upstream,
}

impl TestVerifier {
    fn start() -> Self {
        let says = Arc::<Mutex<VecDeque<Says>>>::default();
        let given = Arc::clone(&says);
        let played = Upstream::start(move |request| respond(request, &mut given.lock().unwrap()));
        Self {
            setting: format!("http:{}/desk", played.url()),
            says,
            played,
        }
    }

    /// Gives these responses, the last one to every later request.
    fn gives(&self, says: &[Says]) {
        *self.says.lock().unwrap() = says.iter().cloned().collect();
    }

    fn reports(&self) -> usize {
        let lines = self.played.lines();
        lines.iter().filter(|line| line.starts_with("GET")).count()
    }
}

fn respond(request: &Request, says: &mut VecDeque<Says>) -> Reply {
    let path = request.path().strip_prefix("/desk/v1/verifications/");
    let id = path.unwrap().trim_end_matches("/answers");
    let said = match says.len() {
        1 => says[0].clone(),
        _ => says.pop_front().expect("a response"),
    };
    let Some((status, body)) = said else {
        return Reply::Closes;
    };
    let headers = [
        ("Content-Type", "application/json"),
        ("Location", "http://127.0.0.1:1/"),
    ];
    Reply::with(status, &headers, &body.replace("{id}", id))
}

/// Starts and reads the verifications of a partner, without a request.
pub(crate) struct Verifying {
    pub(crate) starting: VerifyUser,
    who: Tenant,
}

impl Verifying {
    pub(crate) fn new(runtime: &Runtime, who: &Tenant) -> Self {
        let starting = VerifyUser {
            context: runtime.gate_context(gate_http::render_resource),
            catalogue: Arc::clone(&runtime.catalogue),
            verifiers: runtime.verifiers.clone(),
        };
        let who = who.clone();
        Self { starting, who }
    }

    pub(crate) async fn begin(&self, id: SessionId) -> Result<StartedVerification, VerifyError> {
        self.starting.start(&self.who, id, None, None).await
    }

    pub(crate) async fn stored(&self, id: SessionId) -> Verification {
        let store = &self.starting.context.store;
        let found = store.verification_get(&self.who, id).await;
        found.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, id: SessionId) -> VerificationStatus {
        self.stored(id).await.state.status()
    }
}

/// A gate service in this process, with the verifier.
async fn start(folder: &Path, verifier: &TestVerifier) -> (Gate, Verifying) {
    let settings = [
        ("VERIFIER", verifier.setting.as_str()),
        ("VERIFIER_SECRET", SECRET),
        ("THROTTLE", "off"),
    ];
    let gate = Gate::start(folder, &settings).await;
    let verifying = Verifying::new(&gate.runtime, &gate.who);
    (gate, verifying)
}

/// Lets time pass until the verification has this status.
async fn reaches(gate: &Gate, verifying: &Verifying, id: SessionId, status: VerificationStatus) {
    let reached = async || verifying.status(id).await == status;
    gate.until("the status is not reached", reached).await;
}

// rule: gate.verification.poll, gate.verification.start, gate.verification.event-once, config.verifier-http
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verification_ends_as_the_verifier_reports() {
    let rejected =
        json!({ "id": "{id}", "status": "rejected", "reason": "The document has expired." });
    ends_as_reported(status("approved"), VerificationStatus::Approved).await;
    ends_as_reported(says(&rejected), VerificationStatus::Rejected).await;
}

async fn ends_as_reported(end: Says, expected: VerificationStatus) {
    let folder = tempfile::tempdir().unwrap();
    let verifier = TestVerifier::start();
    let (gate, verifying) = start(folder.path(), &verifier).await;
    let id = gate.call(session_to_verify).await;
    let pending = json!({
        "id": "{id}", "status": "pending", "url": "https://verifier.example/c", "reference": "case-7",
    });
    verifier.gives(&[says(&pending)]);
    for _ in 0..2 {
        // A repeated start gets the page again, under the same id.
        let started = verifying.begin(id).await.unwrap();
        assert_eq!(started.shown.status, VerificationStatus::Pending);
        assert_eq!(started.url.as_deref(), Some("https://verifier.example/c"));
    }
    verifier.gives(&[end]);
    reaches(&gate, &verifying, id, expected).await;
    let stored = verifying.stored(id).await;
    assert_eq!(stored.reference.as_deref(), Some("case-7"));
    let events = gate.events(&id.to_string(), 2).await;
    assert_eq!(events, ["gate_session.created", "kyc.required"]);
    // An end is final: there is no further poll, and a later start makes no call.
    let lines = verifier.played.lines();
    assert_eq!(verifying.begin(id).await.unwrap().shown.status, expected);
    gate.step();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(verifier.played.lines(), lines);
    let starts: Vec<_> = lines.iter().filter(|it| it.starts_with("PUT")).collect();
    assert_eq!((starts.len(), starts[0]), (2, starts[1]));
    let shown = format!("Bearer {SECRET}");
    let received = verifier.played.take();
    assert!(
        received
            .iter()
            .all(|one| one.header("authorization") == shown)
    );
    gate.end().await;
}

// rule: gate.verification.silence, gate.verification.start
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_response_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = TestVerifier::start();
    let (gate, verifying) = start(folder.path(), &verifier).await;
    let id = gate.call(session_to_verify).await;
    let huge = format!(
        r#"{{"id":"{{id}}","status":"approved","x":"{}"}}"#,
        "x".repeat(128 * 1024)
    );
    let invalid = [
        None,
        Some((503, String::new())),
        Some((404, r#"{"id":"{id}","status":"approved"}"#.to_owned())),
        Some((307, String::new())),
        Some((200, "approved".to_owned())),
        Some((200, r#"["{id}","approved"]"#.to_owned())),
        Some((200, huge)),
        says(&json!({ "id": "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", "status": "approved" })),
        status("verified"),
        status("rejected"),
        says(&json!({ "id": "{id}", "status": ["approved"] })),
    ];
    for reply in &invalid {
        verifier.gives(std::slice::from_ref(reply));
        let started = verifying.begin(id).await;
        let silent = matches!(started, Err(VerifyError::VerifierSilent));
        assert!(silent, "{reply:?}: {started:?}");
        let reports = verifier.reports();
        let asked = async || verifier.reports() > reports;
        gate.until("the verifier was not asked", asked).await;
        assert_eq!(
            verifying.status(id).await,
            VerificationStatus::Pending,
            "{reply:?}"
        );
    }
    verifier.gives(&[status("approved")]);
    reaches(&gate, &verifying, id, VerificationStatus::Approved).await;
    let lines = verifier.played.lines();
    let path = lines[0].split(' ').nth(1).unwrap();
    assert!(lines.iter().all(|line| line.ends_with(path)), "{lines:#?}");
    let events = gate.events(&id.to_string(), 2).await;
    assert_eq!(events, ["gate_session.created", "kyc.required"]);
    gate.end().await;
}

// rule: gate.verification.answers, gate.verification.stores-no-answers
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_reach_only_the_verifier() {
    let folder = tempfile::tempdir().unwrap();
    let verifier = TestVerifier::start();
    let (gate, verifying) = start(folder.path(), &verifier).await;
    let id = gate.call(session_to_verify).await;
    let form = json!({ "type": "object", "properties": { "birthday": { "type": "string" } } });
    let pending = json!({ "id": "{id}", "status": "pending", "form": form });
    verifier.gives(&[says(&pending)]);
    let started = verifying.begin(id).await.unwrap();
    let shown: Value = serde_json::from_str(started.form.unwrap().as_str()).unwrap();
    assert_eq!(shown, form);
    // A start with answers asks for the form again, and submits them to it.
    verifier.gives(&[says(&pending), status("approved")]);
    let answers = JsonObject::stored(r#"{"birthday":"1815-12-10"}"#).unwrap();
    let submitting = verifying
        .starting
        .start(&gate.who, id, Some(&answers), None);
    let submitted = submitting.await.unwrap();
    assert_eq!(submitted.shown.status, VerificationStatus::Approved);
    let received = verifier.played.take();
    let post = received.iter().find(|one| one.method() == "POST").unwrap();
    assert!(post.path().ends_with("/answers"), "{}", post.head);
    let answers = json!({ "answers": { "birthday": "1815-12-10" } });
    assert_eq!(post.json(), answers);
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
