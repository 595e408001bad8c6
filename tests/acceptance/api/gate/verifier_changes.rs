//! A change of the verifier between two starts of the service: a pending verification stays with the verifier that holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acceptance::{Call, Gate};
use gate_core::ports::Verifier;
use kernel::Upstreams;
use providers::{HttpVerifier, UpstreamUrl};
use serde_json::{Value, json};
use test_support::http::{Reply, Upstream};

use super::verification_polls::poll;
use super::widget_payments::{Widget, purchase};
use super::widget_verification::{start, status};

/// Generous timeout for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const MINUTE: u64 = 60_000;

/// A verifier over HTTP. Every verification is pending until the test approves all.
pub(super) struct FarVerifier {
    played: Upstream,
    approves: Arc<AtomicBool>,
}

impl FarVerifier {
    pub(super) fn start() -> Self {
        let approves = Arc::<AtomicBool>::default();
        let decided = Arc::clone(&approves);
        let played = Upstream::start(move |request| {
            let id = request.path().split('/').nth(3).unwrap();
            let answer = if decided.load(Ordering::SeqCst) {
                json!({ "id": id, "status": "approved" })
            } else {
                json!({ "id": id, "status": "pending", "url": "http://127.0.0.1:9/case" })
            };
            Reply::json(200, &answer.to_string())
        });
        Self { played, approves }
    }

    fn approve(&self) {
        self.approves.store(true, Ordering::SeqCst);
    }

    pub(super) fn adapter(&self) -> Arc<dyn Verifier> {
        let url = UpstreamUrl::parse(&self.played.url()).unwrap();
        Arc::new(HttpVerifier::new(url, None, TIMEOUT).unwrap())
    }

    /// The methods of the requests since the last call: `PUT` starts, and `GET` asks for a report.
    fn calls(&self) -> Vec<String> {
        let requests = self.played.take();
        let methods = requests.iter().map(|one| one.method().to_owned());
        methods.collect()
    }
}

/// A gate with the verifier, and a widget whose verification is pending there.
async fn pending_at(verifier: &FarVerifier) -> (Gate, Widget) {
    let gate = Gate::new().await;
    gate.verifier().becomes(verifier.adapter());
    let widget = Widget::of_amount(&gate, "100.61").await;
    let started = start(&widget).await.ok();
    assert_eq!(started["status"], "pending");
    assert_eq!(started["url"], "http://127.0.0.1:9/case");
    assert_eq!(verifier.calls(), ["PUT"]);
    (gate, widget)
}

// rule: verifier.name, verifier.elsewhere, gate.verification.none
#[tokio::test]
async fn pending_verification_waits_for_its_verifier() {
    let (a, b) = (FarVerifier::start(), FarVerifier::start());
    let (gate, widget) = pending_at(&a).await;
    // Both verifiers would approve the user.
    a.approve();
    b.approve();
    for present in [Some(b.adapter()), None] {
        let verifiers = Upstreams {
            present,
            former: None,
        };
        let restarted = gate.with_verifiers(verifiers).await;
        let widget = widget.at(&restarted);
        restarted.world().after(MINUTE);
        poll(&restarted).await;
        for _ in 0..2 {
            let started = start(&widget).await.ok();
            assert_eq!(started["status"], "pending");
            for field in ["url", "form", "expires_at"] {
                assert_eq!(started[field], Value::Null, "{field}");
            }
        }
        let answers = json!({ "answers": { "name": "Ann" } });
        let submit = Call::post("/v1/embed/verification").json(&answers);
        let refused = widget.send(submit).await;
        refused.refused(400, "verification_form_not_asked");
        let quote = widget.quote().await;
        let refused = widget.pay("k", purchase(&quote)).await;
        refused.refused(403, "verification_required");
        for verifier in [&a, &b] {
            assert_eq!(verifier.calls(), [""; 0]);
        }
        restarted.close().await;
    }
    poll(&gate).await;
    assert_eq!(status(&widget).await, "approved");
    assert_eq!(a.calls(), ["GET"]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: verifier.name, verifier.former
#[tokio::test]
async fn former_verifier_ends_its_verifications_and_starts_none() {
    let (a, b) = (FarVerifier::start(), FarVerifier::start());
    let (gate, widget) = pending_at(&a).await;
    let verifiers = Upstreams {
        present: Some(b.adapter()),
        former: Some(a.adapter()),
    };
    let restarted = gate.with_verifiers(verifiers).await;
    // The user gets the page of the former verifier again, and a new user that of the present one.
    let again = start(&widget.at(&restarted)).await.ok();
    assert_eq!(again["url"], "http://127.0.0.1:9/case");
    let new = Widget::of_amount(&restarted, "200.61").await;
    assert_eq!(start(&new).await.ok()["status"], "pending");
    assert_eq!([a.calls(), b.calls()], [["PUT"], ["PUT"]]);
    a.approve();
    restarted.world().after(MINUTE);
    poll(&restarted).await;
    assert_eq!(status(&widget.at(&restarted)).await, "approved");
    assert_eq!(status(&new).await, "pending");
    assert_eq!([a.calls(), b.calls()], [["GET"], ["GET"]]);
    gate.world().notice_all().await;
    restarted.close().await;
    gate.finish().await;
}
