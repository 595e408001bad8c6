//! Outcomes of writes, and what the store holds after them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Mutex;

use kernel::{Asset, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::ports::{AuditReport, AuditStep, StoredEvent};
use partner_core::stored_response::RenderedResponse;
use pools_core::batch::TransactOutcome;
use pools_core::ledger::Account;

use crate::contract::fixture::Fixture;
use crate::contract::world::{Decided, MALFORMED, World, sealer};

/// Expects that the schema refuses a write.
#[track_caller]
pub(crate) fn assert_guarded<T: Debug>(outcome: StoreResult<T>) {
    assert!(matches!(outcome, Err(StoreError::Guard(_))), "{outcome:?}");
}

/// Expects that a transact has opened a trade.
#[track_caller]
pub(crate) fn assert_opened(decided: &Decided) {
    let opened = matches!(decided, Ok(TransactOutcome::Opened(_)));
    assert!(opened, "{decided:?}");
}

fn is_well_formed(stored: &RenderedResponse) -> bool {
    stored.0 != MALFORMED
}

impl<F: Fixture> World<F> {
    pub(crate) async fn account(&self, who: &Tenant, asset: Asset) -> Option<Account> {
        let store = &self.ports().store;
        store.account_get(who, asset).await.unwrap()
    }

    pub(crate) async fn available(&self, who: &Tenant, asset: Asset) -> i64 {
        let account = self.account(who, asset).await;
        account.map_or(0, |account| account.available.units())
    }

    pub(crate) async fn events_of(&self, who: &Tenant, object: &str) -> Vec<StoredEvent> {
        let events = &self.ports().events;
        events.events_of(who, object).await.unwrap()
    }

    pub(crate) async fn audit(&self) -> AuditReport {
        let told = Mutex::new(Vec::new());
        let progress = |step| told.lock().unwrap().push(step);
        let audit = &self.ports().audit;
        let sealer = sealer();
        let report = audit.audit(&sealer, is_well_formed, &progress);
        let report = report.await.unwrap();
        let told: BTreeSet<(usize, usize, &str)> = told
            .into_inner()
            .unwrap()
            .into_iter()
            .map(|step: AuditStep| (step.number, step.of, step.invariant))
            .collect();
        let names = report.findings.iter().map(|finding| finding.invariant);
        let each = (1..)
            .zip(names)
            .map(|(number, name)| (number, report.findings.len(), name));
        assert_eq!(
            told,
            each.collect(),
            "the audit reported progress for each invariant"
        );
        report
    }

    pub(crate) async fn assert_clean(&self) {
        let mut broken = self.audit().await.findings;
        broken.retain(|finding| finding.count > 0);
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
