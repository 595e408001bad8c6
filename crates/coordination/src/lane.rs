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
use kernel::{Entropy, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::causes;

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
    closing: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Waiting<C, R> {
    command: C,
    reply: Reply<R>,
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
        let worker = Worker {
            options,
            runner,
            entropy,
        };
        let task = tokio::spawn(worker.work(waiting, Arc::clone(&closing)));
        Self {
            queue,
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
        let waiting = Waiting { command, reply };
        self.queue
            .try_send(waiting)
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
                mpsc::error::TrySendError::Closed(_) => {
                    StoreError::unavailable("the lane is closed")
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
                lane = self.options.name,
                lane.batch = count,
                lane.queued = waiting.len(),
                "Running a batch"
            );
            let (commands, replies): (Vec<C>, Vec<Reply<R>>) =
                taken.drain(..).map(|one| (one.command, one.reply)).unzip();
            self.run_batch(&commands, replies).await;
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
        tracing::warn!(
            lane = self.options.name,
            lane.batch = size,
            error = causes(fault),
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
mod tests {
    use std::collections::VecDeque;

    use tokio::sync::Semaphore;

    use super::*;

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    /// Answers each command with its double. Plays the faults it was given, one a run; panics
    /// over 13, refuses 7, is away for 90 and above; waits for a permit before each run.
    struct Doubler {
        permits: Semaphore,
        runs: Mutex<Vec<Vec<u32>>>,
        faults: Mutex<VecDeque<StoreError>>,
    }

    impl Doubler {
        fn new(permits: usize) -> Arc<Self> {
            Arc::new(Self {
                permits: Semaphore::new(permits),
                runs: Mutex::default(),
                faults: Mutex::default(),
            })
        }

        fn plays(self: Arc<Self>, faults: impl IntoIterator<Item = StoreError>) -> Arc<Self> {
            self.faults.lock().extend(faults);
            self
        }

        fn runs(&self) -> Vec<Vec<u32>> {
            self.runs.lock().clone()
        }
    }

    #[async_trait]
    impl BatchRunner<u32, u32> for Doubler {
        async fn run(&self, batch: &[u32]) -> Result<Vec<u32>, StoreError> {
            self.permits.acquire().await.unwrap().forget();
            self.runs.lock().push(batch.to_vec());
            let fault = self.faults.lock().pop_front();
            if let Some(fault) = fault {
                return Err(fault);
            }
            assert!(!batch.contains(&13), "an unlucky batch");
            if batch.contains(&7) {
                return Err(StoreError::Guard("seven".to_owned()));
            }
            if batch.iter().any(|command| *command >= 90) {
                return Err(StoreError::unavailable("away"));
            }
            Ok(batch.iter().map(|command| command * 2).collect())
        }
    }

    type Answers = Vec<Result<u32, StoreError>>;

    fn lane(runner: &Arc<Doubler>, queue: usize) -> Arc<Lane<u32, u32>> {
        let options = LaneOptions {
            name: "test",
            max_batch: 64,
            queue,
        };
        Arc::new(Lane::start(options, runner.clone(), Arc::new(Ones)))
    }

    /// Queues a first command, and while it runs all the others, so that they share a batch.
    async fn behind_the_first(runner: &Arc<Doubler>, commands: &[u32]) -> Answers {
        let lane = lane(runner, 1024);
        let first = submit(&lane, &[0]).await;
        let rest = submit(&lane, commands).await;
        runner.permits.add_permits(1000);
        answers(first).await;
        let answered = answers(rest).await;
        lane.shut_down().await;
        answered
    }

    type Submitted = Vec<JoinHandle<Result<u32, StoreError>>>;

    /// Every command has been taken into the queue, or refused, when this returns.
    async fn submit(lane: &Arc<Lane<u32, u32>>, commands: &[u32]) -> Submitted {
        let mut submitted = Vec::new();
        for command in commands {
            let (lane, command) = (lane.clone(), *command);
            submitted.push(tokio::spawn(async move { lane.submit(command).await }));
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        submitted
    }

    async fn answers(submitted: Submitted) -> Answers {
        let mut answers = Vec::new();
        for one in submitted {
            answers.push(one.await.unwrap());
        }
        answers
    }

    fn words(answers: &Answers) -> Vec<String> {
        let word = |answer: &Result<u32, StoreError>| match answer {
            Ok(double) => double.to_string(),
            Err(StoreError::Retry) => "retry".to_owned(),
            Err(StoreError::Unavailable(_)) => "away".to_owned(),
            Err(StoreError::Overloaded) => "overloaded".to_owned(),
            Err(StoreError::CommitUnknown(_)) => "unknown".to_owned(),
            Err(StoreError::Inconsistent { .. }) => "inconsistent".to_owned(),
            Err(StoreError::Guard(_)) => "guard".to_owned(),
            Err(StoreError::Unexpected(_)) => "unexpected".to_owned(),
        };
        answers.iter().map(word).collect()
    }

    #[tokio::test]
    async fn what_queues_behind_a_batch_is_the_next_batch_in_order() {
        let runner = Doubler::new(0);
        let commands: Vec<u32> = (14..84).collect();
        let answered = behind_the_first(&runner, &commands).await;
        let doubles: Vec<String> = commands.iter().map(|n| (n * 2).to_string()).collect();
        assert_eq!(words(&answered), doubles);
        let sizes: Vec<usize> = runner.runs().iter().map(Vec::len).collect();
        assert_eq!(
            sizes,
            [1, 64, 6],
            "at most 64 in one batch, none waited for"
        );
        assert_eq!(runner.runs()[1..].concat(), commands);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_at_once() {
        let runner = Doubler::new(0);
        let lane = lane(&runner, 2);
        let first = submit(&lane, &[1]).await;
        let queued = submit(&lane, &[2, 3]).await;
        let refused = lane.submit(4).await;
        assert!(matches!(refused, Err(StoreError::Overloaded)));
        runner.permits.add_permits(10);
        assert_eq!(words(&answers(first).await), ["2"]);
        assert_eq!(words(&answers(queued).await), ["4", "6"]);
    }

    #[tokio::test]
    async fn a_command_that_is_refused_or_panics_takes_no_other_with_it() {
        let runner = Doubler::new(0);
        let answered = behind_the_first(&runner, &[1, 7, 2, 13, 3]).await;
        assert_eq!(words(&answered), ["2", "guard", "4", "unexpected", "6"]);
        let runs = runner.runs();
        assert_eq!(runs[1], [1, 7, 2, 13, 3]);
        assert_eq!(runs[2..], [[1], [7], [2], [13], [3]]);
    }

    #[tokio::test]
    async fn the_lane_outlives_a_panic() {
        let runner = Doubler::new(10);
        let lane = lane(&runner, 8);
        let fault = lane.submit(13).await.unwrap_err();
        let StoreError::Unexpected(source) = fault else {
            panic!("{fault}");
        };
        assert!(source.to_string().contains("an unlucky batch"), "{source}");
        assert_eq!(lane.submit(4).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn an_unknown_commit_is_told_to_all_and_never_run_again() {
        let runner = Doubler::new(1);
        let lane = lane(&runner, 8);
        lane.submit(0).await.unwrap();
        let unknown = || StoreError::CommitUnknown("the connection broke".into());
        let runner = runner.plays([unknown()]);
        let first = submit(&lane, &[1]).await;
        let rest = submit(&lane, &[2, 3]).await;
        runner.permits.add_permits(1);
        assert_eq!(words(&answers(first).await), ["unknown"]);
        let runner = runner.plays([unknown()]);
        runner.permits.add_permits(10);
        let told = answers(rest).await;
        assert_eq!(words(&told), ["unknown", "unknown"]);
        assert_eq!(runner.runs(), [vec![0], vec![1], vec![2, 3]]);
        let source = told[1].as_ref().unwrap_err().source().unwrap();
        assert_eq!(source.source().unwrap().to_string(), "the connection broke");
        assert_eq!(lane.submit(4).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn a_lost_race_is_run_again_three_times_at_most() {
        let runner = Doubler::new(100).plays([StoreError::Retry, StoreError::Retry]);
        let lane = lane(&runner, 8);
        assert_eq!(lane.submit(1).await.unwrap(), 2);
        assert_eq!(runner.runs().len(), 3);
        let runner = runner.plays([StoreError::Retry, StoreError::Retry, StoreError::Retry]);
        let lost = lane.submit(1).await;
        assert!(matches!(lost, Err(StoreError::Retry)));
        assert_eq!(runner.runs().len(), 6);
    }

    #[tokio::test]
    async fn a_store_that_is_away_is_not_waited_for_once_per_command() {
        let runner = Doubler::new(0);
        let answered = behind_the_first(&runner, &[90, 1, 91, 92, 93]).await;
        assert_eq!(words(&answered), ["away", "2", "away", "away", "away"]);
        let alone = [[90], [1], [91]];
        assert_eq!(runner.runs()[2..], alone);
    }

    #[tokio::test]
    async fn a_wrong_number_of_answers_is_in_doubt() {
        struct Mute;
        #[async_trait]
        impl BatchRunner<u32, u32> for Mute {
            async fn run(&self, _: &[u32]) -> Result<Vec<u32>, StoreError> {
                Ok(vec![])
            }
        }
        let lane = Lane::start(LaneOptions::new("test"), Arc::new(Mute), Arc::new(Ones));
        let told = lane.submit(1).await;
        assert!(matches!(told, Err(StoreError::CommitUnknown(_))));
    }

    #[tokio::test]
    async fn shutting_down_runs_what_has_queued_and_refuses_the_rest() {
        let runner = Doubler::new(0);
        let lane = lane(&runner, 8);
        let queued = submit(&lane, &[1, 2, 3]).await;
        let down = tokio::spawn({
            let lane = lane.clone();
            async move { lane.shut_down().await }
        });
        tokio::task::yield_now().await;
        runner.permits.add_permits(10);
        down.await.unwrap();
        assert_eq!(words(&answers(queued).await), ["2", "4", "6"]);
        let late = lane.submit(4).await;
        assert!(matches!(late, Err(StoreError::Unavailable(_))));
        lane.shut_down().await;
    }
}
