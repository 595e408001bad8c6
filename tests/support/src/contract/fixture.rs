//! What a store brings along to be tested: its ports, a clock that is set by hand, and ways to
//! open the same database again and to damage it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::GateStore;
use kernel::{Clock, Timestamp};
use partner_core::ports::{
    Audit, ClockGuard, Deliveries, DeliveryAdmin, Directory, EventReads, Maintenance,
    MasterKeyStore, Readiness,
};
use pools_core::ports::{
    Exports, PoolsStore, QuoteRetention, QuoteStore, StatsReads, TransactStore,
};
use provisioning::ports::ProvisionStore;

/// The velocity window every fixture opens with.
pub const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// How long idempotency records count in every fixture.
pub const IDEMPOTENCY_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// A store under test, on a database of its own.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The store's ports.
    fn ports(&self) -> &Ports;

    /// The process's clock, as the store was given it.
    fn clock(&self) -> &ManualClock;

    /// Closes the store and opens its database again, with another velocity window if need be.
    async fn reopen(&mut self, window: Duration);

    /// Opens the same database as another process would, whose clock is its own.
    async fn beside(&self, clock: Arc<ManualClock>) -> Ports;

    /// Gives the configuration, and on a server every partner's row, this version: what a database holds that lost the
    /// newest changes in a failover or a restore.
    async fn set_versions(&self, version: i64);

    /// Runs SQL that no rule of ours would run, with every constraint out of the way. The tables
    /// and columns named in cases are those of every store.
    async fn damage(&self, sql: &str);

    /// SQL for an id made of a number, which is an expression of SQL too.
    fn id(&self, number: &str) -> String;
}

/// A store that keeps the gate too.
pub trait GateFixture: Fixture {
    /// The store's ports of the gate.
    fn gate(&self) -> &GatePorts;
}

/// The ports of the gate.
#[derive(Clone)]
pub struct GatePorts {
    /// Reads and write transactions.
    pub store: Arc<dyn GateStore>,
    /// Deliveries as partners see them.
    pub desk: Arc<dyn DeliveryAdmin>,
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
        S: GateStore + DeliveryAdmin + 'static,
    {
        let store = Arc::new(store);
        Self {
            store: store.clone(),
            desk: store,
        }
    }
}

/// Every port a store implements.
#[derive(Clone)]
pub struct Ports {
    /// Reads and write transactions.
    pub store: Arc<dyn PoolsStore>,
    /// The transact lane.
    pub transact: Arc<dyn TransactStore>,
    /// The quote lane.
    pub quotes: Arc<dyn QuoteStore>,
    /// Old quotes.
    pub retention: Arc<dyn QuoteRetention>,
    /// Keys with their partners.
    pub directory: Arc<dyn Directory>,
    /// The operator's side.
    pub provision: Arc<dyn ProvisionStore>,
    /// Master keys, and what they seal.
    pub master_keys: Arc<dyn MasterKeyStore>,
    /// The event queue.
    pub events: Arc<dyn EventReads>,
    /// The queue of deliveries.
    pub deliveries: Arc<dyn Deliveries>,
    /// Bounded tables.
    pub housekeeping: Arc<dyn Maintenance>,
    /// Jumps of the clock.
    pub clock: Arc<dyn ClockGuard>,
    /// Is the store there?
    pub readiness: Arc<dyn Readiness>,
    /// A partner's books for the operator.
    pub exports: Arc<dyn Exports>,
    /// What an operator watches.
    pub figures: Arc<dyn StatsReads>,
    /// The invariants of the whole database.
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
            + Directory
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

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock {
    millis: AtomicI64,
    /// How much of it no time has passed for.
    jumped: AtomicI64,
}

impl Default for ManualClock {
    /// A day in May 2026, at noon.
    fn default() -> Self {
        Self {
            millis: AtomicI64::new(1_779_710_400_000),
            jumped: AtomicI64::new(0),
        }
    }
}

impl ManualClock {
    /// Moves the clock on.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().plus(span));
    }

    /// Moves the clock back.
    pub fn go_back(&self, span: Duration) {
        self.set(self.now().minus(span));
    }

    /// Sets the clock ahead while no time passes.
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
