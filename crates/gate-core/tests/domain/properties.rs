//! Properties that hold after every history of creates, actions, reads and passing time.

use std::collections::BTreeMap;
use std::time::Duration;

use gate_core::ports::SessionFilter;
use gate_core::session::{SessionId, SessionStatus, Terms};
use gate_core::usecases::act_on_session::ActionRequest;
use kernel::Mode;
use proptest::prelude::*;

use crate::fixtures::{
    CREATE, DAY, Gate, access, acme, action_key, created, done, draft, key, ready, tenant,
};

#[derive(Debug, Clone)]
enum Move {
    Create {
        partner: bool,
        name: u8,
    },
    Do {
        partner: bool,
        which: usize,
        request: ActionRequest,
        name: Option<u8>,
    },
    Read {
        which: usize,
    },
    List,
    Sweep,
    Pass {
        minutes: u64,
    },
    Lose {
        commits: u32,
    },
}

fn request() -> impl Strategy<Value = ActionRequest> {
    prop_oneof![
        Just(ActionRequest::Cancel),
        Just(ActionRequest::Complete),
        Just(ActionRequest::Fail {
            code: None,
            message: None
        }),
    ]
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (any::<bool>(), 0..6_u8).prop_map(|(partner, name)| Move::Create { partner, name }),
        6 => (any::<bool>(), 0..8_usize, request(), prop::option::of(0..4_u8))
            .prop_map(|(partner, which, request, name)| Move::Do { partner, which, request, name }),
        2 => (0..8_usize).prop_map(|which| Move::Read { which }),
        1 => Just(Move::List),
        1 => Just(Move::Sweep),
        2 => (1..1_000_u64).prop_map(|minutes| Move::Pass { minutes }),
        1 => (1..3_u32).prop_map(|commits| Move::Lose { commits }),
    ]
}

/// The visible part of a session.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    terms: Terms,
    status: SessionStatus,
}

fn play(moves: &[Move]) -> Gate {
    let partners = [acme(), access("bolt-pay", Mode::Test)];
    let gate = Gate::new(&partners);
    let mut made: Vec<SessionId> = Vec::new();
    let mut known: BTreeMap<SessionId, Known> = BTreeMap::new();
    for a_move in moves {
        match a_move {
            Move::Create { partner, name } => {
                let access = &partners[usize::from(*partner)];
                let name = key(CREATE, &format!("k{name}"));
                let render = created;
                let _ = ready(gate.creating.create(access, name, &draft(), &render)).unwrap();
            }
            Move::Do {
                partner,
                which,
                request,
                name,
            } => {
                let Some(id) = made.get(*which) else { continue };
                let who = tenant(&partners[usize::from(*partner)]);
                let name = name.map(|name| action_key(*id, request, &format!("d{name}")));
                let _ = ready(gate.acting.act(who, *id, name, request, &done));
            }
            Move::Read { which } => {
                let Some(id) = made.get(*which) else { continue };
                let _ = ready(gate.reading.session(tenant(&partners[0]), *id)).unwrap();
            }
            Move::List => {
                let (who, filter) = (tenant(&partners[0]), SessionFilter::default());
                let page = ready(gate.reading.sessions(who, &filter, 10)).unwrap();
                let now = gate.memory.rows().now.unwrap();
                assert!(page.items.iter().all(|it| !it.is_overdue(now)));
            }
            Move::Sweep => {
                ready(gate.sessions.sweep(Mode::Test)).unwrap();
            }
            Move::Pass { minutes } => gate.memory.pass(Duration::from_secs(minutes * 60)),
            Move::Lose { commits } => {
                gate.memory.lose(*commits);
            }
        }
        let rows = gate.memory.rows();
        made = rows.sessions.keys().map(|(_, id)| *id).collect();
        for ((_, id), session) in &rows.sessions {
            let now = Known {
                terms: session.terms.clone(),
                status: session.state.status(),
            };
            let before = known.insert(*id, now.clone());
            let ended = before.filter(|before| before.status != SessionStatus::Open);
            assert!(
                ended.is_none_or(|ended| ended == now),
                "an ended session never changes"
            );
        }
    }
    gate
}

fn check(gate: &Gate) {
    let rows = gate.memory.rows();
    for ((who, id), session) in &rows.sessions {
        let name = id.to_string();
        let kinds: Vec<&str> = rows
            .events
            .iter()
            .filter(|event| event.object_id == name)
            .map(|event| {
                assert_eq!(event.tenant, *who);
                event.kind.as_str()
            })
            .collect();
        let status = session.state.status();
        let end = format!("gate_session.{}", status.as_str());
        let expected: &[&str] = match status {
            SessionStatus::Open => &["gate_session.created"],
            _ => &["gate_session.created", &end],
        };
        assert_eq!(kinds, expected, "one event per step");
        let paid = rows
            .transactions
            .values()
            .filter(|it| it.session == *id && it.state.completed_at().is_some());
        assert_eq!(
            paid.count(),
            usize::from(status == SessionStatus::Completed)
        );
        assert_eq!(session.expires_at, session.created_at.plus(DAY));
    }
    for ((who, _), transaction) in &rows.transactions {
        assert!(
            rows.sessions
                .contains_key(&(who.clone(), transaction.session))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // rule: gate.session.one-end, gate.session.bound, gate.event.once, gate.session.lazy-expiry, idempotency.same-transaction
    #[test]
    fn session_ends_once_with_one_event(moves in prop::collection::vec(a_move(), 1..60)) {
        check(&play(&moves));
    }
}
