//! A lane: a queue of writes and the one task that turns whatever has queued into one call.
//!
//! The runner behind a lane works a batch off in one transaction. What the lane adds is what
//! happens when that fails: a batch that left nothing behind is run again one by one, so that a
//! command that cannot succeed takes no other with it; a batch whose commit is in doubt is never
//! run again, because it may have happened.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use instruments::{Stopwatch, faults, lanes as measured, trace};
use kernel::{Entropy, StoreError, causes};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

/// How often a single command is run when it loses races.
const TRIES: u32 = 3;
/// The first retry waits up to this long, each further one up to twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(4);
/// When a batch is run one by one and the store turns out to be away, the rest is not tried:
/// every further command would wait for the same timeout.
const AWAY_AFTER: u32 = 2;

/// Works a batch off in one transaction.
#[async_trait]
pub trait BatchRunner<C, R>: Send + Sync + 'static {
    /// One answer for each command, in order; or a fault, after which nothing of the batch has
    /// been written, unless the fault is [`StoreError::CommitUnknown`].
    async fn run(&self, batch: &[C]) -> Result<Vec<R>, StoreError>;
}

/// How a lane works.
#[derive(Debug, Clone, Copy)]
pub struct LaneOptions {
    /// Names the lane in logs.
    pub name: &'static str,
    /// Commands in one transaction at most.
    pub max_batch: usize,
    /// Commands that may wait; one more is refused at once.
    pub queue: usize,
}

impl LaneOptions {
    /// At most 64 commands a batch, and 1,024 waiting: about a quarter of a second's work.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            max_batch: 64,
            queue: 1024,
        }
    }
}

/// A queue with its task.
pub struct Lane<C, R> {
    queue: mpsc::Sender<Waiting<C, R>>,
    measured: Arc<measured::Lane>,
    closing: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Waiting<C, R> {
    command: C,
    reply: Reply<R>,
    since: Stopwatch,
    /// Of whoever waits, so that a batch can name the requests it is run for.
    span: Span,
}

type Reply<R> = oneshot::Sender<Result<R, StoreError>>;

impl<C, R> Lane<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    /// Starts a lane. Must be called within a tokio runtime.
    pub fn start(
        options: LaneOptions,
        runner: Arc<dyn BatchRunner<C, R>>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(options.queue.max(1));
        let closing = Arc::new(Notify::new());
        let measured = Arc::new(measured::Lane::named(options.name));
        let worker = Worker {
            options,
            runner,
            entropy,
            measured: Arc::clone(&measured),
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
        let waiting = Waiting {
            command,
            reply,
            since: self.measured.queued(),
            span: trace::current(),
        };
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

impl<C, R> fmt::Debug for Lane<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lane")
    }
}

/// The task's side of a lane.
struct Worker<C, R> {
    options: LaneOptions,
    runner: Arc<dyn BatchRunner<C, R>>,
    entropy: Arc<dyn Entropy>,
    measured: Arc<measured::Lane>,
}

/// How running some commands ended.
enum Ran<R> {
    /// One answer each.
    Answered(Vec<R>),
    /// Nothing was written.
    Undone(StoreError),
    /// It may have been written.
    InDoubt(StoreError),
}

impl<C, R> Worker<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    /// Takes whatever has queued, never waiting to fill a batch, until the lane is closed and
    /// empty.
    async fn work(self, mut waiting: mpsc::Receiver<Waiting<C, R>>, closing: Arc<Notify>) {
        let mut taken = Vec::with_capacity(self.options.max_batch);
        loop {
            let count = tokio::select! {
                count = waiting.recv_many(&mut taken, self.options.max_batch.max(1)) => count,
                () = closing.notified() => {
                    waiting.close();
                    continue;
                }
            };
            if count == 0 {
                return;
            }
            tracing::trace!(
                lane.name = self.options.name,
                lane.batch = count,
                lane.queued = waiting.len(),
                "Running a batch"
            );
            self.measured.taken(taken.iter().map(|one| one.since));
            let span = trace::batch(self.options.name, taken.iter().map(|one| &one.span));
            let (commands, replies): (Vec<C>, Vec<Reply<R>>) =
                taken.drain(..).map(|one| (one.command, one.reply)).unzip();
            let since = Stopwatch::start();
            self.run_batch(&commands, replies).instrument(span).await;
            self.measured.ran(since);
        }
    }

    async fn run_batch(&self, commands: &[C], replies: Vec<Reply<R>>) {
        if commands.len() == 1 {
            self.run_one_by_one(commands, replies).await;
            return;
        }
        match self.run_once(commands).await {
            Ran::Answered(answers) => {
                for (reply, answer) in replies.into_iter().zip(answers) {
                    send(reply, Ok(answer));
                }
            }
            Ran::InDoubt(fault) => {
                for (reply, fault) in replies.into_iter().zip(in_doubt_for_each(fault)) {
                    send(reply, Err(fault));
                }
            }
            Ran::Undone(fault) => {
                self.note_undone(commands.len(), &fault);
                self.run_one_by_one(commands, replies).await;
            }
        }
    }

    fn note_undone(&self, size: usize, fault: &StoreError) {
        self.measured.undone();
        faults::of_store(fault);
        tracing::warn!(
            lane.name = self.options.name,
            lane.batch = size,
            error.chain = causes(fault),
            "A batch was undone and is run one by one"
        );
    }

    async fn run_one_by_one(&self, commands: &[C], replies: Vec<Reply<R>>) {
        let mut away = 0;
        for (command, reply) in commands.iter().zip(replies) {
            if away >= AWAY_AFTER {
                send(reply, Err(StoreError::unavailable("the store is away")));
                continue;
            }
            let answer = self.run_alone(command).await;
            if matches!(answer, Err(StoreError::Unavailable(_))) {
                away += 1;
            }
            send(reply, answer);
        }
    }

    /// Runs one command, again where it lost a race.
    async fn run_alone(&self, command: &C) -> Result<R, StoreError> {
        let mut longest = FIRST_WAIT;
        for _ in 1..TRIES {
            match self.run_once(std::slice::from_ref(command)).await {
                Ran::Undone(StoreError::Retry) => {}
                ended => return only(ended),
            }
            tokio::time::sleep(self.up_to(longest)).await;
            longest = longest.saturating_mul(2);
        }
        only(self.run_once(std::slice::from_ref(command)).await)
    }

    async fn run_once(&self, commands: &[C]) -> Ran<R> {
        match caught(self.runner.run(commands)).await {
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
            Err(panicked) => Ran::Undone(StoreError::unexpected(panicked)),
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

/// The answer to a single command.
fn only<R>(ended: Ran<R>) -> Result<R, StoreError> {
    match ended {
        Ran::Answered(answers) => answers
            .into_iter()
            .next()
            .ok_or_else(|| StoreError::unexpected("a command was answered with nothing")),
        Ran::Undone(fault) | Ran::InDoubt(fault) => Err(fault),
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
        StoreError::CommitUnknown(Box::new(SharedFault(Arc::clone(&shared))))
    })
}

/// The same fault, told to several commands.
#[derive(Debug)]
struct SharedFault(Arc<StoreError>);

impl fmt::Display for SharedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch shares its outcome")
    }
}

impl Error for SharedFault {
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
