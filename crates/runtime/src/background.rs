//! What a service does beside answering: keeping tables bounded and quick, and counts true.

use std::sync::Arc;
use std::time::Duration;

use coordination::DirectoryCache;
use gate_core::rail::RailId;
use gate_core::usecases::expiry::{Expiring, ExpiryError};
use gate_core::usecases::settling::{SettleError, Settling};
use instruments::faults;
use kernel::{Mode, StoreError, causes};
use partner_core::Tenant;
use partner_core::ports::Housekeeping;
use pools_core::usecases::recount::Recounting;
use providers::HttpRates;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Database;
use crate::open::Foundation;
use crate::sampling::sample;
use crate::supervise::supervised;

const EVERY: Duration = Duration::from_secs(60);
/// A table can grow much in this time.
const GROWTH: Duration = Duration::from_secs(2);
/// Records are kept this much longer than they count, so that the sweep never races a look-up.
const MARGIN: Duration = Duration::from_secs(60);
/// Records deleted in one transaction, and the pause after it: writes of money go first.
const AT_ONCE: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);
/// How often it is looked whether the rail is to be asked, about how many records a look, and about how
/// many at once.
const RAILS: Duration = Duration::from_millis(200);
const RAILS_A_LOOK: u32 = 128;
const RAILS_AT_ONCE: usize = 16;
/// Transactions in one sweep; what is left waits for the next.
const ROUNDS: u32 = 2000;

/// Starts what a service does beside answering, until `stop`.
pub(crate) fn keep_house(
    base: &Foundation,
    cache: &Arc<DirectoryCache>,
    background: &TaskTracker,
    stop: &CancellationToken,
) {
    let (watched, stopping) = (Arc::clone(cache), stop.clone());
    background.spawn(supervised("directory", stop.clone(), move || {
        let (watched, stopping) = (Arc::clone(&watched), stopping.clone());
        async move { watched.watch(stopping.cancelled()).await }
    }));
    let (store, stopping) = (base.store.clone(), stop.clone());
    let kept = base.config.idempotency_ttl;
    background.spawn(supervised("idempotency_sweep", stop.clone(), move || {
        sweep_idempotency(store.clone(), kept, stopping.clone())
    }));
    let (store, stopping) = (base.store.clone(), stop.clone());
    background.spawn(supervised("statistics", stop.clone(), move || {
        gather_statistics(store.clone(), stopping.clone())
    }));
    let (store, mode, stopping) = (base.store.clone(), base.config.mode, stop.clone());
    background.spawn(supervised("commitments", stop.clone(), move || {
        let store = store.clone();
        recount_commitments(Recounting { store, mode }, stopping.clone())
    }));
    if base.config.metrics_listen.is_some() {
        let file = match &base.config.database {
            Database::Sqlite(file) => Some(file.clone()),
            Database::Postgres(_) => None,
        };
        let (store, stopping) = (base.store.clone(), stop.clone());
        background.spawn(supervised("sampling", stop.clone(), move || {
            sample(store.clone(), mode, file.clone(), stopping.clone())
        }));
    }
}

/// Starts asking each source of rates, until `stop`.
pub(crate) fn follow_rates(
    rates: &Arc<HttpRates>,
    background: &TaskTracker,
    stop: &CancellationToken,
) {
    for number in 0..rates.sources() {
        let (rates, stopping) = (Arc::clone(rates), stop.clone());
        background.spawn(supervised("rates", stop.clone(), move || {
            let (rates, stopping) = (Arc::clone(&rates), stopping.clone());
            async move { rates.follow(number, stopping.cancelled()).await }
        }));
    }
}

/// Deletes idempotency records that no longer count, each minute, until `stop`.
async fn sweep_idempotency(store: Arc<dyn Housekeeping>, kept: Duration, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match sweep(&*store, kept, &stop).await {
            Ok(0) => {}
            Ok(deleted) => {
                tracing::debug!(idempotency.swept = deleted, "Idempotency records swept");
            }
            Err(fault) => {
                faults::of_store(&fault);
                tracing::warn!(
                    error.chain = causes(&fault),
                    "Failed to sweep idempotency records"
                );
            }
        }
    }
}

/// Has the store look again at tables that have grown, every few seconds, until `stop`.
async fn gather_statistics(store: Arc<dyn Housekeeping>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(GROWTH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match store.gather_statistics().await {
            Ok(0) => {}
            Ok(tables) => tracing::debug!(tables.gathered = tables, "Statistics gathered"),
            Err(fault) => {
                faults::of_store(&fault);
                tracing::warn!(error.chain = causes(&fault), "Failed to gather statistics");
            }
        }
    }
}

/// Counts anew what accounts are committed to, each minute, until `stop`.
async fn recount_commitments(recounting: Recounting, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match recounting.recount().await {
            Ok(0) => {}
            Ok(counted) => {
                tracing::debug!(accounts.counted = counted, "Commitments counted anew");
            }
            Err(fault) => {
                faults::of_store(&fault);
                tracing::warn!(error.chain = causes(&fault), "Failed to count commitments");
            }
        }
    }
}

/// Expires gate sessions that nobody has read since they were due, until `stop`.
pub(crate) async fn sweep_sessions(
    sessions: Expiring,
    mode: Mode,
    every: Duration,
    stop: CancellationToken,
) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match expire(&sessions, mode, &stop).await {
            Ok(0) => {}
            Ok(expired) => tracing::debug!(sessions.expired = expired, "Sessions expired"),
            Err(fault) => {
                if let ExpiryError::Store(fault) = &fault {
                    faults::of_store(fault);
                }
                tracing::warn!(error.chain = causes(&fault), "Failed to expire sessions");
            }
        }
    }
}

/// One sweep. It stops between batches, never in the middle of a transaction.
async fn expire(
    sessions: &Expiring,
    mode: Mode,
    stop: &CancellationToken,
) -> Result<u64, ExpiryError> {
    let mut expired = 0_u64;
    for _ in 0..ROUNDS {
        let found = sessions.sweep(mode).await?;
        expired = expired.saturating_add(found);
        if found == 0 || stop.is_cancelled() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(expired)
}

/// Asks the rail about the records that are under way, until `stop`.
pub(crate) async fn settle_rails(settling: Settling, mode: Mode, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(RAILS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let due = match settling.due(mode, RAILS_A_LOOK).await {
            Ok(due) => due,
            Err(fault) => {
                unsettled(&SettleError::Store(fault));
                continue;
            }
        };
        for records in due.chunks(RAILS_AT_ONCE) {
            if stop.is_cancelled() {
                return;
            }
            pursue(&settling, records).await;
        }
    }
}

/// Asks about some records at once. One that cannot be settled holds up no other.
async fn pursue(settling: &Settling, records: &[(Tenant, RailId)]) {
    let mut under_way = JoinSet::new();
    for (who, id) in records.iter().cloned() {
        let settling = settling.clone();
        under_way.spawn(async move { settling.pursue(&who, id).await });
    }
    while let Some(ended) = under_way.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => unsettled(&fault),
            Err(end) if end.is_panic() => std::panic::resume_unwind(end.into_panic()),
            Err(_) => {}
        }
    }
}

fn unsettled(fault: &SettleError) {
    if let SettleError::Store(fault) = fault {
        faults::of_store(fault);
    }
    tracing::warn!(
        error.chain = causes(fault),
        "Failed to settle what a rail has under way"
    );
}

/// One sweep. It stops between transactions, never in the middle of one.
async fn sweep(
    store: &dyn Housekeeping,
    kept: Duration,
    stop: &CancellationToken,
) -> Result<u64, StoreError> {
    let age = kept.saturating_add(MARGIN);
    let mut deleted = 0_u64;
    for _ in 0..ROUNDS {
        let now = store.idempotency_sweep(age, AT_ONCE).await?;
        deleted = deleted.saturating_add(now);
        if now < u64::from(AT_ONCE) || stop.is_cancelled() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use async_trait::async_trait;

    use super::*;

    /// Holds this many records that are due.
    struct Records(AtomicU64);

    #[async_trait]
    impl Housekeeping for Records {
        async fn idempotency_sweep(&self, age: Duration, limit: u32) -> Result<u64, StoreError> {
            let due = Duration::from_secs(3660);
            assert_eq!(age, due, "an hour kept, a minute's margin");
            let left = self.0.load(Ordering::SeqCst);
            let deleted = left.min(u64::from(limit));
            self.0.store(left - deleted, Ordering::SeqCst);
            Ok(deleted)
        }

        async fn gather_statistics(&self) -> Result<u64, StoreError> {
            Ok(0)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn everything_due_goes_and_stopping_is_orderly() {
        let records = Arc::new(Records(AtomicU64::new(1200)));
        let stop = CancellationToken::new();
        let hour = Duration::from_secs(3600);
        let sweeping = sweep_idempotency(records.clone(), hour, stop.clone());
        let sweeping = tokio::spawn(sweeping);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(records.0.load(Ordering::SeqCst), 0);
        records.0.store(3, Ordering::SeqCst);
        tokio::time::sleep(EVERY).await;
        assert_eq!(records.0.load(Ordering::SeqCst), 0);
        stop.cancel();
        sweeping.await.unwrap();
    }
}
