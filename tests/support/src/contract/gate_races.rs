//! Races of the gate: concurrent requests create one session per key, end it once, and emit one event per end.

use gate_core::branding::BrandingUpdate;
use gate_core::change::Change;
use gate_core::ports::TransactionFilter;
use gate_core::session::{SessionId, SessionStatus};
use gate_core::usecases::act_on_session::{ActError, ActionRequest};
use gate_core::usecases::create_session::CreateError;
use kernel::Mode;
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::stored_response::IdempotentResponse;
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, answer, draft};
use crate::contract::world::{MILLI, World, expired_keys};

// rule: idempotency.gate-replay, idempotency.gate-any-body
pub async fn concurrent_creates_under_one_key_count_once(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let mut racing = JoinSet::new();
    for number in 0..20 {
        // Some requests have another body under the same key.
        let amount = if number % 4 == 3 { "7" } else { "100.10" };
        racing.spawn(gate.clone().create("one".to_owned(), draft(amount)));
    }
    let given = racing.join_all().await;
    let fresh = given
        .iter()
        .filter(|given| matches!(given, Ok(IdempotentResponse::First(_))));
    assert_eq!(fresh.count(), 1);
    let sessions = world.sessions(&gate.access.tenant).await;
    let [session] = &sessions[..] else {
        panic!("{sessions:?}")
    };
    for given in given {
        let answer = given.unwrap().into_rendered();
        assert_eq!(answer.0, session.id.to_string().into_bytes());
    }
    let said = world.said(&gate.access.tenant, session.id).await;
    assert_eq!(said, ["gate_session.created"]);
    world.assert_clean().await;
}

// rule: idempotency.kept, idempotency.gate-replay
pub async fn retries_with_concurrent_sweep_count_once(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    gate.opened("one", draft("5")).await;
    // The stored response counts in its last instant, is overwritten in the next, and is later swept concurrently.
    let ages = [DAY - MILLI, MILLI, DAY + MILLI];
    for (later, made) in ages.into_iter().zip(1..) {
        world.clock().advance(later);
        let (mut retrying, mut sweeping) = (JoinSet::new(), JoinSet::new());
        for _ in 0..6 {
            retrying.spawn(gate.clone().create("one".to_owned(), draft("5")));
            let housekeeping = world.ports().housekeeping.clone();
            sweeping.spawn(async move {
                housekeeping
                    .idempotency_sweep(&expired_keys(Service::Gate), 10)
                    .await
            });
        }
        let given = retrying.join_all().await;
        let newest = world.sessions(&gate.access.tenant).await;
        assert_eq!(newest.len(), made, "{later:?} later");
        let id = newest[0].id.to_string().into_bytes();
        for given in given {
            assert_eq!(given.unwrap().into_rendered().0, id);
        }
        for swept in sweeping.join_all().await {
            swept.unwrap();
        }
    }
    world.assert_clean().await;
}

// rule: gate.quota.exact
pub async fn concurrent_creates_stay_within_quota(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Live, Some(7)).await;
    let mut racing = JoinSet::new();
    for number in 0..20 {
        racing.spawn(gate.clone().create(format!("key-{number}"), draft("5")));
    }
    let given = racing.join_all().await;
    let exhausted = given
        .iter()
        .filter(|given| matches!(given, Err(CreateError::Exhausted(_))));
    assert_eq!(exhausted.count(), 13);
    assert_eq!(given.iter().filter(|given| given.is_ok()).count(), 7);
    assert_eq!(world.sessions(&gate.access.tenant).await.len(), 7);
    world.assert_clean().await;
}

// rule: gate.session.one-end, gate.event.once, gate.session.lazy-expiry
pub async fn concurrent_ends_have_one_winner(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let who = gate.access.tenant.clone();
    for round in 0..12_u32 {
        let id = gate.opened(&format!("round-{round}"), draft("5")).await;
        // The session expires before, during, or after the requests.
        world.clock().advance(DAY - MILLI * (round % 3));
        let mut racing = JoinSet::new();
        for _ in 0..3 {
            for deed in [
                Some(ActionRequest::Cancel),
                Some(ActionRequest::Complete),
                None,
            ] {
                racing.spawn(gate.clone().act(id, None, deed));
            }
        }
        world.clock().advance(MILLI);
        let done = racing.join_all().await;
        let fine = |done: &Result<(), ActError>| matches!(done, Ok(()) | Err(ActError::Refused(_)));
        assert!(done.iter().all(fine), "{done:?}");
        world.clock().advance(DAY);
        gate.clone().act(id, None, None).await.unwrap();
        assert_one_end(&world, &who, id).await;
    }
    world.assert_clean().await;
}

async fn assert_one_end<F: GateFixture>(world: &World<F>, who: &Tenant, id: SessionId) {
    let gate = world.fixture.gate().store.clone();
    let session = gate.session_get(who, id).await.unwrap().unwrap().value;
    let status = session.state.status();
    assert_ne!(status, SessionStatus::Open);
    let end = format!("gate_session.{}", status.as_str());
    assert_eq!(world.said(who, id).await, ["gate_session.created", &end]);
    let of_it = TransactionFilter {
        session: Some(id),
        ..TransactionFilter::default()
    };
    let paid = gate.transactions_page(who, &of_it, 100).await.unwrap();
    assert_eq!(paid.len(), usize::from(status == SessionStatus::Completed));
}

// rule: gate.branding.no-lost-update
pub async fn concurrent_branding_changes_all_count(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let color = |number: u32| Change::Set(format!("#00000{number}"));
    let updates = [
        BrandingUpdate {
            primary_color: color(1),
            ..BrandingUpdate::default()
        },
        BrandingUpdate {
            secondary_color: color(2),
            ..BrandingUpdate::default()
        },
        BrandingUpdate {
            accent_color: color(3),
            ..BrandingUpdate::default()
        },
    ];
    let mut racing = JoinSet::new();
    for update in updates {
        let gate = gate.clone();
        racing.spawn(async move {
            let render = |_: &_| Ok(answer("{}".to_owned()));
            let who = &gate.access.tenant;
            gate.rebranding.update(who, None, &update, &render).await
        });
    }
    for changed in racing.join_all().await {
        changed.unwrap();
    }
    let seen = world.fixture.gate().store.branding_get(&gate.access.tenant);
    let branding = seen.await.unwrap().value;
    let colors = [
        branding.primary_color,
        branding.secondary_color,
        branding.accent_color,
    ];
    assert_eq!(
        colors.map(Option::unwrap),
        ["#000001", "#000002", "#000003"]
    );
    assert_eq!(branding.revision, 3);
}
