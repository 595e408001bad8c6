//! What partner-core needs of the outside, as traits.

mod master_keys;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Amount, Asset, Cas, Mode, Seen, StoreError, Timestamp};

use crate::clock::ClockJump;
use crate::events::{DeliveryId, Endpoint, NewEvent, Service};
use crate::idempotency::Scope;
use crate::key::{KeyHash, KeyId, KeyRecord, KeyTerms, KeyUse, NewKey};
use crate::origin::Origin;
use crate::pools::Pool;
use crate::sealing::Sealer;
use crate::stored_response::StoredResponse;
use crate::throttle::{Bucket, CountScope, ThrottleDecision, Tier};
use crate::webhooks::delivery::{AttemptOutcome, Progress};
use crate::webhooks::fairness::ClaimCapacity;
use crate::{Access, Partner, PartnerId, Tenant};
use kernel::rates::SourceRate;

pub use master_keys::{
    MasterKeyState, MasterKeyStore, ResealedValue, SealedKind, SealedRow, SealedValue,
    StoredMasterKey,
};

/// The oldest that a cached key, entitlement or cap may be: every cache of them counts from the moment its read began.
///
/// The version of a cached value tells of a change sooner. It cannot tell of a change that a failover or a restore lost.
pub const LONGEST_CACHED: Duration = Duration::from_secs(5);

/// Who may do what: read at the door of every request, usually from a short-lived cache.
#[async_trait]
pub trait Directory: Send + Sync {
    /// The key of this hash with its partner and entitlements; revoked keys are found too.
    async fn access_find(
        &self,
        mode: Mode,
        hash: &KeyHash,
    ) -> Result<Option<Arc<Access>>, StoreError>;

    /// Every pool of a mode, ordered by id.
    async fn pools_all(&self, mode: Mode) -> Result<Arc<[Pool]>, StoreError>;

    /// Every origin that an active partner of a mode allows.
    async fn origins_all(&self, mode: Mode) -> Result<Arc<BTreeSet<Origin>>, StoreError>;

    /// The version of configuration and keys. Every change stores a random number here, so that no version returns
    /// after a failover or a restore.
    async fn config_version(&self) -> Result<i64, StoreError>;

    /// Told of every admitted request. Writes nothing by itself.
    fn key_used(&self, _access: &Access, _at: Timestamp) {}
}

/// A source of mid-market rates.
#[async_trait]
pub trait RateSource: Send + Sync {
    /// The rate of a pair for an order of this size, unless none is young enough.
    async fn rate(&self, fiat: Asset, crypto: Asset, order: Amount) -> Option<SourceRate>;
}

/// Counts requests in fixed windows.
#[async_trait]
pub trait Throttle: Send + Sync {
    /// Counts one request in every tier, or in none where a tier is full.
    async fn take(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision;

    /// Where the bucket stands, counting nothing.
    async fn peek(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision;

    /// Where requests are counted at the moment.
    fn counting(&self) -> CountScope {
        CountScope::Alone
    }
}

/// Detects the concurrent twin of a write early. It decides nothing: the record in the
/// database does.
#[async_trait]
pub trait InFlight: Send + Sync {
    /// Takes the scope for as long as the ticket lives; `None` where a twin holds it.
    async fn enter(&self, scope: &Scope) -> Option<Ticket>;

    /// Takes the scope after its present holder has left it; `None` if the holder stays longer than
    /// `patience`. A holder that disappears without leaving blocks the scope no longer than its own
    /// `patience`. This default waits for no holder.
    async fn enter_within(&self, scope: &Scope, patience: Duration) -> Option<Ticket> {
        let _ = patience;
        self.enter(scope).await
    }
}

/// Holds a scope of [`InFlight`] until it is dropped.
pub struct Ticket(pub Box<dyn Any + Send>);

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket")
    }
}

/// Accepts a write that is run in a batch: writes that queue up share a transaction.
#[async_trait]
pub trait Submit<C, R>: Send + Sync {
    /// Queues a command and waits for its result.
    ///
    /// # Errors
    /// [`StoreError::Overloaded`] immediately if the queue is full, [`StoreError::Unavailable`] after the queue was closed,
    /// otherwise what the store reports.
    async fn submit(&self, command: C) -> Result<R, StoreError>;
}

/// The two things every transaction can do beside its nouns.
#[async_trait]
pub trait UnitOfWork: Send {
    /// The store's clock, to be read after the locks are held.
    async fn now(&mut self) -> Result<Timestamp, StoreError>;

    /// Makes everything durable. Dropped without it, a transaction leaves nothing behind.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// Answers that were given, read before a transaction is opened.
#[async_trait]
pub trait ResponseReads: Send + Sync {
    /// What was last answered in a scope, however long ago.
    async fn answer_get(&self, scope: &Scope) -> Result<Seen<Option<StoredResponse>>, StoreError>;
}

/// Answers, kept in the transaction of the effect they report.
#[async_trait]
pub trait ResponseTx: Send {
    /// What was last answered in a scope, locked.
    async fn answer_lock(&mut self, scope: &Scope) -> Result<Option<StoredResponse>, StoreError>;

    /// Keeps an answer. Guard: the scope has none, or the one that was given at `expired`.
    async fn answer_put(
        &mut self,
        scope: &Scope,
        kept: &StoredResponse,
        expired: Option<Timestamp>,
    ) -> Result<Cas, StoreError>;
}

/// Access, judged again inside a write.
#[async_trait]
pub trait AccessTx: Send {
    /// A key of the tenant with its partner and entitlements as of this transaction.
    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> Result<Option<Arc<Access>>, StoreError>;
}

/// Events, written in the transaction of the change they report.
#[async_trait]
pub trait EventTx: Send {
    /// Inserts the event, and one delivery for the endpoint of its service that is active now.
    async fn event_insert(&mut self, event: &NewEvent) -> Result<(), StoreError>;
}

/// An event as stored, for the operator's tools.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    /// Its id.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Its body, sealed for [`crate::events::event_place`].
    pub body: crate::sealing::Sealed,
    /// When the change it reports happened.
    pub created_at: Timestamp,
}

/// Reads of the event queue.
#[async_trait]
pub trait EventReads: Send + Sync {
    /// The events about one object, in order.
    async fn events_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> Result<Vec<StoredEvent>, StoreError>;
}

/// Told that there may be something to do. Saying so once too often does no harm.
pub trait QueueWaker: Send + Sync {
    /// Says so. Must not block.
    fn wake(&self);
}

/// A worker's wish for deliveries.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The mode the worker serves.
    pub mode: Mode,
    /// The service whose events it delivers.
    pub service: Service,
    /// The worker's limits, and what it has in flight.
    pub room: ClaimCapacity,
    /// The token of the leases; random, and another one for each claim.
    pub token: u64,
    /// How long the leases last.
    pub lease: Duration,
}

/// A delivery that was claimed, with everything an attempt needs, as it stood at that moment.
#[derive(Debug, Clone)]
pub struct ClaimedDelivery {
    /// Whose event it is.
    pub tenant: Tenant,
    /// The delivery.
    pub id: DeliveryId,
    /// Attempts that were concluded before.
    pub attempts: u32,
    /// The event.
    pub event: StoredEvent,
    /// Where it goes, with the secrets that sign now, the newest first.
    pub endpoint: Arc<Endpoint>,
}

/// What became of a delivery that was claimed.
#[derive(Debug, Clone)]
pub struct ConcludedDelivery {
    /// Whose event it is.
    pub tenant: Tenant,
    /// The delivery.
    pub id: DeliveryId,
    /// The token it was claimed under.
    pub token: u64,
    /// What became of it.
    pub ending: AttemptOutcome,
    /// The status of the answer, where there was one.
    pub response_status: Option<u16>,
    /// What went wrong, where something did.
    pub error: Option<String>,
}

/// A delivery as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// The delivery.
    pub id: DeliveryId,
    /// The event it delivers.
    pub event_id: String,
    /// Where it stands, and the attempts that were concluded.
    pub progress: Progress,
    /// The status of the last answer.
    pub last_response_status: Option<u16>,
    /// What went wrong the last time.
    pub last_error: Option<String>,
}

/// How the queue of deliveries stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStats {
    /// Deliveries that are due.
    pub due: u64,
    /// Deliveries that wait for their next attempt.
    pub scheduled: u64,
    /// Deliveries that somebody holds.
    pub in_flight: u64,
    /// How long the first of those that are due has been so.
    pub oldest_due: Option<Duration>,
}

/// The queue of deliveries, as those who deliver see it.
///
/// Of one object's deliveries to one endpoint, only the earliest that is neither succeeded nor
/// dead-lettered is ever claimed.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Claims what is due, divided between the endpoints as [`crate::webhooks::fairness::allocate`]
    /// says. Leases that are over lapse first.
    async fn deliveries_claim(
        &self,
        order: &ClaimRequest,
    ) -> Result<Vec<ClaimedDelivery>, StoreError>;

    /// Records what became of deliveries; whose lease is another's by now is
    /// [`Cas::Lost`] and stays as it is. One outcome for each, in order.
    async fn deliveries_conclude(
        &self,
        batch: &[ConcludedDelivery],
    ) -> Result<Vec<Cas>, StoreError>;

    /// How long until the next delivery of a service is due or the next lease is over, whichever is
    /// first, by the clock that claims go by.
    async fn deliveries_next(
        &self,
        mode: Mode,
        service: Service,
    ) -> Result<Option<Duration>, StoreError>;

    /// The deliveries about one object, in order.
    async fn deliveries_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> Result<Vec<DeliveryRecord>, StoreError>;

    /// How the queue of a service stands, for those who watch it.
    async fn deliveries_standing(
        &self,
        mode: Mode,
        service: Service,
    ) -> Result<QueueStats, StoreError>;

    /// Wakes whenever this process has committed a transaction that queued deliveries, as long as
    /// who is woken is there.
    fn deliveries_watch(&self, wake: Arc<dyn QueueWaker>);
}

/// A delivery with what a partner wants to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// The delivery.
    pub record: DeliveryRecord,
    /// The type of its event.
    pub event_kind: String,
    /// Where it goes.
    pub target_url: String,
    /// When its event was written.
    pub created_at: Timestamp,
}

/// What narrows a page of deliveries.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    /// Only those in a state of this name, one of [`crate::webhooks::delivery::DeliveryState::WORDS`].
    pub status: Option<&'static str>,
    /// So many of the newest are passed over.
    pub skip: u32,
}

/// The queue of deliveries, as the partner they are for sees it.
#[async_trait]
pub trait DeliveryAdmin: Send + Sync {
    /// A page of deliveries, by (`created_at`, id) descending, at most `limit`.
    async fn deliveries_page(
        &self,
        who: &Tenant,
        service: Service,
        filter: DeliveryFilter,
        limit: u32,
    ) -> Result<Vec<DeliveryView>, StoreError>;

    /// One delivery.
    async fn delivery_get(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<DeliveryView>, StoreError>;

    /// Takes [`crate::webhooks::delivery::DeliveryInput::Replay`] on a delivery, in one transaction; it is
    /// [`Cas::Lost`] where that changes nothing. `None`: there is no such delivery.
    async fn delivery_replay(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> Result<Option<(Cas, DeliveryView)>, StoreError>;
}

/// Endpoints, in the transaction of an event.
#[async_trait]
pub trait EndpointTx: Send {
    /// Has the partner an endpoint for a service?
    async fn endpoint_is_set(&mut self, who: &Tenant, service: Service)
    -> Result<bool, StoreError>;
}

/// What one invariant of the database looks like at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The invariant's name.
    pub invariant: &'static str,
    /// The rows that break it, described; at most the first twenty.
    pub breaches: Vec<String>,
    /// How many rows break it in all.
    pub count: u64,
}

/// The outcome of checking every invariant over the whole database.
#[derive(Debug, Clone, Default)]
pub struct AuditReport {
    /// Rows looked at, by table, and sums worth seeing.
    pub figures: Vec<(&'static str, String)>,
    /// One finding for each invariant, broken or not.
    pub findings: Vec<Finding>,
}

impl AuditReport {
    /// Is every invariant whole?
    #[must_use]
    pub fn clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.count == 0)
    }
}

/// How far an audit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditStep {
    /// The invariant that is being checked.
    pub invariant: &'static str,
    /// Which one it is, counted from one.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// Rows that have been gone through for it so far.
    pub rows: u64,
}

/// Told how far an audit is: whenever a check begins, and every so many rows of a long one.
pub type AuditProgress<'p> = dyn Fn(AuditStep) + Send + Sync + 'p;

/// Checks the database against the invariants, in one snapshot. Every check has a name.
#[async_trait]
pub trait Audit: Send + Sync {
    /// Runs every check. What is sealed is opened with `sealer`.
    async fn audit(
        &self,
        sealer: &Sealer,
        progress: &AuditProgress<'_>,
    ) -> Result<AuditReport, StoreError>;

    /// Keeps the window that this process judges velocity caps by, and since when it is that one.
    /// For the process that serves: audits judge past trades by what is kept.
    async fn velocity_window_keep(&self) -> Result<(), StoreError>;
}

/// Which idempotency records a step of a sweep looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySweep {
    /// Only records of this mode are deleted.
    pub mode: Mode,
    /// Only records of this service are deleted: the pools' or the gate's.
    pub service: Service,
    /// Only records made after this instant; `None`: from the oldest on.
    pub after: Option<Timestamp>,
    /// Only records made this long ago or longer: younger ones have not expired.
    pub age: Duration,
    /// Only records that expired this long ago or longer.
    pub grace: Duration,
}

/// What a step of a sweep has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeysSwept {
    /// Records and previews deleted.
    pub deleted: u64,
    /// Records made at this instant or earlier have been looked at.
    pub reached: Timestamp,
    /// Are there more of the age?
    pub more: bool,
    /// Are there records left that expire later?
    pub left: bool,
}

/// Work that keeps tables bounded and quick.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// One step of a sweep of idempotency records: looks at about `limit` of them, from the oldest on, and deletes those
    /// that have expired by their own expiry, and previews that have expired.
    async fn idempotency_sweep(
        &self,
        sweep: &KeySweep,
        limit: u32,
    ) -> Result<KeysSwept, StoreError>;

    /// Stores when keys were last used; an earlier instant than the stored one changes nothing.
    async fn key_uses_record(&self, uses: &[KeyUse]) -> Result<(), StoreError>;

    /// Looks anew at tables that have grown much since what is known of them was gathered, so that
    /// rows go on being found by their keys; how many it looked at.
    async fn gather_statistics(&self) -> Result<u64, StoreError>;
}

/// The store's clock for operators: jumps that the store refuses.
#[async_trait]
pub trait ClockGuard: Send + Sync {
    /// Compares the clock with the time that has passed, notes a jump for every process of the installation, and takes over
    /// what an operator accepted; the jump that is refused now.
    async fn clock_check(&self) -> Result<Option<ClockJump>, StoreError>;

    /// The jump that waits for an operator.
    async fn clock_noted(&self) -> Result<Option<ClockJump>, StoreError>;

    /// Accepts the jump that waits, and every instant up to the present one; which it was.
    async fn clock_accept(&self) -> Result<Option<ClockJump>, StoreError>;
}

/// Is the store there, and is its schema the one this program knows?
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Asks the store.
    async fn ready(&self) -> Result<(), StoreError>;
}

/// The operator's side: what may be read and written of partners, keys and endpoints in one transaction.
#[async_trait]
pub trait PartnerTx: UnitOfWork {
    /// The fingerprint of the current master key. It stays current until the transaction ends.
    async fn master_key(&mut self) -> Result<Option<String>, StoreError>;
    /// The ids of at most 1,000 partners of a mode, in their order.
    async fn partner_ids(&mut self, mode: Mode) -> Result<Vec<PartnerId>, StoreError>;
    /// A partner, locked.
    async fn partner_lock(&mut self, who: &Tenant) -> Result<Option<Partner>, StoreError>;
    /// Inserts or replaces a partner.
    async fn partner_put(&mut self, mode: Mode, partner: &Partner) -> Result<(), StoreError>;
    /// The partner's endpoint for a service.
    async fn endpoint_get(
        &mut self,
        who: &Tenant,
        service: Service,
    ) -> Result<Option<Endpoint>, StoreError>;
    /// Inserts or replaces the partner's endpoint for a service.
    async fn endpoint_put(&mut self, who: &Tenant, endpoint: &Endpoint) -> Result<(), StoreError>;
    /// Every key of the partner, the oldest first.
    async fn keys_list(&mut self, who: &Tenant) -> Result<Vec<KeyRecord>, StoreError>;
    /// Whose key this is, in any mode.
    async fn key_owner(
        &mut self,
        hash: &KeyHash,
    ) -> Result<Option<(PartnerId, Mode, KeyRecord)>, StoreError>;
    /// Stores a new key.
    async fn key_insert(&mut self, who: &Tenant, key: &NewKey) -> Result<(), StoreError>;
    /// A key of this mode by its id, with its partner.
    async fn key_find(&mut self, id: KeyId) -> Result<Option<(PartnerId, KeyRecord)>, StoreError>;
    /// When each key of the partner that was ever used was last used.
    async fn keys_used(&mut self, who: &Tenant) -> Result<BTreeMap<KeyId, Timestamp>, StoreError>;
    /// Replaces the label and the expiry of a key.
    async fn key_describe(
        &mut self,
        who: &Tenant,
        id: KeyId,
        terms: &KeyTerms,
    ) -> Result<(), StoreError>;
    /// Revokes a key that is not revoked yet.
    async fn key_revoke(&mut self, id: KeyId, at: Timestamp) -> Result<Cas, StoreError>;
    /// Raises the number that running services watch.
    async fn config_version_raise(&mut self) -> Result<(), StoreError>;
}

/// Opens transactions for the operator's tools.
#[async_trait]
pub trait PartnerStore: Send + Sync {
    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn partner_begin(&self, name: &'static str) -> Result<Box<dyn PartnerTx>, StoreError>;

    /// The fingerprint of the current master key; `None` if the database has no key yet.
    async fn master_key_fingerprint(&self) -> Result<Option<String>, StoreError>;

    /// The fingerprint of the current master key; stores this one as the first if the database has none.
    async fn master_key_check(&self, fingerprint: &str) -> Result<String, StoreError>;
}
