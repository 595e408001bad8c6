//! Properties of sessions that hold after every history of creates, actions, reads and passing time.

use std::collections::BTreeMap;
use std::future::Future;

use acceptance::{Gate, GateClient};
use kernel::Mode;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::races::act;

#[derive(Debug, Clone)]
enum Move {
    Create {
        rival: bool,
        name: u8,
    },
    Act {
        rival: bool,
        which: usize,
        act: &'static str,
        name: Option<u8>,
    },
    Read(usize),
    List,
    Sweep,
    Pass {
        minutes: u64,
    },
}

fn a_move() -> impl Strategy<Value = Move> {
    let act = prop_oneof![Just("cancel"), Just("complete"), Just("fail")];
    prop_oneof![
        4 => (any::<bool>(), 0..6_u8).prop_map(|(rival, name)| Move::Create { rival, name }),
        6 => (any::<bool>(), 0..8_usize, act, prop::option::of(0..4_u8))
            .prop_map(|(rival, which, act, name)| Move::Act { rival, which, act, name }),
        2 => (0..8_usize).prop_map(Move::Read),
        1 => Just(Move::List),
        1 => Just(Move::Sweep),
        2 => (1..1_000_u64).prop_map(|minutes| Move::Pass { minutes }),
    ]
}

/// The status of every stored session, by what never changes. The first of that is the session's id.
async fn stored(gate: &Gate) -> BTreeMap<String, String> {
    let database = gate.world().database();
    let rows = database.texts(
        "SELECT 'gs_' || mode || '_' || ulid(id) || ' ' || partner_id || ' ' || amount || ' ' || currency || ' '
             || return_url || ' ' || (expires_at - created_at) || ' ' || status FROM sessions",
    );
    let rows = rows.await.into_iter().map(|row| {
        let (bound, status) = row.rsplit_once(' ').unwrap();
        (bound.to_owned(), status.to_owned())
    });
    rows.collect()
}

/// Expects that no reader sees an overdue session as open.
fn expect_current(gate: &Gate, session: &Value) {
    let now = gate.now().to_string();
    let is_open = session["status"] == "open";
    let expires_at = session["expires_at"].as_str().unwrap();
    assert!(!is_open || expires_at > now.as_str(), "{session} at {now}");
}

fn client(gate: &Gate, rival: bool) -> GateClient {
    if rival { gate.rival() } else { gate.acme() }
}

async fn make(gate: &Gate, a_move: &Move, made: &[String]) {
    match a_move {
        Move::Create { rival, name } => {
            client(gate, *rival).open(&format!("k{name}")).await;
        }
        Move::Act {
            rival,
            which,
            act: what,
            name,
        } => {
            let Some(id) = made.get(*which) else { return };
            let call = act(id, what);
            let call = name.map_or(call.clone(), |name| call.key(&format!("d{name}")));
            let status = client(gate, *rival).send(call).await.status;
            assert!(matches!(status, 200 | 201 | 404 | 409), "{status}");
        }
        Move::Read(which) => {
            let Some(id) = made.get(*which) else { return };
            let answer = gate.acme().read(id).await;
            if answer.status == 200 {
                expect_current(gate, &answer.body);
            } else {
                answer.refused(404, "resource_not_found");
            }
        }
        Move::List => {
            let page = gate.acme().get("/v1/gate_sessions").await.ok();
            let sessions = page["data"].as_array().unwrap();
            sessions.iter().for_each(|it| expect_current(gate, it));
        }
        Move::Sweep => {
            gate.sweep(Mode::Test).await.unwrap();
        }
        Move::Pass { minutes } => gate.world().after(minutes * 60_000),
    }
}

/// Makes the moves. The gate's end checks that each session has one event for its creation and one for its end, and that a
/// completed session has one completed transaction.
async fn play(moves: Vec<Move>) {
    let gate = Gate::new().await;
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    for a_move in &moves {
        let ids = before.keys().map(|bound| bound.split(' ').next().unwrap());
        let made: Vec<String> = ids.map(str::to_owned).collect();
        make(&gate, a_move, &made).await;
        let after = stored(&gate).await;
        for (bound, status) in &before {
            let now = after.get(bound);
            assert!(now.is_some(), "{bound} changed: {after:?}");
            assert!(
                status == "open" || now == Some(status),
                "{bound} was {status} and is {now:?}"
            );
        }
        before = after;
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

/// Each history opens a database, so there are few.
fn few() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases.div_ceil(40),
        ..usual
    }
}

/// Plays as many histories as this configuration says. The macro would play as many as elsewhere.
pub(super) fn check<S: Strategy, F: Future<Output = ()>>(
    config: ProptestConfig,
    histories: &S,
    play: impl Fn(S::Value) -> F,
) {
    let mut tokio = tokio::runtime::Builder::new_current_thread();
    let tokio = tokio.enable_all().build().unwrap();
    let mut runner = TestRunner::new(config);
    let ran = runner.run(histories, |moves| {
        tokio.block_on(play(moves));
        Ok(())
    });
    ran.unwrap();
}

// rule: gate.session.one-end, gate.session.bound, gate.event.once, gate.session.lazy-expiry
#[test]
fn session_ends_once_with_one_event() {
    check(few(), &prop::collection::vec(a_move(), 1..60), play);
}
