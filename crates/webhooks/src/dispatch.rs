//! Runs attempts. A task sends the deliveries of one endpoint one after another, so the next attempt
//! never waits for the database; the worker takes the outcomes and records them.

use std::collections::BTreeMap;
use std::iter;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use partner_core::ports::{ClaimedDelivery, ConcludedDelivery};
use partner_core::webhooks::fairness::{ClaimCapacity, EndpointHealth};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::attempt::{Attempts, Delivery};
use crate::hasten::AttemptEnd;
use crate::in_flight::InFlight;

/// How long the first outcome waits for others, so that one commit records many outcomes.
const RECORD_BATCH_DELAY: Duration = Duration::from_millis(2);
/// How many outcomes end the wait: half of what one fast endpoint has in flight, so the other half
/// keeps the attempts busy while the store records and claims.
const RECORD_BATCH: usize = 128;

/// The deliveries in flight, and the tasks that send them.
pub(crate) struct Dispatcher {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    attempts: Attempts,
    state: Mutex<State>,
    /// Notified of the first outcome, of a full batch, and when nothing is in flight.
    changed: Notify,
}

#[derive(Default)]
struct State {
    in_flight: InFlight<Delivery>,
    /// Outcomes that the worker has not taken yet.
    outcomes: Vec<ConcludedDelivery>,
    /// What the same attempts mean for hastening.
    ends: Vec<AttemptEnd>,
}

/// The outcomes that wait to be recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batch {
    Empty,
    /// Others may follow.
    Started,
    /// There are enough, or no other can follow.
    Full,
}

impl State {
    fn batch(&self) -> Batch {
        match self.outcomes.len() {
            0 => Batch::Empty,
            RECORD_BATCH.. => Batch::Full,
            _ if self.in_flight.is_empty() => Batch::Full,
            _ => Batch::Started,
        }
    }
}

impl Dispatcher {
    pub(crate) fn new(attempts: Attempts) -> Self {
        Self {
            shared: Arc::new(Shared {
                attempts,
                state: Mutex::default(),
                changed: Notify::new(),
            }),
            tasks: JoinSet::new(),
        }
    }

    pub(crate) fn capacity(&self) -> ClaimCapacity {
        self.shared.state.lock().in_flight.capacity()
    }

    /// Adds what was claimed under this token, and starts as many attempts as may run. No attempt
    /// starts after `start_by`.
    ///
    /// Returns whether a batch or more was claimed: then more is likely to be due.
    pub(crate) fn add(
        &mut self,
        claimed: Vec<ClaimedDelivery>,
        token: u64,
        start_by: Instant,
    ) -> bool {
        let is_batch = claimed.len() >= RECORD_BATCH;
        let now = Instant::now();
        let mut targets = BTreeMap::new();
        let mut state = self.shared.state.lock();
        let mut started = Vec::new();
        for claimed in claimed {
            let endpoint = claimed.endpoint.id;
            let target = targets
                .entry(endpoint)
                .or_insert_with(|| Arc::new(self.shared.attempts.target(&claimed.endpoint)));
            let delivery = Delivery {
                target: Arc::clone(target),
                claimed,
                token,
            };
            started.extend(state.in_flight.add(endpoint, delivery, now, start_by));
        }
        drop(state);
        self.start(started);
        is_batch
    }

    /// Releases what was prefetched too long ago, and starts what may start now.
    pub(crate) fn release_stale_and_start(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        let now = Instant::now();
        let mut state = self.shared.state.lock();
        let expired = state.in_flight.remove_expired(now);
        let released = expired.iter().map(Delivery::released);
        state.outcomes.extend(released);
        let started = iter::from_fn(|| state.in_flight.start_any(now)).collect();
        drop(state);
        self.start(started);
        self.shared.attempts.close_idle();
    }

    /// Releases everything that has not started.
    pub(crate) fn release_prefetched(&self) {
        let mut state = self.shared.state.lock();
        let prefetched = state.in_flight.remove_prefetched();
        let released = prefetched.iter().map(Delivery::released);
        state.outcomes.extend(released);
    }

    /// Waits until outcomes should be recorded.
    pub(crate) async fn wait_for_batch(&self) {
        self.shared.wait_for_batch().await;
    }

    /// Waits until outcomes should be recorded, or no attempt is running.
    pub(crate) async fn wait_for_batch_or_idle(&mut self) {
        let idle = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            () = self.shared.wait_for_batch() => {}
            () = idle => {}
        }
    }

    /// Whether no attempt is running.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn take_outcomes(&self) -> Vec<ConcludedDelivery> {
        mem::take(&mut self.shared.state.lock().outcomes)
    }

    pub(crate) fn take_ends(&self) -> Vec<AttemptEnd> {
        mem::take(&mut self.shared.state.lock().ends)
    }

    /// Aborts the running attempts, which releases their deliveries.
    pub(crate) async fn abort(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Sends each of these deliveries, and after it what starts in its place.
    fn start(&mut self, started: Vec<Delivery>) {
        for first in started {
            let shared = Arc::clone(&self.shared);
            // Outside the task: a task that is aborted before its first poll must release the delivery too.
            let first = RunningAttempt::new(Arc::clone(&shared), first);
            self.tasks.spawn(async move {
                let mut next = Some(first);
                while let Some(attempt) = next {
                    let endpoint = attempt.delivery.claimed.endpoint.id;
                    attempt.run().await;
                    let mut state = shared.state.lock();
                    let started = state.in_flight.start_at(endpoint, Instant::now());
                    next = started.map(|next| RunningAttempt::new(Arc::clone(&shared), next));
                }
            });
        }
    }
}

impl Shared {
    /// Returns when there is a full batch of outcomes, the first has waited long enough, or no other
    /// can follow because nothing is in flight.
    async fn wait_for_batch(&self) {
        let mut deadline = None;
        loop {
            match self.state.lock().batch() {
                Batch::Full => return,
                Batch::Started => {
                    deadline = deadline.or_else(|| Some(Instant::now() + RECORD_BATCH_DELAY));
                }
                Batch::Empty => {}
            }
            let changed = self.changed.notified();
            match deadline {
                None => changed.await,
                Some(deadline) if timeout_at(deadline, changed).await.is_err() => return,
                Some(_) => {}
            }
        }
    }

    fn end(
        &self,
        claimed: &ClaimedDelivery,
        outcome: Option<ConcludedDelivery>,
        health: Option<EndpointHealth>,
    ) {
        let end = outcome.as_ref();
        let end = end.and_then(|outcome| AttemptEnd::of(claimed, outcome.outcome));
        let mut state = self.state.lock();
        state
            .in_flight
            .end(claimed.endpoint.id, health, Instant::now());
        state.ends.extend(end);
        state.outcomes.extend(outcome);
        if state.outcomes.len() == 1 || state.batch() == Batch::Full {
            self.changed.notify_one();
        }
    }
}

/// Counts an attempt as ended, also if its task is aborted or panics.
struct RunningAttempt {
    shared: Arc<Shared>,
    delivery: Delivery,
    has_ended: bool,
}

impl RunningAttempt {
    const fn new(shared: Arc<Shared>, delivery: Delivery) -> Self {
        Self {
            shared,
            delivery,
            has_ended: false,
        }
    }

    async fn run(mut self) {
        let (outcome, health) = self.shared.attempts.make(&self.delivery).await;
        self.end(Some(outcome), Some(health));
    }

    fn end(&mut self, outcome: Option<ConcludedDelivery>, health: Option<EndpointHealth>) {
        self.has_ended = true;
        self.shared.end(&self.delivery.claimed, outcome, health);
    }
}

impl Drop for RunningAttempt {
    /// Releases the delivery of an aborted attempt. After a panic the delivery keeps its lease: its
    /// outcome is unknown, and an immediate retry would likely panic again.
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if thread::panicking() {
            tracing::error!(delivery.id = %self.delivery.claimed.id, "An attempt to deliver has panicked");
            self.end(None, Some(EndpointHealth::Failing));
        } else {
            self.end(Some(self.delivery.released()), None);
        }
    }
}
