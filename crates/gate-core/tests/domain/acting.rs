//! Session actions (cancel, complete, fail), expiry during an action, and the sweep.

use std::time::Duration;

use gate_core::access::GateAccess;
use gate_core::session::{NotOpen, SessionId, SessionRefusal, SessionState, SessionStatus};
use gate_core::transaction::TransactionStatus;
use gate_core::usecases::act_on_session::{ActError, ActionRequest};
use kernel::Mode;
use partner_core::stored_response::IdempotentResponse;

use crate::fixtures::{DAY, Gate, access, acme, action_key, done, ready, tenant};

fn fail() -> ActionRequest {
    ActionRequest::Fail {
        code: None,
        message: None,
    }
}

fn act(
    gate: &Gate,
    access: &GateAccess,
    id: SessionId,
    name: Option<&str>,
    request: &ActionRequest,
) -> Result<IdempotentResponse, ActError> {
    let name = name.map(|name| action_key(id, request, name));
    ready(gate.acting.act(tenant(access), id, name, request, &done))
}

fn body(given: Result<IdempotentResponse, ActError>) -> String {
    String::from_utf8(given.unwrap().into_rendered().0).unwrap()
}

fn ended(outcome: Result<IdempotentResponse, ActError>) -> SessionStatus {
    match outcome {
        Err(ActError::Refused(SessionRefusal::NotOpen(NotOpen(status)))) => status,
        other => panic!("{other:?}"),
    }
}

// rule: gate.session.cancel, gate.session.not-open, idempotency.gate-optional, gate.event.once
#[test]
fn cancel_is_replayed_only_under_its_key() {
    let gate = Gate::new(&[acme()]);
    let (id, _) = gate.open(&acme(), "a");
    let first = act(&gate, &acme(), id, Some("k"), &ActionRequest::Cancel).unwrap();
    assert!(matches!(first, IdempotentResponse::First(_)));
    let answer = first.into_rendered();
    assert_eq!(answer.0, b"cancelled");
    let again = act(&gate, &acme(), id, Some("k"), &ActionRequest::Cancel).unwrap();
    assert_eq!(again.into_rendered(), answer);
    assert_eq!(
        ended(act(&gate, &acme(), id, None, &ActionRequest::Cancel)),
        SessionStatus::Cancelled
    );
    assert_eq!(
        ended(act(&gate, &acme(), id, Some("l"), &ActionRequest::Cancel)),
        SessionStatus::Cancelled
    );
    let kinds = gate.memory.events_of(&id.to_string());
    assert_eq!(kinds, ["gate_session.created", "gate_session.cancelled"]);
}

// rule: gate.helper.complete, gate.event.completed-refid, gate.transaction.action, gate.transaction.completed-at
#[test]
fn complete_writes_one_transaction() {
    let gate = Gate::new(&[acme()]);
    let (id, _) = gate.open(&acme(), "a");
    assert_eq!(
        body(act(&gate, &acme(), id, None, &ActionRequest::Complete)),
        "completed"
    );
    assert_eq!(
        ended(act(&gate, &acme(), id, None, &ActionRequest::Complete)),
        SessionStatus::Completed
    );
    let rows = gate.memory.rows();
    let transactions: Vec<_> = rows.transactions.values().collect();
    let [transaction] = transactions.as_slice() else {
        panic!("{transactions:?}");
    };
    assert_eq!(transaction.state.status(), TransactionStatus::Completed);
    assert_eq!(transaction.state.completed_at(), rows.now);
    assert_eq!(transaction.action.as_str(), "on_ramp");
    assert_eq!(transaction.fiat_amount.as_deref(), Some("100.00"));
    let event = rows.events.last().unwrap();
    let place = partner_core::events::event_place(&event.tenant, &event.id);
    let text = String::from_utf8(gate.sealer.open(&place, &event.body).unwrap()).unwrap();
    let refid = format!("refid: {:?}", transaction.refid);
    assert!(text.contains(&refid), "{text}");
    let state = rows.sessions[&(acme().tenant, id)].state;
    assert!(matches!(state, SessionState::Completed { refid, .. } if refid == transaction.refid));
}

// rule: gate.helper.fail, gate.helper.fail-defaults, gate.event.once
#[test]
fn fail_leaves_session_open_without_event() {
    let gate = Gate::new(&[acme()]);
    let (id, _) = gate.open(&acme(), "a");
    assert_eq!(
        body(act(&gate, &acme(), id, Some("k"), &fail())),
        "open provider_declined"
    );
    assert_eq!(
        body(act(&gate, &acme(), id, Some("k"), &fail())),
        "open provider_declined"
    );
    let given = ActionRequest::Fail {
        code: Some("kyc_failed".to_owned()),
        message: Some("No.".to_owned()),
    };
    assert_eq!(
        body(act(&gate, &acme(), id, None, &given)),
        "open kyc_failed"
    );
    assert_eq!(
        gate.memory.events_of(&id.to_string()),
        ["gate_session.created"]
    );
    let rows = gate.memory.rows();
    let failed = |status| status == TransactionStatus::Failed;
    assert_eq!(rows.transactions.len(), 2);
    assert!(
        rows.transactions
            .values()
            .all(|it| failed(it.state.status()))
    );
}

// rule: gate.session.lazy-expiry, gate.session.not-open, gate.event.once, idempotency.only-success
#[test]
fn late_action_expires_session() {
    for request in [ActionRequest::Cancel, ActionRequest::Complete, fail()] {
        let gate = Gate::new(&[acme()]);
        let (id, _) = gate.open(&acme(), "a");
        gate.memory.pass(DAY);
        for _ in 0..2 {
            let outcome = act(&gate, &acme(), id, Some("k"), &request);
            assert_eq!(ended(outcome), SessionStatus::Expired);
        }
        let kinds = gate.memory.events_of(&id.to_string());
        assert_eq!(
            kinds,
            ["gate_session.created", "gate_session.expired"],
            "{request:?}"
        );
        assert!(gate.memory.rows().transactions.is_empty());
    }
    let gate = Gate::new(&[acme()]);
    let (id, _) = gate.open(&acme(), "a");
    gate.memory.pass(DAY - Duration::from_millis(1));
    assert_eq!(
        body(act(&gate, &acme(), id, None, &ActionRequest::Cancel)),
        "cancelled"
    );
}

// rule: gate.session.one-end, gate.event.once
#[test]
fn concurrent_actions_end_session_once() {
    for round in 0..10 {
        let gate = Gate::new(&[acme()]);
        let (id, _) = gate.open(&acme(), "a");
        if round % 2 == 0 {
            gate.memory.pass(DAY);
        }
        let outcomes: Vec<bool> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..12)
                .map(|at| {
                    let gate = &gate;
                    scope.spawn(move || {
                        let request = [ActionRequest::Cancel, ActionRequest::Complete]
                            .into_iter()
                            .nth(at % 2);
                        act(gate, &acme(), id, None, &request.unwrap()).is_ok()
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let won = outcomes.into_iter().filter(|won| *won).count();
        assert_eq!(won, round % 2);
        assert_eq!(gate.memory.events_of(&id.to_string()).len(), 2);
    }
}

// rule: tenancy.foreign-is-absent, id.other-mode
#[test]
fn foreign_session_is_absent() {
    let other = access("bolt-pay", Mode::Test);
    let gate = Gate::new(&[acme(), other.clone()]);
    let (id, _) = gate.open(&acme(), "a");
    let live = SessionId::from_parts(Mode::Live, id.ulid());
    for (who, id) in [(&other, id), (&acme(), live)] {
        for request in [ActionRequest::Cancel, ActionRequest::Complete, fail()] {
            let outcome = act(&gate, who, id, None, &request);
            assert!(matches!(outcome, Err(ActError::NotFound)));
        }
    }
}

// rule: gate.helper.complete
#[test]
fn live_session_refuses_complete_and_fail() {
    let live = access("acme", Mode::Live);
    let gate = Gate::new(std::slice::from_ref(&live));
    let (id, _) = gate.open(&live, "a");
    for request in [ActionRequest::Complete, fail()] {
        assert!(matches!(
            act(&gate, &live, id, None, &request),
            Err(ActError::LiveMode)
        ));
    }
    assert_eq!(
        body(act(&gate, &live, id, None, &ActionRequest::Cancel)),
        "cancelled"
    );
}

// rule: gate.session.sweep, gate.event.once
#[test]
fn sweep_expires_unread_sessions() {
    let other = access("bolt-pay", Mode::Test);
    let gate = Gate::new(&[acme(), other.clone()]);
    for name in 0..60 {
        gate.open(&acme(), &format!("a{name}"));
        gate.open(&other, &format!("b{name}"));
    }
    assert_eq!(ready(gate.sessions.sweep(Mode::Test)).unwrap(), 0);
    gate.memory.pass(DAY);
    assert_eq!(ready(gate.sessions.sweep(Mode::Live)).unwrap(), 0);
    let swept: Vec<u64> = (0..3)
        .map(|_| ready(gate.sessions.sweep(Mode::Test)).unwrap())
        .collect();
    assert_eq!(swept, [100, 20, 0]);
    assert_eq!(gate.memory.rows().events.len(), 240);
}

// rule: gate.session.one-payment, gate.session.payment-waits
#[test]
fn session_refuses_cancel_complete_and_expiry_while_payment_is_in_progress() {
    let gate = Gate::new(&[acme()]);
    let (id, _) = gate.open(&acme(), "a");
    let paying = |is_paying| {
        let mut rows = gate.memory.rows();
        let session = rows.sessions.get_mut(&(acme().tenant, id)).unwrap();
        session.payment_in_progress = is_paying;
    };
    paying(true);
    let refused = |request: &ActionRequest| {
        let outcome = act(&gate, &acme(), id, None, request);
        matches!(
            outcome,
            Err(ActError::Refused(SessionRefusal::PaymentInProgress))
        )
    };
    assert!(
        refused(&ActionRequest::Cancel) && refused(&ActionRequest::Complete) && refused(&fail())
    );
    gate.memory.pass(DAY);
    assert!(
        refused(&ActionRequest::Cancel) && refused(&ActionRequest::Complete) && refused(&fail())
    );
    assert_eq!(ready(gate.sessions.sweep(Mode::Test)).unwrap(), 0);
    paying(false);
    assert_eq!(
        ended(act(&gate, &acme(), id, None, &ActionRequest::Cancel)),
        SessionStatus::Expired
    );
}
