//! The worker: claims what there is room for, and records what came of it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Cas, Clock, Entropy, Mode, StoreError, causes};
use partner_core::events::Service;
use partner_core::ports::{
    ClaimRequest, ClaimedDelivery, ConcludedDelivery, Deliveries, QueueStats, QueueWaker,
};
use partner_core::sealing::Sealer;
use partner_core::webhooks::delivery::Lease;
use partner_core::webhooks::fairness::ClaimCapacity;
use partner_core::webhooks::schedule::Schedule;
use partner_core::webhooks::target::AllowPrivate;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::attempt::Attempts;
use crate::connect::Connector;
use crate::lanes::{Ended, Lanes};
use crate::post::Poster;
use crate::resolve::Resolve;
use crate::tls::{Tls, Trust};

/// How often the queue is looked at where nobody has said that there is something.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long the worker rests at most while the store cannot be asked.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// How often the queue is counted for those who watch it.
const QUEUE_STATS_INTERVAL: Duration = Duration::from_secs(15);
/// What ends within this long of the first that has is recorded with it: many in one commit.
const RECORD_BATCH_DELAY: Duration = Duration::from_millis(2);

/// What a worker works with.
#[derive(Clone)]
pub struct WorkerConfig {
    /// The mode the process runs in.
    pub mode: Mode,
    /// The service whose events are delivered.
    pub service: Service,
    /// The queue.
    pub deliveries: Arc<dyn Deliveries>,
    /// Opens bodies and secrets.
    pub sealer: Arc<Sealer>,
    /// The process's clock.
    pub clock: Arc<dyn Clock>,
    /// The process's randomness.
    pub entropy: Arc<dyn Entropy>,
    /// When failed deliveries are tried again.
    pub schedule: Schedule,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Which private addresses may be reached.
    pub allow_private: AllowPrivate,
    /// Looks names up.
    pub resolver: Arc<dyn Resolve>,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// How long attempts under way may go on once the worker is told to stop.
    pub grace: Duration,
}

impl fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Setup")
    }
}

/// Delivers the events of one service until it is told to stop.
pub struct Worker {
    setup: WorkerConfig,
    bell: Arc<Bell>,
    lanes: Arc<Lanes>,
    running: JoinSet<()>,
    /// The count of the queue that is being taken, if one is.
    counting: JoinSet<()>,
    /// What has ended and is not recorded yet.
    ended: Vec<ConcludedDelivery>,
    /// Some endpoint was given all that it had room for: more may be due for it.
    backlog: bool,
    faults: u32,
    counted: Option<Instant>,
}

/// Rung by the store when deliveries have been queued; remembers it while nobody listens.
#[derive(Default)]
struct Bell(Notify);

impl QueueWaker for Bell {
    fn wake(&self) {
        self.0.notify_one();
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Worker({})", self.setup.service.as_str())
    }
}

/// Why the worker looks at the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    /// Something has been queued.
    Rung,
    /// Time has passed, or an attempt has ended.
    Due,
}

impl Worker {
    /// A worker that is to be run.
    #[must_use]
    pub fn new(setup: WorkerConfig) -> Self {
        let connector = Connector {
            resolver: Arc::clone(&setup.resolver),
            allow: setup.allow_private,
            tls: Tls::new(setup.trust.clone()),
        };
        let attempts = Attempts {
            poster: Poster::new(connector),
            mode: setup.mode,
            allow: setup.allow_private,
            sealer: Arc::clone(&setup.sealer),
            clock: Arc::clone(&setup.clock),
            entropy: Arc::clone(&setup.entropy),
            schedule: setup.schedule.clone(),
            timeout: setup.timeout,
        };
        let bell = Arc::new(Bell::default());
        setup
            .deliveries
            .deliveries_watch(Arc::clone(&bell) as Arc<dyn QueueWaker>);
        instruments::webhooks::working(setup.service.as_str());
        Self {
            bell,
            lanes: Lanes::new(attempts),
            running: JoinSet::new(),
            counting: JoinSet::new(),
            ended: Vec::new(),
            backlog: false,
            faults: 0,
            counted: None,
            setup,
        }
    }

    /// Delivers until `stop`, then gives what is under way its grace and hands back the rest.
    ///
    /// Nothing of the database is ever cancelled: the store is asked between the waits.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) {
        let mut stop = pin!(stop);
        let mut call = Call::Rung;
        loop {
            let rest = self.turn(call).await;
            tokio::select! {
                biased;
                () = &mut stop => break,
                next = self.rested(rest) => call = next,
            }
        }
        self.wind_down().await;
    }

    /// Rests so long, or until the queue is to be looked at again, or enough has ended.
    async fn rested(&self, rest: Duration) -> Call {
        let mut until = Instant::now() + rest;
        loop {
            // A store that could not be asked a moment ago is left alone for the whole rest.
            match self.lanes.ended() {
                Ended::All if self.faults == 0 => return Call::Due,
                Ended::Half if self.faults == 0 && self.backlog => return Call::Due,
                Ended::Half | Ended::Some if self.faults == 0 => {
                    until = until.min(Instant::now() + RECORD_BATCH_DELAY);
                }
                Ended::All | Ended::Half | Ended::Some | Ended::Nothing => {}
            }
            tokio::select! {
                biased;
                () = self.bell.0.notified() => return Call::Rung,
                () = self.lanes.rung() => {}
                () = tokio::time::sleep_until(until) => return Call::Due,
            }
        }
    }

    /// Records what has ended and takes on what there is room for; how long to rest.
    async fn turn(&mut self, call: Call) -> Duration {
        while self.running.try_join_next().is_some() {}
        self.lanes.tidy(&mut self.running);
        let turned = match self.record().await {
            Ok(()) => self.take_on(call).await,
            Err(fault) => Err(fault),
        };
        self.count();
        match turned {
            Ok(rest) => {
                self.faults = 0;
                rest
            }
            Err(fault) => {
                instruments::faults::of_store(&fault);
                self.faults = self.faults.saturating_add(1);
                let error = causes(&fault);
                tracing::warn!(error, "Failed to work on the queue of deliveries");
                POLL_INTERVAL
                    .saturating_mul(1 << self.faults.min(5))
                    .min(MAX_BACKOFF)
            }
        }
    }

    async fn take_on(&mut self, call: Call) -> Result<Duration, StoreError> {
        // What another process sealed under a newer key does not open here: it is for a worker that has the key.
        if self.setup.sealer.can_seal().is_err() {
            return Ok(POLL_INTERVAL);
        }
        if call == Call::Due && !self.backlog {
            let rest = self.next().await?;
            if !rest.is_zero() {
                return Ok(rest);
            }
        }
        self.backlog = self.claim().await?;
        Ok(POLL_INTERVAL)
    }

    /// Says now and then how the queue stands. Nothing depends on it, and nothing waits for it: it
    /// takes as long as the queue is.
    fn count(&mut self) {
        while self.counting.try_join_next().is_some() {}
        let is_recent = self
            .counted
            .is_some_and(|at| at.elapsed() < QUEUE_STATS_INTERVAL);
        if is_recent || !self.counting.is_empty() {
            return;
        }
        self.counted = Some(Instant::now());
        let WorkerConfig { mode, service, .. } = self.setup;
        let deliveries = Arc::clone(&self.setup.deliveries);
        self.counting.spawn(async move {
            match deliveries.deliveries_standing(mode, service).await {
                Ok(standing) => instruments::webhooks::queue(service.as_str(), shown(standing)),
                Err(fault) => tracing::debug!(
                    error = causes(&fault),
                    "Failed to count the queue of deliveries"
                ),
            }
        });
    }

    /// Until something is due, and no longer than until the next look.
    async fn next(&self) -> Result<Duration, StoreError> {
        let WorkerConfig { mode, service, .. } = self.setup;
        let next = self.setup.deliveries.deliveries_next(mode, service).await?;
        Ok(next.map_or(POLL_INTERVAL, |next| next.min(POLL_INTERVAL)))
    }

    /// Claims once and begins what can begin: was an endpoint given all that it had room for?
    async fn claim(&mut self) -> Result<bool, StoreError> {
        let order = ClaimRequest {
            mode: self.setup.mode,
            service: self.setup.service,
            room: self.lanes.room(),
            token: token(&*self.setup.entropy),
            lease: Lease::span(self.setup.timeout),
        };
        // The lease began after this, however long the store takes to answer.
        let until = Instant::now() + Lease::MARGIN;
        let claimed = self.setup.deliveries.deliveries_claim(&order).await?;
        let is_full = is_full(&order.room, &claimed);
        self.lanes
            .take_on(claimed, order.token, until, &mut self.running);
        Ok(is_full)
    }

    /// Records what has ended. A fault that may pass leaves it for the next turn; one that will
    /// not costs only the delivery it belongs to, whose lease then runs out.
    async fn record(&mut self) -> Result<(), StoreError> {
        self.ended.append(&mut self.lanes.pick_up());
        if self.ended.is_empty() {
            return Ok(());
        }
        let recorded = self.setup.deliveries.deliveries_conclude(&self.ended).await;
        match recorded {
            Ok(outcomes) => note_lost(&self.ended, &outcomes),
            Err(fault) if passes(&fault) => return Err(fault),
            Err(_) => self.record_one_by_one().await?,
        }
        self.ended.clear();
        Ok(())
    }

    async fn record_one_by_one(&self) -> Result<(), StoreError> {
        for one in &self.ended {
            let alone = std::slice::from_ref(one);
            match self.setup.deliveries.deliveries_conclude(alone).await {
                Ok(outcomes) => note_lost(alone, &outcomes),
                Err(fault) if passes(&fault) => return Err(fault),
                Err(fault) => {
                    instruments::faults::of_store(&fault);
                    tracing::error!(
                        delivery.id = %one.id,
                        error = causes(&fault),
                        "Failed to record a delivery; it will be made again"
                    );
                }
            }
        }
        Ok(())
    }

    /// Claims nothing more. What has not begun is handed back at once, and what has not ended
    /// within the grace is broken off and handed back.
    async fn wind_down(mut self) {
        let end = Instant::now() + self.setup.grace;
        self.lanes.hand_back();
        loop {
            // What could not be recorded now is tried once more at the end.
            let _ = self.record().await;
            if self.lanes.are_empty() {
                break;
            }
            if tokio::time::timeout_at(end, self.lanes.rung())
                .await
                .is_err()
            {
                break;
            }
        }
        self.running.shutdown().await;
        if let Err(fault) = self.record().await {
            tracing::warn!(
                deliveries = self.ended.len(),
                error = causes(&fault),
                "Failed to record deliveries before stopping; their leases run out"
            );
        }
        let _ = tokio::time::timeout_at(end, self.counting.join_next()).await;
    }
}

/// Was an endpoint given all that it can begin at once, or was there no room, so that more may be due?
fn is_full(room: &ClaimCapacity, claimed: &[ClaimedDelivery]) -> bool {
    let mut given = BTreeMap::new();
    for claimed in claimed {
        let given: &mut u32 = given.entry(claimed.endpoint.id).or_default();
        *given = given.saturating_add(1);
    }
    let is_used_up = |(endpoint, given)| given >= room.at_once(endpoint);
    room.total == 0
        || claimed.len() >= usize::try_from(room.total).unwrap_or(usize::MAX)
        || given.into_iter().any(is_used_up)
}

const fn shown(standing: QueueStats) -> instruments::webhooks::Queue {
    instruments::webhooks::Queue {
        due: standing.due,
        scheduled: standing.scheduled,
        in_flight: standing.in_flight,
        oldest_due: standing.oldest_due,
    }
}

/// A claim that another worker has by now: what was sent may be sent again.
fn note_lost(batch: &[ConcludedDelivery], outcomes: &[Cas]) {
    for (concluded, outcome) in batch.iter().zip(outcomes) {
        if *outcome == Cas::Lost {
            tracing::warn!(delivery.id = %concluded.id, "A delivery's lease was over before it was recorded");
        }
    }
}

/// Is it worth asking again? After an unknown commit too: recorded twice is lost, and harmless.
const fn passes(fault: &StoreError) -> bool {
    match fault {
        StoreError::Retry
        | StoreError::Unavailable(_)
        | StoreError::Overloaded
        | StoreError::CommitUnknown(_) => true,
        StoreError::Inconsistent { .. } | StoreError::Guard(_) | StoreError::Unexpected(_) => false,
    }
}

fn token(entropy: &dyn Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    u64::from_be_bytes(bytes)
}
