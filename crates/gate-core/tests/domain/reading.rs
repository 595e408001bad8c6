//! Reading sessions and transactions. Overdue sessions are expired first.

use gate_core::ports::{SessionFilter, TransactionFilter};
use gate_core::session::{SessionId, SessionState, SessionStatus};
use gate_core::transaction::{RefId, TransactionStatus};
use gate_core::usecases::act_on_session::ActionRequest;
use kernel::Mode;

use crate::fixtures::{DAY, Gate, HOUR, access, acme, done, ready};

fn list(gate: &Gate, status: Option<SessionStatus>) -> Vec<SessionId> {
    let filter = SessionFilter {
        after: None,
        status,
    };
    let page = ready(gate.reading.sessions(&acme().tenant, &filter, 100)).unwrap();
    page.items.into_iter().map(|session| session.id).collect()
}

// rule: gate.session.retrieve, gate.session.lazy-expiry, gate.event.once
#[test]
fn first_read_after_deadline_expires_session() {
    let gate = Gate::new(&[acme()]);
    let (id, _) = gate.open(&acme(), "a");
    let read = || {
        ready(gate.reading.session(&acme().tenant, id))
            .unwrap()
            .unwrap()
    };
    assert_eq!(read().state, SessionState::Open);
    gate.memory.pass(DAY);
    let states: Vec<SessionState> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..20).map(|_| scope.spawn(|| read().state)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let at = gate.memory.rows().now.unwrap();
    assert_eq!(states, vec![SessionState::Expired { at }; 20]);
    let kinds = gate.memory.events_of(&id.to_string());
    assert_eq!(kinds, ["gate_session.created", "gate_session.expired"]);
}

// rule: gate.session.list, gate.session.lazy-expiry
#[test]
fn status_filter_finds_overdue_session_as_expired() {
    let gate = Gate::new(&[acme()]);
    for name in 0..150 {
        gate.open(&acme(), &format!("a{name}"));
    }
    gate.memory.pass(HOUR);
    let (young, _) = gate.open(&acme(), "young");
    gate.memory.pass(DAY - HOUR);
    assert_eq!(list(&gate, Some(SessionStatus::Open)), [young]);
    assert_eq!(list(&gate, Some(SessionStatus::Expired)).len(), 100);
    assert_eq!(list(&gate, Some(SessionStatus::Completed)), []);
    assert_eq!(gate.memory.rows().events.len(), 151 + 150);
}

// rule: gate.session.list, list.foreign-cursor, list.no-loss
#[test]
fn pages_list_newest_first_without_gaps() {
    let other = access("bolt-pay", Mode::Test);
    let gate = Gate::new(&[acme(), other.clone()]);
    let mut made: Vec<SessionId> = (0..7)
        .map(|at| gate.open(&acme(), &format!("a{at}")).0)
        .collect();
    let (foreign, _) = gate.open(&other, "b");
    made.reverse();
    let mut filter = SessionFilter::default();
    let mut found = Vec::new();
    loop {
        let page = ready(gate.reading.sessions(&acme().tenant, &filter, 3)).unwrap();
        found.extend(page.items.iter().map(|session| session.id));
        filter.after = found.last().copied();
        if !page.has_more {
            break;
        }
    }
    assert_eq!(found, made);
    for stray in [foreign, SessionId::from_parts(Mode::Live, made[0].ulid())] {
        filter.after = Some(stray);
        let page = ready(gate.reading.sessions(&acme().tenant, &filter, 3)).unwrap();
        assert!(page.items.is_empty() && !page.has_more);
    }
    let absent = ready(gate.reading.session(&acme().tenant, foreign)).unwrap();
    assert!(absent.is_none());
}

// rule: gate.transaction.list, gate.transaction.foreign
#[test]
fn transactions_filter_by_status_and_session() {
    let other = access("bolt-pay", Mode::Test);
    let gate = Gate::new(&[acme(), other.clone()]);
    let who = acme().tenant;
    let (first, _) = gate.open(&acme(), "a");
    let (second, _) = gate.open(&acme(), "b");
    let fail = ActionRequest::Fail {
        code: None,
        message: None,
    };
    for (id, deed) in [
        (first, &fail),
        (first, &ActionRequest::Complete),
        (second, &fail),
    ] {
        ready(gate.acting.act(&who, id, None, deed, &done)).unwrap();
    }
    let list = |filter: TransactionFilter| {
        let page = ready(gate.reading.transactions(&who, &filter, 2)).unwrap();
        (page.items, page.has_more)
    };
    let (newest, more) = list(TransactionFilter::default());
    assert_eq!((newest.len(), more, newest[0].session), (2, true, second));
    let (rest, more) = list(TransactionFilter {
        after: Some(newest[1].refid),
        ..TransactionFilter::default()
    });
    assert_eq!((rest.len(), more, rest[0].session), (1, false, first));
    let (done, _) = list(TransactionFilter {
        status: Some(TransactionStatus::Completed),
        session: Some(first),
        after: None,
    });
    assert_eq!(done.len(), 1);
    let refid = done[0].refid;
    let get = |who, refid| ready(gate.reading.transaction(who, refid)).unwrap();
    assert_eq!(get(&who, refid), Some(done[0].clone()));
    assert_eq!(get(&other.tenant, refid), None);
    let live = RefId::parse(&refid.to_string().replace("test", "live")).unwrap();
    assert_eq!(get(&who, live), None);
}
