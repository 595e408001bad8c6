//! Polls of verifications: when they are due, one poller at a time, and late reports.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::object::JsonObject;
use gate_core::ports::{VerificationOrder, VerificationStart, Verifier};
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use gate_core::usecases::verify_user::VERIFIER_TIMEOUT;
use gate_core::verification::Contradiction;

use super::{Report, Status, World, rejection};
use crate::fixtures::{DAY, ready, tenant};

// rule: gate.verification.poll
#[test]
fn pending_verification_is_polled_until_it_ends() {
    let world = World::test();
    let id = world.open("a", "10.63", None);
    world.verifier.say(&[Some(Report::Pending)]);
    world.start(id).unwrap();
    assert!(world.due().is_empty());
    for _ in 0..3 {
        world.pass(1);
        assert_eq!(world.due(), [id]);
        world.verifier.say(&[Some(Report::Pending)]);
        world.poll(id);
        assert!(world.due().is_empty());
        // It is not due, so it is not asked about.
        world.poll(id);
    }
    world.pass(1);
    world.verifier.say(&[Some(Report::Approved)]);
    world.poll(id);
    assert_eq!(
        world.verifier.calls(),
        ["start", "report", "report", "report", "report"]
    );
    assert_eq!(
        (world.status(id), world.pay(id, None)),
        (Status::Approved, Ok(()))
    );
    world.pass(3_600);
    assert!(world.due().is_empty());
}

// rule: gate.verification.poll
#[test]
fn verification_of_ended_session_is_never_polled_again() {
    let world = World::test();
    let id = world.open("a", "10.63", None);
    world.verifier.say(&[Some(Report::Pending)]);
    world.start(id).unwrap();
    world.gate.memory.pass(DAY);
    assert_eq!(world.due(), [id]);
    world.poll(id);
    assert_eq!(world.verifier.calls(), ["start"]);
    world.gate.memory.pass(DAY * 365);
    assert!(world.due().is_empty());
}

// rule: gate.verification.lease
#[test]
fn second_poller_waits_for_the_lease() {
    let world = World::test();
    let id = world.open("a", "10.63", None);
    world.verifier.say(&[Some(Report::Pending)]);
    world.start(id).unwrap();
    world.pass(1);
    // The first poller is interrupted while the provider is asked, and never returns.
    let hanging = Hanging;
    let first = AdvanceVerifications {
        verifier: Arc::new(hanging),
        ..world.advancing.clone()
    };
    let who = tenant(&world.access);
    let mut polling = Box::pin(first.advance(who, id));
    ready(poll_fn(|context| {
        assert!(polling.as_mut().poll(context).is_pending());
        Poll::Ready(())
    }));
    world.poll(id);
    assert_eq!(world.verifier.calls(), ["start"]);
    world
        .gate
        .memory
        .pass(VERIFIER_TIMEOUT + Duration::from_secs(2));
    world.verifier.say(&[Some(Report::Approved)]);
    world.poll(id);
    assert_eq!(world.status(id), Status::Approved);
}

/// A provider that never responds.
struct Hanging;

#[async_trait]
impl Verifier for Hanging {
    async fn start(&self, _: &VerificationOrder) -> Option<VerificationStart> {
        std::future::pending().await
    }

    async fn submit(&self, _: &VerificationOrder, _: &JsonObject) -> Option<Report> {
        std::future::pending().await
    }

    async fn report(&self, _: &VerificationOrder) -> Option<Report> {
        std::future::pending().await
    }
}

// rule: gate.verification.contradiction, gate.verification.lease
#[test]
fn late_opposite_changes_nothing_and_is_reported() {
    for (first, second, kept) in [
        (Report::Approved, rejection(), Status::Approved),
        (rejection(), Report::Approved, Status::Rejected),
    ] {
        let world = Arc::new(World::test());
        let id = world.open("a", "10.61", None);
        world.verifier.say(&[Some(Report::Pending)]);
        world.start(id).unwrap();
        world.pass(1);
        // While the poll waits for its report, another start learns the opposite.
        let other = Arc::clone(&world);
        *world.verifier.meanwhile.lock().unwrap() = Some(Box::new(move || {
            other.verifier.say(&[Some(first)]);
            assert_eq!(other.start(id).unwrap().shown.status, kept);
            other.verifier.say(&[Some(second)]);
        }));
        world.poll(id);
        assert_eq!(world.status(id), kept);
        let contradicted = world.verifier.contradicted.lock().unwrap().clone();
        assert_eq!(contradicted, [Contradiction(kept)]);
        assert_eq!(world.asked(id), 1);
    }
}

// rule: gate.verification.lease
#[test]
fn stale_poll_applies_nothing_after_a_start() {
    let world = Arc::new(World::test());
    let id = world.open("a", "10.63", None);
    world.verifier.say(&[Some(Report::Pending)]);
    world.start(id).unwrap();
    world.pass(1);
    let other = Arc::clone(&world);
    *world.verifier.meanwhile.lock().unwrap() = Some(Box::new(move || {
        other.verifier.say(&[Some(Report::Pending)]);
        other.start(id).unwrap();
        other.verifier.say(&[Some(Report::Approved)]);
    }));
    world.poll(id);
    assert_eq!(world.status(id), Status::Pending);
    world.pass(1);
    world.verifier.say(&[Some(Report::Approved)]);
    world.poll(id);
    assert_eq!(world.status(id), Status::Approved);
}
