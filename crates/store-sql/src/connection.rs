//! What an engine is for an entity's file: connections, and the transaction that is open on one.

use async_trait::async_trait;
use kernel::{Seen, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::{Endpoint, Service};
use partner_core::ports::UnitOfWork;

use crate::unconverted::Unconverted;
use crate::{Row, Statement, Value};

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

/// An open write transaction of an engine. Dropped without a commit, it rolls back.
#[async_trait]
pub trait EngineTx: Unconverted + UnitOfWork {
    /// The connection, without a lock on a partner.
    fn connection(&mut self) -> &mut dyn Connection;

    /// The connection, from here on as the only transaction that writes the partner's rows. SQLite has one writer; Postgres takes the
    /// partner lock.
    async fn locked(&mut self, who: &Tenant) -> Result<&mut dyn Connection, StoreError>;

    /// Locks a partner that must exist. On SQLite a foreign key rejects the write for a missing partner, so there is nothing to do.
    async fn lock_known(&mut self, who: &Tenant) -> Result<(), StoreError>;

    /// Locks a partner that this transaction may have inserted.
    async fn lock_new(&mut self, who: &Tenant) -> Result<(), StoreError>;

    /// The partner's endpoint for a service.
    async fn endpoint_get(
        &mut self,
        who: &Tenant,
        service: Service,
    ) -> Result<Option<Endpoint>, StoreError>;

    /// Inserts or replaces an endpoint of a locked partner.
    async fn endpoint_put(&mut self, who: &Tenant, endpoint: &Endpoint) -> Result<(), StoreError>;

    /// Locks the version of the configuration. On SQLite the transaction is the only writer.
    async fn lock_config(&mut self) -> Result<(), StoreError>;

    /// Records a change of what running services cache. The commit stores a new version of the configuration.
    fn record_reconfigured(&mut self);

    /// Counts that a guarded write lost a race.
    fn record_lost_race(&mut self);
}
