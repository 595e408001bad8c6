//! What the driver reports, as the cores know it. Judged by code, never by text.

use std::borrow::Cow;

use kernel::StoreError;
use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

/// SQLite's primary result codes; the upper bits of an extended code refine them.
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NO_MEMORY: i32 = 7;
const IO: i32 = 10;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const CONSTRAINT: i32 = 19;

/// A fault of a statement inside a transaction or of a read.
pub(crate) fn statement(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::Retry,
        _ => other(error),
    }
}

/// A fault of opening a transaction: nothing was tried, and the writer was waited for already.
pub(crate) fn begin(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::unavailable(error),
        _ => other(error),
    }
}

/// A fault of a commit. Where SQLite says that it did not commit, nothing was written; anything
/// else leaves the outcome open.
pub(crate) fn commit(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::Retry,
        Some(CONSTRAINT) => guard(&error),
        Some(FULL) => StoreError::unavailable(error),
        _ => StoreError::CommitUnknown(error.into()),
    }
}

/// A fault of bringing the schema up to date.
pub(crate) fn migration(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => begin(error),
        MigrateError::VersionMissing(version) => StoreError::unexpected(format!(
            "the database has schema version {version}, which this program does not know: it is \
             older than the program that wrote the database"
        )),
        MigrateError::VersionMismatch(version) => StoreError::unexpected(format!(
            "the database has another schema under version {version} than this program"
        )),
        error => StoreError::unexpected(error),
    }
}

/// A write that hit another number of rows than the rules had decided on.
pub(crate) fn rows(what: &'static str, expected: usize, found: u64) -> StoreError {
    StoreError::Guard(format!("{what}: {expected} rows expected, {found} written"))
}

fn other(error: sqlx::Error) -> StoreError {
    let away = matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
    );
    match primary(&error) {
        Some(CONSTRAINT) => guard(&error),
        Some(NO_MEMORY | IO | FULL | CANNOT_OPEN) => StoreError::unavailable(error),
        _ if away => StoreError::unavailable(error),
        _ => StoreError::unexpected(error),
    }
}

/// SQLite names a broken CHECK, the columns of a broken key, and says only that a reference is
/// broken.
fn guard(error: &sqlx::Error) -> StoreError {
    let said = error.as_database_error().map(DatabaseError::message);
    StoreError::Guard(said.unwrap_or("a constraint").to_owned())
}

/// Does another connection hold what was asked for?
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary(error), Some(BUSY | LOCKED))
}

fn primary(error: &sqlx::Error) -> Option<i32> {
    let code: Cow<'_, str> = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}
