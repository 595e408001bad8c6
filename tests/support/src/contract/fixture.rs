//! What a store supplies for the tests: its ports, a clock that tests set, and ways to reopen and damage the database.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::{CustomerForms, GateExports, GateStore, UnusedQuotes};
use gate_core::profile::GateProfile;
use kernel::{Clock, Timestamp};
use partner_core::ports::{
    Audit, ClockGuard, Deliveries, DeliveryAdmin, Directory, EventReads, Maintenance,
    MasterKeyStore, Readiness,
};
use pools_core::ports::{
    Exports, PoolsStore, QuoteRetention, QuoteStore, StatsReads, TransactStore,
};
use pools_core::profile::PoolsProfile;
use provisioning::ports::ProvisionStore;

/// The velocity window of every fixture.
pub const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// Lifetime of idempotency records in every fixture.
pub const IDEMPOTENCY_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// A store under test, with its own database.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The store's ports.
    fn ports(&self) -> &Ports;

    /// The process's clock, which the store uses.
    fn clock(&self) -> &ManualClock;

    /// Closes the store and opens its database again with this velocity window.
    async fn reopen(&mut self, window: Duration);

    /// Opens the same database as a second process with its own clock.
    async fn beside(&self, clock: Arc<ManualClock>) -> Ports;

    /// Sets the version of the configuration, and on Postgres of every partner's row, as after a failover or restore that lost the
    /// newest changes.
    async fn set_versions(&self, version: i64);

    /// Runs SQL that the rules forbid, without constraints. The tables and columns in the cases are those of every store.
    async fn damage(&self, sql: &str);

    /// An SQL expression for an id made from a number, which may be an SQL expression too.
    fn id(&self, number: &str) -> String;
}

/// A store with the gate's ports.
pub trait GateFixture: Fixture {
    /// The store's ports of the gate.
    fn gate(&self) -> &GatePorts;
}

#[derive(Clone)]
pub struct GatePorts {
    /// Reads and write transactions.
    pub store: Arc<dyn GateStore>,
    /// Deliveries as partners see them.
    pub deliveries: Arc<dyn DeliveryAdmin>,
    /// Forms of comparison of earlier customers.
    pub forms: Arc<dyn CustomerForms>,
    /// Deletion of the widget's unused quotes.
    pub unused_quotes: Arc<dyn UnusedQuotes>,
    /// Exports for the operator.
    pub exports: Arc<dyn GateExports>,
}

impl fmt::Debug for GatePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatePorts")
    }
}

impl GatePorts {
    /// The ports of a store that implements them all.
    pub fn of<S>(store: S) -> Self
    where
        S: GateStore + DeliveryAdmin + CustomerForms + UnusedQuotes + GateExports + 'static,
    {
        let store = Arc::new(store);
        Self {
            store: store.clone(),
            deliveries: store.clone(),
            forms: store.clone(),
            unused_quotes: store.clone(),
            exports: store,
        }
    }
}

/// Every port a store implements.
#[derive(Clone)]
pub struct Ports {
    /// Reads and write transactions.
    pub store: Arc<dyn PoolsStore>,
    /// Batches of transacts.
    pub transact: Arc<dyn TransactStore>,
    /// Batches of quotes.
    pub quotes: Arc<dyn QuoteStore>,
    /// Deletion of old quotes.
    pub retention: Arc<dyn QuoteRetention>,
    /// Keys with their partners and these partners' access to pools.
    pub directory: Arc<dyn Directory<PoolsProfile>>,
    /// Keys with their partners and these partners' access to the gate.
    pub gate_directory: Arc<dyn Directory<GateProfile>>,
    /// Provisioning by the operator.
    pub provision: Arc<dyn ProvisionStore>,
    /// Master keys and sealed values.
    pub master_keys: Arc<dyn MasterKeyStore>,
    /// The event queue.
    pub events: Arc<dyn EventReads>,
    /// The queue of deliveries.
    pub deliveries: Arc<dyn Deliveries>,
    /// Sweeps of tables.
    pub housekeeping: Arc<dyn Maintenance>,
    /// Jumps of the clock.
    pub clock: Arc<dyn ClockGuard>,
    /// Readiness of the store.
    pub readiness: Arc<dyn Readiness>,
    /// Exports for the operator.
    pub exports: Arc<dyn Exports>,
    /// Statistics for the operator.
    pub figures: Arc<dyn StatsReads>,
    /// The audit of the whole database.
    pub audit: Arc<dyn Audit>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ports")
    }
}

impl Ports {
    /// The ports of a store that implements them all.
    pub fn of<S>(store: S) -> Self
    where
        S: PoolsStore
            + TransactStore
            + QuoteStore
            + QuoteRetention
            + Directory<PoolsProfile>
            + Directory<GateProfile>
            + ProvisionStore
            + MasterKeyStore
            + EventReads
            + Deliveries
            + Maintenance
            + ClockGuard
            + Readiness
            + Exports
            + StatsReads
            + Audit
            + 'static,
    {
        let store = Arc::new(store);
        Self {
            store: store.clone(),
            transact: store.clone(),
            quotes: store.clone(),
            retention: store.clone(),
            directory: store.clone(),
            gate_directory: store.clone(),
            provision: store.clone(),
            master_keys: store.clone(),
            events: store.clone(),
            deliveries: store.clone(),
            housekeeping: store.clone(),
            clock: store.clone(),
            readiness: store.clone(),
            exports: store.clone(),
            figures: store.clone(),
            audit: store,
        }
    }
}

/// A clock that moves only when a test sets it.
#[derive(Debug)]
pub struct ManualClock {
    millis: AtomicI64,
    /// The part of its movement in which no monotonic time has passed.
    jumped: AtomicI64,
}

impl Default for ManualClock {
    /// Noon of a day in May 2026.
    fn default() -> Self {
        Self {
            millis: AtomicI64::new(1_779_710_400_000),
            jumped: AtomicI64::new(0),
        }
    }
}

impl ManualClock {
    /// Advances the clock.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().plus(span));
    }

    /// Sets the clock back.
    pub fn go_back(&self, span: Duration) {
        self.set(self.now().minus(span));
    }

    /// Sets the clock ahead without monotonic time.
    pub fn jump(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).expect("a span of a test");
        self.jumped.fetch_add(millis, Ordering::AcqRel);
        self.millis.fetch_add(millis, Ordering::AcqRel);
    }

    /// Sets the clock.
    pub fn set(&self, at: Timestamp) {
        self.millis.store(at.millis(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let millis = self.millis.load(Ordering::Acquire);
        Timestamp::from_millis(millis).expect("a clock set by a test")
    }

    fn elapsed(&self) -> Duration {
        let passed = self.millis.load(Ordering::Acquire) - self.jumped.load(Ordering::Acquire);
        Duration::from_millis(passed.max(0).unsigned_abs())
    }
}
