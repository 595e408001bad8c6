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
