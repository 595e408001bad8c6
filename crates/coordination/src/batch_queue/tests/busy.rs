//! A busy store: a full pool of connections, or a locked database. It concerns every partner.

use super::*;

fn full_pool() -> StoreError {
    StoreError::busy("every connection is in use")
}

fn locked_row() -> StoreError {
    StoreError::unavailable("the row is locked")
}

/// Makes the error of a run.
type Failing = fn() -> StoreError;

/// Submits commands that form one batch, and lets its runs fail with these errors first. Returns the outcomes and the batch's runs.
async fn run_failing(
    doubler: Arc<Doubler>,
    commands: &[u32],
    errors: impl IntoIterator<Item = StoreError>,
) -> (Vec<String>, Vec<Vec<u32>>) {
    let queue = doubling(&doubler, 1024);
    let first = submit(&queue, &[0]).await;
    let batch = submit(&queue, commands).await;
    doubler.permits.add_permits(1);
    outcomes(first).await;
    let doubler = doubler.fails_with(errors);
    doubler.permits.add_permits(100_000);
    let outcomes = outcomes(batch).await;
    // The store is free again, and no partner is held.
    doubler.errors.lock().clear();
    for command in commands {
        queue.submit(*command).await.unwrap();
    }
    queue.shut_down().await;
    let mut runs = doubler.runs();
    runs.truncate(runs.len() - commands.len());
    (words(&outcomes), runs.split_off(1))
}

// rule: pools.transact.busy
#[tokio::test(start_paused = true)]
async fn batch_runs_again_as_a_whole_after_the_store_was_busy() {
    let commands = [101, 2, 102, 201];
    let busy = [full_pool(), full_pool(), full_pool()];
    let (outcomes, runs) = run_failing(Doubler::new(0), &commands, busy).await;
    assert_eq!(outcomes, ["202", "4", "204", "402"]);
    assert_eq!(runs, vec![commands.to_vec(); 4]);
}

#[tokio::test(start_paused = true)]
async fn single_command_runs_again_after_the_store_was_busy() {
    let busy = [full_pool(), full_pool(), full_pool()];
    let (outcomes, runs) = run_failing(Doubler::new(0), &[101], busy).await;
    assert_eq!(outcomes, ["202"]);
    assert_eq!(runs, vec![vec![101]; 4]);
}

// rule: pools.transact.busy
#[tokio::test(start_paused = true)]
async fn store_that_stays_busy_refuses_the_whole_batch_in_time() {
    let commands = [101, 2, 102];
    let busy = std::iter::repeat_with(full_pool).take(20_000);
    let started = Instant::now();
    let (outcomes, runs) = run_failing(Doubler::new(0), &commands, busy).await;
    let waited = started.elapsed();
    assert_eq!(outcomes, ["away"; 3]);
    assert!(runs.len() > 1, "{runs:?}");
    assert!(runs.iter().all(|run| *run == commands), "{runs:?}");
    let limits = LONGEST_BUSY..LONGEST_BUSY + LONGEST_BACKOFF * 2;
    assert!(limits.contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn busy_store_that_is_not_ready_is_tried_once_per_batch() {
    let doubler = Doubler::new(0);
    doubler.is_unavailable.store(true, Ordering::SeqCst);
    let commands = [101, 2, 102];
    let (outcomes, runs) = run_failing(doubler, &commands, [full_pool()]).await;
    assert_eq!(outcomes, ["away"; 3]);
    assert_eq!(runs, [commands]);
}

// rule: pools.transact.busy
#[tokio::test(start_paused = true)]
async fn busy_store_counts_against_no_command_that_runs_alone() {
    let commands = [101, 102, 103, 2];
    let errors = [
        StoreError::Guard("the batch".to_owned()),
        full_pool(),
        full_pool(),
        full_pool(),
    ];
    let (outcomes, runs) = run_failing(Doubler::new(0), &commands, errors).await;
    assert_eq!(outcomes, ["202", "204", "206", "4"]);
    let alone = runs[1..].concat();
    assert_eq!(alone, [101, 101, 101, 101, 102, 103, 2]);
}

/// Submits a command of partner 1, whose row is locked: each separate run fails after a second with the next of these errors, and
/// the run after the last one has the lock. Returns the outcome and the number of separate runs.
async fn held(errors: &[Failing]) -> (String, usize) {
    let mut waits = errors.to_vec();
    waits.reverse();
    let (waits, runs) = (Arc::new(Mutex::new(waits)), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&runs);
    let options = BatchQueueOptions::new("test");
    let queue = start(options, Doubler::new(0), move |batch, locks| {
        let (waits, counted) = (Arc::clone(&waits), Arc::clone(&counted));
        async move {
            let is_free = |one: &u32| locks == Locks::Wait || one / 100 != 1;
            if locks == Locks::Wait {
                *counted.lock() += 1;
                let error = waits.lock().pop();
                if let Some(error) = error {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    return Err(error());
                }
            }
            Ok(batch
                .iter()
                .map(|one| is_free(one).then_some(one * 2))
                .collect())
        }
    });
    let held = submit(&queue, &[101]).await;
    for other in [2, 202] {
        assert_eq!(queue.submit(other).await.unwrap(), other * 2);
    }
    assert!(!held[0].is_finished(), "other partners do not wait");
    let outcome = words(&outcomes(held).await).remove(0);
    queue.shut_down().await;
    let runs: usize = *runs.lock();
    (outcome, runs)
}

// rule: pools.transact.busy, pools.transact.isolated
#[tokio::test(start_paused = true)]
async fn held_partner_is_refused_for_its_locked_row_and_not_for_a_full_pool() {
    let [full, locked]: [Failing; 2] = [full_pool, locked_row];
    for (errors, outcome, runs) in [
        (vec![locked, locked], "away", 2),
        (vec![full, full], "202", 3),
        (vec![full, locked, full], "202", 4),
        (vec![locked, full, locked], "away", 3),
        // Nothing waits for longer than five seconds.
        (vec![full; 9], "away", 5),
    ] {
        assert_eq!(held(&errors).await, (outcome.to_owned(), runs));
    }
}
