//! Runs the shared statements of `store-sql` on SQLite.

use std::ops::DerefMut;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use kernel::{StoreResult, Timestamp};
use partner_core::Tenant;
use sqlx::Transaction;
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use store_sql::{Connection, ReadStore, Reader, Row, RowVisitor, Snapshot, Statement, Value};
use tokio::sync::OwnedSemaphorePermit;

use crate::clock::StoreClock;
use crate::open::Inner;
use crate::row::Columns;
use crate::{SqliteStore, errors};

/// A connection of the pool or of a transaction.
pub(crate) struct Link<C>(pub(crate) C);

#[async_trait]
impl<C> Connection for Link<C>
where
    C: DerefMut<Target = SqliteConnection> + Send,
{
    async fn execute(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<u64> {
        let written = bound(statement, values)?.execute(&mut *self.0).await;
        Ok(written.map_err(errors::statement)?.rows_affected())
    }

    async fn fetch_optional(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Option<Box<dyn Row>>> {
        let query = bound(statement, values)?;
        let row = query.fetch_optional(&mut *self.0).await;
        Ok(row
            .map_err(errors::statement)?
            .map(|row| boxed(statement, row)))
    }

    async fn fetch_all(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Vec<Box<dyn Row>>> {
        let rows = bound(statement, values)?.fetch_all(&mut *self.0).await;
        let rows = rows.map_err(errors::statement)?;
        Ok(rows.into_iter().map(|row| boxed(statement, row)).collect())
    }

    async fn walk(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> StoreResult<()> {
        let mut rows = bound(statement, values)?.fetch(&mut *self.0);
        while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
            visit(&Columns::new(statement.table, &row))?;
        }
        Ok(())
    }
}

impl Snapshot for Link<Transaction<'static, Sqlite>> {
    fn connection(&mut self) -> &mut dyn Connection {
        self
    }
}

fn boxed(statement: &Statement, row: SqliteRow) -> Box<dyn Row> {
    Box::new(Columns::new(statement.table, row))
}

fn bound(
    statement: &Statement,
    values: &[Value<'_>],
) -> StoreResult<Query<'static, Sqlite, SqliteArguments>> {
    statement.check(values)?;
    let query = sqlx::query(statement.sql.sqlite);
    Ok(values.iter().fold(query, |query, value| match *value {
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Int(number) => query.bind(number),
        Value::Small(number) => query.bind(number),
        Value::Flag(flag) => query.bind(flag),
        Value::Id(id) => query.bind(id.map(|id| id.to_string())),
    }))
}

/// A connection that only reads.
pub(crate) struct SqliteReader<'s> {
    connection: Link<PoolConnection<Sqlite>>,
    clock: &'s StoreClock,
    /// The turn of a partner that reads a page.
    _turn: Option<OwnedSemaphorePermit>,
}

impl Inner {
    pub(crate) fn read_on(
        &self,
        connection: PoolConnection<Sqlite>,
        turn: Option<OwnedSemaphorePermit>,
    ) -> SqliteReader<'_> {
        SqliteReader {
            connection: Link(connection),
            clock: &self.clock,
            _turn: turn,
        }
    }
}

impl ReadStore for SqliteStore {
    async fn reader(&self) -> StoreResult<impl Reader> {
        Ok(self.inner.read_on(self.inner.reader().await?, None))
    }

    async fn page_reader(&self, who: &Tenant) -> StoreResult<impl Reader> {
        let turn = self.inner.turns.take(who).await?;
        let connection = self.inner.reader().await?;
        Ok(self.inner.read_on(connection, Some(turn)))
    }

    async fn reserved_reader(&self) -> StoreResult<impl Reader> {
        Ok(self
            .inner
            .read_on(self.inner.reserved_reader().await?, None))
    }

    async fn export_snapshot(&self) -> StoreResult<Box<dyn Snapshot>> {
        Ok(Box::new(Link(self.inner.snapshot().await?)))
    }

    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(self.inner.clock.now())
    }

    fn identity(&self) -> &OnceLock<String> {
        &self.inner.identity
    }

    fn idempotency_ttl(&self) -> Duration {
        self.inner.options.idempotency_ttl
    }
}

store_sql::implement_reads!(SqliteStore);
store_sql::implement_ports!(SqliteStore);

#[async_trait]
impl Reader for SqliteReader<'_> {
    fn connection(&mut self) -> &mut dyn Connection {
        &mut self.connection
    }

    async fn now(&mut self) -> StoreResult<Timestamp> {
        Ok(self.clock.now())
    }

    /// Reads the process's clock, so no statement selects the instant.
    fn instant_of(&self, _: &dyn Row) -> StoreResult<Timestamp> {
        Ok(self.clock.now())
    }
}
