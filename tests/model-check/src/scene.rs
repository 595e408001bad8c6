//! A scene: the requests, the faults, and every order in which they can happen.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use pools_core::quote::{Quote, QuoteOutcome, Side};
use pools_core::trade::{Trade, TradeId, TradeStatus};
use stateright::{Model, Property};

use crate::converge;
use crate::coverage::{self, Point, use_case};
use crate::db::Db;
use crate::invariants;
use crate::ports::Fault;
use crate::request::{Answer, Ask, End, Now, Request};
use crate::state::{Event, Left, State};
use crate::world::access;

/// The content of a scene.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// Existing quotes.
    pub(crate) sides: Vec<Side>,
    /// Opening balances, in units of 100 EUR and 100 USDT.
    pub(crate) funds: (u8, u8),
    /// The velocity cap; a trade counts 100.
    pub(crate) cap: Option<i64>,
    /// The requests, each with its number of copies: retries, duplicates and late messages.
    pub(crate) asks: Vec<(Ask, u8)>,
    /// Maximum number of concurrent requests.
    pub(crate) at_once: usize,
    /// Number of servers, which receive the copies of a message in turn.
    pub(crate) servers: u8,
    pub(crate) workers: usize,
    pub(crate) ticks: u8,
    /// Maximum number of failed calls.
    pub(crate) faults: u8,
    pub(crate) crashes: u8,
    /// Ends that some order must reach; else the scene fails.
    pub(crate) meets: Vec<Meets>,
}

/// An end that some order must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meets {
    Rejected,
    Expired,
    Orphaned,
    Abandoned,
    Settled,
    Failed,
    Released,
    Returned,
    /// The first poll of a trade finds that it was delivered and reversed.
    ReturnedUnseen,
    LeaseTaken,
    Delivered,
    TwoTrades,
}

impl Scene {
    fn db(&self) -> Db {
        let mut db = Db::new(access(self.cap), &self.sides);
        db.fund(self.funds);
        db
    }
}

impl Model for Scene {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        let coming = self.asks.iter().map(|(_, copies)| *copies).collect();
        vec![State::new(self.db(), coming, self.faults, self.crashes)]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        if state.broken.is_some() {
            return;
        }
        if state.requests.len() < self.at_once {
            let coming = state
                .coming
                .iter()
                .enumerate()
                .filter(|(_, copies)| **copies > 0);
            events.extend(coming.map(|(ask, _)| Event::Arrives(ask)));
        }
        for request in &state.requests {
            events.push(Event::Steps(request.name, Fault::None));
            if state.faults > 0 {
                let faults = request.next.faults().iter();
                let faults = faults.filter(|fault| state.may_fail(request, **fault));
                events.extend(faults.map(|fault| Event::Steps(request.name, *fault)));
            }
        }
        if state.crashes > 0 && !state.quiet() {
            events.extend((0..self.servers).map(Event::Crashes));
        }
        if state.tick < self.ticks {
            events.push(Event::Ticks);
        }
        for (trade, stage) in &state.engine.holds {
            events.extend(stage.next().iter().map(|next| Event::Engine(*trade, *next)));
        }
        if state.workers.len() < self.workers {
            let claimable = (0..state.db.events.len()).filter(|event| state.claimable(*event));
            events.extend(claimable.map(Event::Claims));
        }
        for worker in 0..state.workers.len() {
            if state.posted(worker) {
                events.push(Event::Reports(worker));
            } else {
                events.push(Event::Posts(worker, true));
                if state.faults > 0 {
                    events.push(Event::Posts(worker, false));
                }
            }
        }
    }

    fn next_state(&self, state: &State, event: Event) -> Option<State> {
        let mut next = state.clone();
        match event {
            Event::Arrives(ask) => {
                next.coming[ask] -= 1;
                let copy = next.coming[ask];
                next.arrive(self.asks[ask].0, copy, copy % self.servers);
            }
            Event::Steps(name, fault) => {
                next.faults -= u8::from(fault != Fault::None);
                let request = state.requests.iter().find(|request| request.name == name)?;
                let (now, db, engine) = step(state, request, fault);
                noted(request, fault, &now);
                next.stepped(name, now, db, engine);
            }
            Event::Crashes(server) => {
                next.crashes -= 1;
                state.at_work(server).for_each(coverage::cut);
                next.crash(server);
            }
            Event::Ticks => next.tick += 1,
            Event::Engine(trade, stage) => next.set_stage(trade, stage),
            Event::Claims(event) => next.claim(event),
            Event::Posts(worker, taken) => {
                coverage::reached(Point::Post);
                next.faults -= u8::from(!taken);
                next.post(worker, taken);
            }
            Event::Reports(worker) => {
                coverage::reached(Point::Report);
                next.report(worker);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("no invariant is broken", |_, state: &State| {
                state.broken.is_none()
            }),
            Property::always("what was acknowledged is stored", |_, state: &State| {
                state.acknowledged()
            }),
            Property::always("from quiet, retries converge", |scene, state: &State| {
                !state.quiet() || state.broken.is_some() || converge::converges(scene, state)
            }),
        ];
        properties.extend(self.meets.iter().map(|meets| meets.property()));
        properties
    }
}

/// Records that a request reached this point.
fn noted(request: &Request, fault: Fault, now: &Now) {
    coverage::reached(Point::Request(use_case(request.name.ask), request.next));
    if fault != Fault::None {
        coverage::wrong(request.next, fault);
    }
    if let Now::Answered(Answer {
        said: Some(said), ..
    }) = now
    {
        coverage::said(*said);
    }
}

type Outcome = (
    Now,
    Option<Left<Db>>,
    Option<Left<crate::engine::EngineState>>,
);

type Key = (u64, u64, u8, bool, Fault);

thread_local! {
    /// Cache of steps by everything that they depend on, so that each decision runs once.
    static STEP_CACHE: RefCell<HashMap<Key, Outcome>> = RefCell::default();
}

/// Capacity of the cache, which is cleared when it is full.
const MAX_CACHED_STEPS: usize = 1_000_000;

pub(crate) fn step(state: &State, request: &Arc<Request>, fault: Fault) -> Outcome {
    let key = state.shown(request, fault);
    if let Some(taken) = STEP_CACHE.with_borrow(|taken| taken.get(&key).cloned()) {
        return taken;
    }
    let stepped = request.step(state.view(request, fault));
    let outcome = (
        stepped.now,
        stepped.db.map(|db| Left {
            digest: db.digest(),
            breach: invariants::state(&db),
            value: Arc::new(db),
        }),
        stepped.engine.map(|engine| Left {
            digest: engine.digest(),
            breach: None,
            value: Arc::new(engine),
        }),
    );
    STEP_CACHE.with_borrow_mut(|taken| {
        if taken.len() >= MAX_CACHED_STEPS {
            taken.clear();
        }
        taken.insert(key, outcome.clone());
    });
    outcome
}

impl Meets {
    fn property(self) -> Property<Scene> {
        let (name, is_met): (&'static str, fn(&Scene, &State) -> bool) = match self {
            Self::Rejected => ("a quote is rejected", |_, state| {
                let rejected = |quote: &Quote| matches!(quote.outcome, QuoteOutcome::Rejected(_));
                state.db.quotes.values().any(rejected)
            }),
            Self::Expired => ("a quote runs out", |_, state| state.knows_end(End::Expired)),
            Self::Orphaned => ("a hold is left without a trade", |_, state| {
                let unknown = |trade: &TradeId| state.db.trade(*trade).is_none();
                state.quiet() && state.engine.holds.keys().any(unknown)
            }),
            Self::Abandoned => ("a delivery is left by a dead worker", |_, state| {
                state.workers.is_empty() && state.leased()
            }),
            Self::Settled => ("a trade settles", |_, state| {
                any(state, TradeStatus::Settled)
            }),
            Self::Failed => ("a trade fails", |_, state| any(state, TradeStatus::Failed)),
            Self::Released => ("a trade is released", |_, state| {
                any(state, TradeStatus::Released)
            }),
            Self::Returned => ("a trade is returned", |_, state| {
                any(state, TradeStatus::Returned)
            }),
            Self::ReturnedUnseen => ("an unseen delivery comes back", |_, state| {
                let returned = |trade: &Trade| trade.state.status() == TradeStatus::Returned;
                let mut trades = state.db.trades.values();
                trades.any(|trade| returned(trade) && trade.attempts == 1)
            }),
            Self::LeaseTaken => ("a trade is polled again", |_, state| {
                state.db.trades.values().any(|trade| trade.attempts > 1)
            }),
            Self::Delivered => ("an event is delivered twice", |_, state| {
                state.received.contains(&2)
            }),
            Self::TwoTrades => ("both quotes are consumed", |_, state| {
                state.db.trades.len() == 2
            }),
        };
        Property::sometimes(name, is_met)
    }
}

fn any(state: &State, status: TradeStatus) -> bool {
    state
        .db
        .trades
        .values()
        .any(|trade| trade.state.status() == status)
}
