mod busy;

use std::collections::{HashSet, VecDeque};
use std::error::Error as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use kernel::Mode;
use partner_core::PartnerId;
use tokio::sync::Semaphore;

use super::*;

static PARTNERS: LazyLock<Vec<Tenant>> = LazyLock::new(|| {
    let tenant = |number: u32| Tenant {
        partner: PartnerId::parse(&format!("p{number}")).unwrap(),
        mode: Mode::Test,
    };
    (0..10).map(tenant).collect()
});

/// The partner of a command is its hundreds.
fn partner_of(command: &u32) -> &Tenant {
    &PARTNERS[(command / 100) as usize]
}

struct Ones;
impl Entropy for Ones {
    fn fill(&self, buffer: &mut [u8]) {
        buffer.fill(1);
    }
}

type Results = StoreResult<Vec<Option<u32>>>;

/// A store that doubles each command.
///
/// It waits for a permit before each run and returns the planned errors, one per run. It panics for command 13, rejects
/// command 7, and is unavailable for commands that end in 90 and above.
struct Doubler {
    permits: Semaphore,
    runs: Mutex<Vec<Vec<u32>>>,
    errors: Mutex<VecDeque<StoreError>>,
    /// Partners whose rows another transaction locks.
    locked: Mutex<HashSet<u32>>,
    /// A run that waits for a lock takes one of these permits after the unlock.
    unlocked: Semaphore,
    is_unavailable: AtomicBool,
}

impl Doubler {
    fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(permits),
            runs: Mutex::default(),
            errors: Mutex::default(),
            locked: Mutex::default(),
            unlocked: Semaphore::new(0),
            is_unavailable: AtomicBool::new(false),
        })
    }

    fn lock(self: Arc<Self>, partner: u32) -> Arc<Self> {
        self.locked.lock().insert(partner);
        self
    }

    /// Releases every lock.
    fn unlock(&self) {
        self.locked.lock().clear();
        self.unlocked.add_permits(1);
    }

    fn is_locked(&self, command: u32) -> bool {
        self.locked.lock().contains(&(command / 100))
    }

    fn fails_with(self: Arc<Self>, errors: impl IntoIterator<Item = StoreError>) -> Arc<Self> {
        self.errors.lock().extend(errors);
        self
    }

    fn runs(&self) -> Vec<Vec<u32>> {
        self.runs.lock().clone()
    }
}

impl Doubler {
    async fn run(&self, batch: &[u32], locks: Locks) -> Results {
        let is_left_out = |one: &u32| locks == Locks::Skip && self.is_locked(*one);
        let free: Vec<u32> = batch
            .iter()
            .copied()
            .filter(|one| !is_left_out(one))
            .collect();
        if free.is_empty() {
            return Ok(vec![None; batch.len()]);
        }
        let mut doubles = self.double(&free).await?.into_iter();
        let each = batch
            .iter()
            .map(|one| (!is_left_out(one)).then(|| doubles.next()));
        Ok(each.map(Option::flatten).collect())
    }

    async fn double(&self, batch: &[u32]) -> StoreResult<Vec<u32>> {
        if batch.iter().any(|command| self.is_locked(*command)) {
            let waited = tokio::time::timeout(Duration::from_secs(1), self.unlocked.acquire());
            let waited = waited.await.map_err(StoreError::unavailable)?;
            waited.unwrap().forget();
        }
        self.permits.acquire().await.unwrap().forget();
        self.runs.lock().push(batch.to_vec());
        let error = self.errors.lock().pop_front();
        if let Some(error) = error {
            return Err(error);
        }
        assert!(!batch.contains(&13), "an unlucky batch");
        if batch.contains(&7) {
            return Err(StoreError::Guard("seven".to_owned()));
        }
        if batch.iter().any(|command| command % 100 >= 90) {
            return Err(StoreError::unavailable("away"));
        }
        Ok(batch.iter().map(|command| command * 2).collect())
    }
}

#[async_trait]
impl Readiness for Doubler {
    async fn ready(&self) -> StoreResult<()> {
        if self.is_unavailable.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("away"));
        }
        Ok(())
    }
}

type Queue = Arc<BatchQueue<u32, u32>>;

/// Starts a queue with these options over a function that runs a batch.
fn start<F>(
    options: BatchQueueOptions,
    readiness: Arc<dyn Readiness>,
    run: impl Fn(Arc<Vec<u32>>, Locks) -> F + Send + Sync + 'static,
) -> Queue
where
    F: Future<Output = Results> + Send + 'static,
{
    Arc::new(BatchQueue::start(Arc::new(Executor {
        options,
        partner_of,
        run: Box::new(move |batch, locks| Box::pin(run(batch, locks))),
        readiness,
        entropy: Arc::new(Ones),
        metrics: Arc::new(BatchQueueMetrics::named("test")),
    })))
}

fn start_doubler(options: BatchQueueOptions, doubler: &Arc<Doubler>) -> Queue {
    let store = Arc::clone(doubler);
    start(options, store.clone(), move |batch, locks| {
        let store = Arc::clone(&store);
        async move { store.run(&batch, locks).await }
    })
}

type Outcomes = Vec<StoreResult<u32>>;

fn doubling(doubler: &Arc<Doubler>, queue: usize) -> Queue {
    let options = BatchQueueOptions {
        queue,
        ..BatchQueueOptions::new("test")
    };
    start_doubler(options, doubler)
}

/// Queues a first command, then the others while the first one runs, so that they share a batch.
async fn run_together(doubler: &Arc<Doubler>, commands: &[u32]) -> Outcomes {
    let queue = doubling(doubler, 1024);
    let first = submit(&queue, &[0]).await;
    let rest = submit(&queue, commands).await;
    doubler.permits.add_permits(1000);
    outcomes(first).await;
    let outcomes = outcomes(rest).await;
    queue.shut_down().await;
    outcomes
}

type Submitted = Vec<JoinHandle<StoreResult<u32>>>;

/// Submits commands, and returns after each of them was queued or refused.
async fn submit(queue: &Queue, commands: &[u32]) -> Submitted {
    let mut submitted = Vec::new();
    for command in commands {
        let (queue, command) = (queue.clone(), *command);
        submitted.push(tokio::spawn(async move { queue.submit(command).await }));
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    submitted
}

async fn outcomes(submitted: Submitted) -> Outcomes {
    let mut outcomes = Vec::new();
    for one in submitted {
        outcomes.push(one.await.unwrap());
    }
    outcomes
}

fn words(outcomes: &Outcomes) -> Vec<String> {
    let word = |outcome: &StoreResult<u32>| match outcome {
        Ok(double) => double.to_string(),
        Err(StoreError::Retry) => "retry".to_owned(),
        Err(StoreError::Unavailable(_)) => "away".to_owned(),
        Err(StoreError::Overloaded) => "overloaded".to_owned(),
        Err(StoreError::CommitUnknown(_)) => "unknown".to_owned(),
        Err(StoreError::Inconsistent { .. }) => "inconsistent".to_owned(),
        Err(StoreError::Guard(_)) => "guard".to_owned(),
        Err(StoreError::Unexpected(_)) => "unexpected".to_owned(),
    };
    outcomes.iter().map(word).collect()
}

#[tokio::test]
async fn next_batch_takes_all_queued_commands_in_order() {
    let doubler = Doubler::new(0);
    let commands: Vec<u32> = (14..84).collect();
    let outcomes = run_together(&doubler, &commands).await;
    let doubles: Vec<String> = commands.iter().map(|n| (n * 2).to_string()).collect();
    assert_eq!(words(&outcomes), doubles);
    let sizes: Vec<usize> = doubler.runs().iter().map(Vec::len).collect();
    assert_eq!(
        sizes,
        [1, 64, 6],
        "a batch has at most 64 commands and waits for none"
    );
    assert_eq!(doubler.runs()[1..].concat(), commands);
}

#[tokio::test]
async fn full_queue_refuses_command_immediately() {
    let doubler = Doubler::new(0);
    let queue = doubling(&doubler, 2);
    let first = submit(&queue, &[1]).await;
    let queued = submit(&queue, &[2, 3]).await;
    let refused = queue.submit(4).await;
    assert!(matches!(refused, Err(StoreError::Overloaded)));
    doubler.permits.add_permits(10);
    assert_eq!(words(&outcomes(first).await), ["2"]);
    assert_eq!(words(&outcomes(queued).await), ["4", "6"]);
}

#[tokio::test]
async fn failing_command_fails_alone() {
    let doubler = Doubler::new(0);
    let outcomes = run_together(&doubler, &[1, 7, 2, 13, 3]).await;
    assert_eq!(words(&outcomes), ["2", "guard", "4", "unexpected", "6"]);
    let runs = doubler.runs();
    assert_eq!(runs[1], [1, 7, 2, 13, 3]);
    assert_eq!(runs[2..], [[1], [7], [2], [13], [3]]);
}

#[tokio::test]
async fn queue_survives_panic() {
    let doubler = Doubler::new(10);
    let queue = doubling(&doubler, 8);
    let error = queue.submit(13).await.unwrap_err();
    let StoreError::Unexpected(source) = error else {
        panic!("{error}");
    };
    assert!(source.to_string().contains("an unlucky batch"), "{source}");
    assert_eq!(queue.submit(4).await.unwrap(), 8);
}

/// Submits a command to a store whose first runs panic after their commit. Returns the outcome and the number of runs.
async fn committed_then_panicked(panics: usize, options: BatchQueueOptions) -> (String, usize) {
    let committed = Arc::new(Mutex::new(Vec::new()));
    let runs = Arc::new(Mutex::new(0));
    let (written, counted) = (Arc::clone(&committed), Arc::clone(&runs));
    let queue = start(options, Doubler::new(0), move |batch, _| {
        let (written, counted) = (Arc::clone(&written), Arc::clone(&counted));
        async move {
            *counted.lock() += 1;
            let run: usize = *counted.lock();
            for one in batch.iter() {
                let is_new = !written.lock().contains(one);
                written.lock().extend(is_new.then_some(*one));
            }
            assert!(run > panics, "after the commit");
            Ok(batch.iter().map(|command| Some(command * 2)).collect())
        }
    });
    let outcome = words(&vec![queue.submit(4).await]).remove(0);
    queue.shut_down().await;
    assert_eq!(*committed.lock(), [4]);
    let runs = *runs.lock();
    (outcome, runs)
}

#[tokio::test]
async fn repeatable_command_runs_once_more_after_panic() {
    let repeatable = BatchQueueOptions::new("test").repeatable();
    assert_eq!(
        committed_then_panicked(1, repeatable).await,
        ("8".to_owned(), 2)
    );
    assert_eq!(
        committed_then_panicked(2, repeatable).await,
        ("unknown".to_owned(), 2)
    );
    let other = BatchQueueOptions::new("test");
    assert_eq!(
        committed_then_panicked(1, other).await,
        ("unexpected".to_owned(), 1)
    );
}

#[tokio::test]
async fn error_after_panic_leaves_repeatable_command_unknown() {
    let doubler = Doubler::new(0);
    let options = BatchQueueOptions::new("test").repeatable();
    let queue = start_doubler(options, &doubler);
    let first = submit(&queue, &[0]).await;
    let rest = submit(&queue, &[1, 7, 13, 90, 91, 2]).await;
    doubler.permits.add_permits(1000);
    outcomes(first).await;
    let outcomes = outcomes(rest).await;
    let unknown = ["unknown"; 5];
    assert_eq!(words(&outcomes)[0], "2");
    assert_eq!(words(&outcomes)[1..], unknown);
}

#[tokio::test]
async fn unknown_commit_is_reported_to_all_and_never_rerun() {
    let doubler = Doubler::new(1);
    let queue = doubling(&doubler, 8);
    queue.submit(0).await.unwrap();
    let unknown = || StoreError::CommitUnknown("the connection broke".into());
    let doubler = doubler.fails_with([unknown()]);
    let first = submit(&queue, &[1]).await;
    let rest = submit(&queue, &[2, 3]).await;
    doubler.permits.add_permits(1);
    assert_eq!(words(&outcomes(first).await), ["unknown"]);
    let doubler = doubler.fails_with([unknown()]);
    doubler.permits.add_permits(10);
    let outcomes = outcomes(rest).await;
    assert_eq!(words(&outcomes), ["unknown", "unknown"]);
    assert_eq!(doubler.runs(), [vec![0], vec![1], vec![2, 3]]);
    let source = outcomes[1].as_ref().unwrap_err().source().unwrap();
    assert_eq!(source.source().unwrap().to_string(), "the connection broke");
    assert_eq!(queue.submit(4).await.unwrap(), 8);
}

#[tokio::test]
async fn lost_race_is_tried_three_times() {
    let doubler = Doubler::new(100).fails_with([StoreError::Retry, StoreError::Retry]);
    let queue = doubling(&doubler, 8);
    assert_eq!(queue.submit(1).await.unwrap(), 2);
    assert_eq!(doubler.runs().len(), 3);
    let doubler = doubler.fails_with([StoreError::Retry, StoreError::Retry, StoreError::Retry]);
    let lost = queue.submit(1).await;
    assert!(matches!(lost, Err(StoreError::Retry)));
    assert_eq!(doubler.runs().len(), 6);
}

#[tokio::test]
async fn unavailable_store_is_tried_once_per_batch() {
    let doubler = Doubler::new(0);
    doubler.is_unavailable.store(true, Ordering::SeqCst);
    let outcomes = run_together(&doubler, &[90, 1, 191, 92, 293]).await;
    assert_eq!(words(&outcomes), ["away"; 5]);
    assert_eq!(doubler.runs().len(), 2, "the first command, and the batch");
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn failing_partner_is_refused_alone() {
    let doubler = Doubler::new(0);
    let commands = [190, 1, 191, 2, 192, 203];
    let outcomes = run_together(&doubler, &commands).await;
    let expected = ["away", "2", "away", "4", "away", "406"];
    assert_eq!(words(&outcomes), expected);
    let mut runs = doubler.runs();
    runs.retain(|run| run.iter().all(|command| command / 100 == 1));
    assert_eq!(runs, [[190, 191, 192]; 2]);
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn locked_partner_keeps_its_order_without_delaying_others() {
    let doubler = Doubler::new(1000).lock(1);
    let queue = doubling(&doubler, 1024);
    let started = Instant::now();
    let held = submit(&queue, &[101, 102]).await;
    for other in [1, 201, 2, 202] {
        assert_eq!(queue.submit(other).await.unwrap(), other * 2);
    }
    assert_eq!(
        started.elapsed(),
        Duration::ZERO,
        "other partners do not wait"
    );
    tokio::time::sleep(Duration::from_millis(100)).await;
    let later = submit(&queue, &[103]).await;
    assert!(held.iter().chain(&later).all(|one| !one.is_finished()));
    assert_eq!(queue.submit(3).await.unwrap(), 6);
    doubler.unlock();
    assert_eq!(words(&outcomes(held).await), ["202", "204"]);
    assert_eq!(words(&outcomes(later).await), ["206"]);
    let runs = doubler.runs().concat().into_iter();
    let of_held: Vec<u32> = runs.filter(|command| command / 100 == 1).collect();
    assert_eq!(of_held, [101, 102, 103]);
    queue.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn partner_locked_briefly_is_retried_in_the_queue() {
    let doubler = Doubler::new(1000).lock(1);
    let queue = doubling(&doubler, 1024);
    let held = submit(&queue, &[101]).await;
    doubler.locked.lock().clear();
    assert_eq!(words(&outcomes(held).await), ["202"]);
    assert_eq!(doubler.unlocked.available_permits(), 0);
    queue.shut_down().await;
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn partner_that_stays_locked_is_refused_after_two_waits() {
    let doubler = Doubler::new(1000).lock(1);
    let queue = doubling(&doubler, 1024);
    let started = Instant::now();
    let held = submit(&queue, &[101, 102, 103]).await;
    assert_eq!(words(&outcomes(held).await), ["away"; 3]);
    let waited = started.elapsed();
    assert!(waited < Duration::from_millis(2100), "{waited:?}");
    doubler.unlock();
    assert_eq!(queue.submit(104).await.unwrap(), 208);
    queue.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn every_locked_partner_runs_when_more_wait_than_separate_runs() {
    let doubler = Doubler::new(1000);
    let doubler = (1..6).fold(doubler, Doubler::lock);
    let queue = doubling(&doubler, 1024);
    let held = submit(&queue, &[101, 201, 301, 401, 501]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    doubler.locked.lock().clear();
    doubler.unlocked.add_permits(2);
    let doubled = ["202", "402", "602", "802", "1002"];
    assert_eq!(words(&outcomes(held).await), doubled);
    queue.shut_down().await;
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn held_partner_leaves_queue_space_for_others() {
    let doubler = Doubler::new(1000).lock(1);
    let options = BatchQueueOptions {
        queue: 8,
        max_held: 2,
        ..BatchQueueOptions::new("test")
    };
    let queue = start_doubler(options, &doubler);
    let held = submit(&queue, &[101, 102, 103, 104, 105, 106, 107, 108, 109]).await;
    let refused = held.iter().filter(|one| one.is_finished()).count();
    assert!((5..=7).contains(&refused), "{refused} of nine are refused");
    assert_eq!(queue.submit(1).await.unwrap(), 2);
    doubler.unlock();
    let outcomes = words(&outcomes(held).await);
    assert_eq!(outcomes[..2], ["202", "204"]);
    assert!(
        outcomes[4..].iter().all(|word| word == "overloaded"),
        "{outcomes:?}"
    );
    queue.shut_down().await;
}

#[tokio::test]
async fn wrong_number_of_results_is_unknown_commit() {
    let options = BatchQueueOptions::new("test");
    let queue = start(options, Doubler::new(0), |_, _| async { Ok(Vec::new()) });
    let outcomes = queue.submit(1).await;
    assert!(matches!(outcomes, Err(StoreError::CommitUnknown(_))));
}

#[tokio::test]
async fn shutdown_runs_queued_commands_and_refuses_new_ones() {
    let doubler = Doubler::new(0);
    let queue = doubling(&doubler, 8);
    let queued = submit(&queue, &[1, 2, 3]).await;
    let down = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down().await }
    });
    tokio::task::yield_now().await;
    doubler.permits.add_permits(10);
    down.await.unwrap();
    assert_eq!(words(&outcomes(queued).await), ["2", "4", "6"]);
    let late = queue.submit(4).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))));
    queue.shut_down().await;
}
