//! A verifier in a process of its own, which two gate services poll, each in its own process, on one database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use gate_core::session::SessionId;
use gate_core::usecases::verify_user::VerifyError;
use gate_core::verification::VerificationStatus;
use partner_core::Tenant;
use runtime::{Ports, Runtime};
use test_support::http::{nowhere, send};
use test_support::program::Served;

use crate::gate::{CountingEntropy, config_with, event_types, provision, session_to_verify};
use crate::lifecycle::GATE;
use crate::process::Trial;
use crate::verifier::Verifying;

const SECRET: &str = "a-secret-of-the-verifier";
const MASTER_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const CONTRADICTION: &str = "the opposite of a verification that ended";
const ONCE: [&str; 2] = ["gate_session.created", "kyc.required"];

/// Two gate services that poll, and the start of verifications in this process, which polls nothing.
struct World {
    folder: tempfile::TempDir,
    verifier: Trial,
    gates: Vec<Served>,
    runtime: Runtime,
    who: Tenant,
    verifying: Verifying,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A verifier that is started again gets the same port.
        let verifier = Trial::verifier(SECRET, &nowhere().to_string());
        let url = format!("http:http://{}", verifier.address);
        let settings = [
            ("VERIFIER", url.as_str()),
            ("VERIFIER_SECRET", SECRET),
            ("MASTER_KEY", MASTER_KEY),
            ("THROTTLE", "off"),
        ];
        let ports = Ports {
            clock: Ports::of_machine().clock,
            entropy: Arc::new(CountingEntropy(AtomicU64::new(1))),
        };
        let runtime = Runtime::open(config_with(folder.path(), &settings), ports);
        let runtime = runtime.await.unwrap();
        let who = provision(&runtime).await;
        let gates = (0..2).map(|_| gate(folder.path(), &url)).collect();
        let verifying = Verifying::new(&runtime, &who);
        Self {
            folder,
            verifier,
            gates,
            runtime,
            who,
            verifying,
        }
    }

    async fn session(&self) -> SessionId {
        let address = self.gates[0].address.clone();
        let making = tokio::task::spawn_blocking(move || session_to_verify(&address));
        making.await.unwrap()
    }

    /// A session whose verification has begun, and the verification's id.
    async fn begun(&self) -> (SessionId, String) {
        let id = self.session().await;
        let started = self.verifying.begin(id).await.unwrap();
        assert_eq!(started.shown.status, VerificationStatus::Pending);
        assert!(started.url.unwrap().starts_with("http://127.0.0.1:"));
        (id, self.verifying.stored(id).await.id.to_string())
    }

    /// Waits for a condition.
    async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        for _ in 0..3_000 {
            if holds(self).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{what}");
    }

    async fn reaches(&self, id: SessionId, status: VerificationStatus) {
        let reached =
            async |world: &Self| world.verifying.stored(id).await.state.status() == status;
        self.until("the status is not reached", reached).await;
    }

    /// Waits until the verification was polled again.
    fn polled(&self, id: &str) {
        self.verifier.skip();
        self.verifier.says(&format!("GET /v1/verifications/{id}"));
    }

    async fn events(&self, id: SessionId) -> Vec<String> {
        event_types(&self.runtime, &self.who, &id.to_string(), 2).await
    }

    fn contradictions(&self) -> usize {
        let logged = self.gates.iter().map(Served::logged);
        logged.map(|log| log.matches(CONTRADICTION).count()).sum()
    }

    /// Whether a contradiction is logged before a poll that is under way has certainly ended.
    async fn logs_contradiction(&self) -> bool {
        for _ in 0..1_000 {
            if self.contradictions() > 0 {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }
}

fn gate(folder: &Path, url: &str) -> Served {
    let database = format!("sqlite://{}/penstock.db", folder.display());
    let variables = [
        ("DATABASE_URL", database.as_str()),
        ("VERIFIER", url),
        ("VERIFIER_SECRET", SECRET),
        ("MASTER_KEY", MASTER_KEY),
        ("THROTTLE", "off"),
    ];
    GATE.start(folder, &variables)
}

// rule: gate.verification.poll, gate.verification.silence, gate.verification.event-once
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_and_unknown_reports_decide_nothing_and_outcome_comes_once() {
    let mut world = World::start().await;
    let (id, case) = world.begun().await;
    world.verifier.command("silent");
    world.polled(&case);
    let refused = world.verifying.begin(id).await;
    assert!(
        matches!(refused, Err(VerifyError::VerifierSilent)),
        "{refused:?}"
    );
    world.verifier.command("talk");
    world.verifier.command(&format!("say {case} verified"));
    world.polled(&case);
    world.polled(&case);
    assert_eq!(
        world.verifying.stored(id).await.state.status(),
        VerificationStatus::Pending
    );
    // The same report, again and again, from two pollers.
    world.verifier.command(&format!("say {case} pending"));
    world.polled(&case);
    world.verifier.command(&format!("approve {case}"));
    world.reaches(id, VerificationStatus::Approved).await;
    let ended = world.verifying.stored(id).await;
    assert_eq!(
        world.verifying.begin(id).await.unwrap().shown.status,
        VerificationStatus::Approved
    );
    assert_eq!(world.verifying.stored(id).await, ended);
    assert_eq!(world.events(id).await, ONCE);
    assert_eq!(world.contradictions(), 0);
    world.runtime.close().await;
}

// rule: gate.verification.contradiction, gate.verification.states
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_final_report_wins_and_contradiction_is_logged() {
    let mut world = World::start().await;
    // On a busy machine the late report may still be the first one, or come after its poll has ended. Then another session tries
    // again.
    for _ in 0..5 {
        let (id, case) = world.begun().await;
        // A poll gets its report now, and receives it late. No later poll follows, so its line must not be skipped.
        world.verifier.command("slow 1500");
        world.verifier.skip();
        world.verifier.command(&format!("approve {case}"));
        world
            .verifier
            .says(&format!("GET /v1/verifications/{case}"));
        world.verifier.command("slow 0");
        world
            .verifier
            .command(&format!("reject {case} The document has expired."));
        // Meanwhile the user starts again, and gets the opposite at once.
        if world.verifying.begin(id).await.unwrap().shown.status == VerificationStatus::Approved {
            continue;
        }
        let ended = world.verifying.stored(id).await;
        assert_eq!(ended.state.status(), VerificationStatus::Rejected);
        if !world.logs_contradiction().await {
            continue;
        }
        assert_eq!(world.contradictions(), 1);
        assert_eq!(world.verifying.stored(id).await, ended);
        assert_eq!(world.events(id).await, ONCE);
        world.runtime.close().await;
        return;
    }
    panic!("no report was late and yet in time");
}

// rule: gate.verification.poll, gate.verification.silence
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verification_outlives_restarts_of_verifier_and_gate() {
    let mut world = World::start().await;
    let (id, case) = world.begun().await;
    let address = world.verifier.address.clone();
    // A verifier that has forgotten its cases does not know this one: nothing is decided.
    drop(std::mem::replace(
        &mut world.verifier,
        Trial::verifier(SECRET, "127.0.0.1:0"),
    ));
    world.verifier = Trial::verifier(SECRET, &address);
    world.polled(&case);
    world.polled(&case);
    assert_eq!(
        world.verifying.stored(id).await.state.status(),
        VerificationStatus::Pending
    );
    // One gate is replaced while its poll may be under way, and the other ends.
    let url = format!("http:http://{address}");
    world.verifier.command("slow 500");
    world.polled(&case);
    world.gates.clear();
    world.gates.push(gate(world.folder.path(), &url));
    world
        .verifier
        .command(&format!("reject {case} The document has expired."));
    world.reaches(id, VerificationStatus::Rejected).await;
    assert_eq!(world.events(id).await, ONCE);
    world.runtime.close().await;
}

const CASE: &str = "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";

/// The response of a trial verifier to a call with these headers.
fn response(verifier: &Trial, call: &str, headers: &[(&str, &str)]) -> String {
    send(&verifier.address, call, headers, r#"{"amount":"10.61"}"#)
}

#[test]
fn delay_of_trial_verifier_ends_no_verification_that_a_command_has_named() {
    let arguments = ["--listen", "127.0.0.1:0", "--delay-ms", "5000"];
    let mut verifier = Trial::verifier_with(SECRET, &arguments);
    let bearer = format!("Bearer {SECRET}");
    let shown = [("Authorization", bearer.as_str())];
    let other = CASE.replace("8JK", "8JM");
    for id in [CASE, &other] {
        let started = response(&verifier, &format!("PUT /v1/verifications/{id}"), &shown);
        assert!(started.contains(r#""status":"pending""#), "{started}");
    }
    verifier.command(&format!("reject {CASE} A trial."));
    let report = |id: &str| response(&verifier, &format!("GET /v1/verifications/{id}"), &shown);
    // The delay of the case ends before that of the other.
    for _ in 0..600 {
        if report(&other).contains(r#""status":"approved""#) {
            let named = report(CASE);
            assert!(named.contains(r#""status":"rejected""#), "{named}");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the delay never ends");
}

#[test]
fn page_of_trial_verifier_needs_no_secret() {
    let mut verifier = Trial::verifier(SECRET, "127.0.0.1:0");
    let page = format!("GET /pages/{CASE}");
    assert!(response(&verifier, &page, &[]).starts_with("HTTP/1.1 404 "));
    verifier.command(&format!("say {CASE} pending"));
    let shown = response(&verifier, &page, &[]);
    assert!(shown.starts_with("HTTP/1.1 200 "), "{shown}");
    assert!(
        shown.contains("Content-Type: text/html; charset=utf-8\r\n"),
        "{shown}"
    );
    assert!(
        shown.contains("<!doctype html>") && shown.contains(CASE),
        "{shown}"
    );
    assert!(
        shown.contains("Approve") && shown.contains("Reject"),
        "{shown}"
    );
    let report = format!("GET /v1/verifications/{CASE}");
    assert!(response(&verifier, &report, &[]).starts_with("HTTP/1.1 401 "));
    let approved = response(&verifier, &format!("POST /pages/{CASE}/approve"), &[]);
    assert!(approved.contains("<strong>approved</strong>"), "{approved}");
    let bearer = format!("Bearer {SECRET}");
    let reported = response(&verifier, &report, &[("Authorization", &bearer)]);
    assert!(reported.contains(r#""status":"approved""#), "{reported}");
}
