//! Background tasks that a service needs: they restart after a panic, and end on one token.

use std::time::Duration;

use instruments::faults;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Backoff before a panicked task restarts: the first one and the longest one.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// After a task has run for this long, the backoff restarts at its first value.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The background tasks of a service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    /// Ends all of them.
    pub(crate) stop: CancellationToken,
    pub(crate) tracker: TaskTracker,
}

impl Tasks {
    /// Starts a task, which `begin` makes from the token that ends it.
    pub(crate) fn start<F>(
        &self,
        task: &'static str,
        begin: impl Fn(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker
            .spawn(supervised(task, self.stop.clone(), begin));
    }
}

/// Takes a turn at once, and one after each interval, until `stop`. A turn gets what the previous one returned, and the first one
/// `state`.
pub(crate) async fn every<S, F: Future<Output = S>>(
    interval: Duration,
    stop: &CancellationToken,
    mut state: S,
    turn: impl Fn(S) -> F,
) {
    let mut ticks = tokio::time::interval(interval);
    // A slow turn delays the next one.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // No turn begins after `stop`, also if one is due.
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        state = turn(state).await;
    }
}

/// Waits. Returns false as soon as the task has to stop.
pub(crate) async fn rest(pause: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}

/// Runs a task until it ends on `stop`. After a panic it restarts the task with no state of the previous run.
async fn supervised<F>(
    task: &'static str,
    stop: CancellationToken,
    begin: impl Fn(CancellationToken) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    faults::supervised(task);
    let mut backoff = FIRST_BACKOFF;
    loop {
        let began = Instant::now();
        match tokio::spawn(begin(stop.clone())).await {
            Err(end) if end.is_panic() => {}
            Ok(()) | Err(_) => return,
        }
        if began.elapsed() >= STABLE_AFTER {
            backoff = FIRST_BACKOFF;
        }
        faults::begun_anew(task);
        tracing::error!(
            task,
            rest_ms = u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX),
            "A background task panicked; restarting it"
        );
        if !rest(backoff, &stop).await {
            return;
        }
        backoff = backoff.saturating_mul(2).min(LONGEST_BACKOFF);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Turns of 3 s with an interval of 2 s begin at 0 s, 3 s and 6 s, each with the count of the previous one.
    #[tokio::test(start_paused = true)]
    async fn turns_begin_at_once_and_slow_ones_delay_the_next() {
        let stop = CancellationToken::new();
        let began = Instant::now();
        let turns = Mutex::new(Vec::new());
        let turn = |count: u32| {
            let (turns, stop) = (&turns, &stop);
            async move {
                turns
                    .lock()
                    .unwrap()
                    .push((count, began.elapsed().as_secs()));
                tokio::time::sleep(Duration::from_secs(3)).await;
                if count == 2 {
                    stop.cancel();
                }
                count + 1
            }
        };
        every(Duration::from_secs(2), &stop, 0, turn).await;
        assert_eq!(*turns.lock().unwrap(), [(0, 0), (1, 3), (2, 6)]);
    }

    /// A task that panics this many times, each after this long, and then runs until `stop`.
    fn panicking_task(
        times: u32,
        after: Duration,
    ) -> (Arc<AtomicU32>, CancellationToken, impl Future) {
        let begun = Arc::new(AtomicU32::new(0));
        let stop = CancellationToken::new();
        let count = Arc::clone(&begun);
        let task = supervised("panicking_task", stop.clone(), move |stopped| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            async move {
                if number < times {
                    tokio::time::sleep(after).await;
                    panic!("the {number}th time");
                }
                stopped.cancelled().await;
            }
        });
        (begun, stop, task)
    }

    #[tokio::test(start_paused = true)]
    async fn panicked_task_restarts_with_longer_backoff() {
        let (begun, stop, task) = panicking_task(8, Duration::ZERO);
        let began = Instant::now();
        let count = Arc::clone(&begun);
        let watching = tokio::spawn(async move {
            while count.load(Ordering::SeqCst) < 9 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            stop.cancel();
            began.elapsed()
        });
        task.await;
        let took = watching.await.unwrap();
        // The backoffs are 0.2 s, 0.4 s, 0.8 s, 1.6 s, 3.2 s, 6.4 s, then 10 s twice.
        let backoffs = Duration::from_millis(32_600);
        assert!(
            took >= backoffs && took < backoffs + Duration::from_secs(1),
            "{took:?}"
        );
        assert_eq!(begun.load(Ordering::SeqCst), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn task_that_ran_for_a_while_restarts_with_first_backoff() {
        let (begun, stop, task) = panicking_task(5, STABLE_AFTER);
        let began = Instant::now();
        let count = Arc::clone(&begun);
        tokio::spawn(async move {
            while count.load(Ordering::SeqCst) < 6 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            stop.cancel();
        });
        task.await;
        assert!(began.elapsed() < STABLE_AFTER * 5 + Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn stop_ends_backoff_and_starts_no_task() {
        let (begun, stop, task) = panicking_task(100, Duration::ZERO);
        let watching = Arc::clone(&begun);
        tokio::spawn(async move {
            while watching.load(Ordering::SeqCst) < 7 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.cancel();
        });
        task.await;
        assert_eq!(begun.load(Ordering::SeqCst), 7);
    }
}
