//! The ports of the partner core.

mod master_keys;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Amount, Asset, Cas, Mode, Seen, StoreResult, Timestamp, TraceParent};

use crate::clock::ClockJump;
use crate::events::{DeliveryId, Endpoint, EndpointId, NewEvent, Service};
use crate::idempotency::Scope;
use crate::key::{KeyHash, KeyId, KeyRecord, KeyTerms, KeyUse, NewKey};
use crate::page::CreatedRange;
use crate::sealing::{Sealed, Sealer};
use crate::stored_response::{ResponseCheck, StoredResponse};
use crate::throttle::{Bucket, CountScope, ThrottleDecision, Tier};
use crate::webhooks::delivery::{AttemptOutcome, Progress};
use crate::webhooks::fairness::ClaimCapacity;
use crate::{Access, Partner, PartnerId, Profile, Tenant};
use kernel::rates::SourceRate;

pub use master_keys::{
    MasterKeyState, MasterKeyStore, ResealedValue, SealedRow, SealedValue, StoredMasterKey,
};

/// Maximum age of a cached key, entitlement or cap. Every cache measures it from the start of its read.
///
/// A changed version shows a change sooner. It cannot show a change that a failover or a restore lost.
pub const LONGEST_CACHED: Duration = Duration::from_secs(5);

/// The version of configuration and keys.
#[async_trait]
pub trait ConfigVersions: Send + Sync {
    /// The current version. Every change stores a random number here, so that no version returns after a failover or a
    /// restore.
    async fn config_version(&self) -> StoreResult<i64>;
}

/// Access rights to one product. Every request reads them, usually from a short-lived cache.
#[async_trait]
pub trait Directory<P: Profile>: ConfigVersions {
    /// The key of this hash with its partner and entitlements; revoked keys are found too.
    async fn access_find(&self, mode: Mode, hash: &KeyHash) -> StoreResult<Option<Arc<Access<P>>>>;

    /// The key of this id with its partner and entitlements, revoked keys included. `None` also for a key of another partner.
    async fn access_of(&self, who: &Tenant, key: KeyId) -> StoreResult<Option<Arc<Access<P>>>>;

    /// What the product lists for all partners of a mode together: see [`Profile::Listing`].
    async fn listing(&self, mode: Mode) -> StoreResult<Arc<P::Listing>>;

    /// Told of every admitted request. Writes nothing by itself.
    fn key_used(&self, _access: &Access<P>, _at: Timestamp) {}
}

/// A source of mid-market rates.
#[async_trait]
pub trait RateSource: Send + Sync {
    /// The rate of a pair for an order of this size; `None` if no rate is fresh.
    async fn rate(&self, fiat: Asset, crypto: Asset, order: Amount) -> Option<SourceRate>;
}

/// Counts requests in fixed windows.
#[async_trait]
pub trait Throttle: Send + Sync {
    /// Counts one request in every tier. If one tier is exhausted, it counts the request in none.
    async fn take(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision;

    /// The status of the bucket. Counts nothing.
    async fn peek(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision;

    /// Where requests are currently counted.
    fn counting(&self) -> CountScope {
        CountScope::Alone
    }
}

/// Detects the concurrent twin of a write early. It decides nothing: the stored record decides.
#[async_trait]
pub trait InFlight: Send + Sync {
    /// Takes the scope until the ticket is dropped; `None` if a twin holds it.
    async fn enter(&self, scope: &Scope) -> Option<Ticket>;

    /// Takes the scope after its current holder has left; `None` if the holder stays longer than `patience`.
    ///
    /// A holder that disappears without leaving blocks the scope for at most its own `patience`. This default does
    /// not wait.
    async fn enter_within(&self, scope: &Scope, patience: Duration) -> Option<Ticket> {
        let _ = patience;
        self.enter(scope).await
    }
}

/// Holds a scope of [`InFlight`] or another permit until it is dropped.
pub struct Ticket(pub Box<dyn Any + Send>);

/// Accepts a write that runs in a batch. Queued writes share a transaction.
#[async_trait]
pub trait Submit<C, R>: Send + Sync {
    /// Queues a command and waits for its result.
    ///
    /// # Errors
    /// [`StoreError::Overloaded`](kernel::StoreError::Overloaded) immediately if the queue is full, [`StoreError::Unavailable`](kernel::StoreError::Unavailable) after the queue was closed,
    /// otherwise what the store reports.
    async fn submit(&self, command: C) -> StoreResult<R>;
}

/// The two operations of every transaction, in addition to those of its entities.
#[async_trait]
pub trait UnitOfWork: Send {
    /// The store's clock. It must be read after the locks were taken.
    async fn now(&mut self) -> StoreResult<Timestamp>;

    /// Commits the transaction. A transaction that is dropped without a commit is rolled back.
    async fn commit(self: Box<Self>) -> StoreResult<()>;
}

/// Stored responses, read before a transaction is opened.
#[async_trait]
pub trait ResponseReads: Send + Sync {
    /// The latest response in a scope, also if it has expired.
    async fn response_get(&self, scope: &Scope) -> StoreResult<Seen<Option<StoredResponse>>>;
}

/// Stored responses, in the transaction of the effect that they report.
#[async_trait]
pub trait ResponseTx: Send {
    /// Loads and locks the latest response in a scope.
    async fn response_lock(&mut self, scope: &Scope) -> StoreResult<Option<StoredResponse>>;

    /// Stores a response. Guard: the scope has no response, or the one created at `expired`.
    async fn response_put(
        &mut self,
        scope: &Scope,
        kept: &StoredResponse,
        expired: Option<Timestamp>,
    ) -> StoreResult<Cas>;
}

/// Access, checked again inside a write.
#[async_trait]
pub trait AccessTx<P>: Send {
    /// A key of the tenant with its partner and entitlements as of this transaction.
    async fn access_get(&mut self, who: &Tenant, key: KeyId)
    -> StoreResult<Option<Arc<Access<P>>>>;
}

/// Events, in the transaction of the change that they report.
#[async_trait]
pub trait EventTx: Send {
    /// Sets the request that has caused the events of this transaction, for work that no request does. The trace parent of a request
    /// that does the work takes precedence.
    fn caused_by(&mut self, request: Option<TraceParent>);

    /// Inserts the event, and a delivery for the currently active endpoint of its service.
    async fn event_insert(&mut self, event: &NewEvent) -> StoreResult<()>;
}

/// A stored event, for the operator's tools.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Its body, sealed for [`crate::events::event_place`].
    pub body: Sealed,
    /// The instant of the reported change.
    pub created_at: Timestamp,
    /// The trace parent of the request that caused it.
    pub trace_parent: Option<TraceParent>,
}

/// Reads of the event queue.
#[async_trait]
pub trait EventReads: Send + Sync {
    /// The events about one object, in order.
    async fn events_of(&self, who: &Tenant, object_id: &str) -> StoreResult<Vec<StoredEvent>>;
}

/// Wakes a queue when there may be work. An unnecessary call is harmless.
pub trait QueueWaker: Send + Sync {
    /// Wakes the queue. Must not block.
    fn wake(&self);
}

/// A worker's request for deliveries.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The mode of the worker.
    pub mode: Mode,
    /// The service whose events it delivers.
    pub service: Service,
    /// The worker's limits, and what it has in flight.
    pub capacity: ClaimCapacity,
    /// The lease token, random and different for each claim.
    pub token: u64,
    /// The duration of the leases.
    pub lease: Duration,
}

/// A claimed delivery with all that an attempt needs, as of the claim.
#[derive(Debug, Clone)]
pub struct ClaimedDelivery {
    /// The partner and mode of the event.
    pub tenant: Tenant,
    /// The delivery.
    pub id: DeliveryId,
    /// Number of concluded attempts.
    pub attempts: u32,
    /// The scheduled instant of the attempt, if the delivery was hastened.
    pub former: Option<Timestamp>,
    pub event: StoredEvent,
    /// The endpoint, with the secrets that currently sign, the newest first.
    pub endpoint: Arc<Endpoint>,
}

/// The result of a claimed delivery's attempt.
#[derive(Debug, Clone)]
pub struct ConcludedDelivery {
    /// The partner and mode of the event.
    pub tenant: Tenant,
    /// The delivery.
    pub id: DeliveryId,
    /// The lease token of the claim.
    pub token: u64,
    /// The outcome of the attempt.
    pub outcome: AttemptOutcome,
    /// The status of the endpoint's response, if it responded.
    pub response_status: Option<u16>,
    /// The error of the attempt, if there was one.
    pub error: Option<String>,
}

/// A stored delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// The delivery.
    pub id: DeliveryId,
    /// The event it delivers.
    pub event_id: String,
    /// Its state and the number of concluded attempts.
    pub progress: Progress,
    /// The status of the latest response.
    pub last_response_status: Option<u16>,
    /// The error of the latest attempt.
    pub last_error: Option<String>,
}

/// Stats of the delivery queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStats {
    /// Deliveries that are due.
    pub due: u64,
    /// Deliveries that wait for their next attempt.
    pub scheduled: u64,
    /// Deliveries that a worker has claimed.
    pub in_flight: u64,
    /// The age of the oldest due delivery, from the instant at which it was due.
    pub oldest_due: Option<Duration>,
}

/// The delivery queue, for workers.
///
/// Per object and endpoint, only the earliest delivery that is neither succeeded nor dead-lettered can be claimed.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Claims due deliveries and divides them among the endpoints by [`crate::webhooks::fairness::allocate`]. Expired
    /// leases end first. A delivery that cannot be read is left out for a while.
    async fn deliveries_claim(&self, order: &ClaimRequest) -> StoreResult<Vec<ClaimedDelivery>>;

    /// Records the results of deliveries, one [`Cas`] per result, in order. If another worker has the lease by now,
    /// the result is [`Cas::Lost`] and the delivery stays unchanged. If another transaction has locked the delivery, the
    /// result is `None`: the caller repeats it later.
    async fn deliveries_conclude(
        &self,
        batch: &[ConcludedDelivery],
    ) -> StoreResult<Vec<Option<Cas>>>;

    /// Applies [`crate::webhooks::delivery::DeliveryInput::Hasten`] to the waiting deliveries of an endpoint, at most `limit`, those that
    /// are due first. Does nothing unless one of the endpoint's oldest open deliveries has failed and is older than
    /// [`crate::webhooks::delivery::MIN_OUTAGE`]. Returns the number of hastened deliveries.
    async fn deliveries_hasten(
        &self,
        who: &Tenant,
        endpoint: EndpointId,
        limit: u32,
    ) -> StoreResult<u64>;

    /// The time until the next delivery of a service is due or the next lease expires, whichever is earlier, by the
    /// clock of the claims.
    async fn deliveries_next(&self, mode: Mode, service: Service) -> StoreResult<Option<Duration>>;

    /// The deliveries about one object, in order.
    async fn deliveries_of(
        &self,
        who: &Tenant,
        object_id: &str,
    ) -> StoreResult<Vec<DeliveryRecord>>;

    /// The stats of a service's delivery queue.
    async fn queue_stats(&self, mode: Mode, service: Service) -> StoreResult<QueueStats>;

    /// Registers a waker, called after each commit of this process that queued deliveries, for as long as the waker
    /// exists.
    fn deliveries_watch(&self, wake: Arc<dyn QueueWaker>);
}

/// A delivery with the details that a partner reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// The delivery.
    pub record: DeliveryRecord,
    /// The type of its event.
    pub event_kind: String,
    /// The URL of the endpoint.
    pub target_url: String,
    /// When its event was written.
    pub created_at: Timestamp,
}

/// Filters of a page of deliveries.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    /// Only deliveries in the state of this name, one of [`crate::webhooks::delivery::DeliveryState::WORDS`].
    pub status: Option<&'static str>,
    /// Only deliveries after this one in the order of the list. An unknown one leaves no delivery.
    pub after: Option<DeliveryId>,
    /// Only deliveries created within this range.
    pub created: CreatedRange,
    /// Number of the newest deliveries to skip. The cost of a page grows with it, so callers limit it.
    pub skip: u32,
}

/// The delivery queue, for the partner that receives the deliveries.
#[async_trait]
pub trait DeliveryAdmin: Send + Sync {
    /// A page of deliveries, by (`created_at`, id) descending, at most `limit`.
    async fn deliveries_page(
        &self,
        who: &Tenant,
        service: Service,
        filter: DeliveryFilter,
        limit: u32,
    ) -> StoreResult<Vec<DeliveryView>>;

    /// One delivery of the tenant.
    async fn delivery_get(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> StoreResult<Option<DeliveryView>>;

    /// Applies [`crate::webhooks::delivery::DeliveryInput::Replay`] to a delivery in one transaction. It is
    /// [`Cas::Lost`] if the replay is not allowed. `None` if there is no such delivery.
    async fn delivery_replay(
        &self,
        who: &Tenant,
        service: Service,
        id: DeliveryId,
    ) -> StoreResult<Option<(Cas, DeliveryView)>>;
}

/// Endpoints, in the transaction of an event.
#[async_trait]
pub trait EndpointTx: Send {
    /// Whether the partner has an endpoint for a service.
    async fn endpoint_is_set(&mut self, who: &Tenant, service: Service) -> StoreResult<bool>;
}

/// The result of checking one invariant of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The invariant's name.
    pub invariant: &'static str,
    /// Descriptions of the breaches, at most 20.
    pub breaches: Vec<String>,
    /// The number of breaches.
    pub count: u64,
}

/// The outcome of checking every invariant over the whole database.
#[derive(Debug, Clone, Default)]
pub struct AuditReport {
    /// The number of rows read per table, and some sums.
    pub figures: Vec<(&'static str, String)>,
    /// One finding per invariant, with or without breaches.
    pub findings: Vec<Finding>,
    /// What an operator must look at although the books are whole, one line each.
    pub open_items: Vec<String>,
}

impl AuditReport {
    /// Whether every invariant holds.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.count == 0)
    }
}

/// The progress of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditStep {
    /// The invariant that is being checked.
    pub invariant: &'static str,
    /// The number of the invariant, starting at 1.
    pub number: usize,
    /// The number of invariants.
    pub of: usize,
    /// The rows read for this invariant so far.
    pub rows: u64,
}

/// Receives the progress of an audit: at the start of each check, and repeatedly during long checks.
pub type AuditProgress<'p> = dyn Fn(AuditStep) + Send + Sync + 'p;

/// Checks the invariants of the database in one snapshot. Every check has a name.
#[async_trait]
pub trait Audit: Send + Sync {
    /// Runs every check. Opens sealed values with `sealer`, and checks each stored response with `is_well_formed`.
    async fn audit(
        &self,
        sealer: &Sealer,
        is_well_formed: ResponseCheck,
        progress: &AuditProgress<'_>,
    ) -> StoreResult<AuditReport>;

    /// Stores the velocity window of this process and since when it applies.
    ///
    /// Only serving processes call it. Audits check past trades by the stored windows.
    async fn velocity_window_keep(&self) -> StoreResult<()>;
}

/// The idempotency records that a step of a sweep examines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySweep {
    /// Only records of this mode are deleted.
    pub mode: Mode,
    /// Only records of this service are deleted.
    pub service: Service,
    /// Only records created after this instant; `None` starts at the oldest.
    pub after: Option<Timestamp>,
    /// Only records of this age or older. Younger records have not expired.
    pub age: Duration,
    /// Only records that expired this long ago or earlier.
    pub grace: Duration,
}

/// The outcome of a step of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeysSwept {
    /// The number of deleted records and previews, and of erased payout accounts.
    pub deleted: u64,
    /// All records created at this instant or earlier have been examined.
    pub reached: Timestamp,
    /// Whether more records of this age remain.
    pub more: bool,
    /// Whether records remain that expire later.
    pub left: bool,
}

/// Maintenance that keeps tables small and fast.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Runs one step of a sweep of idempotency records. Examines about `limit` records from the oldest on. Deletes
    /// the records past their own expiry and expired previews, and erases the payout accounts of payments that ended long
    /// ago.
    async fn idempotency_sweep(&self, sweep: &KeySweep, limit: u32) -> StoreResult<KeysSwept>;

    /// Stores the last uses of keys. An instant earlier than the stored one changes nothing.
    async fn key_uses_record(&self, uses: &[KeyUse]) -> StoreResult<()>;

    /// Gathers statistics again for tables that have grown much since the last time, so that the planner keeps using
    /// the indexes. Returns the number of these tables.
    async fn gather_statistics(&self) -> StoreResult<u64>;
}

/// The store's clock for operators: its refused jumps.
#[async_trait]
pub trait ClockGuard: Send + Sync {
    /// Compares the clock with the elapsed time. It stores a jump for every process of the installation, and applies
    /// what the operator accepted. Returns the jump that is currently refused.
    async fn clock_check(&self) -> StoreResult<Option<ClockJump>>;

    /// The stored jump that the operator has not accepted.
    async fn clock_noted(&self) -> StoreResult<Option<ClockJump>>;

    /// Accepts the stored jump and every instant up to the current one. Returns the jump.
    async fn clock_accept(&self) -> StoreResult<Option<ClockJump>>;
}

/// Whether the store is reachable and its schema is the one that this program requires.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Checks the store.
    async fn ready(&self) -> StoreResult<()>;
}

/// The operator's reads and writes of partners, keys and endpoints, in one transaction.
#[async_trait]
pub trait PartnerTx: UnitOfWork {
    /// The fingerprint of the current master key. The key stays current until the transaction ends.
    async fn master_key(&mut self) -> StoreResult<Option<String>>;
    /// The ids of at most 1,000 partners of a mode, in order.
    async fn partner_ids(&mut self, mode: Mode) -> StoreResult<Vec<PartnerId>>;
    /// Loads and locks a partner.
    async fn partner_lock(&mut self, who: &Tenant) -> StoreResult<Option<Partner>>;
    /// Inserts or replaces a partner.
    async fn partner_put(&mut self, mode: Mode, partner: &Partner) -> StoreResult<()>;
    /// The partner's endpoint for a service.
    async fn endpoint_get(
        &mut self,
        who: &Tenant,
        service: Service,
    ) -> StoreResult<Option<Endpoint>>;
    /// Inserts or replaces the partner's endpoint for a service.
    async fn endpoint_put(&mut self, who: &Tenant, endpoint: &Endpoint) -> StoreResult<()>;
    /// All keys of the partner, the oldest first.
    async fn keys_list(&mut self, who: &Tenant) -> StoreResult<Vec<KeyRecord>>;
    /// The partner of a key hash, in any mode.
    async fn key_owner(
        &mut self,
        hash: &KeyHash,
    ) -> StoreResult<Option<(PartnerId, Mode, KeyRecord)>>;
    /// Stores a new key.
    async fn key_insert(&mut self, who: &Tenant, key: &NewKey) -> StoreResult<()>;
    /// A key of this mode with its partner, by its id.
    async fn key_find(&mut self, id: KeyId) -> StoreResult<Option<(PartnerId, KeyRecord)>>;
    /// Replaces the label and the expiry of a key.
    async fn key_describe(&mut self, who: &Tenant, id: KeyId, terms: &KeyTerms) -> StoreResult<()>;
    /// Stores the sealed text of a publishable key that was stored without it. Guard: the key has no text.
    async fn key_keep_text(&mut self, who: &Tenant, id: KeyId, text: &Sealed) -> StoreResult<Cas>;
    /// Revokes a key. Guard: the key is not revoked.
    async fn key_revoke(&mut self, id: KeyId, at: Timestamp) -> StoreResult<Cas>;
    /// Changes the version that running services watch.
    async fn config_version_raise(&mut self) -> StoreResult<()>;
}

/// The keys of a partner as the operator sees them.
#[derive(Debug, Default)]
pub struct KeysRead {
    /// All keys, the oldest first.
    pub records: Vec<KeyRecord>,
    /// The last use of each key that was ever used.
    pub used: BTreeMap<KeyId, Timestamp>,
    /// The sealed text of each publishable key that is stored with its text.
    pub texts: BTreeMap<KeyId, Sealed>,
}

/// Reads and transactions for the operator's tools. The reads lock nothing, so that a standby suffices.
#[async_trait]
pub trait PartnerStore: Send + Sync {
    /// The partner, if it is provisioned in this mode.
    async fn partner_find(&self, who: &Tenant) -> StoreResult<Option<Partner>>;

    /// The ids of at most 1,000 partners of a mode, in order.
    async fn partner_ids(&self, mode: Mode) -> StoreResult<Vec<PartnerId>>;

    /// The keys of a partner.
    async fn keys_read(&self, who: &Tenant) -> StoreResult<KeysRead>;

    /// Opens a write transaction. `name` labels it in metrics and logs.
    async fn partner_begin(&self, name: &'static str) -> StoreResult<Box<dyn PartnerTx>>;

    /// The fingerprint of the current master key; `None` if the database has no key yet.
    async fn master_key_fingerprint(&self) -> StoreResult<Option<String>>;

    /// The mode of the installation; `None` if no program has stored it yet.
    async fn installation_mode(&self) -> StoreResult<Option<Mode>>;

    /// Stores the mode of the installation and the fingerprint of its first master key, each unless one is stored.
    async fn installation_begin(&self, mode: Mode, fingerprint: &str) -> StoreResult<()>;
}
