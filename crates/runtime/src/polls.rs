//! Background tasks that ask an external system about what is open there.

use std::fmt;
use std::time::Duration;

use gate_core::error::GateError;
use gate_core::usecases::advance_rails::AdvanceRails;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use instruments::faults;
use kernel::{Mode, StoreError, causes};
use partner_core::Tenant;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::supervise::Ticks;

/// Interval between two polls, objects per poll, and concurrent calls.
const INTERVAL: Duration = Duration::from_millis(200);
const MAX_PER_POLL: u32 = 128;
const MAX_CONCURRENT: usize = 16;

/// Asks the rail about its open records, until `stop`.
pub(crate) async fn settle_rails(settling: AdvanceRails, mode: Mode, stop: CancellationToken) {
    let due = || settling.due(mode, MAX_PER_POLL);
    let advance = |(who, id): (Tenant, _)| {
        let settling = settling.clone();
        async move { settling.advance(&who, id).await }
    };
    poll("the rail about an open record", due, advance, &stop).await;
}

/// Asks the verifier about pending verifications, until `stop`.
pub(crate) async fn settle_verifications(
    settling: AdvanceVerifications,
    mode: Mode,
    stop: CancellationToken,
) {
    let due = || settling.due(mode, MAX_PER_POLL);
    let advance = |(who, id): (Tenant, _)| {
        let settling = settling.clone();
        async move { settling.advance(&who, id).await }
    };
    let what = "the verifier about a pending verification";
    poll(what, due, advance, &stop).await;
}

/// Asks about the due objects, several at a time, until `stop`. One that fails does not delay the others.
async fn poll<T: Send + 'static, D, A>(
    what: &'static str,
    due: impl Fn() -> D,
    advance: impl Fn(T) -> A,
    stop: &CancellationToken,
) where
    D: Future<Output = Result<Vec<T>, StoreError>>,
    A: Future<Output = Result<(), GateError>> + Send + 'static,
{
    let mut ticks = Ticks::new(INTERVAL, stop);
    while ticks.next().await {
        let mut due = match due().await {
            Ok(due) => due.into_iter(),
            Err(error) => {
                log_failure(what, &GateError::Store(error));
                continue;
            }
        };
        let mut calls = JoinSet::new();
        loop {
            let free = MAX_CONCURRENT.saturating_sub(calls.len());
            if !stop.is_cancelled() {
                for one in due.by_ref().take(free) {
                    calls.spawn(advance(one));
                }
            }
            match calls.join_next().await {
                None => break,
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => log_failure(what, &error),
                Some(Err(end)) if end.is_panic() => std::panic::resume_unwind(end.into_panic()),
                Some(Err(_)) => {}
            }
        }
    }
}

fn log_failure(what: impl fmt::Display, error: &GateError) {
    if let GateError::Store(error) = error {
        faults::of_store(error);
    }
    tracing::warn!(
        error.chain = causes(error),
        "Failed to ask {what}; it is asked again"
    );
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    /// The duration of calls that fail.
    const FAILING: Duration = Duration::ZERO;

    /// The durations of the calls that a read finds due.
    type Found = Result<Vec<Duration>, StoreError>;

    /// Counts calls.
    #[derive(Default)]
    struct Calls {
        running: AtomicUsize,
        most_running: AtomicUsize,
        ended: AtomicUsize,
    }

    impl Calls {
        async fn call(self: Arc<Self>, duration: Duration) -> Result<(), GateError> {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_running.fetch_max(running, Ordering::SeqCst);
            tokio::time::sleep(duration).await;
            self.running.fetch_sub(1, Ordering::SeqCst);
            self.ended.fetch_add(1, Ordering::SeqCst);
            if duration == FAILING {
                return Err(GateError::Store(StoreError::Overloaded));
            }
            Ok(())
        }

        fn ended(&self) -> usize {
            self.ended.load(Ordering::SeqCst)
        }
    }

    /// Polls until `stop`. The reads have these results, and then find nothing due.
    async fn poll_all(
        calls: &Arc<Calls>,
        reads: impl IntoIterator<Item = Found>,
        stop: &CancellationToken,
    ) {
        let reads: Mutex<VecDeque<Found>> = Mutex::new(reads.into_iter().collect());
        let due = || {
            let next = reads.lock().unwrap().pop_front();
            std::future::ready(next.unwrap_or_else(|| Ok(Vec::new())))
        };
        let advance = |duration: Duration| Arc::clone(calls).call(duration);
        poll("a test", due, advance, stop).await;
    }

    #[tokio::test(start_paused = true)]
    async fn ended_call_frees_place_for_next_call() {
        let (calls, stop) = (Arc::new(Calls::default()), CancellationToken::new());
        // The slow call takes one place, and the others share the rest for 3 s.
        let mut due = vec![60 * SECOND];
        due.extend([SECOND; 3 * (MAX_CONCURRENT - 1)]);
        let watching = async {
            tokio::time::sleep(3 * SECOND + SECOND / 2).await;
            assert_eq!(calls.ended(), 3 * (MAX_CONCURRENT - 1));
            stop.cancel();
        };
        tokio::join!(poll_all(&calls, [Ok(due)], &stop), watching);
        assert_eq!(calls.most_running.load(Ordering::SeqCst), MAX_CONCURRENT);
        assert_eq!(calls.ended(), 3 * (MAX_CONCURRENT - 1) + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn stop_starts_no_call_and_waits_for_running_calls() {
        let (calls, stop) = (Arc::new(Calls::default()), CancellationToken::new());
        let due = vec![SECOND; 2 * MAX_CONCURRENT];
        let stopping = async {
            tokio::time::sleep(SECOND / 2).await;
            stop.cancel();
        };
        tokio::join!(poll_all(&calls, [Ok(due)], &stop), stopping);
        assert_eq!(calls.running.load(Ordering::SeqCst), 0);
        assert_eq!(calls.ended(), MAX_CONCURRENT);
    }

    #[tokio::test(start_paused = true)]
    async fn poll_continues_after_failed_reads_and_calls() {
        let (calls, stop) = (Arc::new(Calls::default()), CancellationToken::new());
        let failed = StoreError::unavailable("the disk is gone");
        let reads = [Err(failed), Ok(vec![FAILING, SECOND]), Ok(vec![SECOND])];
        let stopping = async {
            tokio::time::sleep(5 * SECOND).await;
            stop.cancel();
        };
        tokio::join!(poll_all(&calls, reads, &stop), stopping);
        assert_eq!(calls.ended(), 3);
    }
}
