//! The interface between an engine and the entities' files: connections, snapshots, readers and write transactions.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::access::GateAccess;
use instruments::store::Transaction;
use kernel::{Seen, StoreError, StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::key::KeyId;
use partner_core::ports::UnitOfWork;
use pools_core::trade::TradeStatus;

use crate::deliveries::Watchers;
use crate::{Row, Statement, Value};

/// Receives each row of a statement.
pub type RowVisitor<'v> = &'v mut (dyn FnMut(&dyn Row) -> StoreResult<()> + Send);

/// A connection of an engine. It prepares each text once and maps the driver's errors.
#[async_trait]
pub trait Connection: Send {
    /// Runs a statement and returns the number of rows that it wrote.
    async fn execute(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<u64>;

    /// Returns the first row, or `None`.
    async fn fetch_optional(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Option<Box<dyn Row>>>;

    /// Returns all rows. The statement bounds their number.
    async fn fetch_all(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Vec<Box<dyn Row>>>;

    /// Passes each row to `visit`. At most a few hundred rows are in memory at a time.
    async fn walk(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> StoreResult<()>;
}

impl dyn Connection + '_ {
    /// Returns the row of a statement that returns exactly one.
    pub async fn fetch_one(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Box<dyn Row>> {
        let row = self.fetch_optional(statement, values).await?;
        let (table, text) = (statement.table, statement.sql.postgres);
        row.ok_or_else(|| StoreError::unexpected(format!("{table}: no row of: {text}")))
    }
}

/// A snapshot of the database. It ends when it is dropped.
pub trait Snapshot: Send {
    fn connection(&mut self) -> &mut dyn Connection;
}

/// A connection for reads outside a transaction, with the store's clock.
#[async_trait]
pub trait Reader: Send {
    fn connection(&mut self) -> &mut dyn Connection;

    /// The store's instant. It is not earlier than anything read before.
    async fn now(&mut self) -> StoreResult<Timestamp>;

    /// The instant at which a row was read. On Postgres the statement selects it as the column `clock`, which saves an exchange.
    fn instant_of(&self, row: &dyn Row) -> StoreResult<Timestamp>;
}

impl dyn Reader + '_ {
    /// Adds the store's instant to a value that was just read.
    pub async fn seen<T: Send>(&mut self, value: T) -> StoreResult<Seen<T>> {
        let at = self.now().await?;
        Ok(Seen { value, at })
    }
}

/// A store that opens connections for reads. [`implement_reads`](crate::implement_reads) and
/// [`implement_ports`](crate::implement_ports) implement ports for it.
pub trait ReadStore {
    fn reader(&self) -> impl Future<Output = StoreResult<impl Reader>> + Send;

    /// A reader for a page of a partner. At most half of the connections read pages of one partner at the same time.
    fn page_reader(&self, who: &Tenant) -> impl Future<Output = StoreResult<impl Reader>> + Send;

    /// A reader for what keeps the service up. It never waits for partners.
    fn reserved_reader(&self) -> impl Future<Output = StoreResult<impl Reader>> + Send;

    /// A snapshot for an export, whose reader may be slow.
    fn export_snapshot(&self) -> impl Future<Output = StoreResult<Box<dyn Snapshot>>> + Send;

    /// The store's instant.
    fn now(&self) -> impl Future<Output = StoreResult<Timestamp>> + Send;

    /// The installation's identity, after it was read.
    fn identity(&self) -> &OnceLock<String>;

    /// The configured lifetime of idempotency records.
    fn idempotency_ttl(&self) -> Duration;
}

/// What a write transaction has done beside its rows.
#[derive(Debug)]
pub struct Effects {
    /// Records the transaction's outcome.
    pub measured: Transaction,
    /// Has it changed what running services cache? Then the commit stores a new version of the configuration.
    pub reconfigured: bool,
    /// Has it queued deliveries? Then their workers wake after the commit.
    pub queued: bool,
}

impl Effects {
    /// Begins the transaction of this name.
    #[must_use]
    pub fn begin(name: &'static str) -> Self {
        Self {
            measured: Transaction::begin(name),
            reconfigured: false,
            queued: false,
        }
    }

    /// Commits, counts the outcome, and wakes the workers.
    pub async fn commit(
        self,
        watchers: &Watchers,
        committing: impl Future<Output = StoreResult<()>>,
    ) -> StoreResult<()> {
        let committed = self.measured.commit(committing).await;
        if self.queued {
            watchers.wake();
        }
        committed
    }
}

/// An open write transaction of an engine. It rolls back if it is dropped before its commit.
#[async_trait]
pub trait EngineTx: UnitOfWork {
    /// The connection, without a lock on a partner.
    fn connection(&mut self) -> &mut dyn Connection;

    /// The configured lifetime of idempotency records.
    fn idempotency_ttl(&self) -> Duration;

    /// The connection, after the partner was locked: no other transaction writes the partner's rows until this one ends. SQLite has
    /// one writer; Postgres takes the partner lock.
    async fn locked(&mut self, who: &Tenant) -> StoreResult<&mut dyn Connection>;

    /// Do other transactions write meanwhile, so that this one locks the rows it depends on? SQLite has one writer.
    fn locks_rows(&self) -> bool;

    /// A key of the tenant with its partner and entitlements as of this transaction. The engine caches them.
    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> StoreResult<Option<Arc<GateAccess>>>;

    /// What the transaction has done beside its rows.
    fn effects(&mut self) -> &mut Effects;

    /// Locks a partner that must exist. SQLite does nothing, because a foreign key rejects a write for a missing partner.
    async fn lock_known(&mut self, who: &Tenant) -> StoreResult<()>;

    /// Locks a partner that this transaction may have inserted.
    async fn lock_new(&mut self, who: &Tenant) -> StoreResult<()>;

    /// Locks the version of the configuration. SQLite does nothing, because the transaction is the only writer.
    async fn lock_config(&mut self) -> StoreResult<()>;

    /// Counts a change of status of a locked partner's trade. Postgres stores such counts in its row of the partner; SQLite does
    /// nothing, because it counts the stored transitions.
    async fn count_trade(
        &mut self,
        who: &Tenant,
        from: TradeStatus,
        to: TradeStatus,
    ) -> StoreResult<()>;

    /// Makes every instant of this transaction no earlier than one that it has read. SQLite's clock is never earlier.
    fn after(&mut self, read: Timestamp);

    /// Rolls back and waits for it. A dropped transaction releases its locks later.
    async fn roll_back(self: Box<Self>) -> StoreResult<()>;
}
