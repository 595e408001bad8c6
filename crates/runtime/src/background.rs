//! Background tasks of a service. They delete expired rows, refresh statistics and recount contingent credits.

mod clock;
mod contingent_credits;
mod idempotency;
mod key_uses;
mod master_key;
mod quotes;
mod statistics;

use std::sync::Arc;
use std::time::Duration;

use coordination::{ConfigCache, KeyUses, directory_cache};
use instruments::faults;
use kernel::{StoreError, causes};
use partner_core::ports::Readiness;
use pools_core::usecases::recount_contingent_credits::RecountContingentCredits;
use providers::HttpRates;

use crate::config::Database;
use crate::gauges;
use crate::open::OpenedBase;
use crate::supervise::Tasks;

pub use idempotency::sweep_idempotency;
pub use quotes::{delete_old_quotes, delete_unused_quotes};

const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Records deleted in one transaction. A pause follows each transaction, because money writes have priority.
const SWEEP_BATCH: u32 = 500;
const SWEEP_PAUSE: Duration = Duration::from_millis(10);
/// Maximum number of transactions in one sweep. The next sweep continues.
const MAX_SWEEP_TRANSACTIONS: u32 = 2000;

/// Starts the background tasks that every service has.
pub(crate) fn spawn_maintenance(
    base: &OpenedBase,
    caches: &[Arc<dyn ConfigCache>],
    uses: &Arc<KeyUses>,
    tasks: &Tasks,
) {
    let (store, caches) = (base.store.clone(), caches.to_vec());
    tasks.start("directory", move |stop| {
        let (store, caches) = (store.clone(), caches.clone());
        async move { directory_cache::watch(&*store, &caches, stop.cancelled()).await }
    });
    let (store, sealer) = (base.store.clone(), base.sealer.clone());
    let clock = Arc::clone(&base.clock);
    tasks.start("master_key", move |stop| {
        master_key::follow(store.clone(), sealer.clone(), Arc::clone(&clock), stop)
    });
    let (store, clock) = (base.store.clone(), Arc::clone(&base.clock));
    let uses = Arc::clone(uses);
    tasks.start("key_uses", move |stop| {
        key_uses::record(store.clone(), Arc::clone(&uses), Arc::clone(&clock), stop)
    });
    let store = base.store.clone();
    tasks.start("statistics", move |stop| {
        statistics::gather(store.clone(), stop)
    });
    let store = base.store.clone();
    tasks.start("clock", move |stop| clock::watch(store.clone(), stop));
    let (store, mode) = (base.store.clone(), base.config.mode);
    tasks.start("commitments", move |stop| {
        let (store, readiness) = (store.clone(), store.clone());
        contingent_credits::recount_all(RecountContingentCredits { store, mode }, readiness, stop)
    });
    if base.config.metrics_listen.is_some() {
        let file = match &base.config.database {
            Database::Sqlite(file) => Some(file.clone()),
            Database::Postgres(_) => None,
        };
        let store = base.store.clone();
        tasks.start("sampling", move |stop| {
            gauges::sample(store.clone(), mode, file.clone(), stop)
        });
    }
}

/// Starts polling each source of rates.
pub(crate) fn follow_rates(rates: &Arc<HttpRates>, tasks: &Tasks) {
    for number in 0..rates.sources() {
        let rates = Arc::clone(rates);
        tasks.start("rates", move |stop| {
            let rates = Arc::clone(&rates);
            async move { rates.follow(number, stop.cancelled()).await }
        });
    }
}

/// Counts and logs the failure of a task.
fn failed(error: &StoreError, message: &str) {
    faults::of_store(error);
    tracing::warn!(error.chain = causes(error), "{message}");
}

/// Whether the transactions of other partners may succeed after this error: it concerns one partner, or the store is ready and has
/// room for them.
pub(crate) async fn concerns_one_partner(error: &StoreError, readiness: &dyn Readiness) -> bool {
    match error {
        StoreError::Unavailable(_) | StoreError::Overloaded | StoreError::CommitUnknown(_) => {
            !error.is_busy() && readiness.ready().await.is_ok()
        }
        StoreError::Retry
        | StoreError::Inconsistent { .. }
        | StoreError::Guard(_)
        | StoreError::Unexpected(_) => true,
    }
}

#[cfg(test)]
mod tests;
