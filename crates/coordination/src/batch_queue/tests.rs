use std::collections::VecDeque;

use std::collections::HashSet;
use std::sync::LazyLock;

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

/// The hundreds of a command are its partner's.
fn whose(command: &u32) -> &Tenant {
    &PARTNERS[(command / 100) as usize]
}

struct Ones;
impl Entropy for Ones {
    fn fill(&self, buffer: &mut [u8]) {
        buffer.fill(1);
    }
}

/// Answers each command with its double. Plays the faults it was given, one a run; panics
/// over 13, refuses 7, is away for those that end in 90 and above; waits for a permit before each run.
struct Doubler {
    permits: Semaphore,
    runs: Mutex<Vec<Vec<u32>>>,
    faults: Mutex<VecDeque<StoreError>>,
    /// Partners whose rows another transaction holds.
    locked: Mutex<HashSet<u32>>,
    /// A run that waits for a lock gets one of these when the lock is let go.
    unlocked: Semaphore,
    is_away: std::sync::atomic::AtomicBool,
}

impl Doubler {
    fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(permits),
            runs: Mutex::default(),
            faults: Mutex::default(),
            locked: Mutex::default(),
            unlocked: Semaphore::new(0),
            is_away: std::sync::atomic::AtomicBool::new(false),
        })
    }

    fn lock(self: Arc<Self>, partner: u32) -> Arc<Self> {
        self.locked.lock().insert(partner);
        self
    }

    /// Lets go of every lock.
    fn unlock(&self) {
        self.locked.lock().clear();
        self.unlocked.add_permits(1);
    }

    fn is_locked(&self, command: u32) -> bool {
        self.locked.lock().contains(&(command / 100))
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
        if batch.iter().any(|command| self.is_locked(*command)) {
            let waited = tokio::time::timeout(Duration::from_secs(1), self.unlocked.acquire());
            let waited = waited.await.map_err(StoreError::unavailable)?;
            waited.unwrap().forget();
        }
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
        if batch.iter().any(|command| command % 100 >= 90) {
            return Err(StoreError::unavailable("away"));
        }
        Ok(batch.iter().map(|command| command * 2).collect())
    }

    async fn run_unlocked(&self, batch: &[u32]) -> Result<Vec<Option<u32>>, StoreError> {
        let free: Vec<u32> = batch
            .iter()
            .copied()
            .filter(|one| !self.is_locked(*one))
            .collect();
        if free.is_empty() {
            return Ok(vec![None; batch.len()]);
        }
        let mut answers = self.run(&free).await?.into_iter();
        let each = batch
            .iter()
            .map(|one| (!self.is_locked(*one)).then(|| answers.next()));
        Ok(each.map(Option::flatten).collect())
    }

    async fn is_reachable(&self) -> bool {
        !self.is_away.load(std::sync::atomic::Ordering::SeqCst)
    }
}

type Answers = Vec<Result<u32, StoreError>>;

fn lane(runner: &Arc<Doubler>, queue: usize) -> Arc<BatchQueue<u32, u32>> {
    let options = BatchQueueOptions {
        queue,
        ..BatchQueueOptions::new("test")
    };
    Arc::new(BatchQueue::start(
        options,
        whose,
        runner.clone(),
        Arc::new(Ones),
    ))
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
async fn submit(lane: &Arc<BatchQueue<u32, u32>>, commands: &[u32]) -> Submitted {
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

/// Commits a batch, and then panics in its first run, as often as it is told.
struct Forgetful {
    committed: Mutex<Vec<u32>>,
    runs: Mutex<usize>,
    panics: usize,
}

#[async_trait]
impl BatchRunner<u32, u32> for Forgetful {
    async fn run(&self, batch: &[u32]) -> Result<Vec<u32>, StoreError> {
        let run = {
            let mut runs = self.runs.lock();
            *runs += 1;
            *runs
        };
        let mut committed = self.committed.lock().clone();
        committed.extend(
            batch
                .iter()
                .filter(|one| !self.committed.lock().contains(one)),
        );
        *self.committed.lock() = committed;
        assert!(run > self.panics, "after the commit");
        Ok(batch.iter().map(|command| command * 2).collect())
    }

    async fn run_unlocked(&self, batch: &[u32]) -> Result<Vec<Option<u32>>, StoreError> {
        let answers = self.run(batch).await?;
        Ok(answers.into_iter().map(Some).collect())
    }
}

async fn forgotten(panics: usize, options: BatchQueueOptions) -> (String, usize) {
    let runner = Arc::new(Forgetful {
        committed: Mutex::default(),
        runs: Mutex::default(),
        panics,
    });
    let lane = BatchQueue::start(options, whose, runner.clone(), Arc::new(Ones));
    let answer = words(&vec![lane.submit(4).await]).remove(0);
    lane.shut_down().await;
    assert_eq!(*runner.committed.lock(), [4]);
    let runs = *runner.runs.lock();
    (answer, runs)
}

#[tokio::test]
async fn repeatable_command_runs_once_more_after_a_panic() {
    let repeatable = BatchQueueOptions::new("test").repeatable();
    assert_eq!(forgotten(1, repeatable).await, ("8".to_owned(), 2));
    // It may have been committed: the submitter is told so.
    assert_eq!(forgotten(2, repeatable).await, ("unknown".to_owned(), 2));
    let other = BatchQueueOptions::new("test");
    assert_eq!(forgotten(1, other).await, ("unexpected".to_owned(), 1));
}

#[tokio::test]
async fn fault_after_a_panic_leaves_a_repeatable_command_in_doubt() {
    let runner = Doubler::new(0);
    let options = BatchQueueOptions::new("test").repeatable();
    let lane = Arc::new(BatchQueue::start(
        options,
        whose,
        runner.clone(),
        Arc::new(Ones),
    ));
    let first = submit(&lane, &[0]).await;
    let rest = submit(&lane, &[1, 7, 13, 90, 91, 2]).await;
    runner.permits.add_permits(1000);
    answers(first).await;
    let answered = answers(rest).await;
    let unknown = ["unknown"; 5];
    assert_eq!(words(&answered)[0], "2");
    assert_eq!(words(&answered)[1..], unknown);
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
async fn store_that_is_away_is_tried_once_per_batch() {
    let runner = Doubler::new(0);
    runner
        .is_away
        .store(true, std::sync::atomic::Ordering::SeqCst);
    let answered = behind_the_first(&runner, &[90, 1, 191, 92, 293]).await;
    assert_eq!(words(&answered), ["away"; 5]);
    assert_eq!(runner.runs().len(), 2, "the first command, and the batch");
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn failing_partner_alone_is_refused_unrun() {
    let runner = Doubler::new(0);
    let commands = [190, 1, 191, 2, 192, 203];
    let answered = behind_the_first(&runner, &commands).await;
    let expected = ["away", "2", "away", "4", "away", "406"];
    assert_eq!(words(&answered), expected);
    let mut runs = runner.runs();
    runs.retain(|run| run.iter().all(|command| command / 100 == 1));
    assert_eq!(runs, [[190, 191, 192]; 2]);
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn locked_partner_delays_nobody_and_keeps_its_order() {
    let runner = Doubler::new(1000).lock(1);
    let lane = lane(&runner, 1024);
    let begun = Instant::now();
    let held = submit(&lane, &[101, 102]).await;
    for other in [1, 201, 2, 202] {
        assert_eq!(lane.submit(other).await.unwrap(), other * 2);
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "others wait for nothing");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let later = submit(&lane, &[103]).await;
    assert!(held.iter().chain(&later).all(|one| !one.is_finished()));
    assert_eq!(lane.submit(3).await.unwrap(), 6);
    runner.unlock();
    assert_eq!(words(&answers(held).await), ["202", "204"]);
    assert_eq!(words(&answers(later).await), ["206"]);
    let runs = runner.runs().concat().into_iter();
    let of_held: Vec<u32> = runs.filter(|command| command / 100 == 1).collect();
    assert_eq!(of_held, [101, 102, 103]);
    lane.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn partner_locked_for_a_moment_is_run_in_the_lane_again() {
    let runner = Doubler::new(1000).lock(1);
    let lane = lane(&runner, 1024);
    let held = submit(&lane, &[101]).await;
    runner.locked.lock().clear();
    assert_eq!(words(&answers(held).await), ["202"]);
    assert_eq!(runner.unlocked.available_permits(), 0);
    lane.shut_down().await;
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn partner_whose_row_stays_locked_is_refused_after_two_waits() {
    let runner = Doubler::new(1000).lock(1);
    let lane = lane(&runner, 1024);
    let begun = Instant::now();
    let held = submit(&lane, &[101, 102, 103]).await;
    assert_eq!(words(&answers(held).await), ["away"; 3]);
    let waited = begun.elapsed();
    assert!(waited < Duration::from_millis(2100), "{waited:?}");
    runner.unlock();
    assert_eq!(lane.submit(104).await.unwrap(), 208);
    lane.shut_down().await;
}

/// More partners are locked than are waited for at once: each gets its turn.
#[tokio::test(start_paused = true)]
async fn every_locked_partner_gets_its_turn() {
    let runner = Doubler::new(1000);
    let runner = (1..6).fold(runner, Doubler::lock);
    let lane = lane(&runner, 1024);
    let held = submit(&lane, &[101, 201, 301, 401, 501]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    runner.locked.lock().clear();
    runner.unlocked.add_permits(2);
    let doubled = ["202", "402", "602", "802", "1002"];
    assert_eq!(words(&answers(held).await), doubled);
    lane.shut_down().await;
}

// rule: pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn held_partner_does_not_fill_the_queue_for_others() {
    let runner = Doubler::new(1000).lock(1);
    let options = BatchQueueOptions {
        queue: 8,
        held: 2,
        ..BatchQueueOptions::new("test")
    };
    let lane = BatchQueue::start(options, whose, runner.clone(), Arc::new(Ones));
    let lane = Arc::new(lane);
    let held = submit(&lane, &[101, 102, 103, 104, 105, 106, 107, 108, 109]).await;
    let refused = held.iter().filter(|one| one.is_finished()).count();
    assert!((5..=7).contains(&refused), "{refused} of nine are refused");
    assert_eq!(lane.submit(1).await.unwrap(), 2);
    runner.unlock();
    let answered = words(&answers(held).await);
    assert_eq!(answered[..2], ["202", "204"]);
    assert!(
        answered[4..].iter().all(|word| word == "overloaded"),
        "{answered:?}"
    );
    lane.shut_down().await;
}

#[tokio::test]
async fn a_wrong_number_of_answers_is_in_doubt() {
    struct Mute;
    #[async_trait]
    impl BatchRunner<u32, u32> for Mute {
        async fn run(&self, _: &[u32]) -> Result<Vec<u32>, StoreError> {
            Ok(vec![])
        }

        async fn run_unlocked(&self, _: &[u32]) -> Result<Vec<Option<u32>>, StoreError> {
            Ok(vec![])
        }
    }
    let options = BatchQueueOptions::new("test");
    let lane = BatchQueue::start(options, whose, Arc::new(Mute), Arc::new(Ones));
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
