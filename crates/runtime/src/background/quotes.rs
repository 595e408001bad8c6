//! Deletes quotes that expired long ago without being executed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Mode, Readable, StoreResult};
use partner_core::ports::Readiness;
use pools_core::ports::QuoteRetention;
use tokio_util::sync::CancellationToken;

use super::{
    MAX_SWEEP_TRANSACTIONS, SWEEP_BATCH, SWEEP_INTERVAL, SWEEP_PAUSE, concerns_one_partner, failed,
};
use crate::supervise::every;

const FAILED: &str = "Failed to delete old quotes";

/// Deletes old quotes of a mode after this retention, each minute, until `stop`.
pub async fn delete_old_quotes(
    store: Arc<dyn QuoteRetention>,
    readiness: Arc<dyn Readiness>,
    of: (Mode, Duration),
    stop: CancellationToken,
) {
    let turn = |()| async {
        match forget(&*store, &*readiness, of, &stop).await {
            Ok(0) => {}
            Ok(deleted) => tracing::debug!(quotes.deleted = deleted, "Old quotes deleted"),
            Err(error) => failed(&error, FAILED),
        }
    };
    every(SWEEP_INTERVAL, &stop, (), turn).await;
}

/// One round over the partners that have old quotes. It stops only between transactions, and continues after a partner that fails.
pub(super) async fn forget(
    store: &dyn QuoteRetention,
    readiness: &dyn Readiness,
    (mode, retention): (Mode, Duration),
    stop: &CancellationToken,
) -> StoreResult<u64> {
    let mut deleted = 0_u64;
    let mut without = BTreeSet::new();
    for round in 0..MAX_SWEEP_TRANSACTIONS {
        let overdue = store.quotes_overdue(mode, retention, SWEEP_BATCH).await?;
        let Readable { rows, unreadable } = overdue;
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
            match store.quotes_forget(&who, retention, SWEEP_BATCH).await {
                Ok(forgotten) => deleted = deleted.saturating_add(forgotten.deleted),
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
