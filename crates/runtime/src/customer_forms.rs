//! A background task that gives the customers of earlier versions their forms of comparison.
//!
//! It walks through all customers once, and once more an hour later, because a replica of an earlier version may store customers
//! until it is replaced. One partner delays no other: a partner whose rows another transaction has locked is left out for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use gate_core::customer::CustomerId;
use gate_core::usecases::compare_customers::{AT_A_TIME, CompareCustomers, Compared};
use instruments::faults;
use kernel::{Mode, StoreError, causes};
use partner_core::Tenant;
use partner_core::ports::Readiness;
use tokio_util::sync::CancellationToken;

use crate::background::concerns_one_partner;

/// Pause between the two walks. A rolling upgrade is over by then.
const SECOND_WALK_AFTER: Duration = Duration::from_secs(60 * 60);
/// Pause after each read and each transaction, because requests have priority.
const PAUSE: Duration = Duration::from_millis(10);
/// Pause before partners whose transactions failed are tried again: the first one and the longest one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Maximum customers of one kind that a walk describes in the log. All of them are counted.
const MAX_DESCRIBED: usize = 20;

/// Fills in the forms of comparison of customers that an earlier version stored without, twice at most, or until `stop`.
pub async fn compare_customers(
    comparing: CompareCustomers,
    mode: Mode,
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    Walk::new(&comparing, &*readiness, &stop).run(mode).await;
    if rest(SECOND_WALK_AFTER, &stop).await {
        Walk::new(&comparing, &*readiness, &stop).run(mode).await;
    }
}

/// Waits. Returns false as soon as the task has to stop.
async fn rest(pause: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        biased;
        () = stop.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}

/// Whether an error remains if the transaction is run again. It concerns one row then.
const fn is_lasting(error: &StoreError) -> bool {
    match error {
        StoreError::Inconsistent { .. } | StoreError::Guard(_) | StoreError::Unexpected(_) => true,
        StoreError::Retry
        | StoreError::Unavailable(_)
        | StoreError::Overloaded
        | StoreError::CommitUnknown(_) => false,
    }
}

/// One walk through the customers of every partner.
struct Walk<'w> {
    comparing: &'w CompareCustomers,
    readiness: &'w dyn Readiness,
    stop: &'w CancellationToken,
    /// The partners that are not finished, each with the last customer that is.
    left: BTreeMap<Tenant, Option<CustomerId>>,
    /// The partners whose failure was logged.
    failed: BTreeSet<Tenant>,
    report: Report,
}

impl<'w> Walk<'w> {
    fn new(
        comparing: &'w CompareCustomers,
        readiness: &'w dyn Readiness,
        stop: &'w CancellationToken,
    ) -> Self {
        Self {
            comparing,
            readiness,
            stop,
            left: BTreeMap::new(),
            failed: BTreeSet::new(),
            report: Report::default(),
        }
    }

    /// Walks until nothing is left, or until `stop`.
    async fn run(mut self, mode: Mode) {
        let mut backoff = FIRST_BACKOFF;
        while let Err(error) = self.find_partners(mode).await {
            faults::of_store(&error);
            log_failure(None, &error);
            if !rest(backoff, self.stop).await {
                return;
            }
            backoff = longer(backoff);
        }
        backoff = FIRST_BACKOFF;
        loop {
            let before = self.left.len();
            self.visit_all().await;
            if self.left.is_empty() || self.stop.is_cancelled() {
                break;
            }
            if self.left.len() < before {
                backoff = FIRST_BACKOFF;
            }
            if !rest(backoff, self.stop).await {
                break;
            }
            backoff = longer(backoff);
        }
        self.report.log();
    }

    /// Finds every partner of a mode.
    async fn find_partners(&mut self, mode: Mode) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.comparing.partners(mode, after.as_ref()).await?;
            for error in page.found.unreadable {
                self.report.add_unreadable(None, &error);
            }
            for partner in page.found.rows {
                self.left.insert(Tenant { partner, mode }, None);
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// One round over the partners that are left. It continues after a partner that fails.
    async fn visit_all(&mut self) {
        let partners: Vec<Tenant> = self.left.keys().cloned().collect();
        for who in partners {
            let Err(error) = self.visit(&who).await else {
                continue;
            };
            faults::of_store(&error);
            let concerns_partner = concerns_one_partner(&error, self.readiness).await;
            if self.failed.insert(who.clone()) {
                log_failure(Some(&who), &error);
            }
            if !concerns_partner {
                return;
            }
        }
    }

    /// Continues with the customers of a partner. It stops only between transactions.
    async fn visit(&mut self, who: &Tenant) -> Result<(), StoreError> {
        while let Some(after) = self.left.get(who).copied() {
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let page = self.comparing.page(who, after).await?;
            for error in &page.found.unreadable {
                self.report.add_unreadable(None, error);
            }
            for ids in page.found.rows.chunks(AT_A_TIME) {
                self.compare(who, ids).await?;
                self.left.insert(who.clone(), ids.last().copied());
                if !rest(PAUSE, self.stop).await {
                    return Ok(());
                }
            }
            match page.next {
                Some(next) => self.left.insert(who.clone(), Some(next)),
                None => self.left.remove(who),
            };
            rest(PAUSE, self.stop).await;
        }
        Ok(())
    }

    /// Compares customers in one transaction, or, if that fails because of one of them, one by one.
    async fn compare(&mut self, who: &Tenant, ids: &[CustomerId]) -> Result<(), StoreError> {
        match self.comparing.compare(who, ids).await {
            Ok(compared) => {
                self.report.add(who, compared);
                return Ok(());
            }
            Err(error) if !is_lasting(&error) => return Err(error),
            Err(_) => {}
        }
        for id in ids {
            match self.comparing.compare(who, slice::from_ref(id)).await {
                Ok(compared) => self.report.add(who, compared),
                Err(error) if !is_lasting(&error) => return Err(error),
                Err(error) => self.report.add_unreadable(Some(*id), &error),
            }
        }
        Ok(())
    }
}

fn longer(backoff: Duration) -> Duration {
    backoff.saturating_mul(2).min(LONGEST_BACKOFF)
}

/// Logs the first failure of a partner's transactions, or a failure that concerns every partner.
fn log_failure(who: Option<&Tenant>, error: &StoreError) {
    tracing::warn!(
        partner.id = who.map(|who| who.partner.as_str()),
        error.chain = causes(error),
        "Failed to fill in the forms of comparison of earlier customers; they are tried again"
    );
}

/// What a walk has done. It names rows and fields, and no personal data.
#[derive(Debug, Default)]
struct Report {
    filled: u64,
    withheld: u64,
    shared: usize,
    unreadable: usize,
    /// The first rows that cannot be read.
    described: BTreeSet<String>,
}

impl Report {
    fn add(&mut self, who: &Tenant, compared: Compared) {
        self.filled = self.filled.saturating_add(compared.filled);
        self.withheld = self.withheld.saturating_add(compared.withheld);
        for (id, field) in compared.shared {
            self.shared = self.shared.saturating_add(1);
            if self.shared <= MAX_DESCRIBED {
                tracing::warn!(
                    partner.id = who.partner.as_str(),
                    customer.id = %id,
                    customer.field = field.as_str(),
                    "Two customers have one text in two spellings since an earlier version. Both stay, and no further customer can take it"
                );
            }
        }
        for (id, error) in compared.unreadable {
            self.add_unreadable(Some(id), &error);
        }
    }

    /// Counts and logs a row that cannot be read, decrypted or changed, once.
    fn add_unreadable(&mut self, id: Option<CustomerId>, error: &StoreError) {
        let (chain, id) = (causes(error), id.map(|id| id.to_string()));
        let row = id.clone().unwrap_or_else(|| chain.clone());
        if self.described.contains(&row) {
            return;
        }
        self.unreadable = self.unreadable.saturating_add(1);
        faults::of_store(error);
        if self.described.len() < MAX_DESCRIBED {
            tracing::error!(
                customer.id = id,
                error.chain = chain,
                "A row cannot be read; it is left out. Run `penstock verify`"
            );
            self.described.insert(row);
        }
    }

    fn log(&self) {
        if self.filled == 0 && self.withheld == 0 && self.shared == 0 && self.unreadable == 0 {
            return;
        }
        tracing::info!(
            customers.filled = self.filled,
            customers.shared = self.shared,
            customers.withheld = self.withheld,
            customers.unreadable = self.unreadable,
            "Forms of comparison of earlier customers filled in"
        );
    }
}

#[cfg(test)]
mod tests;
