//! A background task that gives the customers of earlier versions their forms of comparison.
//!
//! It walks through all customers once, and once more an hour later, because a replica of an earlier version may store customers
//! until it is replaced. One partner delays no other: a partner whose rows another transaction has locked is left out for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use std::{mem, slice};

use gate_core::customer::CustomerId;
use gate_core::usecases::compare_customers::{AT_A_TIME, CompareCustomers, Compared};
use instruments::faults;
use kernel::{Mode, StoreError, StoreResult, causes};
use partner_core::Tenant;
use partner_core::ports::Readiness;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::background::concerns_one_partner;
use crate::supervise::rest;

/// The second walk begins this long after the first, which ends then at the latest. A rolling upgrade is over by then.
const SECOND_WALK_AFTER: Duration = Duration::from_secs(60 * 60);
/// Shortest pause after each read and each transaction, because requests have priority.
const PAUSE: Duration = Duration::from_millis(10);
/// How many times longer than its transactions a partner's lock is free between them.
const FREE_SHARE: u32 = 4;
/// Pause before a partner whose transaction failed is tried again, or every partner: the first one and the longest one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Maximum customers of one kind that a walk names in the log. All of them are counted.
const MAX_DESCRIBED: usize = 20;

/// Fills in the forms of comparison of customers that an earlier version stored without, twice at most, or until `stop`.
pub async fn compare_customers(
    comparing: CompareCustomers,
    mode: Mode,
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    let walk = || Walk::new(&comparing, &*readiness, &stop);
    let second = Instant::now() + SECOND_WALK_AFTER;
    walk().run(mode, Some(second)).await;
    if rest(second.saturating_duration_since(Instant::now()), &stop).await {
        walk().run(mode, None).await;
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

/// A partner is left out for this long, until this instant.
#[derive(Clone, Copy)]
struct Rest {
    pause: Duration,
    until: Instant,
}

/// One walk through the customers of every partner.
struct Walk<'w> {
    comparing: &'w CompareCustomers,
    readiness: &'w dyn Readiness,
    stop: &'w CancellationToken,
    /// The partners that are not finished, each with the last customer that is.
    left: BTreeMap<Tenant, Option<CustomerId>>,
    /// The partners whose last transaction failed.
    resting: BTreeMap<Tenant, Rest>,
    /// The partners whose failure was logged.
    failed: BTreeSet<Tenant>,
    /// Whether a partner's place has changed in this round.
    has_advanced: bool,
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
            resting: BTreeMap::new(),
            failed: BTreeSet::new(),
            has_advanced: false,
            report: Report::default(),
        }
    }

    /// Walks until nothing is left, until an instant, or until `stop`.
    async fn run(mut self, mode: Mode, until: Option<Instant>) {
        let mut backoff = FIRST_BACKOFF;
        while let Err(error) = self.find_partners(mode).await {
            faults::of_store(&error);
            log_failure(None, &error);
            if !rest(backoff, self.stop).await {
                return;
            }
            backoff = longer(backoff);
        }
        while !self.left.is_empty() && until.is_none_or(|until| Instant::now() < until) {
            let store_fails = self.visit_all().await;
            let has_advanced = mem::take(&mut self.has_advanced);
            if has_advanced {
                backoff = FIRST_BACKOFF;
            }
            let pause = if store_fails {
                let pause = backoff;
                backoff = longer(backoff);
                pause
            } else if has_advanced {
                Duration::ZERO
            } else {
                self.until_next_visit()
            };
            if !rest(pause, self.stop).await {
                break;
            }
        }
        self.report.log();
    }

    /// Finds every partner of a mode.
    async fn find_partners(&mut self, mode: Mode) -> StoreResult<()> {
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

    /// One round over the partners that are left and not left out, with one page of each. It continues after a partner that fails.
    /// Returns whether it ended at an error that concerns every partner.
    async fn visit_all(&mut self) -> bool {
        let now = Instant::now();
        let may_visit = |who: &Tenant| self.resting.get(who).is_none_or(|rest| rest.until <= now);
        let partners = self.left.keys().filter(|who| may_visit(who));
        let partners: Vec<Tenant> = partners.cloned().collect();
        for who in partners {
            if self.stop.is_cancelled() {
                break;
            }
            let Err(error) = self.visit(&who).await else {
                continue;
            };
            faults::of_store(&error);
            let concerns_partner = concerns_one_partner(&error, self.readiness).await;
            if self.failed.insert(who.clone()) {
                log_failure(Some(&who), &error);
            }
            if !concerns_partner {
                return true;
            }
            self.leave_out(who);
        }
        false
    }

    /// Leaves out a partner, longer than the last time unless the partner's place has changed since.
    fn leave_out(&mut self, who: Tenant) {
        let before = self.resting.get(&who);
        let pause = before.map_or(FIRST_BACKOFF, |rest| longer(rest.pause));
        let until = Instant::now() + pause;
        self.resting.insert(who, Rest { pause, until });
    }

    /// The time until the next visit to a partner that is left out.
    fn until_next_visit(&self) -> Duration {
        let next = self.resting.values().map(|rest| rest.until).min();
        next.map_or(PAUSE, |next| next.saturating_duration_since(Instant::now()))
    }

    /// Continues with one page of the customers of a partner. It stops only between transactions.
    async fn visit(&mut self, who: &Tenant) -> StoreResult<()> {
        let after = self.left.get(who).copied().flatten();
        let page = match self.comparing.page(who, after).await {
            Err(error) if is_lasting(&error) => {
                self.report.add_unreadable(None, &error);
                self.finish(who);
                return Ok(());
            }
            page => page?,
        };
        for error in &page.found.unreadable {
            self.report.add_unreadable(None, error);
        }
        for ids in page.found.rows.chunks(AT_A_TIME) {
            self.compare(who, ids).await?;
            if self.stop.is_cancelled() {
                return Ok(());
            }
        }
        match page.next {
            Some(next) => self.advance(who, next),
            None => self.finish(who),
        }
        rest(PAUSE, self.stop).await;
        Ok(())
    }

    fn advance(&mut self, who: &Tenant, last: CustomerId) {
        self.left.insert(who.clone(), Some(last));
        self.resting.remove(who);
        self.has_advanced = true;
    }

    fn finish(&mut self, who: &Tenant) {
        self.left.remove(who);
        self.resting.remove(who);
        self.has_advanced = true;
    }

    /// Compares customers in one transaction, or, if that fails because of one of them, one by one.
    async fn compare(&mut self, who: &Tenant, ids: &[CustomerId]) -> StoreResult<()> {
        match self.compare_at_once(who, ids).await {
            Err(error) if is_lasting(&error) => {}
            done => return done,
        }
        for id in ids {
            if self.stop.is_cancelled() {
                break;
            }
            match self.compare_at_once(who, slice::from_ref(id)).await {
                Err(error) if is_lasting(&error) => {
                    self.report.add_unreadable(Some(*id), &error);
                    self.advance(who, *id);
                }
                done => done?,
            }
        }
        Ok(())
    }

    /// Compares customers in one transaction. Then the partner's lock is free for longer than the transaction took.
    async fn compare_at_once(&mut self, who: &Tenant, ids: &[CustomerId]) -> StoreResult<()> {
        let began = Instant::now();
        let compared = self.comparing.compare(who, ids).await?;
        self.report.add(who, compared);
        if let Some(last) = ids.last() {
            self.advance(who, *last);
        }
        let pause = began.elapsed().saturating_mul(FREE_SHARE).max(PAUSE);
        rest(pause, self.stop).await;
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
    without_key: u64,
    shared: usize,
    unreadable: usize,
    /// The first rows that cannot be read.
    described: BTreeSet<String>,
}

impl Report {
    fn add(&mut self, who: &Tenant, compared: Compared) {
        self.filled = self.filled.saturating_add(compared.filled);
        self.withheld = self.withheld.saturating_add(compared.withheld);
        self.without_key = self.without_key.saturating_add(compared.without_key);
        for (id, field, holder) in compared.shared {
            self.shared = self.shared.saturating_add(1);
            if self.shared <= MAX_DESCRIBED {
                tracing::warn!(
                    partner.id = who.partner.as_str(),
                    customer.id = %id,
                    customer.field = field.as_str(),
                    customer.holder = %holder,
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
        let all = self.filled + self.withheld + self.without_key;
        if all == 0 && self.shared == 0 && self.unreadable == 0 {
            return;
        }
        tracing::info!(
            customers.filled = self.filled,
            customers.shared = self.shared,
            customers.withheld = self.withheld,
            customers.without_key = self.without_key,
            customers.unreadable = self.unreadable,
            "Forms of comparison of earlier customers filled in"
        );
    }
}

#[cfg(test)]
mod tests;
