//! The background task that asks the verifier about pending verifications.

use std::time::Duration;

use gate_core::error::GateError;
use gate_core::session::SessionId;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use instruments::faults;
use kernel::{Mode, causes};
use partner_core::Tenant;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Interval between two polls of the verifier, verifications per poll, and concurrent calls.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const MAX_PER_POLL: u32 = 128;
const MAX_CONCURRENT: usize = 16;

/// Asks the verifier about pending verifications, until `stop`.
pub(crate) async fn settle_verifications(
    advancing: AdvanceVerifications,
    mode: Mode,
    stop: CancellationToken,
) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let due = match advancing.due(mode, MAX_PER_POLL).await {
            Ok(due) => due,
            Err(error) => {
                log_failure(&GateError::Store(error));
                continue;
            }
        };
        for sessions in due.chunks(MAX_CONCURRENT) {
            if stop.is_cancelled() {
                return;
            }
            advance_all(&advancing, sessions).await;
        }
    }
}

/// Asks about several verifications concurrently. A failing one does not delay the others.
async fn advance_all(advancing: &AdvanceVerifications, sessions: &[(Tenant, SessionId)]) {
    let mut calls = JoinSet::new();
    for (who, id) in sessions.iter().cloned() {
        let advancing = advancing.clone();
        calls.spawn(async move { advancing.advance(&who, id).await });
    }
    while let Some(ended) = calls.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => log_failure(&error),
            Err(end) if end.is_panic() => std::panic::resume_unwind(end.into_panic()),
            Err(_) => {}
        }
    }
}

fn log_failure(error: &GateError) {
    if let GateError::Store(error) = error {
        faults::of_store(error);
    }
    tracing::warn!(
        error.chain = causes(error),
        "Failed to ask the verifier about a pending verification; it is asked again"
    );
}
