//! A batch queue: a queue of writes, and one task that runs whatever has queued up as one transaction.
//!
//! The queue decides what happens after a failed batch. If the batch was rolled back, its commands run one by one, so
//! that a command that cannot succeed fails alone. If the outcome of the commit is unknown, the batch is never run
//! again, because it may have been committed.
//!
//! Partners are isolated. A batch never waits for the lock of one partner: the store leaves that partner's commands out,
//! and `held` runs them later without delaying other partners. A busy store ([`StoreError::busy`]) counts against no
//! partner: the whole batch runs again.

mod held;
mod options;
mod ran;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use instruments::batch_queues::BatchQueueMetrics;
use instruments::{Stopwatch, faults, trace};
use kernel::{Entropy, StoreError, StoreResult, causes};
use parking_lot::Mutex;
use partner_core::Tenant;
use partner_core::ports::Readiness;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span};

use held::HeldPartners;
pub use options::BatchQueueOptions;
use ran::{Failure, Ran, caught, commit_unknown_for_each, only};

/// Maximum number of runs of a single command that loses races.
const MAX_TRIES: u32 = 3;
/// Longest wait before the first retry. Each further retry may wait twice as long.
const FIRST_BACKOFF: Duration = Duration::from_millis(4);
/// Longest backoff before the next run on a busy store.
const LONGEST_BACKOFF: Duration = Duration::from_millis(256);
/// A partner's commands are refused without a run after this many of its runs found the store unavailable.
const MAX_UNAVAILABLE: u32 = 2;
/// No run that finds the store busy is repeated later than this after the batch began. It is longer than a store waits for a free
/// connection or for the lock of the whole database.
const LONGEST_BUSY: Duration = Duration::from_secs(6);

/// What a run does about a partner's lock that another transaction holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locks {
    /// Leaves the partner's commands out, and returns `None` for each of them.
    Skip,
    /// Waits for the lock, as long as the store does.
    Wait,
}

type RunFuture<R> = Pin<Box<dyn Future<Output = StoreResult<Vec<Option<R>>>> + Send>>;

/// Runs a batch in one transaction. See [`crate::PartnerQueues::start`].
pub(crate) type RunBatch<C, R> = Box<dyn Fn(Arc<Vec<C>>, Locks) -> RunFuture<R> + Send + Sync>;

/// A queue with its task.
pub(crate) struct BatchQueue<C, R> {
    queue: mpsc::Sender<Waiting<C, R>>,
    metrics: Arc<BatchQueueMetrics>,
    closing: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Waiting<C, R> {
    command: C,
    ticket: Ticket<R>,
}

/// The submitter of a command.
struct Ticket<R> {
    reply: Reply<R>,
    since: Stopwatch,
    /// The submitter's span. The batch span links to it.
    span: Span,
}

type Reply<R> = oneshot::Sender<StoreResult<R>>;
type Batch<C, R> = Vec<Waiting<C, R>>;

impl<C, R> BatchQueue<C, R>
where
    C: Clone + Send + Sync + 'static,
    R: Send + 'static,
{
    /// Starts a queue. Must be called within a tokio runtime.
    pub(crate) fn start(executor: Arc<Executor<C, R>>) -> Self {
        let options = executor.options;
        let metrics = Arc::clone(&executor.metrics);
        let (queue, waiting) = mpsc::channel(options.queue.max(1));
        let closing = Arc::new(Notify::new());
        let worker = Worker {
            executor,
            held: HeldPartners::new(options),
        };
        let task = tokio::spawn(worker.work(waiting, Arc::clone(&closing)));
        Self {
            queue,
            metrics,
            closing,
            task: Mutex::new(Some(task)),
        }
    }

    /// Queues a command and waits for its result.
    ///
    /// # Errors
    /// [`StoreError::Overloaded`] immediately if the queue is full, [`StoreError::Unavailable`] after the queue was
    /// closed, otherwise what the store reports.
    pub(crate) async fn submit(&self, command: C) -> StoreResult<R> {
        let (reply, result) = oneshot::channel();
        let ticket = Ticket {
            reply,
            since: self.metrics.queued(),
            span: trace::current(),
        };
        let waiting = Waiting { command, ticket };
        self.queue.try_send(waiting).map_err(|refused| {
            self.metrics.refused();
            match refused {
                mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
                mpsc::error::TrySendError::Closed(_) => {
                    StoreError::unavailable("the batch queue is closed")
                }
            }
        })?;
        // The task replies to every command. If the task was killed before its reply, the outcome is unknown.
        result
            .await
            .unwrap_or_else(|gone| Err(StoreError::CommitUnknown(gone.into())))
    }

    /// Refuses new commands, runs the queued ones, and returns after the task has ended.
    pub(crate) async fn shut_down(&self) {
        self.closing.notify_one();
        let task = self.task.lock().take();
        if let Some(task) = task {
            let ended = task.await;
            debug_assert!(ended.is_ok(), "a batch queue survives a panic of a batch");
        }
    }
}

/// The task's side of a queue.
struct Worker<C, R> {
    executor: Arc<Executor<C, R>>,
    held: HeldPartners<C, R>,
}

impl<C, R> Worker<C, R>
where
    C: Clone + Send + Sync + 'static,
    R: Send + 'static,
{
    /// Runs the queued commands as soon as there are any, without waiting to fill a batch, until the queue is closed and empty.
    async fn work(mut self, mut waiting: mpsc::Receiver<Waiting<C, R>>, closing: Arc<Notify>) {
        let max_batch = self.executor.options.max_batch.max(1);
        let mut fresh = Vec::with_capacity(max_batch);
        let mut is_open = true;
        while is_open || !self.held.is_empty() {
            let mut batch = self.held.take_due(max_batch);
            let limit = max_batch.saturating_sub(batch.len());
            if batch.is_empty() {
                tokio::select! {
                    // It returns 0 after the queue is closed and empty.
                    count = waiting.recv_many(&mut fresh, limit), if is_open => is_open = count > 0,
                    () = until(self.held.next_due()) => {}
                    run = self.held.separate_run_ended() => self.held.absorb(run),
                    () = closing.notified() => waiting.close(),
                }
            } else {
                while fresh.len() < limit {
                    let Ok(next) = waiting.try_recv() else { break };
                    fresh.push(next);
                }
            }
            if !fresh.is_empty() {
                let since = fresh.iter().map(|one: &Waiting<C, R>| one.ticket.since);
                self.executor.metrics.taken(since);
            }
            let admitted = fresh.drain(..);
            batch.extend(admitted.filter_map(|one| self.held.admit(one, &self.executor)));
            if !batch.is_empty() {
                tracing::trace!(
                    lane.name = self.executor.options.name,
                    lane.batch = batch.len(),
                    lane.queued = waiting.len(),
                    "Running a batch"
                );
                self.run(batch).await;
            }
            self.held.start_separate_runs(&self.executor);
            self.executor.metrics.held(self.held.len());
        }
    }

    async fn run(&mut self, batch: Batch<C, R>) {
        let unanswered = self.executor.run_batch(batch, Locks::Skip).await;
        self.held.absorb_batch(unanswered, &self.executor);
    }
}

/// Waits until an instant, or forever without one.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Runs commands and replies to their submitters.
pub(crate) struct Executor<C, R> {
    pub(crate) options: BatchQueueOptions,
    /// Names the partner of a command.
    pub(crate) partner_of: fn(&C) -> &Tenant,
    pub(crate) run: RunBatch<C, R>,
    /// Distinguishes an unavailable store from one partner whose commands fail.
    pub(crate) readiness: Arc<dyn Readiness>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) metrics: Arc<BatchQueueMetrics>,
}

/// The commands of a batch that received no reply.
struct Unanswered<C, R> {
    /// Commands of partners whose rows were locked.
    locked: Batch<C, R>,
    /// The whole batch, if it found the store unavailable while the store is ready.
    failed: Option<(Batch<C, R>, StoreError)>,
}

impl<C, R> Unanswered<C, R> {
    const fn locked(locked: Batch<C, R>) -> Self {
        Self {
            locked,
            failed: None,
        }
    }
}

impl<C, R> Executor<C, R>
where
    C: Clone + Send + Sync + 'static,
    R: Send + 'static,
{
    /// Runs a batch, and parts of it again after a failure.
    async fn run_batch(&self, batch: Batch<C, R>, locks: Locks) -> Unanswered<C, R> {
        let span = trace::batch(self.options.name, batch.iter().map(|one| &one.ticket.span));
        let since = Stopwatch::start();
        let unanswered = self.run_parts(batch, locks).instrument(span).await;
        self.metrics.ran(since);
        unanswered
    }

    async fn run_parts(&self, batch: Batch<C, R>, locks: Locks) -> Unanswered<C, R> {
        let until = Instant::now() + LONGEST_BUSY;
        if batch.len() == 1 && locks == Locks::Skip {
            let locked = self.run_one_by_one(batch, locks, until, false).await;
            return Unanswered::locked(locked);
        }
        let (commands, tickets): (Vec<C>, Vec<Ticket<R>>) = batch
            .into_iter()
            .map(|one| (one.command, one.ticket))
            .unzip();
        let commands = Arc::new(commands);
        let ran = match locks {
            Locks::Skip => self.run_until_free(&commands, locks, until).await,
            // A held partner that finds the store busy lines up again, so that other held partners have their turn.
            Locks::Wait => self.run_once(&commands, locks).await,
        };
        let both = Arc::unwrap_or_clone(commands).into_iter().zip(tickets);
        let batch = both.map(|(command, ticket)| Waiting { command, ticket });
        match ran {
            Ran::Results(results) => Unanswered::locked(reply_to_each(batch, results)),
            Ran::CommitUnknown(error) => {
                for (one, error) in batch.zip(commit_unknown_for_each(error)) {
                    send(one.ticket.reply, Err(error));
                }
                Unanswered::locked(Vec::new())
            }
            Ran::RolledBack(error) => {
                let batch = batch.collect();
                self.rolled_back(batch, error, locks, until).await
            }
            Ran::Panicked(error) => {
                let batch: Batch<C, R> = batch.collect();
                self.record_rollback(batch.len(), &error);
                // A command that may have been committed is not held: its rerun waits for the partner's lock.
                let locked = self.run_one_by_one(batch, Locks::Wait, until, true).await;
                Unanswered::locked(locked)
            }
        }
    }

    /// Handles a batch that was rolled back.
    async fn rolled_back(
        &self,
        batch: Batch<C, R>,
        error: StoreError,
        locks: Locks,
        until: Instant,
    ) -> Unanswered<C, R> {
        self.record_rollback(batch.len(), &error);
        if !matches!(error, StoreError::Unavailable(_)) {
            let locked = self.run_one_by_one(batch, locks, until, false).await;
            return Unanswered::locked(locked);
        }
        // A batch of the queue has run again for as long as it may. A held partner may line up again.
        let is_over = error.is_busy() && locks == Locks::Skip;
        if !is_over && self.store_is_ready().await {
            return Unanswered {
                locked: Vec::new(),
                failed: Some((batch, error)),
            };
        }
        refuse(batch, STORE_UNAVAILABLE);
        Unanswered::locked(Vec::new())
    }

    async fn store_is_ready(&self) -> bool {
        self.readiness.ready().await.is_ok()
    }

    /// Runs commands, and again while the store is ready and busy with other transactions; no longer than `until`.
    async fn run_until_free(&self, commands: &Arc<Vec<C>>, locks: Locks, until: Instant) -> Ran<R> {
        let mut longest = FIRST_BACKOFF;
        loop {
            let error = match self.run_once(commands, locks).await {
                Ran::RolledBack(error) if error.is_busy() => error,
                ran => return ran,
            };
            if Instant::now() >= until || !self.store_is_ready().await {
                return Ran::RolledBack(error);
            }
            faults::of_store(&error);
            tracing::warn!(
                lane.name = self.options.name,
                lane.batch = commands.len(),
                error.chain = causes(&error),
                "Batch rolled back, because the store was busy; running it again"
            );
            tokio::time::sleep(self.random_backoff(longest)).await;
            longest = longest.saturating_mul(2).min(LONGEST_BACKOFF);
        }
    }

    fn record_rollback(&self, size: usize, error: &StoreError) {
        self.metrics.undone();
        faults::of_store(error);
        tracing::warn!(
            lane.name = self.options.name,
            lane.batch = size,
            error.chain = causes(error),
            "Batch rolled back; running it again in parts"
        );
    }

    /// Runs each command in a transaction of its own, and returns the commands of locked partners.
    ///
    /// After two commands of a partner have found the store unavailable, the rest of that partner's commands are refused.
    /// Other partners' commands are refused only if the store is not ready or stays busy. `panicked`: a run of these commands
    /// has panicked already.
    async fn run_one_by_one(
        &self,
        batch: Batch<C, R>,
        locks: Locks,
        until: Instant,
        panicked: bool,
    ) -> Batch<C, R> {
        let mut failures: HashMap<Tenant, u32> = HashMap::new();
        let mut locked = Vec::new();
        let mut rest = batch.into_iter();
        while let Some(Waiting { command, ticket }) = rest.next() {
            let partner = (self.partner_of)(&command).clone();
            let failed = failures.get(&partner).copied().unwrap_or_default();
            if failed >= MAX_UNAVAILABLE {
                let error = StoreError::unavailable(FAILED_BEFORE);
                send(ticket.reply, Err(self.after_panic(error, panicked)));
                continue;
            }
            let commands = Arc::new(vec![command]);
            let (result, failure) = self.run_alone(&commands, locks, until, panicked).await;
            match result {
                Ok(None) => {
                    let command = Arc::unwrap_or_clone(commands).pop();
                    locked.extend(command.map(|command| Waiting { command, ticket }));
                }
                Ok(Some(result)) => send(ticket.reply, Ok(result)),
                Err(error) => {
                    send(ticket.reply, Err(error));
                    let is_refused = match failure {
                        Failure::Busy => true,
                        Failure::Unavailable => rest.len() > 0 && !self.store_is_ready().await,
                        Failure::Other => false,
                    };
                    if is_refused {
                        for one in rest {
                            let error = StoreError::unavailable(STORE_UNAVAILABLE);
                            send(one.ticket.reply, Err(self.after_panic(error, panicked)));
                        }
                        return locked;
                    }
                    let counts = failure == Failure::Unavailable;
                    failures.insert(partner, failed + u32::from(counts));
                }
            }
        }
        locked
    }

    /// Runs a single command: again after a lost race, and once more after a panic if commands are repeatable.
    ///
    /// Returns `None` if the partner's row is locked. The kind of failure means nothing for a result.
    async fn run_alone(
        &self,
        command: &Arc<Vec<C>>,
        mut locks: Locks,
        until: Instant,
        mut panicked: bool,
    ) -> (StoreResult<Option<R>>, Failure) {
        let mut longest = FIRST_BACKOFF;
        let mut tries = 1;
        loop {
            match self.run_until_free(command, locks, until).await {
                Ran::RolledBack(StoreError::Retry) if tries < MAX_TRIES => {
                    tokio::time::sleep(self.random_backoff(longest)).await;
                    longest = longest.saturating_mul(2);
                    tries += 1;
                }
                Ran::Panicked(error) if self.options.repeatable && !panicked => {
                    self.record_rollback(1, &error);
                    (locks, panicked) = (Locks::Wait, true);
                }
                ran => {
                    let result = only(ran);
                    let failure = result.as_ref().map_or_else(Failure::of, |_| Failure::Other);
                    let result = result.map_err(|error| self.after_panic(error, panicked));
                    return (result, failure);
                }
            }
        }
    }

    /// The error that the submitter receives. After a panic, the run that panicked may have committed a repeatable
    /// command.
    fn after_panic(&self, error: StoreError, panicked: bool) -> StoreError {
        if panicked && self.options.repeatable {
            StoreError::CommitUnknown(Box::new(error))
        } else {
            error
        }
    }

    async fn run_once(&self, commands: &Arc<Vec<C>>, locks: Locks) -> Ran<R> {
        let running = async { (self.run)(Arc::clone(commands), locks).await };
        match caught(running).await {
            Ok(Ok(results)) if results.len() == commands.len() => Ran::Results(results),
            // The batch was committed, but the results cannot be matched to the commands.
            Ok(Ok(_)) => Ran::CommitUnknown(StoreError::CommitUnknown(
                "the batch returned a different number of results".into(),
            )),
            Ok(Err(error @ StoreError::CommitUnknown(_))) => Ran::CommitUnknown(error),
            Ok(Err(
                error @ (StoreError::Retry
                | StoreError::Unavailable(_)
                | StoreError::Overloaded
                | StoreError::Inconsistent { .. }
                | StoreError::Guard(_)
                | StoreError::Unexpected(_)),
            )) => Ran::RolledBack(error),
            Err(panicked) => Ran::Panicked(StoreError::unexpected(panicked)),
        }
    }

    /// A random duration up to `longest`, so that commands that lost the same race do not collide again.
    fn random_backoff(&self, longest: Duration) -> Duration {
        let mut random = [0; 4];
        self.entropy.fill(&mut random);
        let share = u32::from_be_bytes(random) >> 16;
        longest.saturating_mul(share) / (1 << 16)
    }
}

/// The error of commands that are refused because the store is not ready.
const STORE_UNAVAILABLE: &str = "the store is unavailable";
/// The error of a partner's commands that are refused because earlier ones failed.
const FAILED_BEFORE: &str = "earlier commands of this partner found the store unavailable";

/// Sends each result; returns the commands without a result.
fn reply_to_each<C, R>(
    batch: impl Iterator<Item = Waiting<C, R>>,
    results: Vec<Option<R>>,
) -> Batch<C, R> {
    let mut locked = Vec::new();
    for (one, result) in batch.zip(results) {
        match result {
            Some(result) => send(one.ticket.reply, Ok(result)),
            None => locked.push(one),
        }
    }
    locked
}

/// Refuses commands that were not run.
fn refuse<C, R>(commands: impl IntoIterator<Item = Waiting<C, R>>, why: &'static str) {
    for one in commands {
        send(one.ticket.reply, Err(StoreError::unavailable(why)));
    }
}

/// Sends a result to its submitter. A submitter may be gone; a committed command stays committed.
fn send<R>(reply: Reply<R>, result: StoreResult<R>) {
    drop(reply.send(result));
}

#[cfg(test)]
mod tests;
