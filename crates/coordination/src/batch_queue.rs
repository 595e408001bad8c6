//! A lane: a queue of writes and the one task that turns whatever has queued into one call.
//!
//! The runner behind a lane works a batch off in one transaction. What the lane adds is what
//! happens when that fails: a batch that left nothing behind is run again one by one, so that a
//! command that cannot succeed takes no other with it; a batch whose commit is in doubt is never
//! run again, because it may have happened.
//!
//! Partners are isolated. A batch never waits for the lock of one partner: the runner leaves that partner's commands out,
//! and `held` runs them again without holding up anybody else.

mod held;
mod options;

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use instruments::{Stopwatch, batch_queues as measured, faults, trace};
use kernel::{Entropy, StoreError, causes};
use parking_lot::Mutex;
use partner_core::Tenant;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span};

use held::{Aside, HeldPartners};
pub use options::BatchQueueOptions;

/// How often a single command is run when it loses races.
const MAX_TRIES: u32 = 3;
/// The first retry waits up to this long, each further one up to twice as long.
const FIRST_BACKOFF: Duration = Duration::from_millis(4);
/// A partner's commands are refused unrun once this many of its runs found the store unavailable.
const MAX_UNAVAILABLE: u32 = 2;

/// Works a batch off in one transaction.
#[async_trait]
pub trait BatchRunner<C, R>: Send + Sync + 'static {
    /// One answer for each command, in order; or a fault, after which nothing of the batch has
    /// been written, unless the fault is [`StoreError::CommitUnknown`]. Waits for the locks of partners.
    async fn run(&self, batch: &[C]) -> Result<Vec<R>, StoreError>;

    /// As [`BatchRunner::run`], but waits for no partner's lock: `None` for each command of a partner whose row another
    /// transaction holds. Nothing has been written for such a command.
    async fn run_unlocked(&self, batch: &[C]) -> Result<Vec<Option<R>>, StoreError>;

    /// Does the store answer? Tells a store that is away from a partner whose commands alone fail.
    async fn is_reachable(&self) -> bool {
        true
    }
}

/// A queue with its task.
pub struct BatchQueue<C, R> {
    queue: mpsc::Sender<Waiting<C, R>>,
    measured: Arc<measured::Lane>,
    closing: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Waiting<C, R> {
    command: C,
    ticket: Ticket<R>,
}

/// Who waits for a command.
struct Ticket<R> {
    reply: Reply<R>,
    since: Stopwatch,
    /// The span of the request, so that a batch can name the requests it is run for.
    span: Span,
}

type Reply<R> = oneshot::Sender<Result<R, StoreError>>;
type Batch<C, R> = Vec<Waiting<C, R>>;

impl<C, R> BatchQueue<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    /// Starts a lane. `whose` names the partner of a command. Must be called within a tokio runtime.
    pub fn start(
        options: BatchQueueOptions,
        whose: fn(&C) -> &Tenant,
        runner: Arc<dyn BatchRunner<C, R>>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(options.queue.max(1));
        let closing = Arc::new(Notify::new());
        let measured = Arc::new(measured::Lane::named(options.name));
        let worker = Worker {
            executor: Arc::new(Executor {
                options,
                whose,
                runner,
                entropy,
                measured: Arc::clone(&measured),
            }),
            held: HeldPartners::new(options),
        };
        let task = tokio::spawn(worker.work(waiting, Arc::clone(&closing)));
        Self {
            queue,
            measured,
            closing,
            task: Mutex::new(Some(task)),
        }
    }

    /// Queues a command and waits for its answer.
    ///
    /// # Errors
    /// [`StoreError::Overloaded`] at once where the queue is full, [`StoreError::Unavailable`]
    /// once the lane is closed, else what the store reports.
    pub async fn submit(&self, command: C) -> Result<R, StoreError> {
        let (reply, answer) = oneshot::channel();
        let ticket = Ticket {
            reply,
            since: self.measured.queued(),
            span: trace::current(),
        };
        let waiting = Waiting { command, ticket };
        self.queue.try_send(waiting).map_err(|refused| {
            self.measured.refused();
            match refused {
                mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
                mpsc::error::TrySendError::Closed(_) => {
                    StoreError::unavailable("the lane is closed")
                }
            }
        })?;
        // The task answers every command; were it killed half-way, the outcome would be open.
        answer
            .await
            .unwrap_or_else(|gone| Err(StoreError::CommitUnknown(gone.into())))
    }

    /// Refuses new commands, runs what has queued, and returns when the task has ended.
    pub async fn shut_down(&self) {
        self.closing.notify_one();
        let task = self.task.lock().take();
        if let Some(task) = task {
            let ended = task.await;
            debug_assert!(ended.is_ok(), "a lane survives the panics of its runner");
        }
    }
}

impl<C, R> fmt::Debug for BatchQueue<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lane")
    }
}

/// The task's side of a lane.
struct Worker<C, R> {
    executor: Arc<Executor<C, R>>,
    held: HeldPartners<C, R>,
}

/// Why the task goes on.
enum Woken<C, R> {
    /// Commands have queued, or a partner is to be tried again.
    Work,
    /// A run beside the lane has ended.
    Aside(Aside<C, R>),
    /// The queue is closed and empty.
    Closed,
}

impl<C, R> Worker<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    /// Takes whatever has queued, never waiting to fill a batch, until the lane is closed and
    /// empty.
    async fn work(mut self, mut waiting: mpsc::Receiver<Waiting<C, R>>, closing: Arc<Notify>) {
        let max_batch = self.executor.options.max_batch.max(1);
        let mut fresh = Vec::with_capacity(max_batch);
        let mut is_open = true;
        while is_open || !self.held.is_empty() {
            let mut batch = self.held.take_due(max_batch);
            let room = max_batch.saturating_sub(batch.len());
            if batch.is_empty() {
                let woken = tokio::select! {
                    count = waiting.recv_many(&mut fresh, room), if is_open => {
                        if count == 0 { Woken::Closed } else { Woken::Work }
                    }
                    () = until(self.held.next_due()) => Woken::Work,
                    aside = self.held.aside_ended() => Woken::Aside(aside),
                    () = closing.notified() => {
                        waiting.close();
                        Woken::Work
                    }
                };
                match woken {
                    Woken::Work => {}
                    Woken::Aside(aside) => self.held.absorb(aside),
                    Woken::Closed => is_open = false,
                }
            } else {
                while fresh.len() < room {
                    let Ok(next) = waiting.try_recv() else { break };
                    fresh.push(next);
                }
            }
            if !fresh.is_empty() {
                let since = fresh.iter().map(|one: &Waiting<C, R>| one.ticket.since);
                self.executor.measured.taken(since);
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
            self.held.start_asides(&self.executor);
            self.executor.measured.held(self.held.len());
        }
    }

    async fn run(&mut self, batch: Batch<C, R>) {
        let unanswered = self.executor.run_batch(batch, Locks::Skip).await;
        self.held.settle(unanswered, &self.executor);
    }
}

/// Waits until an instant; without one it never ends.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Runs commands, and answers them.
struct Executor<C, R> {
    options: BatchQueueOptions,
    whose: fn(&C) -> &Tenant,
    runner: Arc<dyn BatchRunner<C, R>>,
    entropy: Arc<dyn Entropy>,
    measured: Arc<measured::Lane>,
}

/// What a run does about a partner's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locks {
    /// Leaves the partner out.
    Skip,
    /// Waits for it, as long as the store does.
    Wait,
}

/// How running some commands ended.
enum Ran<R> {
    /// One answer each; `None` where a partner's row was locked.
    Answered(Vec<Option<R>>),
    /// Nothing was written.
    Undone(StoreError),
    /// The runner panicked, before its commit or after it.
    Panicked(StoreError),
    /// It may have been written.
    InDoubt(StoreError),
}

/// The commands of a batch that were not answered.
struct Unanswered<C, R> {
    /// Their partners' rows were locked.
    locked: Batch<C, R>,
    /// The store was unavailable to the batch as a whole, and yet it answers.
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
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    /// Runs a batch, and parts of it again where it failed.
    async fn run_batch(&self, batch: Batch<C, R>, locks: Locks) -> Unanswered<C, R> {
        let span = trace::batch(self.options.name, batch.iter().map(|one| &one.ticket.span));
        let since = Stopwatch::start();
        let unanswered = self.run_parts(batch, locks).instrument(span).await;
        self.measured.ran(since);
        unanswered
    }

    async fn run_parts(&self, batch: Batch<C, R>, locks: Locks) -> Unanswered<C, R> {
        if batch.len() == 1 && locks == Locks::Skip {
            return Unanswered::locked(self.run_one_by_one(batch, locks, false).await);
        }
        let (commands, tickets): (Vec<C>, Vec<Ticket<R>>) = batch
            .into_iter()
            .map(|one| (one.command, one.ticket))
            .unzip();
        let ran = self.run_once(&commands, locks).await;
        let both = commands.into_iter().zip(tickets);
        let batch = both.map(|(command, ticket)| Waiting { command, ticket });
        match ran {
            Ran::Answered(answers) => Unanswered::locked(answer(batch, answers)),
            Ran::InDoubt(fault) => {
                for (one, fault) in batch.zip(in_doubt_for_each(fault)) {
                    send(one.ticket.reply, Err(fault));
                }
                Unanswered::locked(Vec::new())
            }
            Ran::Undone(fault) => self.run_undone(batch.collect(), fault, locks).await,
            Ran::Panicked(fault) => {
                let batch: Batch<C, R> = batch.collect();
                self.note_undone(batch.len(), &fault);
                // A command that may have been committed is not put back: it waits for its partner's lock.
                Unanswered::locked(self.run_one_by_one(batch, Locks::Wait, true).await)
            }
        }
    }

    /// What becomes of a batch that left nothing behind.
    async fn run_undone(
        &self,
        batch: Batch<C, R>,
        fault: StoreError,
        locks: Locks,
    ) -> Unanswered<C, R> {
        self.note_undone(batch.len(), &fault);
        if !matches!(fault, StoreError::Unavailable(_)) {
            return Unanswered::locked(self.run_one_by_one(batch, locks, false).await);
        }
        if self.runner.is_reachable().await {
            return Unanswered {
                locked: Vec::new(),
                failed: Some((batch, fault)),
            };
        }
        refuse(batch, "the store is away");
        Unanswered::locked(Vec::new())
    }

    fn note_undone(&self, size: usize, fault: &StoreError) {
        self.measured.undone();
        faults::of_store(fault);
        tracing::warn!(
            lane.name = self.options.name,
            lane.batch = size,
            error.chain = causes(fault),
            "A batch was undone and is run again in parts"
        );
    }

    /// Runs each command by itself. A partner whose commands find the store unavailable is refused the rest of them; nobody
    /// else is, unless the store does not answer at all. Returns the commands of locked partners. `panicked`: a run of these
    /// commands has panicked already.
    async fn run_one_by_one(
        &self,
        batch: Batch<C, R>,
        locks: Locks,
        panicked: bool,
    ) -> Batch<C, R> {
        let mut failures: HashMap<Tenant, u32> = HashMap::new();
        let mut locked = Vec::new();
        let mut rest = batch.into_iter();
        while let Some(one) = rest.next() {
            let partner = (self.whose)(&one.command).clone();
            let failed = failures.get(&partner).copied().unwrap_or_default();
            if failed >= MAX_UNAVAILABLE {
                let fault = StoreError::unavailable(FAILED_BEFORE);
                send(one.ticket.reply, Err(self.told(fault, panicked)));
                continue;
            }
            let (answer, is_away) = self.run_alone(&one.command, locks, panicked).await;
            match answer {
                Ok(None) => locked.push(one),
                Ok(Some(answer)) => send(one.ticket.reply, Ok(answer)),
                Err(fault) => {
                    send(one.ticket.reply, Err(fault));
                    if is_away && rest.len() > 0 && !self.runner.is_reachable().await {
                        for one in rest {
                            let fault = StoreError::unavailable("the store is away");
                            send(one.ticket.reply, Err(self.told(fault, panicked)));
                        }
                        return locked;
                    }
                    failures.insert(partner, failed + u32::from(is_away));
                }
            }
        }
        locked
    }

    /// Runs one command. Runs it again after a lost race, and once after a panic if commands are
    /// repeatable. `None` if its partner's row is locked. Also tells whether the store was unavailable.
    async fn run_alone(
        &self,
        command: &C,
        mut locks: Locks,
        mut panicked: bool,
    ) -> (Result<Option<R>, StoreError>, bool) {
        let mut longest = FIRST_BACKOFF;
        let mut tries = 1;
        loop {
            match self.run_once(std::slice::from_ref(command), locks).await {
                Ran::Undone(StoreError::Retry) if tries < MAX_TRIES => {
                    tokio::time::sleep(self.up_to(longest)).await;
                    longest = longest.saturating_mul(2);
                    tries += 1;
                }
                Ran::Panicked(fault) if self.options.repeatable && !panicked => {
                    self.note_undone(1, &fault);
                    (locks, panicked) = (Locks::Wait, true);
                }
                ended => {
                    let answer = only(ended);
                    let is_away = matches!(answer, Err(StoreError::Unavailable(_)));
                    let answer = answer.map_err(|fault| self.told(fault, panicked));
                    return (answer, is_away);
                }
            }
        }
    }

    /// The fault as the submitter receives it. After a panic, a repeatable command may have been
    /// committed by the run that panicked.
    fn told(&self, fault: StoreError, panicked: bool) -> StoreError {
        if panicked && self.options.repeatable {
            StoreError::CommitUnknown(Box::new(fault))
        } else {
            fault
        }
    }

    async fn run_once(&self, commands: &[C], locks: Locks) -> Ran<R> {
        let running = async {
            match locks {
                Locks::Skip => self.runner.run_unlocked(commands).await,
                Locks::Wait => {
                    let answers = self.runner.run(commands).await?;
                    Ok(answers.into_iter().map(Some).collect())
                }
            }
        };
        match caught(running).await {
            Ok(Ok(answers)) if answers.len() == commands.len() => Ran::Answered(answers),
            // It was committed, but nobody can tell which answer is whose.
            Ok(Ok(_)) => Ran::InDoubt(StoreError::CommitUnknown(
                "a batch was answered with another number of answers".into(),
            )),
            Ok(Err(fault @ StoreError::CommitUnknown(_))) => Ran::InDoubt(fault),
            Ok(Err(
                fault @ (StoreError::Retry
                | StoreError::Unavailable(_)
                | StoreError::Overloaded
                | StoreError::Inconsistent { .. }
                | StoreError::Guard(_)
                | StoreError::Unexpected(_)),
            )) => Ran::Undone(fault),
            Err(panicked) => Ran::Panicked(StoreError::unexpected(panicked)),
        }
    }

    /// A random span up to `longest`, so that those who lost the same race do not meet again.
    fn up_to(&self, longest: Duration) -> Duration {
        let mut random = [0; 4];
        self.entropy.fill(&mut random);
        let share = u32::from_be_bytes(random) >> 16;
        longest.saturating_mul(share) / (1 << 16)
    }
}

/// What the rest of a partner's commands are told once enough of them have failed.
const FAILED_BEFORE: &str = "the commands of this partner before it found the store unavailable";

/// Answers a batch; returns the commands that have no answer.
fn answer<C, R>(
    batch: impl Iterator<Item = Waiting<C, R>>,
    answers: Vec<Option<R>>,
) -> Batch<C, R> {
    let mut locked = Vec::new();
    for (one, answer) in batch.zip(answers) {
        match answer {
            Some(answer) => send(one.ticket.reply, Ok(answer)),
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

/// The answer to a single command.
fn only<R>(ended: Ran<R>) -> Result<Option<R>, StoreError> {
    match ended {
        Ran::Answered(answers) => answers
            .into_iter()
            .next()
            .ok_or_else(|| StoreError::unexpected("a command was answered with nothing")),
        Ran::Undone(fault) | Ran::Panicked(fault) | Ran::InDoubt(fault) => Err(fault),
    }
}

/// Whoever asked may have gone; what was done stays done.
fn send<R>(reply: Reply<R>, answer: Result<R, StoreError>) {
    drop(reply.send(answer));
}

/// One fault, told to every command of the batch.
fn in_doubt_for_each(fault: StoreError) -> impl Iterator<Item = StoreError> {
    let shared = Arc::new(fault);
    std::iter::repeat_with(move || {
        StoreError::CommitUnknown(Box::new(SharedError(Arc::clone(&shared))))
    })
}

/// The same fault, told to several commands.
#[derive(Debug)]
struct SharedError(Arc<StoreError>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch shares its outcome")
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The runner panicked; its transaction was dropped, so nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("a batch panicked: {0}")]
struct Panicked(String);

/// Runs a future and catches its panic. Dropping the panicked future drops its transaction.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))).map_or_else(
            |payload| std::task::Poll::Ready(Err(payload)),
            |polled| polled.map(Ok),
        )
    })
    .await
    .map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Panicked(text.unwrap_or_else(|| "no message".to_owned()))
    })
}

#[cfg(test)]
mod tests;
