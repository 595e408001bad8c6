//! Rows of SQLite, and ids as its columns store them.

use std::borrow::Borrow;
use std::ops::Deref;

use kernel::{Id, IdKind};
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row as _, Type};
use store_sql::{Found, Row, Unreadable};
use ulid::Ulid;

pub(crate) use store_sql::json;

/// A row of a table. It dereferences to [`dyn Row`](Row), whose methods parse its columns.
#[derive(Clone, Copy)]
pub(crate) struct Columns<R> {
    table: &'static str,
    row: R,
}

impl<R> Columns<R>
where
    R: Borrow<SqliteRow>,
{
    pub(crate) const fn new(table: &'static str, row: R) -> Self {
        Self { table, row }
    }

    fn found<'c, T>(&'c self, column: &str) -> Found<T>
    where
        T: Decode<'c, Sqlite> + Type<Sqlite>,
    {
        self.row.borrow().try_get(column).map_err(|_| Unreadable)
    }
}

impl<'r> Deref for Columns<&'r SqliteRow> {
    type Target = dyn Row + 'r;

    fn deref(&self) -> &Self::Target {
        self
    }
}

impl<R> Row for Columns<R>
where
    R: Borrow<SqliteRow> + Send + Sync,
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
        let small = self.as_integer(column)?.map(u16::try_from).transpose();
        small.map_err(|_| Unreadable)
    }

    fn as_flag(&self, column: &str) -> Found<bool> {
        match self.as_integer(column)? {
            None => Ok(None),
            Some(0) => Ok(Some(false)),
            Some(1) => Ok(Some(true)),
            Some(_) => Err(Unreadable),
        }
    }

    fn as_id(&self, column: &str) -> Found<Ulid> {
        let id = self.as_text(column)?.map(Ulid::from_string).transpose();
        id.map_err(|_| Unreadable)
    }
}

/// An id as its column stores it.
pub(crate) fn key<K: IdKind>(id: Id<K>) -> String {
    id.ulid().to_string()
}
