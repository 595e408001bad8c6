//! Runs the shared statements of `store-sql` on Postgres.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use kernel::{StoreResult, Timestamp};
use partner_core::Tenant;
use sqlx::postgres::{PgArguments, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::types::Uuid;
use store_sql::{Connection, ReadStore, Reader, Row, RowVisitor, Snapshot, Statement, Value};
use tokio::sync::OwnedSemaphorePermit;

use crate::clock::{self, StoreClock};
use crate::conn::Conn;
use crate::open::Inner;
use crate::pool::{Pooled, Tx};
use crate::row::Columns;
use crate::{PostgresStore, errors};

#[async_trait]
impl Connection for Conn {
    async fn execute(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<u64> {
        let written = bound(statement, values)?.execute(self).await;
        Ok(written.map_err(errors::statement)?.rows_affected())
    }

    async fn fetch_optional(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Option<Box<dyn Row>>> {
        let row = bound(statement, values)?.fetch_optional(self).await;
        Ok(row
            .map_err(errors::statement)?
            .map(|row| boxed(statement.table, row)))
    }

    async fn fetch_all(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> StoreResult<Vec<Box<dyn Row>>> {
        fetched(statement.table, bound(statement, values)?, self).await
    }

    async fn walk(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> StoreResult<()> {
        let mut rows = bound(statement, values)?.fetch(self);
        while let Some(row) = rows.try_next().await.map_err(errors::statement)? {
            visit(&Columns::new(statement.table, &row))?;
        }
        Ok(())
    }
}

impl Snapshot for Tx {
    fn connection(&mut self) -> &mut dyn Connection {
        &mut **self
    }
}

fn boxed(table: &'static str, row: PgRow) -> Box<dyn Row> {
    Box::new(Columns::new(table, row))
}

/// Runs a query and returns its rows. The query may take arrays, which no [`Value`] is.
pub(crate) async fn fetched(
    table: &'static str,
    query: Query<'static, Postgres, PgArguments>,
    conn: &mut Conn,
) -> StoreResult<Vec<Box<dyn Row>>> {
    let rows = query.fetch_all(conn).await.map_err(errors::statement)?;
    Ok(rows.into_iter().map(|row| boxed(table, row)).collect())
}

fn bound(
    statement: &Statement,
    values: &[Value<'_>],
) -> StoreResult<Query<'static, Postgres, PgArguments>> {
    statement.check(values)?;
    let query = sqlx::query(statement.sql.postgres);
    Ok(values.iter().fold(query, |query, value| match *value {
        Value::Text(text) => query.bind(text),
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Int(number) => query.bind(number),
        Value::Small(number) => query.bind(number),
        Value::Flag(flag) => query.bind(flag),
        Value::Id(id) => query.bind(id.map(|id| Uuid::from_u128(id.0))),
    }))
}

/// A connection outside any transaction.
pub(crate) struct PgReader<'s> {
    connection: Pooled,
    clock: &'s StoreClock,
    /// The turn of a partner that reads a page.
    _turn: Option<OwnedSemaphorePermit>,
}

impl Inner {
    fn read_on(&self, connection: Pooled, turn: Option<OwnedSemaphorePermit>) -> PgReader<'_> {
        PgReader {
            connection,
            clock: &self.clock,
            _turn: turn,
        }
    }
}

impl ReadStore for PostgresStore {
    async fn reader(&self) -> StoreResult<impl Reader> {
        Ok(self.inner.read_on(self.inner.conn().await?, None))
    }

    async fn page_reader(&self, who: &Tenant) -> StoreResult<impl Reader> {
        let turn = self.inner.page_turns.take(who).await?;
        let connection = self.inner.conn().await?;
        Ok(self.inner.read_on(connection, Some(turn)))
    }

    async fn reserved_reader(&self) -> StoreResult<impl Reader> {
        Ok(self.inner.read_on(self.inner.reserved_conn().await?, None))
    }

    async fn export_snapshot(&self) -> StoreResult<Box<dyn Snapshot>> {
        Ok(Box::new(self.inner.long_snapshot().await?))
    }

    async fn now(&self) -> StoreResult<Timestamp> {
        self.reader().await?.now().await
    }

    fn identity(&self) -> &OnceLock<String> {
        &self.inner.identity
    }

    fn idempotency_ttl(&self) -> Duration {
        self.inner.options.idempotency_ttl
    }
}

store_sql::implement_reads!(PostgresStore);
store_sql::implement_ports!(PostgresStore);

#[async_trait]
impl Reader for PgReader<'_> {
    fn connection(&mut self) -> &mut dyn Connection {
        &mut *self.connection
    }

    async fn now(&mut self) -> StoreResult<Timestamp> {
        let server = clock::server(&mut self.connection).await?;
        self.clock.seen(server, 0)
    }

    fn instant_of(&self, row: &dyn Row) -> StoreResult<Timestamp> {
        self.clock.seen(row.integer("clock")?, 0)
    }
}
