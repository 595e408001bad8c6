//! Creating sessions: stored rows, refusals and replays.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gate_core::access::{GateAccess, GateDenial};
use gate_core::draft::{Draft, DraftError, NotEntitled};
use gate_core::error::GateError;
use gate_core::ports::kyc_place;
use gate_core::quota::Exhausted;
use gate_core::session::{Flow, SessionId, SessionState};
use gate_core::usecases::create_session::CreateError;
use kernel::{Mode, StoreError};
use partner_core::idempotency::Scope;
use partner_core::stored_response::{IdempotentResponse, RenderedResponse};
use partner_core::{Denial, PartnerStatus};

use crate::fixtures::{CREATE, DAY, Gate, access, acme, created, draft, key, noon, ready};

fn create(
    gate: &Gate,
    access: &GateAccess,
    name: &str,
    draft: &Draft,
) -> Result<IdempotentResponse, CreateError> {
    ready(
        gate.creating
            .create(access, key(CREATE, name), draft, &created),
    )
}

fn fresh(given: Result<IdempotentResponse, CreateError>) -> RenderedResponse {
    match given.unwrap() {
        IdempotentResponse::First(response) => response,
        repeated @ IdempotentResponse::Replayed { .. } => panic!("{repeated:?}"),
    }
}

// rule: gate.session.created, gate.session.expires, gate.session.secret-once, gate.session.secret-hashed, gate.event.once
#[test]
fn session_is_open_for_one_day_and_shows_secret_once() {
    let gate = Gate::new(&[acme()]);
    let (id, secret) = gate.open(&acme(), "a");
    assert!(
        secret.starts_with(&format!("gsec_{id}_")) && secret.len() > 60,
        "{secret}"
    );
    let rows = gate.memory.rows();
    let session = &rows.sessions[&(acme().tenant, id)];
    assert_eq!(
        (session.created_at, session.expires_at),
        (noon(), noon().plus(DAY))
    );
    assert_eq!(
        (session.state, session.id.mode()),
        (SessionState::Open, Mode::Test)
    );
    let random = secret.rsplit_once('_').unwrap().1;
    assert!(!format!("{rows:?}").contains(random));
    drop(rows);
    assert_eq!(
        gate.memory.events_of(&id.to_string()),
        ["gate_session.created"]
    );
}

// rule: gate.event.envelope, gate.event.data, gate.session.secret-once, gate.session.metadata-exact
#[test]
fn event_contains_session_as_get_returns_it() {
    let gate = Gate::new(&[acme()]);
    let sent = Draft {
        flow: Some(Flow::OffRamp),
        target_token: Some("usdt".to_owned()),
        metadata: Some("{ \"n\": 1.10, \"big\": 1e400 }".to_owned()),
        user_reference: Some("user-1".to_owned()),
        ..draft()
    };
    fresh(create(&gate, &acme(), "a", &sent));
    let rows = gate.memory.rows();
    let event = &rows.events[0];
    let place = partner_core::events::event_place(&event.tenant, &event.id);
    let body = gate.sealer.open(&place, &event.body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let expected = format!(
        "{{\"id\":\"{}\",\"object\":\"event\",\"type\":\"gate_session.created\",\"created_at\":1780000000,\"data\":\"Session(",
        event.id
    );
    assert!(body.starts_with(&expected), "{body}");
    assert_eq!(
        (event.id.len(), event.id.as_bytes()[14]),
        (36, b'4'),
        "{}",
        event.id
    );
}

// rule: idempotency.gate-replay, idempotency.gate-any-body, idempotency.gate-sealed
#[test]
fn replay_returns_first_response_for_any_body() {
    let gate = Gate::new(&[acme()]);
    let first = fresh(create(&gate, &acme(), "a", &draft()));
    let bad = Draft {
        amount: "no amount".to_owned(),
        ..draft()
    };
    for (sent, same) in [(draft(), true), (bad, false)] {
        let (access, render) = (acme(), created);
        let again = gate
            .creating
            .create(&access, key(CREATE, "\"a\""), &sent, &render);
        let expected = IdempotentResponse::Replayed {
            response: first.clone(),
            same_request: same,
        };
        assert_eq!(ready(again).unwrap(), expected);
    }
    let rows = gate.memory.rows();
    assert_eq!(
        (rows.sessions.len(), rows.events.len(), rows.responses.len()),
        (1, 1, 1)
    );
    let secret = String::from_utf8(first.0).unwrap();
    let kept = format!("{:?}", rows.responses.values().next().unwrap().answer.0);
    let plain = format!("{:?}", secret.as_bytes());
    assert!(!kept.contains(plain.trim_matches(['[', ']'])));
}

// rule: idempotency.kept, idempotency.scope, idempotency.only-success
#[test]
fn key_is_stored_for_one_day_per_partner_after_success() {
    let other = access("bolt-pay", Mode::Test);
    let gate = Gate::new(&[acme(), other.clone()]);
    let bad = Draft {
        amount: "0".to_owned(),
        ..draft()
    };
    assert!(matches!(
        create(&gate, &acme(), "a", &bad),
        Err(CreateError::Draft(_))
    ));
    let first = fresh(create(&gate, &acme(), "a", &draft()));
    assert_ne!(fresh(create(&gate, &other, "a", &draft())), first);
    gate.memory.pass(DAY - Duration::from_millis(1));
    let repeated = create(&gate, &acme(), "a", &draft()).unwrap();
    assert!(
        matches!(&repeated, IdempotentResponse::Replayed { response, .. } if *response == first)
    );
    gate.memory.pass(Duration::from_millis(1));
    assert_ne!(fresh(create(&gate, &acme(), "a", &draft())), first);
    assert_eq!(gate.memory.rows().responses.len(), 2);
}

// rule: idempotency.gate-twin, idempotency.in-flight
#[test]
fn twin_in_flight_is_refused() {
    let gate = Gate::new(&[acme()]);
    let scope = Scope::of_request(acme().tenant, key(CREATE, "a"));
    gate.memory.hold(&scope);
    let refused = create(&gate, &acme(), "a", &draft());
    assert!(matches!(refused, Err(CreateError::InProgress)));
    fresh(create(&gate, &acme(), "b", &draft()));
}

// rule: idempotency.gate-twin, gate.quota.exact
#[test]
fn twenty_concurrent_twins_create_one_session() {
    let gate = Gate::new(&[acme()]);
    let responses: Vec<Result<IdempotentResponse, CreateError>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| create(&gate, &acme(), "a", &draft())))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut bodies = BTreeSet::new();
    for response in responses {
        match response {
            Ok(response) => {
                bodies.insert(response.into_rendered().0);
            }
            Err(error) => assert!(matches!(error, CreateError::InProgress), "{error}"),
        }
    }
    assert_eq!(bodies.len(), 1);
    let rows = gate.memory.rows();
    assert_eq!((rows.sessions.len(), rows.events.len()), (1, 1));
}

// rule: idempotency.same-transaction
#[test]
fn lost_race_is_rerun_without_residue() {
    let gate = Gate::new(&[acme()]);
    gate.memory.lose(2);
    fresh(create(&gate, &acme(), "a", &draft()));
    gate.memory.lose(3);
    let refused = create(&gate, &acme(), "b", &draft());
    assert!(matches!(
        refused,
        Err(CreateError::Failed(GateError::Store(StoreError::Retry)))
    ));
    fresh(create(&gate, &acme(), "b", &draft()));
    let rows = gate.memory.rows();
    assert_eq!(
        (rows.sessions.len(), rows.events.len(), rows.responses.len()),
        (2, 2, 2)
    );
}

// rule: gate.session.kyc-package, gate.event.kyc-package
#[test]
fn trusted_kyc_package_is_sealed_and_emits_event() {
    let gate = Gate::new(&[acme()]);
    let sent = Draft {
        kyc_package: Some("{ \"name\": \"Ada\" }".to_owned()),
        ..draft()
    };
    let body = fresh(create(&gate, &acme(), "a", &sent)).0;
    let body = String::from_utf8(body).unwrap();
    let id = SessionId::parse(body.split_once(' ').unwrap().0).unwrap();
    let kinds = gate.memory.events_of(&id.to_string());
    assert_eq!(
        kinds,
        ["gate_session.created", "gate_session.kyc_package_accepted"]
    );
    let rows = gate.memory.rows();
    assert!(rows.sessions[&(acme().tenant, id)].kyc_pre_verified);
    let package = gate
        .sealer
        .open(&kyc_place(&acme().tenant, id), &rows.packages[&id]);
    assert_eq!(package.unwrap(), b"{\"name\":\"Ada\"}");
}

fn live(quota: Option<u64>) -> GateAccess {
    let mut access = access("acme", Mode::Live);
    access.profile.live_session_quota = quota;
    access
}

// rule: gate.quota.exhausted, gate.quota.exact, idempotency.only-success
#[test]
fn live_quota_holds_under_concurrent_creates() {
    let access = live(Some(5));
    let gate = Gate::new(std::slice::from_ref(&access));
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for name in 0..20 {
            let (gate, access, refused) = (&gate, &access, &refused);
            scope.spawn(
                move || match create(gate, access, &format!("k{name}"), &draft()) {
                    Ok(_) => {}
                    Err(CreateError::Exhausted(Exhausted)) => {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => panic!("{error}"),
                },
            );
        }
    });
    assert_eq!(refused.into_inner(), 15);
    assert_eq!(gate.memory.rows().sessions.len(), 5);
    assert_eq!(gate.memory.rows().tallies[&access.tenant].created, 5);
    // Replays do not count, and the tally starts again next month.
    gate.memory.pass(DAY * 4);
    fresh(create(&gate, &access, "june", &draft()));
}

// rule: gate.quota.live-only
#[test]
fn test_mode_ignores_quota() {
    let mut test = acme();
    test.profile.live_session_quota = Some(0);
    let unlimited = live(None);
    let gate = Gate::new(&[test.clone(), unlimited.clone()]);
    for name in ["a", "b", "c"] {
        fresh(create(&gate, &test, name, &draft()));
        fresh(create(&gate, &unlimited, name, &draft()));
    }
    let rows = gate.memory.rows();
    assert_eq!(rows.tallies.keys().collect::<Vec<_>>(), [&unlimited.tenant]);
}

// rule: gate.session.order-of-checks, gate.session.kyc-trusted, gate.session.flow-not-enabled, gate.quota.exhausted
#[test]
fn refusals_come_in_document_order() {
    let mut access = live(Some(0));
    access.profile.kyc_trusted = false;
    access.profile.flow_sessions = false;
    let mut sent = Draft {
        amount: "0".to_owned(),
        flow: Some(Flow::OnRamp),
        kyc_package: Some("{\"level\":1}".to_owned()),
        ..draft()
    };
    let refused = |access: &GateAccess, sent: &Draft| {
        let gate = Gate::new(std::slice::from_ref(access));
        let error = create(&gate, access, "a", sent).unwrap_err();
        assert!(gate.memory.rows().tallies.is_empty());
        error
    };
    assert!(matches!(
        refused(&access, &sent),
        CreateError::Draft(DraftError::Amount(_))
    ));
    sent.amount = "1".to_owned();
    let package = CreateError::NotEntitled(NotEntitled::KycPackage);
    assert_eq!(refused(&access, &sent).to_string(), package.to_string());
    sent.kyc_package = None;
    assert!(matches!(
        refused(&access, &sent),
        CreateError::Exhausted(Exhausted)
    ));
    access.profile.live_session_quota = Some(1);
    let flow = CreateError::NotEntitled(NotEntitled::Flow);
    assert_eq!(refused(&access, &sent).to_string(), flow.to_string());
}

/// Withdraws a right of a partner.
type Withdraw = fn(&mut GateAccess);

// rule: gate.session.access-again
#[test]
fn access_is_checked_again_in_transaction() {
    let withdraw: [(Withdraw, GateDenial); 3] = [
        (
            |it| it.key.revoked_at = Some(noon()),
            GateDenial::Access(Denial::KeyRevoked),
        ),
        (
            |it| it.partner.status = PartnerStatus::Suspended,
            GateDenial::Access(Denial::OrganizationSuspended),
        ),
        (|it| it.profile.enabled = false, GateDenial::NotEnabled),
    ];
    for (withdraw, denial) in withdraw {
        let gate = Gate::new(&[acme()]);
        let first = fresh(create(&gate, &acme(), "a", &draft()));
        withdraw(gate.memory.rows().access.values_mut().next().unwrap());
        let error = create(&gate, &acme(), "b", &draft()).unwrap_err();
        assert!(
            matches!(error, CreateError::Denied(it) if it == denial),
            "{error}"
        );
        let again = create(&gate, &acme(), "a", &draft()).unwrap();
        assert_eq!(again.into_rendered(), first);
    }
}
