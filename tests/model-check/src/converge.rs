//! Convergence: once faults stop, retries lead every request to one definite end.

use std::cell::RefCell;
use std::collections::HashSet;

use pools_core::trade::{Trade, TradeStatus};

use crate::engine::Stage;
use crate::invariants;
use crate::ports::Fault;
use crate::request::{Ask, Name, Now};
use crate::scene::{Scene, step};
use crate::state::State;

/// Copy number of retries, which no scene uses.
const RETRY: u8 = 100;

/// Steps of the clock that outlast the rest of a settled trade, one minute.
const REST_TICKS: u8 = 32;

/// Limit of steps, more than any use case takes.
const MAX_STEPS: usize = 40;

thread_local! {
    /// States that are known to converge, by everything that convergence depends on.
    static CONVERGE: RefCell<HashSet<(u64, u64, u8)>> = RefCell::default();
}

/// Retries every request without a final response, lets the engine finish and workers deliver. Returns whether everything ends,
/// once.
pub(crate) fn converges(scene: &Scene, state: &State) -> bool {
    let standing = state.standing();
    if CONVERGE.with_borrow(|converge| converge.contains(&standing)) {
        return true;
    }
    let converges = retried(scene, state.clone()).is_some();
    if converges {
        CONVERGE.with_borrow_mut(|converge| converge.insert(standing));
    }
    converges
}

fn retried(scene: &Scene, mut state: State) -> Option<()> {
    for (ask, _) in &scene.asks {
        if !matches!(ask, Ask::Poll { .. }) {
            finished(&mut state, *ask, RETRY)?;
        }
    }
    // Leases and rests expire. The first poll confirms what no poll has confirmed, the second receives the end.
    for round in 1..=3 {
        state.tick += REST_TICKS;
        deliver(&mut state);
        for quote in 0..scene.sides.len() {
            finished(&mut state, Ask::Poll { quote }, RETRY + round)?;
        }
    }
    drain(&mut state);
    settled(&state).then_some(())
}

/// Runs a request to its end; `None` without a definite response.
fn finished(state: &mut State, ask: Ask, copy: u8) -> Option<()> {
    let name = Name { ask, copy };
    state.arrive(ask, copy, 0);
    for _ in 0..MAX_STEPS {
        let Some(request) = state.requests.first().cloned() else {
            break;
        };
        let (now, db, engine) = step(state, &request, Fault::None);
        if let Now::Answered(answer) = &now
            && answer.again
        {
            return None;
        }
        state.stepped(name, now, db, engine);
    }
    (state.requests.is_empty() && state.broken.is_none()).then_some(())
}

/// Lets the engine deliver what was confirmed.
fn deliver(state: &mut State) {
    let working: Vec<_> = state
        .engine
        .holds
        .iter()
        .filter(|(_, stage)| **stage == Stage::Working)
        .map(|(trade, _)| *trade)
        .collect();
    for trade in working {
        state.set_stage(trade, Stage::Delivered);
    }
}

/// Lets workers deliver what is queued.
fn drain(state: &mut State) {
    state.tick += 2;
    for event in 0..state.db.events.len() {
        if state.claimable(event) {
            state.claim(event);
            state.post(0, true);
            state.report(0);
        }
    }
}

fn settled(state: &State) -> bool {
    // A settled trade rests under the lease of its last poll, and agrees with the engine's ledger.
    let ended = |trade: &Trade| match trade.state.status() {
        TradeStatus::Reserved => false,
        TradeStatus::Settled => state.engine.holds.get(&trade.id) == Some(&Stage::Delivered),
        TradeStatus::Released | TradeStatus::Failed | TradeStatus::Returned => {
            trade.lease.is_none()
        }
    };
    let ended = state.db.trades.values().all(ended);
    let delivered = (0..state.db.events.len()).all(|event| state.delivered(event));
    let sound = invariants::state(&state.db).is_none()
        && invariants::across(&state.db, &state.engine).is_none();
    ended && delivered && sound && state.broken.is_none()
}
