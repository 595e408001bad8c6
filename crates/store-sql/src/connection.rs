//! What an engine is for an entity's file: connections, and the transaction that is open on one.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use gate_core::access::GateAccess;
use kernel::{Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::NewEvent;
use partner_core::key::KeyId;
use partner_core::ports::UnitOfWork;
use pools_core::ports::QuoteTx;
use pools_core::trade::TradeStatus;

use crate::{Row, Statement, Value};

/// Receives each row of a statement.
pub type RowVisitor<'v> = &'v mut (dyn FnMut(&dyn Row) -> Result<(), StoreError> + Send);

/// A connection of an engine. It prepares each text once and maps the driver's errors.
#[async_trait]
pub trait Connection: Send {
    /// Runs a statement and returns the number of rows that it wrote.
    async fn execute(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError>;

    /// Returns the first row, if there is one.
    async fn fetch_optional(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Option<Box<dyn Row>>, StoreError>;

    /// Returns all rows. The statement bounds their number.
    async fn fetch_all(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<Box<dyn Row>>, StoreError>;

    /// Shows every row to `visit`. However many rows there are, a few hundred of them at a time are in memory.
    async fn walk(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> Result<(), StoreError>;
}

impl dyn Connection + '_ {
    /// Returns the row of a statement that always returns one.
    pub async fn fetch_one(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Box<dyn Row>, StoreError> {
        let row = self.fetch_optional(statement, values).await?;
        let (table, text) = (statement.table, statement.sql.postgres);
        row.ok_or_else(|| StoreError::unexpected(format!("{table}: no row of: {text}")))
    }
}

/// Reads of one state of the database. Dropped, it ends.
pub trait Snapshot: Send {
    fn connection(&mut self) -> &mut dyn Connection;
}

/// A connection for reads outside a transaction, with the store's clock.
#[async_trait]
pub trait Reader: Send {
    fn connection(&mut self) -> &mut dyn Connection;

    /// The store's instant. Everything that was read before had happened by then.
    async fn now(&mut self) -> Result<Timestamp, StoreError>;

    /// The instant at which a row was read. On Postgres the statement selects it as the column `clock`, which saves an exchange.
    fn instant_of(&self, row: &dyn Row) -> Result<Timestamp, StoreError>;
}

impl dyn Reader + '_ {
    /// Adds the store's instant to a value that was just read.
    pub async fn seen<T: Send>(&mut self, value: T) -> Result<Seen<T>, StoreError> {
        let at = self.now().await?;
        Ok(Seen { value, at })
    }
}

/// A store that opens connections for reads. [`implement_reads`](crate::implement_reads) implements the ports of reads for it.
pub trait ReadStore {
    fn reader(&self) -> impl Future<Output = Result<impl Reader, StoreError>> + Send;

    /// The store's instant.
    fn now(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    /// The name of the installation, after the first read.
    fn identity(&self) -> &OnceLock<String>;
}

/// An open write transaction of an engine. Dropped without a commit, it rolls back.
#[async_trait]
pub trait EngineTx: QuoteTx + UnitOfWork {
    /// The connection, without a lock on a partner.
    fn connection(&mut self) -> &mut dyn Connection;

    /// The connection, from here on as the only transaction that writes the partner's rows. SQLite has one writer; Postgres takes the
    /// partner lock.
    async fn locked(&mut self, who: &Tenant) -> Result<&mut dyn Connection, StoreError>;

    /// Locks the deliveries that the event's object still waits for. SQLite has one writer, so it has nothing to lock.
    async fn lock_deliveries_of_object(&mut self, event: &NewEvent) -> Result<(), StoreError>;

    /// A key of the tenant with its partner and entitlements as of this transaction. The engine caches them.
    async fn access_get(
        &mut self,
        who: &Tenant,
        key: KeyId,
    ) -> Result<Option<Arc<GateAccess>>, StoreError>;

    /// Records that a delivery was queued. The engine wakes the workers after the commit.
    fn record_queued(&mut self);

    /// Locks a partner that must exist. On SQLite a foreign key rejects the write for a missing partner, so there is nothing to do.
    async fn lock_known(&mut self, who: &Tenant) -> Result<(), StoreError>;

    /// Locks a partner that this transaction may have inserted.
    async fn lock_new(&mut self, who: &Tenant) -> Result<(), StoreError>;

    /// Locks the version of the configuration. On SQLite the transaction is the only writer.
    async fn lock_config(&mut self) -> Result<(), StoreError>;

    /// Records a change of what running services cache. The commit stores a new version of the configuration.
    fn record_reconfigured(&mut self);

    /// Counts that a guarded write lost a race.
    fn record_lost_race(&mut self);

    /// Counts the steps of a trade of a locked partner, from each status to the next, if the transaction commits. Postgres stores such
    /// counts in its row of the partner.
    async fn count_trade_steps(
        &mut self,
        who: &Tenant,
        statuses: &[TradeStatus],
    ) -> Result<(), StoreError>;

    /// Ends the transaction without a change. A dropped transaction releases its locks later than that.
    async fn roll_back(self: Box<Self>) -> Result<(), StoreError>;
}
