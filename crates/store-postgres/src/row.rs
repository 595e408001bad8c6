//! Rows of Postgres, and ids as its columns store them.

use std::borrow::Borrow;
use std::ops::Deref;

use kernel::{Id, IdKind, StoreResult};
use sqlx::postgres::{PgRow, Postgres};
use sqlx::types::Uuid;
use sqlx::{Decode, Row as _, Type};
use store_sql::{Found, Row, Unreadable};
use ulid::Ulid;

/// A row of a table. It dereferences to [`dyn Row`](Row), whose methods parse its columns.
#[derive(Clone, Copy)]
pub(crate) struct Columns<R> {
    table: &'static str,
    row: R,
}

impl<R> Columns<R>
where
    R: Borrow<PgRow>,
{
    pub(crate) const fn new(table: &'static str, row: R) -> Self {
        Self { table, row }
    }

    fn found<'c, T>(&'c self, column: &str) -> Found<T>
    where
        T: Decode<'c, Postgres> + Type<Postgres>,
    {
        self.row.borrow().try_get(column).map_err(|_| Unreadable)
    }
}

impl<'r> Columns<&'r PgRow> {
    /// A column of a type that only Postgres has.
    pub(crate) fn get<T>(&self, column: &'static str) -> StoreResult<T>
    where
        T: Decode<'r, Postgres> + Type<Postgres>,
    {
        self.row.try_get(column).map_err(|_| self.bad(column))
    }
}

impl<'r> Deref for Columns<&'r PgRow> {
    type Target = dyn Row + 'r;

    fn deref(&self) -> &Self::Target {
        self
    }
}

impl<R> Row for Columns<R>
where
    R: Borrow<PgRow> + Send + Sync,
{
    fn table(&self) -> &'static str {
        self.table
    }

    fn as_text(&self, column: &str) -> Found<&str> {
        self.found(column)
    }

    fn as_bytes(&self, column: &str) -> Found<&[u8]> {
        self.found(column)
    }

    fn as_integer(&self, column: &str) -> Found<i64> {
        self.found(column)
    }

    fn as_small(&self, column: &str) -> Found<u16> {
        let small: Option<i16> = self.found(column)?;
        let small = small.map(u16::try_from).transpose();
        small.map_err(|_| Unreadable)
    }

    fn as_flag(&self, column: &str) -> Found<bool> {
        self.found(column)
    }

    fn as_id(&self, column: &str) -> Found<Ulid> {
        let id: Option<Uuid> = self.found(column)?;
        Ok(id.map(|id| Ulid(id.as_u128())))
    }
}

/// The text of a stored id.
pub(crate) fn written(id: Uuid) -> String {
    Ulid(id.as_u128()).to_string()
}

/// An id as its column stores it.
pub(crate) fn key<K: IdKind>(id: Id<K>) -> Uuid {
    Uuid::from_u128(id.ulid().0)
}

/// A column of the rows of a set, as a parameter.
pub(crate) fn column<'s, S, T>(rows: &'s [S], of: impl Fn(&'s S) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}
