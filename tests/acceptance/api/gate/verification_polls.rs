//! Polls of verifications: one poller at a time, late reports, and the end of the session.

use std::sync::Arc;
use std::time::Duration;

use acceptance::Gate;
use gate_core::due::DueShare;
use gate_core::session::SessionId;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use gate_core::usecases::verify_user::VERIFIER_TIMEOUT;
use gate_core::verification::{
    Contradiction, VerificationReport as Report, VerificationStatus as Status,
};
use kernel::Mode;
use partner_core::Tenant;

use super::widget_payments::{Widget, kinds};
use super::widget_verification::{rejection, start, status};

/// The poller of each verifier.
fn advancing(gate: &Gate) -> Vec<AdvanceVerifications> {
    let verifiers = gate.use_cases().paying.verifying.verifiers.iter();
    let pollers = verifiers.map(|verifier| AdvanceVerifications {
        context: gate.sessions().clone(),
        verifier: Arc::clone(verifier),
    });
    pollers.collect()
}

async fn due_of(advancing: &AdvanceVerifications) -> Vec<(Tenant, SessionId)> {
    let share = DueShare::of_each(9);
    let due = advancing.due(Mode::Test, &share).await;
    due.unwrap().rows
}

/// The due verifications of all verifiers.
async fn due(gate: &Gate) -> Vec<(Tenant, SessionId)> {
    let mut due = Vec::new();
    for advancing in advancing(gate) {
        due.extend(due_of(&advancing).await);
    }
    due
}

/// Polls every due verification of each verifier, as the service's own tasks do.
pub(super) async fn poll(gate: &Gate) {
    for advancing in advancing(gate) {
        for (who, id) in due_of(&advancing).await {
            advancing.advance(&who, id).await.unwrap();
        }
    }
}

/// A widget whose verification was pending at its start and is due for a poll.
async fn polled_soon(gate: &Gate) -> Widget {
    let widget = Widget::of_amount(gate, "100.63").await;
    gate.verifier().says([Some(Report::Pending)]);
    assert_eq!(start(&widget).await.ok()["status"], "pending");
    assert!(due(gate).await.is_empty());
    gate.world().after(1_000);
    assert_eq!(due(gate).await.len(), 1);
    assert_eq!(gate.verifier().calls(), ["start"]);
    widget
}

// rule: gate.verification.poll
#[tokio::test]
async fn verification_of_ended_session_is_never_polled_again() {
    let gate = Gate::with(|setup| setup.session_ttl = Duration::from_secs(60)).await;
    polled_soon(&gate).await;
    gate.world().after(59_000);
    assert_eq!(due(&gate).await.len(), 1);
    poll(&gate).await;
    assert!(gate.verifier().calls().is_empty());
    gate.world().after(365 * 24 * 60 * 60 * 1_000);
    assert!(due(&gate).await.is_empty());
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.lease, gate.verification.contradiction
#[tokio::test]
async fn second_poller_waits_for_the_lease() {
    let gate = Gate::new().await;
    let widget = polled_soon(&gate).await;
    // The first poller waits for its report, and another one polls meanwhile.
    let other = gate.clone();
    gate.verifier().meanwhile(async move {
        let lease = VERIFIER_TIMEOUT + Duration::from_secs(2);
        let nearly = u64::try_from(lease.as_millis()).unwrap() - 1;
        other.world().after(nearly);
        poll(&other).await;
        assert_eq!(other.verifier().calls(), ["report"]);
        other.world().after(1);
        other.verifier().says([Some(Report::Approved)]);
        poll(&other).await;
        assert_eq!(other.verifier().calls(), ["report"]);
        other.verifier().says([Some(rejection())]);
    });
    poll(&gate).await;
    assert_eq!(status(&widget).await, "approved");
    let contradicted = gate.verifier().contradictions();
    assert_eq!(contradicted, [Contradiction(Status::Approved)]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.contradiction, gate.verification.lease, gate.verification.event-once
#[tokio::test]
async fn late_opposite_changes_nothing_and_is_reported() {
    for (first, second, kept) in [
        (Report::Approved, rejection(), Status::Approved),
        (rejection(), Report::Approved, Status::Rejected),
    ] {
        let gate = Gate::new().await;
        let widget = polled_soon(&gate).await;
        // While the poll waits for its report, another start learns the opposite.
        let (other, starting) = (gate.clone(), widget.clone());
        gate.verifier().meanwhile(async move {
            other.verifier().says([Some(first)]);
            assert_eq!(start(&starting).await.ok()["status"], kept.as_str());
            other.verifier().says([Some(second)]);
        });
        poll(&gate).await;
        assert_eq!(status(&widget).await, kept.as_str());
        assert_eq!(gate.verifier().contradictions(), [Contradiction(kept)]);
        let events = widget.events().await;
        assert_eq!(kinds(&events), ["gate_session.created", "kyc.required"]);
        gate.finish().await;
    }
}

// rule: gate.verification.lease
#[tokio::test]
async fn stale_poll_applies_nothing_after_a_start() {
    let gate = Gate::new().await;
    let widget = polled_soon(&gate).await;
    let (other, starting) = (gate.clone(), widget.clone());
    gate.verifier().meanwhile(async move {
        other.verifier().says([Some(Report::Pending)]);
        start(&starting).await.ok();
        other.verifier().says([Some(Report::Approved)]);
    });
    poll(&gate).await;
    assert_eq!(gate.verifier().calls(), ["report", "start"]);
    assert_eq!(status(&widget).await, "pending");
    gate.world().after(1_000);
    gate.verifier().says([Some(Report::Approved)]);
    poll(&gate).await;
    assert_eq!(status(&widget).await, "approved");
    gate.world().notice_all().await;
    gate.finish().await;
}
