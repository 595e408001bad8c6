//! An in-memory store with one writer that implements the gate's ports.

mod customers;
mod deliveries;
mod previews;
mod rails;
mod transactions;
mod verifications;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use gate_core::branding::Branding;
use gate_core::customer::{CustomerId, SealedCustomer};
use gate_core::ports::{
    BrandingTx, CustomerFilter, GateReads, GateStore, GateTx, PublishableKeyTx, SessionFilter,
    SessionTx, TallyTx, TransactionFilter,
};
use gate_core::preview::{Preview, PreviewId};
use gate_core::profile::GateProfile;
use gate_core::quota::Tally;
use gate_core::rail::{RailId, RailRecord, RailState};
use gate_core::session::{Session, SessionId, SessionState, Step};
use gate_core::signed_quote::{Installation, SignedQuote, SignedQuoteId};
use gate_core::transaction::{RefId, Transaction};
use gate_core::verification::Verification;
use kernel::{Cas, Mode, Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::{NewEvent, Service};
use partner_core::idempotency::Scope;
use partner_core::key::KeyId;
use partner_core::ports::{
    AccessTx, EndpointTx, EventTx, InFlight, ResponseReads, ResponseTx, Ticket, UnitOfWork,
};
use partner_core::sealing::Sealed;
use partner_core::stored_response::StoredResponse;

/// All rows of the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub(crate) now: Option<Timestamp>,
    pub(crate) access: BTreeMap<KeyId, GateAccess>,
    pub(crate) endpoints: BTreeSet<Tenant>,
    pub(crate) responses: BTreeMap<Scope, StoredResponse>,
    pub(crate) sessions: BTreeMap<(Tenant, SessionId), Session>,
    pub(crate) packages: BTreeMap<SessionId, Sealed>,
    pub(crate) tallies: BTreeMap<Tenant, Tally>,
    pub(crate) previews: BTreeMap<(Tenant, PreviewId), Preview>,
    pub(crate) branding: BTreeMap<Tenant, Branding>,
    pub(crate) transactions: BTreeMap<(Tenant, RefId), Transaction>,
    pub(crate) quotes: BTreeMap<(Tenant, SignedQuoteId), SignedQuote>,
    pub(crate) rails: BTreeMap<(Tenant, RailId), RailRecord>,
    /// The records that were woken during a poll.
    pub(crate) woken: BTreeSet<RailId>,
    pub(crate) verifications: BTreeMap<(Tenant, SessionId), Verification>,
    pub(crate) customers: BTreeMap<(Tenant, CustomerId), SealedCustomer>,
    pub(crate) events: Vec<NewEvent>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    rows: Mutex<Rows>,
    writing: AtomicBool,
    in_flight: Mutex<BTreeSet<Scope>>,
    /// The number of next commits that lose their race.
    losing: Mutex<u32>,
}

impl Memory {
    pub(crate) fn new(now: Timestamp, all: &[GateAccess]) -> Self {
        let memory = Self::default();
        let mut rows = memory.rows();
        rows.now = Some(now);
        rows.access = all.iter().map(|one| (one.key.id, one.clone())).collect();
        drop(rows);
        memory
    }

    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.rows.lock().unwrap()
    }

    pub(crate) fn pass(&self, span: Duration) {
        let mut rows = self.rows();
        rows.now = rows.now.map(|now| now.plus(span));
    }

    pub(crate) fn lose(&self, commits: u32) {
        *self.0.losing.lock().unwrap() = commits;
    }

    pub(crate) fn hold(&self, scope: &Scope) {
        self.0.in_flight.lock().unwrap().insert(scope.clone());
    }

    /// The types of the events about an object, in order.
    pub(crate) fn events_of(&self, object: &str) -> Vec<String> {
        let rows = self.rows();
        let found = rows.events.iter().filter(|event| event.object_id == object);
        found.map(|event| event.kind.clone()).collect()
    }

    fn seen<T>(&self, read: impl FnOnce(&Rows) -> T) -> Seen<T> {
        let rows = self.rows();
        Seen {
            value: read(&rows),
            at: rows.now.unwrap(),
        }
    }

    fn overdue(&self, limit: u32, whose: impl Fn(&Tenant) -> bool) -> Vec<(Tenant, SessionId)> {
        let rows = self.rows();
        let now = rows.now.unwrap();
        let found = rows.sessions.iter();
        let found = found.filter(|((who, _), session)| whose(who) && session.is_overdue(now));
        found
            .map(|(at, _)| at.clone())
            .take(limit as usize)
            .collect()
    }
}

struct Held(Arc<Inner>, Scope);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.in_flight.lock().unwrap().remove(&self.1);
    }
}

#[async_trait]
impl InFlight for Memory {
    async fn enter(&self, scope: &Scope) -> Option<Ticket> {
        let entered = self.0.in_flight.lock().unwrap().insert(scope.clone());
        entered.then(|| Ticket(Box::new(Held(self.0.clone(), scope.clone()))))
    }
}

#[async_trait]
impl ResponseReads for Memory {
    async fn answer_get(&self, scope: &Scope) -> Result<Seen<Option<StoredResponse>>, StoreError> {
        Ok(self.seen(|rows| rows.responses.get(scope).cloned()))
    }
}

/// A page of rows ordered by id, newest first.
fn page<K: Ord + Copy, T: Clone>(
    rows: &BTreeMap<(Tenant, K), T>,
    who: &Tenant,
    after: Option<K>,
    limit: u32,
    wanted: impl Fn(&T) -> bool,
) -> Vec<T> {
    if after.is_some_and(|after| !rows.contains_key(&(who.clone(), after))) {
        return Vec::new();
    }
    let found = rows.iter().rev().filter(|((owner, id), row)| {
        owner == who && after.is_none_or(|after| *id < after) && wanted(row)
    });
    found
        .map(|(_, row)| row.clone())
        .take(limit as usize)
        .collect()
}

#[async_trait]
impl GateReads for Memory {
    async fn gate_now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.seen(|_| ()).at)
    }

    async fn installation_get(&self) -> Result<Installation, StoreError> {
        Ok(Installation("0".repeat(32)))
    }

    async fn session_get(
        &self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Seen<Session>>, StoreError> {
        let seen = self.seen(|rows| rows.sessions.get(&(who.clone(), id)).cloned());
        Ok(seen.value.map(|value| Seen { value, at: seen.at }))
    }

    async fn sessions_page(
        &self,
        who: &Tenant,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Seen<Vec<Session>>, StoreError> {
        let wanted = |session: &Session| {
            let status = session.state.status();
            filter.status.is_none_or(|wanted| wanted == status)
        };
        Ok(self.seen(|rows| page(&rows.sessions, who, filter.after, limit, wanted)))
    }

    async fn sessions_overdue(
        &self,
        who: &Tenant,
        limit: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        let found = self.overdue(limit, |owner| owner == who);
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    async fn sessions_overdue_in(
        &self,
        mode: Mode,
        limit: u32,
    ) -> Result<Vec<(Tenant, SessionId)>, StoreError> {
        Ok(self.overdue(limit, |owner| owner.mode == mode))
    }

    async fn tally_get(&self, who: &Tenant) -> Result<Seen<Option<Tally>>, StoreError> {
        Ok(self.seen(|rows| rows.tallies.get(who).cloned()))
    }

    async fn branding_get(&self, who: &Tenant) -> Result<Seen<Branding>, StoreError> {
        Ok(self.seen(|rows| rows.branding.get(who).cloned().unwrap_or_default()))
    }

    async fn transaction_get(
        &self,
        who: &Tenant,
        refid: RefId,
    ) -> Result<Option<Transaction>, StoreError> {
        Ok(self.rows().transactions.get(&(who.clone(), refid)).cloned())
    }

    async fn transactions_page(
        &self,
        who: &Tenant,
        filter: &TransactionFilter,
        limit: u32,
    ) -> Result<Vec<Transaction>, StoreError> {
        let wanted = |it: &Transaction| {
            filter
                .status
                .is_none_or(|status| it.state.status() == status)
                && filter.session.is_none_or(|session| it.session == session)
        };
        Ok(page(
            &self.rows().transactions,
            who,
            filter.after,
            limit,
            wanted,
        ))
    }

    async fn signed_quote_get(
        &self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<Seen<SignedQuote>>, StoreError> {
        let seen = self.seen(|rows| rows.quotes.get(&(who.clone(), id)).cloned());
        Ok(seen.value.map(|value| Seen { value, at: seen.at }))
    }

    async fn rail_get(&self, who: &Tenant, id: RailId) -> Result<Option<RailRecord>, StoreError> {
        Ok(self.rows().rails.get(&(who.clone(), id)).cloned())
    }

    async fn payment_of_session(
        &self,
        who: &Tenant,
        session: SessionId,
    ) -> Result<Option<RailRecord>, StoreError> {
        let rows = self.rows();
        let found = rows.rails.iter();
        let found = found.filter(|((owner, _), record)| owner == who && record.session == session);
        let newest = found.max_by_key(|(_, record)| (record.created_at, record.id));
        Ok(newest.map(|(_, record)| record.clone()))
    }

    async fn rails_due(&self, mode: Mode, limit: u32) -> Result<Vec<(Tenant, RailId)>, StoreError> {
        let rows = self.rows();
        let now = rows.now.unwrap();
        let found = rows.rails.iter();
        let found = found.filter(|((who, _), record)| who.mode == mode && record.is_due(now));
        Ok(found
            .map(|(at, _)| at.clone())
            .take(limit as usize)
            .collect())
    }

    async fn rail_asleep(&self, mode: Mode, id: RailId) -> Result<Option<Tenant>, StoreError> {
        let rows = self.rows();
        let found = rows.rails.iter().find(|((who, record), _)| {
            who.mode == mode && *record == id && !rows.woken.contains(record)
        });
        let asleep = found.filter(|(_, record)| {
            record.state == RailState::Processing && !record.is_due(rows.now.unwrap())
        });
        Ok(asleep.map(|((who, _), _)| who.clone()))
    }

    async fn rail_oldest(&self, mode: Mode) -> Result<Option<Duration>, StoreError> {
        let rows = self.rows();
        let open = rows
            .rails
            .iter()
            .filter(|((who, _), record)| who.mode == mode && record.state == RailState::Processing);
        let oldest = open.map(|(_, record)| record.created_at).min();
        Ok(oldest.map(|at| rows.now.unwrap().since(at)))
    }

    async fn verification_get(
        &self,
        who: &Tenant,
        session: SessionId,
    ) -> Result<Option<Verification>, StoreError> {
        let at = (who.clone(), session);
        Ok(self.rows().verifications.get(&at).cloned())
    }

    async fn verifications_due(
        &self,
        mode: Mode,
        limit: u32,
    ) -> Result<Vec<(Tenant, SessionId)>, StoreError> {
        let rows = self.rows();
        let now = rows.now.unwrap();
        let found = rows.verifications.iter();
        let found = found.filter(|((who, _), it)| who.mode == mode && it.is_due(now));
        Ok(found
            .map(|(at, _)| at.clone())
            .take(limit as usize)
            .collect())
    }

    async fn customer_get(
        &self,
        who: &Tenant,
        id: CustomerId,
    ) -> Result<Option<SealedCustomer>, StoreError> {
        Ok(self.rows().customers.get(&(who.clone(), id)).cloned())
    }

    async fn customers_page(
        &self,
        who: &Tenant,
        filter: &CustomerFilter,
        limit: u32,
    ) -> Result<Vec<SealedCustomer>, StoreError> {
        let wanted = |it: &SealedCustomer| {
            it.deleted_at.is_none()
                && filter.email.is_none_or(|mark| it.marks.email == mark)
                && (filter.external_id.is_none() || it.marks.external_id == filter.external_id)
        };
        Ok(page(
            &self.rows().customers,
            who,
            filter.after,
            limit,
            wanted,
        ))
    }
}

#[async_trait]
impl GateStore for Memory {
    async fn gate_begin(&self, _: &'static str) -> Result<Box<dyn GateTx>, StoreError> {
        while self.0.writing.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        Ok(Box::new(MemoryTx {
            inner: self.0.clone(),
            rows: self.rows().clone(),
        }))
    }
}

/// Dropping it without a commit discards its writes.
struct MemoryTx {
    inner: Arc<Inner>,
    rows: Rows,
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        self.inner.writing.store(false, Ordering::Release);
    }
}

#[async_trait]
impl UnitOfWork for MemoryTx {
    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        Ok(self.rows.now.unwrap())
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let mut losing = self.inner.losing.lock().unwrap();
        if *losing > 0 {
            *losing -= 1;
            return Err(StoreError::Retry);
        }
        drop(losing);
        *self.inner.rows.lock().unwrap() = std::mem::take(&mut self.rows);
        Ok(())
    }
}

fn guarded(holds: bool, write: impl FnOnce()) -> Cas {
    if holds {
        write();
        Cas::Won
    } else {
        Cas::Lost
    }
}

#[async_trait]
impl ResponseTx for MemoryTx {
    async fn answer_lock(&mut self, scope: &Scope) -> Result<Option<StoredResponse>, StoreError> {
        Ok(self.rows.responses.get(scope).cloned())
    }

    async fn answer_put(
        &mut self,
        scope: &Scope,
        kept: &StoredResponse,
        expired: Option<Timestamp>,
    ) -> Result<Cas, StoreError> {
        let present = self.rows.responses.get(scope).map(|kept| kept.created_at);
        Ok(guarded(present == expired, || {
            self.rows.responses.insert(scope.clone(), kept.clone());
        }))
    }
}

#[async_trait]
impl AccessTx<GateProfile> for MemoryTx {
    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> Result<Option<Arc<GateAccess>>, StoreError> {
        let found = self.rows.access.get(&key).filter(|it| it.tenant == *who);
        Ok(found.map(|access| Arc::new(access.clone())))
    }
}

#[async_trait]
impl PublishableKeyTx for MemoryTx {
    async fn publishable_key_newest(
        &mut self,
        _: &Tenant,
        _: Timestamp,
    ) -> Result<Option<(KeyId, Sealed)>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl TallyTx for MemoryTx {
    async fn tally_lock(&mut self, who: &Tenant) -> Result<Option<Tally>, StoreError> {
        Ok(self.rows.tallies.get(who).cloned())
    }

    async fn tally_put(
        &mut self,
        who: &Tenant,
        before: Option<&Tally>,
        after: &Tally,
    ) -> Result<Cas, StoreError> {
        let same = self.rows.tallies.get(who) == before;
        Ok(guarded(same, || {
            self.rows.tallies.insert(who.clone(), after.clone());
        }))
    }
}

#[async_trait]
impl BrandingTx for MemoryTx {
    async fn branding_lock(&mut self, who: &Tenant) -> Result<Branding, StoreError> {
        Ok(self.rows.branding.get(who).cloned().unwrap_or_default())
    }

    async fn branding_put(&mut self, who: &Tenant, branding: &Branding) -> Result<Cas, StoreError> {
        let present = self.rows.branding.get(who).map_or(0, |it| it.revision);
        Ok(guarded(present + 1 == branding.revision, || {
            self.rows.branding.insert(who.clone(), branding.clone());
        }))
    }
}

#[async_trait]
impl SessionTx for MemoryTx {
    async fn session_insert(
        &mut self,
        who: &Tenant,
        session: &Session,
        kyc_package: Option<&Sealed>,
    ) -> Result<(), StoreError> {
        let at = (who.clone(), session.id);
        assert!(self.rows.sessions.insert(at, session.clone()).is_none());
        if let Some(package) = kyc_package {
            self.rows.packages.insert(session.id, package.clone());
        }
        Ok(())
    }

    async fn session_lock(
        &mut self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Session>, StoreError> {
        Ok(self.rows.sessions.get(&(who.clone(), id)).cloned())
    }

    async fn session_apply(
        &mut self,
        who: &Tenant,
        id: SessionId,
        step: &Step,
    ) -> Result<Cas, StoreError> {
        let session = self.rows.sessions.get_mut(&(who.clone(), id)).unwrap();
        let free = !session.payment_in_progress;
        let in_time = match step.state {
            SessionState::Completed { at, .. } | SessionState::Cancelled { at } => {
                free && at < session.expires_at
            }
            SessionState::Expired { at } => free && at >= session.expires_at,
            SessionState::Open => false,
        };
        let holds = session.state == SessionState::Open && in_time;
        Ok(guarded(holds, || session.state = step.state))
    }
}

#[async_trait]
impl EndpointTx for MemoryTx {
    async fn endpoint_is_set(&mut self, who: &Tenant, _: Service) -> Result<bool, StoreError> {
        Ok(self.rows.endpoints.contains(who))
    }
}

#[async_trait]
impl EventTx for MemoryTx {
    async fn event_insert(&mut self, event: &NewEvent) -> Result<(), StoreError> {
        let same = |it: &NewEvent| it.object_id == event.object_id && it.kind == event.kind;
        assert!(
            event.kind == "customer.updated" || !self.rows.events.iter().any(same),
            "an event is emitted once"
        );
        self.rows.events.push(event.clone());
        Ok(())
    }
}
