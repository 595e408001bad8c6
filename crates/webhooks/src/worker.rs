//! The worker: claims deliveries, hands them to the dispatcher, and records the outcomes.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Cas, Clock, Entropy, Mode, StoreError, StoreResult, causes};
use partner_core::events::Service;
use partner_core::ports::{ClaimRequest, ConcludedDelivery, Deliveries, QueueStats, QueueWaker};
use partner_core::sealing::Sealer;
use partner_core::webhooks::delivery::Lease;
use partner_core::webhooks::schedule::Schedule;
use partner_core::webhooks::target::AllowPrivate;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::attempt::Attempts;
use crate::connect::Connector;
use crate::dispatch::Dispatcher;
use crate::hasten::HastenPace;
use crate::post::Poster;
use crate::resolve::Resolve;
use crate::tls::{Tls, Trust};

/// How often the worker polls the queue if nothing wakes it.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The longest pause while the store fails.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// The pause before the outcome of a locked delivery is recorded again. It doubles up to [`POLL_INTERVAL`].
const LOCKED_PAUSE: Duration = Duration::from_millis(10);
/// How often the queue is counted for the metrics.
const QUEUE_STATS_INTERVAL: Duration = Duration::from_secs(15);

/// Everything a worker needs.
#[derive(Clone)]
pub struct WorkerConfig {
    /// The mode of the process.
    pub mode: Mode,
    /// The service whose events the worker delivers.
    pub service: Service,
    /// The queue.
    pub deliveries: Arc<dyn Deliveries>,
    /// Decrypts bodies and secrets.
    pub sealer: Arc<Sealer>,
    /// The clock of the process.
    pub clock: Arc<dyn Clock>,
    /// The randomness of the process.
    pub entropy: Arc<dyn Entropy>,
    /// The waits between attempts.
    pub schedule: Schedule,
    /// The timeout of an attempt.
    pub timeout: Duration,
    /// The private addresses that may be reached.
    pub allow_private: AllowPrivate,
    /// Resolves host names.
    pub resolver: Arc<dyn Resolve>,
    /// The trusted certificates.
    pub trust: Trust,
    /// How long running attempts may continue after the stop.
    pub grace: Duration,
}

/// Delivers the events of one service until it is stopped.
pub struct Worker {
    config: WorkerConfig,
    waker: Arc<Waker>,
    dispatcher: Dispatcher,
    hasten_pace: HastenPace,
    /// The count of the queue, while it runs.
    counting: JoinSet<()>,
    counted: Option<Instant>,
    /// Outcomes that are not recorded yet.
    outcomes: Vec<ConcludedDelivery>,
    /// Whether the last claim suggests that more is due.
    expects_more: bool,
    /// Failures of the store since it last worked.
    failures: u32,
    /// Records in a row that found a delivery locked by another transaction.
    locked: u32,
}

/// Woken by the store after a commit that queued deliveries. Remembers it until the worker waits.
#[derive(Default)]
struct Waker(Notify);

impl QueueWaker for Waker {
    fn wake(&self) {
        self.0.notify_one();
    }
}

impl Worker {
    /// A worker that has not started.
    #[must_use]
    pub fn new(config: WorkerConfig) -> Self {
        let connector = Connector {
            resolver: Arc::clone(&config.resolver),
            allow: config.allow_private,
            tls: Tls::new(config.trust.clone()),
        };
        let attempts = Attempts {
            poster: Poster::new(connector),
            mode: config.mode,
            allow: config.allow_private,
            sealer: Arc::clone(&config.sealer),
            clock: Arc::clone(&config.clock),
            entropy: Arc::clone(&config.entropy),
            schedule: config.schedule.clone(),
            timeout: config.timeout,
        };
        let waker = Arc::new(Waker::default());
        let watch = Arc::clone(&waker) as Arc<dyn QueueWaker>;
        config.deliveries.deliveries_watch(watch);
        instruments::webhooks::working(config.service.as_str());
        Self {
            config,
            waker,
            dispatcher: Dispatcher::new(attempts),
            hasten_pace: HastenPace::default(),
            counting: JoinSet::new(),
            counted: None,
            outcomes: Vec::new(),
            expects_more: false,
            failures: 0,
            locked: 0,
        }
    }

    /// Delivers until `stop`, then gives running attempts their grace and releases the rest.
    ///
    /// No call of the store is ever cancelled: the worker checks `stop` only between turns.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) {
        let mut stop = pin!(stop);
        let mut is_woken = true;
        loop {
            let pause = self.turn(is_woken).await;
            // After a failure of the store, outcomes wait for the whole pause.
            let may_record = self.failures == 0;
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = self.waker.0.notified() => is_woken = true,
                () = self.dispatcher.wait_for_batch(), if may_record => is_woken = false,
                () = tokio::time::sleep(pause) => is_woken = false,
            }
        }
        self.wind_down().await;
    }

    /// Records outcomes and claims deliveries. Returns how long to pause.
    async fn turn(&mut self, is_woken: bool) -> Duration {
        self.dispatcher.release_stale_and_start();
        let turn = self.record_and_claim(is_woken).await;
        self.count_queue();
        match turn {
            Ok(pause) => {
                self.failures = 0;
                match self.locked {
                    0 => pause,
                    locked => pause.min(LOCKED_PAUSE.saturating_mul(1 << locked.min(5))),
                }
            }
            Err(error) => {
                instruments::faults::of_store(&error);
                self.failures = self.failures.saturating_add(1);
                let error = causes(&error);
                tracing::warn!(error, "Failed to work on the queue of deliveries");
                POLL_INTERVAL
                    .saturating_mul(1 << self.failures.min(5))
                    .min(MAX_BACKOFF)
            }
        }
    }

    async fn record_and_claim(&mut self, is_woken: bool) -> StoreResult<Duration> {
        self.record().await?;
        // Another process uses a newer key: what it sealed does not decrypt here, but in a worker with that key.
        if self.config.sealer.can_seal().is_err() {
            return Ok(POLL_INTERVAL);
        }
        self.hasten().await;
        if !is_woken && !self.expects_more {
            let until_due = self.until_due().await?;
            if !until_due.is_zero() {
                return Ok(until_due);
            }
        }
        self.claim().await?;
        Ok(POLL_INTERVAL)
    }

    /// Hastens what waits for endpoints that accept deliveries. If the store fails, they wait for the instants of the schedule.
    async fn hasten(&mut self) {
        let now = Instant::now();
        for end in self.dispatcher.take_ends() {
            self.hasten_pace.ended(end, now);
        }
        for (endpoint, who) in self.hasten_pace.due(now) {
            let deliveries = &self.config.deliveries;
            let limit = self.hasten_pace.limit(endpoint);
            match deliveries.deliveries_hasten(&who, endpoint, limit).await {
                Ok(hastened) => {
                    instruments::webhooks::hastened(self.config.service.as_str(), hastened);
                    self.hasten_pace.asked(endpoint, hastened, now);
                }
                Err(error) => {
                    instruments::faults::of_store(&error);
                    tracing::warn!(
                        endpoint.id = %endpoint,
                        partner.id = %who.partner,
                        error = causes(&error),
                        "Failed to hasten the deliveries of an endpoint; tried again"
                    );
                    self.hasten_pace.failed(endpoint, now);
                }
            }
        }
    }

    /// The time until a delivery is due, at most the poll interval. Reads without the write lock.
    async fn until_due(&self) -> StoreResult<Duration> {
        let WorkerConfig { mode, service, .. } = self.config;
        let deliveries = &self.config.deliveries;
        let next = deliveries.deliveries_next(mode, service).await?;
        Ok(next.map_or(POLL_INTERVAL, |next| next.min(POLL_INTERVAL)))
    }

    async fn claim(&mut self) -> StoreResult<()> {
        let request = ClaimRequest {
            mode: self.config.mode,
            service: self.config.service,
            capacity: self.dispatcher.capacity(),
            token: self.config.entropy.number(),
            lease: Lease::duration(self.config.timeout),
        };
        // The lease begins after this instant, however long the store takes.
        let start_by = Instant::now() + Lease::MARGIN;
        let claimed = self.config.deliveries.deliveries_claim(&request).await?;
        self.expects_more = self.dispatcher.add(claimed, request.token, start_by);
        Ok(())
    }

    /// Counts the queue for the metrics, in the background because it may take long.
    fn count_queue(&mut self) {
        while self.counting.try_join_next().is_some() {}
        let is_recent = |at: Instant| at.elapsed() < QUEUE_STATS_INTERVAL;
        if self.counted.is_some_and(is_recent) || !self.counting.is_empty() {
            return;
        }
        self.counted = Some(Instant::now());
        let WorkerConfig { mode, service, .. } = self.config;
        let deliveries = Arc::clone(&self.config.deliveries);
        self.counting.spawn(async move {
            match deliveries.queue_stats(mode, service).await {
                Ok(stats) => instruments::webhooks::queue(service.as_str(), gauges(stats)),
                Err(error) => tracing::debug!(
                    error = causes(&error),
                    "Failed to count the queue of deliveries"
                ),
            }
        });
    }

    /// Records the outcomes. After a temporary error they wait for the next turn, as does the outcome of a delivery that another
    /// transaction has locked. After any other error they are recorded one by one, so that only the faulty delivery waits for
    /// its lease.
    async fn record(&mut self) -> StoreResult<()> {
        self.outcomes.append(&mut self.dispatcher.take_outcomes());
        if self.outcomes.is_empty() {
            return Ok(());
        }
        let locked = match self.record_batch(&self.outcomes).await {
            Ok(locked) => locked,
            Err(error) if is_temporary(&error) => return Err(error),
            Err(_) => self.record_one_by_one().await?,
        };
        self.locked = if locked.is_empty() {
            0
        } else {
            self.locked.saturating_add(1)
        };
        self.outcomes = locked;
        Ok(())
    }

    async fn record_one_by_one(&self) -> StoreResult<Vec<ConcludedDelivery>> {
        let mut locked = Vec::new();
        for outcome in &self.outcomes {
            match self.record_batch(std::slice::from_ref(outcome)).await {
                Ok(more) => locked.extend(more),
                Err(error) if is_temporary(&error) => return Err(error),
                Err(error) => {
                    instruments::faults::of_store(&error);
                    tracing::error!(
                        delivery.id = %outcome.id,
                        error = causes(&error),
                        "Failed to record a delivery; the delivery will be sent again"
                    );
                }
            }
        }
        Ok(locked)
    }

    /// Returns the outcomes of locked deliveries.
    async fn record_batch(
        &self,
        batch: &[ConcludedDelivery],
    ) -> StoreResult<Vec<ConcludedDelivery>> {
        let recorded = self.config.deliveries.deliveries_conclude(batch).await?;
        let mut locked = Vec::new();
        for (delivery, outcome) in batch.iter().zip(recorded) {
            match outcome {
                Some(Cas::Won) => {}
                Some(Cas::Lost) => tracing::warn!(
                    delivery.id = %delivery.id,
                    "A delivery's lease expired before its outcome was recorded; it may be sent again"
                ),
                None => locked.push(delivery.clone()),
            }
        }
        Ok(locked)
    }

    /// Releases what has not started, and, after the grace, what has not ended.
    async fn wind_down(mut self) {
        let end = Instant::now() + self.config.grace;
        self.dispatcher.release_prefetched();
        loop {
            // What cannot be recorded now is tried again at the end.
            let _ = self.record().await;
            if self.dispatcher.is_idle() {
                break;
            }
            tokio::select! {
                () = self.dispatcher.wait_for_batch_or_idle() => {}
                () = tokio::time::sleep_until(end) => break,
            }
        }
        self.dispatcher.abort().await;
        let recorded = self.record().await;
        if !self.outcomes.is_empty() {
            let locked = "another transaction has locked them";
            let error = recorded.map_or_else(|error| causes(&error), |()| locked.to_owned());
            tracing::warn!(
                deliveries = self.outcomes.len(),
                error,
                "Failed to record deliveries before shutdown; sent again when their leases expire"
            );
        }
        let _ = tokio::time::timeout_at(end, self.counting.join_next()).await;
    }
}

const fn gauges(stats: QueueStats) -> instruments::webhooks::Queue {
    instruments::webhooks::Queue {
        due: stats.due,
        scheduled: stats.scheduled,
        in_flight: stats.in_flight,
        oldest_due: stats.oldest_due,
    }
}

/// Whether the store may accept the same outcomes later. After an unknown commit too: recording twice has no effect.
const fn is_temporary(error: &StoreError) -> bool {
    match error {
        StoreError::Retry
        | StoreError::Unavailable(_)
        | StoreError::Overloaded
        | StoreError::CommitUnknown(_) => true,
        StoreError::Inconsistent { .. } | StoreError::Guard(_) | StoreError::Unexpected(_) => false,
    }
}
