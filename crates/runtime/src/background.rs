//! Background tasks of a service. They delete expired rows, refresh statistics and recount contingent credits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use coordination::{ConfigCache, KeyUses, directory_cache};
use instruments::faults;
use kernel::{Asset, Clock, Mode, Readable, StoreError, causes};
use partner_core::Tenant;
use partner_core::clock::ClockJump;
use partner_core::events::Service;
use partner_core::key::KeyUse;
use partner_core::ports::{ClockGuard, KeySweep, Maintenance, PartnerStore, Readiness};
use partner_core::sealing::{Fingerprint, Sealer};
use pools_core::ports::QuoteRetention;
use pools_core::usecases::recount_contingent_credits::RecountContingentCredits;
use providers::HttpRates;
use tokio_util::sync::CancellationToken;

use crate::config::Database;
use crate::gauges::sample;
use crate::open::OpenedBase;
use crate::store::Store;
use crate::supervise::{Tasks, every};

const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Records deleted in one transaction. A pause follows each transaction, because money writes have priority.
const SWEEP_BATCH: u32 = 500;
const SWEEP_PAUSE: Duration = Duration::from_millis(10);
/// Maximum number of transactions in one sweep. The next sweep continues.
const MAX_SWEEP_TRANSACTIONS: u32 = 2000;
/// Records are kept this much longer than they are valid, so that a sweep never deletes a record that a look-up just found valid.
const SWEEP_GRACE: Duration = Duration::from_secs(60);
/// Sweeps until one starts from the beginning: earlier sweeps skip records that were stored with a longer expiry.
const SWEEPS_UNTIL_RESTART: u64 = 60;
/// Interval between two reads of the current master key.
const MASTER_KEY_INTERVAL: Duration = Duration::from_secs(1);
const FORGET_FAILED: &str = "Failed to delete old quotes";
/// Interval between two writes of key uses. A key's use is stored at most once a minute.
const KEY_USE_INTERVAL: Duration = Duration::from_secs(2);
/// Interval between two refreshes of table statistics. A table can grow much in this time.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(2);
/// Interval between two checks of the store's clock.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);
const RECOUNT_FAILED: &str = "Failed to recount contingent credits";

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
        follow_master_key(store.clone(), sealer.clone(), Arc::clone(&clock), stop)
    });
    let (store, clock) = (base.store.clone(), Arc::clone(&base.clock));
    let uses = Arc::clone(uses);
    tasks.start("key_uses", move |stop| {
        record_key_uses(store.clone(), Arc::clone(&uses), Arc::clone(&clock), stop)
    });
    let store = base.store.clone();
    tasks.start("statistics", move |stop| {
        gather_statistics(store.clone(), stop)
    });
    let store = base.store.clone();
    tasks.start("clock", move |stop| watch_clock(store.clone(), stop));
    let (store, mode) = (base.store.clone(), base.config.mode);
    tasks.start("commitments", move |stop| {
        let (store, readiness) = (store.clone(), store.clone());
        recount_commitments(RecountContingentCredits { store, mode }, readiness, stop)
    });
    if base.config.metrics_listen.is_some() {
        let file = match &base.config.database {
            Database::Sqlite(file) => Some(file.clone()),
            Database::Postgres(_) => None,
        };
        let store = base.store.clone();
        tasks.start("sampling", move |stop| {
            sample(store.clone(), mode, file.clone(), stop)
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
async fn concerns_one_partner(error: &StoreError, readiness: &dyn Readiness) -> bool {
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

/// Follows rotations of the master key, until `stop`.
///
/// Seals only with the key that the database has recently confirmed as current.
async fn follow_master_key(
    store: Arc<dyn PartnerStore>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    sealer.expect_confirmations();
    let turn = |known| confirm(&*store, &sealer, &*clock, known);
    every(MASTER_KEY_INTERVAL, &stop, None, turn).await;
}

/// Confirms the current key. Returns it, or the last one that is `known`.
async fn confirm(
    store: &dyn PartnerStore,
    sealer: &Sealer,
    clock: &dyn Clock,
    known: Option<String>,
) -> Option<String> {
    let asked = clock.elapsed();
    // The watch of the configuration reports an unavailable store.
    let Ok(Some(current)) = store.master_key_fingerprint().await else {
        return known;
    };
    let held = Fingerprint::parse(&current).is_some_and(|key| sealer.confirm(key, asked));
    if !held && known.as_deref() != Some(current.as_str()) {
        tracing::error!(
            master_key.fingerprint = current,
            "The database's current master key is not configured: nothing that has to be encrypted is stored. Add the key \
             to PENSTOCK_MASTER_KEY or the key file beside the older one, and restart"
        );
    }
    Some(current)
}

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
async fn sweep_keys(
    store: &dyn Maintenance,
    sweep: &mut KeySweep,
    left: &mut bool,
    stop: &CancellationToken,
) -> Result<u64, StoreError> {
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

/// Deletes old quotes of a mode after this retention, each minute, until `stop`.
pub async fn forget_quotes(
    store: Arc<dyn QuoteRetention>,
    readiness: Arc<dyn Readiness>,
    of: (Mode, Duration),
    stop: CancellationToken,
) {
    let turn = |()| async {
        match forget(&*store, &*readiness, of, &stop).await {
            Ok(0) => {}
            Ok(deleted) => tracing::debug!(quotes.deleted = deleted, "Old quotes deleted"),
            Err(error) => failed(&error, FORGET_FAILED),
        }
    };
    every(SWEEP_INTERVAL, &stop, (), turn).await;
}

/// One round over the partners that have old quotes. It stops only between transactions, and continues after a partner that fails.
async fn forget(
    store: &dyn QuoteRetention,
    readiness: &dyn Readiness,
    (mode, retention): (Mode, Duration),
    stop: &CancellationToken,
) -> Result<u64, StoreError> {
    let mut deleted = 0_u64;
    let mut without = BTreeSet::new();
    for round in 0..MAX_SWEEP_TRANSACTIONS {
        let overdue = store.quotes_overdue(mode, retention, SWEEP_BATCH).await?;
        let Readable { rows, unreadable } = overdue;
        if round == 0 {
            unreadable
                .iter()
                .for_each(|error| failed(error, FORGET_FAILED));
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
                    failed(&error, FORGET_FAILED);
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

/// Stores the last uses of keys until `stop`, and the remaining ones then.
async fn record_key_uses(
    store: Arc<dyn Store>,
    uses: Arc<KeyUses>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let turn = |()| async {
        let due = uses.due(clock.now());
        uses.restore(&store_uses(&*store, &*store, due).await);
    };
    every(KEY_USE_INTERVAL, &stop, (), turn).await;
    turn(()).await;
}

/// Stores uses, and returns those that could not be stored. They are stored together, or, if that fails, partner by partner, because
/// the row of one partner may be locked.
async fn store_uses(
    store: &dyn Maintenance,
    readiness: &dyn Readiness,
    due: Vec<KeyUse>,
) -> Vec<KeyUse> {
    if due.is_empty() {
        return due;
    }
    let Err(error) = store.key_uses_record(&due).await else {
        return Vec::new();
    };
    failed(&error, "Failed to store the last use of keys");
    let mut of_partners: BTreeMap<Tenant, Vec<KeyUse>> = BTreeMap::new();
    for one in &due {
        let of_partner = of_partners.entry(one.who.clone()).or_default();
        of_partner.push(one.clone());
    }
    if of_partners.len() == 1 || !concerns_one_partner(&error, readiness).await {
        return due;
    }
    let mut unstored = Vec::new();
    for of_partner in of_partners.into_values() {
        if let Err(error) = store.key_uses_record(&of_partner).await {
            faults::of_store(&error);
            unstored.extend(of_partner);
        }
    }
    unstored
}

/// Refreshes the statistics of tables that have grown, every few seconds, until `stop`.
async fn gather_statistics(store: Arc<dyn Maintenance>, stop: CancellationToken) {
    let turn = |()| async {
        match store.gather_statistics().await {
            Ok(0) => {}
            Ok(tables) => tracing::debug!(tables.gathered = tables, "Statistics gathered"),
            Err(error) => failed(&error, "Failed to gather statistics"),
        }
    };
    every(STATISTICS_INTERVAL, &stop, (), turn).await;
}

/// Compares the store's clock with the elapsed time, each second, until `stop`.
async fn watch_clock(store: Arc<dyn ClockGuard>, stop: CancellationToken) {
    let turn = |before| check_clock(&*store, before);
    every(CLOCK_INTERVAL, &stop, (false, false), turn).await;
}

/// Checks the clock. Returns whether a jump is refused, and whether the check failed.
async fn check_clock(
    store: &dyn ClockGuard,
    (was_refused, was_failing): (bool, bool),
) -> (bool, bool) {
    match store.clock_check().await {
        Ok(jump) => {
            log_jump(jump, was_refused);
            (jump.is_some(), false)
        }
        Err(error) => {
            if !was_failing {
                failed(&error, "Failed to check the clock");
            }
            (was_refused, true)
        }
    }
}

/// Logs that a clock jump is refused, or that it is no longer refused.
fn log_jump(jump: Option<ClockJump>, was_refused: bool) {
    match jump {
        Some(jump) if !was_refused => tracing::error!(
            clock.expected = %jump.expected,
            clock.found = %jump.found,
            "The clock jumped ahead. Writes are refused until you correct the clock or run `penstock clock accept`"
        ),
        None if was_refused => tracing::warn!("The clock is correct again; writes continue"),
        _ => {}
    }
}

/// Recounts contingent credits, each minute, until `stop`.
async fn recount_commitments(
    recounting: RecountContingentCredits,
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    let turn = |()| recount_due(&recounting, &*readiness, &stop);
    every(SWEEP_INTERVAL, &stop, (), turn).await;
}

/// Recounts what is due. It continues after a partner that fails.
async fn recount_due(
    recounting: &RecountContingentCredits,
    readiness: &dyn Readiness,
    stop: &CancellationToken,
) {
    let due = match recounting.due().await {
        Ok(due) => due,
        Err(error) => return failed(&error, RECOUNT_FAILED),
    };
    due.unreadable
        .iter()
        .for_each(|error| failed(error, RECOUNT_FAILED));
    let mut without = BTreeSet::new();
    for (who, asset) in due.rows {
        if without.contains(&who) {
            continue;
        }
        match recount(recounting, &who, asset, stop).await {
            Ok(0) => {}
            Ok(slices) => tracing::debug!(
                partner.id = %who.partner,
                recount.slices = slices,
                "Contingent credits recounted"
            ),
            Err(error) => {
                failed(&error, RECOUNT_FAILED);
                if !concerns_one_partner(&error, readiness).await {
                    break;
                }
                without.insert(who);
            }
        }
    }
}

/// Runs the slices of one account's recount. It stops only between slices, and continues there later.
async fn recount(
    recounting: &RecountContingentCredits,
    who: &Tenant,
    asset: Asset,
    stop: &CancellationToken,
) -> Result<u64, StoreError> {
    let mut slices = 0_u64;
    while !stop.is_cancelled() && recounting.advance(who, asset).await? {
        slices = slices.saturating_add(1);
        tokio::time::sleep(SWEEP_PAUSE).await;
    }
    Ok(slices)
}

#[cfg(test)]
mod tests;
