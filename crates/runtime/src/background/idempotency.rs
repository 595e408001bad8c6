//! Deletes expired idempotency records.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Mode, StoreResult};
use partner_core::events::Service;
use partner_core::ports::{KeySweep, Maintenance};
use tokio_util::sync::CancellationToken;

use super::{MAX_SWEEP_TRANSACTIONS, SWEEP_BATCH, SWEEP_INTERVAL, SWEEP_PAUSE, failed};
use crate::supervise::every;

/// Records are kept this much longer than they are valid, so that a sweep never deletes a record that a look-up just found valid.
pub(super) const SWEEP_GRACE: Duration = Duration::from_secs(60);
/// Sweeps until one starts from the beginning: earlier sweeps skip records that were stored with a longer expiry.
const SWEEPS_UNTIL_RESTART: u64 = 60;

/// Deletes expired idempotency records of a mode and service, each minute, until `stop`.
pub async fn sweep_idempotency(
    store: Arc<dyn Maintenance>,
    (mode, service): (Mode, Service),
    ttl: Duration,
    stop: CancellationToken,
) {
    let sweep = KeySweep {
        mode,
        service,
        after: None,
        age: ttl.saturating_add(SWEEP_GRACE),
        grace: SWEEP_GRACE,
    };
    let turn = |progress| sweep_on(&*store, progress, &stop);
    every(SWEEP_INTERVAL, &stop, (sweep, false, 0), turn).await;
}

/// The next sweep, whether an earlier one left records that expire later, and the number of sweeps.
type Progress = (KeySweep, bool, u64);

async fn sweep_on(
    store: &dyn Maintenance,
    (mut sweep, mut left, sweeps): Progress,
    stop: &CancellationToken,
) -> Progress {
    if left && sweeps.is_multiple_of(SWEEPS_UNTIL_RESTART) {
        (sweep.after, left) = (None, false);
    }
    match sweep_keys(store, &mut sweep, &mut left, stop).await {
        Ok(0) => {}
        Ok(deleted) => tracing::debug!(idempotency.swept = deleted, "Idempotency records swept"),
        Err(error) => failed(&error, "Failed to sweep idempotency records"),
    }
    (sweep, left, sweeps.saturating_add(1))
}

/// One sweep of idempotency records, from the end of the previous one. It stops only between transactions.
pub(super) async fn sweep_keys(
    store: &dyn Maintenance,
    sweep: &mut KeySweep,
    left: &mut bool,
    stop: &CancellationToken,
) -> StoreResult<u64> {
    let mut deleted = 0_u64;
    for _ in 0..MAX_SWEEP_TRANSACTIONS {
        let swept = store.idempotency_sweep(sweep, SWEEP_BATCH).await?;
        deleted = deleted.saturating_add(swept.deleted);
        sweep.after = Some(swept.reached);
        *left |= swept.left;
        if !swept.more || stop.is_cancelled() {
            break;
        }
        tokio::time::sleep(SWEEP_PAUSE).await;
    }
    Ok(deleted)
}
