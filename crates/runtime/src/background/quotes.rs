//! Deletes quotes that are not needed any longer: of the pools those that expired long ago without being executed, of the gate those of
//! the widget that were not redeemed when their session ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gate_core::ports::UnusedQuotes;
use kernel::{Mode, Readable, StoreResult};
use partner_core::Tenant;
use partner_core::ports::Readiness;
use pools_core::ports::QuoteRetention;
use tokio_util::sync::CancellationToken;

use super::{
    MAX_SWEEP_TRANSACTIONS, SWEEP_BATCH, SWEEP_INTERVAL, SWEEP_PAUSE, concerns_one_partner, failed,
};
use crate::supervise::every;

/// Interval between two deletions of unused quotes, so that they are gone within a minute after the end of their session.
const UNUSED_INTERVAL: Duration = Duration::from_secs(30);
const FAILED: &str = "Failed to delete old quotes";

/// Deletes old quotes of a mode after this retention, each minute, until `stop`.
pub async fn delete_old_quotes(
    store: Arc<dyn QuoteRetention>,
    readiness: Arc<dyn Readiness>,
    of: (Mode, Duration),
    stop: CancellationToken,
) {
    let turn = |()| async { log(forget(&*store, &*readiness, of, &stop).await) };
    every(SWEEP_INTERVAL, &stop, (), turn).await;
}

/// Deletes unused quotes of a mode's ended sessions, until `stop`.
pub async fn delete_unused_quotes(
    store: Arc<dyn UnusedQuotes>,
    readiness: Arc<dyn Readiness>,
    mode: Mode,
    stop: CancellationToken,
) {
    let turn = |()| async {
        let due = || store.unused_quotes_due(mode, SWEEP_BATCH);
        let delete = |who: Tenant| {
            let store = &store;
            async move { store.unused_quotes_delete(&who, SWEEP_BATCH).await }
        };
        log(of_each_partner(due, delete, &*readiness, &stop).await);
    };
    every(UNUSED_INTERVAL, &stop, (), turn).await;
}

fn log(round: StoreResult<u64>) {
    match round {
        Ok(0) => {}
        Ok(deleted) => tracing::debug!(quotes.deleted = deleted, "Old quotes deleted"),
        Err(error) => failed(&error, FAILED),
    }
}

/// One round over the partners that have old quotes.
pub(super) async fn forget(
    store: &dyn QuoteRetention,
    readiness: &dyn Readiness,
    (mode, retention): (Mode, Duration),
    stop: &CancellationToken,
) -> StoreResult<u64> {
    let due = || store.quotes_overdue(mode, retention, SWEEP_BATCH);
    let delete = |who: Tenant| async move {
        let forgotten = store.quotes_forget(&who, retention, SWEEP_BATCH).await;
        forgotten.map(|forgotten| forgotten.deleted)
    };
    of_each_partner(due, delete, readiness, stop).await
}

/// One round over the partners that have quotes to delete: one transaction of each, then the next one of each, until no partner has any.
/// It stops only between transactions, and continues after a partner that fails.
async fn of_each_partner<D, F>(
    due: impl Fn() -> D,
    delete: impl Fn(Tenant) -> F,
    readiness: &dyn Readiness,
    stop: &CancellationToken,
) -> StoreResult<u64>
where
    D: Future<Output = StoreResult<Readable<Tenant>>>,
    F: Future<Output = StoreResult<u64>>,
{
    let mut deleted = 0_u64;
    let mut without = BTreeSet::new();
    for round in 0..MAX_SWEEP_TRANSACTIONS {
        let Readable { rows, unreadable } = due().await?;
        if round == 0 {
            unreadable.iter().for_each(|error| failed(error, FAILED));
        }
        let mut is_done = true;
        for who in rows {
            if without.contains(&who) {
                continue;
            }
            if stop.is_cancelled() {
                return Ok(deleted);
            }
            is_done = false;
            match delete(who.clone()).await {
                Ok(more) => deleted = deleted.saturating_add(more),
                Err(error) => {
                    if !concerns_one_partner(&error, readiness).await {
                        return Err(error);
                    }
                    failed(&error, FAILED);
                    without.insert(who);
                }
            }
            tokio::time::sleep(SWEEP_PAUSE).await;
        }
        if is_done {
            break;
        }
    }
    Ok(deleted)
}
