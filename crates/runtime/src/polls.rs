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
