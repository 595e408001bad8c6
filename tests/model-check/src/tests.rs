//! Checks of a small scene, and a test that breaks every invariant once.

use kernel::{Amount, Asset};
use pools_core::ledger::TransferRole;
use pools_core::quote::{QuoteOutcome, Side};
use pools_core::trade::{Settlement, TradeId, TradeState};

use crate::db::Db;
use crate::engine::Stage;
use crate::invariants;
use crate::ports::Fault;
use crate::request::{Ask, Name};
use crate::scene::step;
use crate::state::State;
use crate::world::{access, at, pool, quote_id};
use crate::{check, scenes};

/// A quote and the partner's money.
fn quoted() -> Db {
    let mut db = Db::new(access(Some(100)), &[Side::OnRamp]);
    db.fund((2, 0));
    db
}

/// A quote, its purchase, and the trade.
fn bought() -> (State, TradeId) {
    let mut state = State::new(quoted(), Vec::new(), 0, 0);
    ask(&mut state, Ask::Transact { quote: 0, key: 1 });
    let trade = *state.engine.holds.keys().next().unwrap();
    (state, trade)
}

/// A trade after polls that saw its delivery and its return.
fn returned() -> State {
    let (mut state, trade) = bought();
    for stage in [Stage::Delivered, Stage::Reversed] {
        state.set_stage(trade, stage);
        ask(&mut state, Ask::Poll { quote: 0 });
    }
    assert_eq!(state.broken, None);
    state
}

fn ask(state: &mut State, ask: Ask) {
    state.arrive(ask, 0, 0);
    let name = Name { ask, copy: 0 };
    while let Some(request) = state.requests.first().cloned() {
        let (now, db, engine) = step(state, &request, Fault::None);
        state.stepped(name, now, db, engine);
    }
}

#[test]
fn unseen_return_is_settled_and_returned_by_one_poll() {
    let (mut state, trade) = bought();
    state.set_stage(trade, Stage::Delivered);
    state.set_stage(trade, Stage::Reversed);
    ask(&mut state, Ask::Poll { quote: 0 });
    assert_eq!(state.broken, None);
    let trade = state.db.trade(trade).unwrap();
    assert!(matches!(trade.state, TradeState::Returned { .. }));
    assert_eq!(state.db.account(pool().fiat()).available, cents(20_000));
}

#[test]
fn small_scene_is_explored_completely() {
    let checked = check(scenes::small(), 1);
    assert_eq!(checked.fault, None);
    assert!(checked.states > 500, "{checked}");
}

#[test]
fn scene_that_misses_required_end_is_fault() {
    let checked = check(scenes::without_money(), 1);
    assert_eq!(checked.fault.as_deref(), Some("never: a trade settles"));
}

/// The cache of steps is shared by all scenes of a thread.
#[test]
fn cache_separates_stores_of_two_scenes() {
    let digest = |cap, side| Db::new(access(cap), &[side]).digest();
    let one = digest(Some(100), Side::OnRamp);
    assert_ne!(one, digest(Some(200), Side::OnRamp));
    assert_ne!(one, digest(None, Side::OnRamp));
    assert_ne!(one, digest(Some(100), Side::OffRamp));
}

/// An invariant's name, and a change that breaks it.
type Break = (&'static str, fn(&mut Db));

#[test]
fn every_invariant_can_break() {
    let sound = returned();
    assert_eq!(invariants::state(&sound.db), None);
    let breaks: [Break; 10] = [
        ("M1", |db| db.entries[0].transfer.amount = cents(1)),
        ("M1", |db| db.entries[0].mark = None),
        ("M2", |db| {
            db.entries.retain(|entry| !is(entry, TransferRole::Close))
        }),
        ("M4", |db| {
            db.entries.iter_mut().for_each(|entry| entry.trade = None)
        }),
        ("M5", |db| db.entries.last_mut().unwrap().trade = None),
        ("M8", |db| db.velocity.as_mut().unwrap().total = 99),
        ("M9", |db| {
            db.trades.get_mut(&quote_id(0)).unwrap().terms.fee_bps = 1
        }),
        ("Q1", |db| {
            db.quotes.get_mut(&quote_id(0)).unwrap().outcome = QuoteOutcome::Open
        }),
        ("I4", |db| db.answered.clear()),
        ("E1", |db| db.events.clear()),
    ];
    for (name, tamper) in breaks {
        let mut db = (*sound.db).clone();
        tamper(&mut db);
        let breach = invariants::state(&db).expect(name);
        assert!(breach.starts_with(name), "{name}: {breach}");
    }
}

#[test]
fn every_rule_about_change_can_break() {
    let after = returned().db;
    let before = quoted();
    assert_eq!(invariants::step(&before, &after), None);
    let breaks: [Break; 4] = [
        ("Q3", |db| {
            db.quotes.get_mut(&quote_id(0)).unwrap().outcome = QuoteOutcome::Rejected(at(1))
        }),
        ("M1", |db| drop(db.entries.remove(0))),
        ("E1", |db| db.events.clear()),
        ("T1", |db| {
            let settlement = Settlement {
                at: at(9),
                fill: "other".to_owned(),
                rate: None,
            };
            db.trades.get_mut(&quote_id(0)).unwrap().state = TradeState::Settled(settlement);
        }),
    ];
    for (name, tamper) in breaks {
        let mut next = (*after).clone();
        tamper(&mut next);
        assert!(
            invariants::step(&after, &next)
                .expect(name)
                .starts_with(name)
        );
    }
}

#[test]
fn engine_delivery_is_charged() {
    let mut state = returned();
    let trade = *state.engine.holds.keys().next().unwrap();
    let mut db = (*state.db).clone();
    db.trades.get_mut(&quote_id(0)).unwrap().state = TradeState::Failed { at: at(1) };
    assert!(invariants::across(&db, &state.engine).is_some());
    state.set_stage(trade, Stage::Working);
    assert_eq!(state.broken, Some("M6 settled, and not delivered"));
}

fn is(entry: &pools_core::ledger::Entry, part: TransferRole) -> bool {
    entry.trade.is_some_and(|(_, own)| own == part)
}

fn cents(count: i64) -> Amount {
    let euro: Asset = pool().fiat();
    Amount::from_units(count * 1_000_000, euro).unwrap()
}
