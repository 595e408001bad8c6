//! Verifications: a session has one, which emits one event, has one poller at a time, and ends once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::catalogue::Catalogue;
use gate_core::object::JsonObject;
use gate_core::ports::{VerificationOrder, VerificationStart, Verifier};
use gate_core::rail::PollLease;
use gate_core::session::SessionId;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use gate_core::usecases::verify_user::{StartRequest, VerificationRefusal, VerifyUser};
use gate_core::verification::{
    Verification, VerificationReport, VerificationState, VerificationStatus,
};
use kernel::{Cas, Mode, Named, UpstreamName, Upstreams};
use partner_core::Tenant;
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{Gate, VERIFIER, draft};
use crate::contract::payments::first_token;
use crate::contract::world::World;

const SECOND: Duration = Duration::from_secs(1);

/// Leaves amounts that end in `.63` pending at their start, rejects those that end in `.62`, and approves the rest.
#[derive(Default)]
pub(crate) struct Straight {
    reports: AtomicU32,
}

impl Straight {
    fn outcome(order: &VerificationOrder) -> VerificationReport {
        if order.amount.as_str().ends_with(".62") {
            VerificationReport::Rejected {
                reason: Some("The document has expired.".to_owned()),
            }
        } else {
            VerificationReport::Approved
        }
    }
}

impl Named for Straight {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in(VERIFIER)
    }
}

#[async_trait]
impl Verifier for Straight {
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
        let report = if order.amount.as_str().ends_with(".63") {
            VerificationReport::Pending
        } else {
            Self::outcome(order)
        };
        Some(VerificationStart {
            report,
            url: None,
            form: None,
            expires_at: None,
            reference: Some(format!("case-{}", order.id)),
        })
    }

    async fn submit(&self, _: &VerificationOrder, _: &JsonObject) -> Option<VerificationReport> {
        None
    }

    async fn report(&self, order: &VerificationOrder) -> Option<VerificationReport> {
        self.reports.fetch_add(1, Ordering::Relaxed);
        Some(Self::outcome(order))
    }
}

/// The use cases of verifications, with those of the gate.
#[derive(Clone)]
pub(crate) struct Verifications {
    pub(crate) gate: Gate,
    verifier: Arc<Straight>,
    pub(crate) verifying: VerifyUser,
    pub(crate) advancing: AdvanceVerifications,
}

impl Verifications {
    pub(crate) fn of(gate: Gate) -> Self {
        let context = gate.creating.context.clone();
        let verifier = Arc::new(Straight::default());
        Self {
            verifying: VerifyUser {
                context: context.clone(),
                catalogue: Arc::new(Catalogue::built_in().unwrap()),
                verifiers: Upstreams {
                    present: Some(verifier.clone()),
                    former: None,
                },
            },
            advancing: AdvanceVerifications {
                context,
                verifier: verifier.clone(),
            },
            verifier,
            gate,
        }
    }

    pub(crate) fn who(&self) -> &Tenant {
        &self.gate.access.tenant
    }

    pub(crate) async fn started(&self, session: SessionId) -> VerificationStatus {
        let asked = StartRequest::default();
        let starting = self
            .verifying
            .start(self.who(), first_token(session), asked);
        starting.await.unwrap().shown.status
    }

    /// A payment that only the verification can refuse.
    pub(crate) async fn paid(self, session: SessionId) -> Result<(), VerificationRefusal> {
        let store = &self.verifying.context.store;
        for _ in 0..100 {
            let mut tx = store.gate_begin("pay").await.unwrap();
            let locked = tx.session_lock(self.who(), session).await.unwrap().unwrap();
            let now = tx.now().await.unwrap();
            let requiring = self
                .verifying
                .require(tx.as_mut(), self.who(), &locked, None, now);
            let outcome = requiring.await.unwrap();
            if tx.commit().await.is_ok() {
                return outcome;
            }
        }
        panic!("every commit lost its race");
    }
}

impl<F: GateFixture> World<F> {
    pub(crate) async fn open_verifications(&self, name: &str) -> Verifications {
        Verifications::of(self.open_gate(name, Mode::Test, None).await)
    }

    async fn verification(&self, who: &Tenant, session: SessionId) -> Option<Verification> {
        let mut tx = self.gate_begin().await;
        let locked = tx.verification_lock(who, session).await.unwrap();
        drop(tx);
        let store = self.fixture.gate().store.clone();
        let read = store.verification_get(who, session).await.unwrap();
        assert_eq!(read, locked);
        read
    }

    async fn put_verification(
        &self,
        who: &Tenant,
        before: &PollLease,
        after: &Verification,
    ) -> Cas {
        let mut tx = self.gate_begin().await;
        let outcome = tx.verification_put(who, before, after).await.unwrap();
        tx.commit().await.unwrap();
        outcome
    }
}

// rule: gate.verification.states, gate.verification.lease, gate.verification.poll
pub async fn verification_reads_back_and_ends_once(world: World<impl GateFixture>) {
    let acme = world.open_verifications("acme").await;
    let who = acme.who().clone();
    let session = acme.gate.opened("session", draft("10.62")).await;
    assert!(world.verification(&who, session).await.is_none());
    let refused = acme.clone().paid(session).await;
    assert_eq!(refused, Err(VerificationRefusal::Required));
    let required = world.verification(&who, session).await.unwrap();
    assert_eq!(required.state, VerificationState::Required);
    assert_eq!((required.session, &required.reference), (session, &None));
    let rival = world.open_verifications("rival").await;
    assert!(world.verification(rival.who(), session).await.is_none());
    // It is due only after its start.
    world.clock().advance(SECOND);
    assert!(world.verifications_due(Mode::Test).await.is_empty());
    let pending = Verification {
        verifier: Some(UpstreamName::built_in(VERIFIER)),
        state: VerificationState::Pending,
        reference: Some("case-1".to_owned()),
        asking: PollLease {
            attempts: 1,
            token: Some(u64::MAX),
            next_at: world.now().plus(SECOND),
        },
        ..required.clone()
    };
    let foreign = world.put_verification(rival.who(), &required.asking, &pending);
    assert_eq!(foreign.await, Cas::Lost);
    let put = async |before: &PollLease| {
        let put = world.put_verification(&who, before, &pending);
        put.await
    };
    assert_eq!(put(&required.asking).await, Cas::Won);
    assert_eq!(put(&required.asking).await, Cas::Lost);
    assert_eq!(
        world.verification(&who, session).await,
        Some(pending.clone())
    );
    assert!(world.verifications_due(Mode::Test).await.is_empty());
    world.clock().advance(SECOND);
    assert_eq!(
        world.verifications_due(Mode::Test).await,
        [(who.clone(), session)]
    );
    assert!(world.verifications_due(Mode::Live).await.is_empty());
    acme.advancing.advance(&who, session).await.unwrap();
    let ended = world.verification(&who, session).await.unwrap();
    assert_eq!(ended.state.reason(), Some("The document has expired."));
    assert_eq!(ended.state.ended_at(), Some(world.now()));
    assert_eq!(ended.reference.as_deref(), Some("case-1"));
    assert_eq!((ended.asking.attempts, ended.asking.token), (2, None));
    // The end is final.
    assert_eq!(put(&ended.asking).await, Cas::Lost);
    let refused = acme.clone().paid(session).await;
    assert_eq!(refused, Err(VerificationRefusal::Rejected));
    assert_eq!(acme.started(session).await, VerificationStatus::Rejected);
    assert!(world.verifications_due(Mode::Test).await.is_empty());
    world.assert_clean().await;
}

// rule: gate.verification.event-once
pub async fn concurrent_starts_and_refusals_emit_one_event(world: World<impl GateFixture>) {
    let acme = world.open_verifications("acme").await;
    let who = acme.who().clone();
    let session = acme.gate.opened("session", draft("10.61")).await;
    let mut racing = JoinSet::new();
    for number in 0..12 {
        let acme = acme.clone();
        racing.spawn(async move {
            if number % 2 == 0 {
                let status = acme.started(session).await;
                assert_eq!(status, VerificationStatus::Approved);
            } else {
                // It is refused before the approval and allowed after it.
                let _ = acme.paid(session).await;
            }
        });
    }
    racing.join_all().await;
    let said = world.said(&who, session).await;
    assert_eq!(said, ["gate_session.created", "kyc.required"]);
    assert_eq!(acme.clone().paid(session).await, Ok(()));
    world.assert_clean().await;
}

// rule: gate.verification.states
pub async fn rejection_without_reason_reads_back(world: World<impl GateFixture>) {
    let acme = world.open_verifications("acme").await;
    let who = acme.who().clone();
    let session = acme.gate.opened("session", draft("10.63")).await;
    assert_eq!(acme.started(session).await, VerificationStatus::Pending);
    let pending = world.verification(&who, session).await.unwrap();
    let rejected = Verification {
        state: VerificationState::Rejected {
            at: world.now(),
            reason: None,
        },
        ..pending.clone()
    };
    let put = world.put_verification(&who, &pending.asking, &rejected);
    assert_eq!(put.await, Cas::Won);
    assert_eq!(world.verification(&who, session).await, Some(rejected));
    world.assert_clean().await;
}

// rule: gate.verification.lease
pub async fn concurrent_polls_of_verification_have_one_winner(world: World<impl GateFixture>) {
    let acme = world.open_verifications("acme").await;
    let who = acme.who().clone();
    let session = acme.gate.opened("session", draft("10.63")).await;
    assert_eq!(acme.started(session).await, VerificationStatus::Pending);
    world.clock().advance(SECOND);
    let mut racing = JoinSet::new();
    for _ in 0..8 {
        let (advancing, who) = (acme.advancing.clone(), who.clone());
        racing.spawn(async move { advancing.advance(&who, session).await });
    }
    for outcome in racing.join_all().await {
        outcome.unwrap();
    }
    assert_eq!(acme.verifier.reports.load(Ordering::Relaxed), 1);
    assert_eq!(acme.started(session).await, VerificationStatus::Approved);
    world.assert_clean().await;
}
