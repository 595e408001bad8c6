//! One state of the world, and the events that can follow.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kernel::Timestamp;
use partner_core::webhooks::delivery::{AttemptOutcome, DeliveryInput, DeliveryState, Lease};
use pools_core::trade::TradeId;

use crate::coverage::{Point, use_case};
use crate::db::Db;
use crate::engine::{EngineState, Stage};
use crate::invariants::{self, Breach};
use crate::ports::{Call, Fault, View};
use crate::request::{Answer, Ask, End, Name, Now, Request};
use crate::world::{TICK, at};

/// A state of the world.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) db: Arc<Db>,
    db_digest: u64,
    pub(crate) engine: Arc<EngineState>,
    engine_digest: u64,
    pub(crate) tick: u8,
    /// Requests in progress, by name.
    pub(crate) requests: Vec<Arc<Request>>,
    /// Copies of each request of the scene that have not arrived yet.
    pub(crate) coming: Vec<u8>,
    /// Workers with a claimed delivery: its event, the lease's token, and whether the endpoint accepted it.
    pub(crate) workers: Vec<Worker>,
    /// Number of arrivals of each event at its endpoint, up to two.
    pub(crate) received: Vec<u8>,
    pub(crate) faults: u8,
    pub(crate) crashes: u8,
    /// What clients know of each quote.
    pub(crate) known: Vec<Known>,
    pub(crate) broken: Option<Breach>,
}

/// A worker between its claim and its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    event: usize,
    token: u64,
    taken: Option<bool>,
}

/// What clients know of a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Known {
    trade: Option<TradeId>,
    end: Option<End>,
}

/// An event of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A message arrives: the first of its kind, or a copy.
    Arrives(usize),
    /// A request makes its next call.
    Steps(Name, Fault),
    /// A server dies with everything on it.
    Crashes(u8),
    /// The clock advances.
    Ticks,
    /// The engine advances a hold.
    Engine(TradeId, Stage),
    /// A worker claims a delivery.
    Claims(usize),
    /// The endpoint accepts or rejects what a worker posts.
    Posts(usize, bool),
    /// A worker reports.
    Reports(usize),
}

impl State {
    pub(crate) fn new(db: Db, coming: Vec<u8>, faults: u8, crashes: u8) -> Self {
        let quotes = db.quotes.len();
        let mut state = Self {
            db_digest: 0,
            db: Arc::new(db),
            engine_digest: 0,
            engine: Arc::new(EngineState::default()),
            tick: 0,
            requests: Vec::new(),
            coming,
            workers: Vec::new(),
            received: Vec::new(),
            faults,
            crashes,
            known: vec![Known::default(); quotes],
            broken: None,
        };
        state.db_digest = state.db.digest();
        state.engine_digest = state.engine.digest();
        state
    }

    /// Whether no request and no worker is in progress.
    pub(crate) fn quiet(&self) -> bool {
        self.requests.is_empty() && self.workers.is_empty()
    }

    /// Digest of everything that decides how a quiet world continues.
    pub(crate) fn standing(&self) -> (u64, u64, u8) {
        (self.db_digest, self.engine_digest, self.tick)
    }

    /// Starts a request.
    pub(crate) fn arrive(&mut self, ask: Ask, copy: u8, server: u8) {
        let request = Request::new(Name { ask, copy }, server);
        let place = self
            .requests
            .partition_point(|other| other.name < request.name);
        self.requests.insert(place, request);
    }

    fn place(&self, name: Name) -> Option<usize> {
        self.requests
            .iter()
            .position(|request| request.name == name)
    }

    /// Whether the next call of a request can fail in this way. The engine contradicts itself only about settled trades: if it denied
    /// a delivery that Penstock does not know yet, Penstock would rightly believe it.
    pub(crate) fn may_fail(&self, request: &Request, fault: Fault) -> bool {
        fault != Fault::Contradiction || request.knows_settled
    }

    /// Returns the view for the next call of a request.
    pub(crate) fn view(&self, request: &Request, fault: Fault) -> View {
        let twin = self.requests.iter().any(|other| {
            other.name != request.name
                && other.server == request.server
                && other.entered.is_some()
                && same_scope(other.name.ask, request.name.ask)
        });
        View {
            db: Arc::clone(&self.db),
            engine: Arc::clone(&self.engine),
            tick: self.tick,
            twin,
            fault,
        }
    }

    /// Digest of everything that a step of a request depends on.
    pub(crate) fn shown(&self, request: &Request, fault: Fault) -> (u64, u64, u8, bool, Fault) {
        let view_engine = if request.next.is_engine_call() {
            self.engine_digest
        } else {
            0
        };
        let view_db = if request.next.is_engine_call() {
            0
        } else {
            self.db_digest
        };
        let twin = request.next == Call::Enter && self.view(request, fault).twin;
        (
            request.digest,
            view_engine ^ view_db,
            self.tick,
            twin,
            fault,
        )
    }

    /// Applies a request's step.
    pub(crate) fn stepped(
        &mut self,
        name: Name,
        now: Now,
        db: Option<Left<Db>>,
        engine: Option<Left<EngineState>>,
    ) {
        let Some(place) = self.place(name) else {
            return;
        };
        match now {
            Now::Waits(request) => self.requests[place] = request,
            Now::Answered(answer) => {
                self.requests.remove(place);
                self.learns(name.ask, answer);
            }
        }
        if let Some(left) = db {
            self.broken = self
                .broken
                .or(left.breach)
                .or_else(|| invariants::step(&self.db, &left.value));
            self.received.resize(left.value.events.len(), 0);
            self.db = left.value;
            self.db_digest = left.digest;
        }
        if let Some(left) = engine {
            self.engine = left.value;
            self.engine_digest = left.digest;
        }
        self.broken = self
            .broken
            .or_else(|| invariants::across(&self.db, &self.engine));
    }

    /// Records what a client learns, which may contradict what it knew.
    fn learns(&mut self, ask: Ask, answer: Answer) {
        self.broken = self.broken.or(answer.broken);
        let Some(known) = ask.quote().and_then(|quote| self.known.get_mut(quote)) else {
            return;
        };
        if let Some(trade) = answer.trade {
            if known.trade.is_some_and(|before| before != trade) {
                self.broken = Some("I2 two trades were acknowledged for one quote");
            }
            known.trade = Some(trade);
        }
        if let Some(end) = answer.quote {
            if known.end.is_some_and(|before| before != end) {
                self.broken = Some("Q3 a quote was seen in two final states");
            }
            known.end = Some(end);
        }
    }

    /// Whether a client received this end of a quote.
    pub(crate) fn knows_end(&self, end: End) -> bool {
        self.known.iter().any(|known| known.end == Some(end))
    }

    /// Whether every trade that a client received is stored.
    pub(crate) fn acknowledged(&self) -> bool {
        self.known.iter().all(|known| {
            known
                .trade
                .is_none_or(|trade| self.db.trade(trade).is_some())
        })
    }

    /// The points of all requests on a server, and of the workers, which are on each server.
    pub(crate) fn at_work(&self, server: u8) -> impl Iterator<Item = Point> {
        let here = self
            .requests
            .iter()
            .filter(move |request| request.server == server);
        let requests = here.map(|request| Point::Request(use_case(request.name.ask), request.next));
        let workers = self.workers.iter().map(|worker| match worker.taken {
            None => Point::Post,
            Some(_) => Point::Report,
        });
        requests.chain(workers)
    }

    pub(crate) fn crash(&mut self, server: u8) {
        self.requests.retain(|request| request.server != server);
        self.workers.clear();
    }

    pub(crate) fn set_stage(&mut self, trade: TradeId, stage: Stage) {
        let mut engine = (*self.engine).clone();
        engine.holds.insert(trade, stage);
        self.engine_digest = engine.digest();
        self.engine = Arc::new(engine);
        self.broken = self
            .broken
            .or_else(|| invariants::across(&self.db, &self.engine));
    }

    // ----- deliveries -----

    /// Whether the delivery of an event can be claimed.
    pub(crate) fn claimable(&self, event: usize) -> bool {
        self.advanced(event, claim(self, event)).is_some()
    }

    /// Applies an input to a delivery. An expired lease ends at the next claim.
    fn advanced(
        &self,
        event: usize,
        act: DeliveryInput,
    ) -> Option<partner_core::webhooks::delivery::Progress> {
        let now = at(self.tick);
        let progress = self.db.events.get(event)?.progress;
        let progress = progress
            .advance(DeliveryInput::LeaseExpired, now)
            .unwrap_or(progress);
        progress.advance(act, now)
    }

    pub(crate) fn claim(&mut self, event: usize) {
        let act = claim(self, event);
        if let (Some(progress), DeliveryInput::Claim(lease)) = (self.advanced(event, act), act) {
            self.put(event, progress);
            self.workers.push(Worker {
                event,
                token: lease.token,
                taken: None,
            });
        }
    }

    pub(crate) fn post(&mut self, worker: usize, taken: bool) {
        let worker = &mut self.workers[worker];
        worker.taken = Some(taken);
        if taken {
            let count = &mut self.received[worker.event];
            *count = (*count + 1).min(2);
        }
    }

    pub(crate) fn posted(&self, worker: usize) -> bool {
        self.workers[worker].taken.is_some()
    }

    pub(crate) fn report(&mut self, worker: usize) {
        let worker = self.workers.remove(worker);
        let outcome = if worker.taken == Some(true) {
            AttemptOutcome::Delivered
        } else {
            AttemptOutcome::RetryAfter(TICK)
        };
        let progress = self.db.events[worker.event].progress;
        if let Some(after) =
            progress.advance(DeliveryInput::End(worker.token, outcome), at(self.tick))
        {
            self.put(worker.event, after);
        }
        if self.delivered(worker.event) && self.received[worker.event] == 0 {
            self.broken = Some("E3 a delivery succeeded that never arrived");
        }
    }

    pub(crate) fn delivered(&self, event: usize) -> bool {
        let state = self.db.events.get(event).map(|event| event.progress.state);
        matches!(state, Some(DeliveryState::Succeeded { .. }))
    }

    pub(crate) fn leased(&self) -> bool {
        let mut events = self.db.events.iter();
        events.any(|event| matches!(event.progress.state, DeliveryState::InFlight(_)))
    }

    fn put(&mut self, event: usize, progress: partner_core::webhooks::delivery::Progress) {
        let mut db = (*self.db).clone();
        db.events[event].progress = progress;
        self.db_digest = db.digest();
        self.db = Arc::new(db);
    }
}

/// The state after a step, checked once.
#[derive(Clone)]
pub(crate) struct Left<T> {
    pub(crate) value: Arc<T>,
    pub(crate) digest: u64,
    pub(crate) breach: Option<Breach>,
}

fn claim(state: &State, event: usize) -> DeliveryInput {
    let attempts = state
        .db
        .events
        .get(event)
        .map_or(0, |event| event.progress.attempts);
    let until: Timestamp = at(state.tick + 1);
    let token = (u64::from(state.tick) << 8) | u64::from(attempts);
    DeliveryInput::Claim(Lease { token, until })
}

/// Whether two requests have one idempotency scope: the key's name and the pool, not the quote.
fn same_scope(one: Ask, other: Ask) -> bool {
    matches!((one, other), (Ask::Transact { key: one, .. }, Ask::Transact { key: other, .. }) if one == other)
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.facts() == other.facts()
            && self
                .requests
                .iter()
                .map(|request| request.digest)
                .eq(other.requests.iter().map(|request| request.digest))
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.facts().hash(hasher);
        self.requests.len().hash(hasher);
        for request in &self.requests {
            request.digest.hash(hasher);
        }
    }
}

type Facts<'s> = (
    (u64, u64, u8),
    &'s [u8],
    &'s [Worker],
    &'s [u8],
    (u8, u8),
    &'s [Known],
    Option<Breach>,
);

impl State {
    fn facts(&self) -> Facts<'_> {
        (
            self.standing(),
            &self.coming,
            &self.workers,
            &self.received,
            (self.faults, self.crashes),
            &self.known,
            self.broken,
        )
    }
}
