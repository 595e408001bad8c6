//! Converts the driver's errors to [`StoreError`], by their codes and never by their texts.

use std::borrow::Cow;
use std::error::Error;
use std::path::Path;

use kernel::{NoWrites, NoWritesReason, StoreError};
use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

pub(crate) use store_sql::exactly;

use crate::files::{self, FULL, ForeignFile, NOT_A_DATABASE, READ_ONLY};

/// SQLite's primary result codes: the lower 8 bits of an extended code.
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NO_MEMORY: i32 = 7;
const CONSTRAINT: i32 = 19;

/// An error of a statement in a transaction, or of a read.
pub(crate) fn statement(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::Retry,
        _ => other(error, None),
    }
}

/// An error of opening a database file, before the file was changed.
pub(crate) fn opening(file: &Path, error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::unavailable(error),
        Some(NOT_A_DATABASE) => StoreError::unexpected(ForeignFile::of_another_kind(file)),
        _ => other(error, Some(file)),
    }
}

/// An error of beginning a transaction. The busy timeout has passed already, so the caller does not retry. The lock is that of the
/// whole database.
pub(crate) fn begin(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::busy(error),
        _ => other(error, None),
    }
}

/// An error of a commit. The outcome is unknown unless SQLite's code says that it did not commit.
pub(crate) fn commit(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::Retry,
        Some(CONSTRAINT) => guard(&error),
        Some(FULL) => StoreError::unavailable(explained(error, None)),
        _ => StoreError::CommitUnknown(explained(error, None)),
    }
}

/// An error of a migration.
pub(crate) fn migration(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => begin(error),
        MigrateError::VersionMissing(version) => StoreError::unexpected(format!(
            "the database has schema version {version}, which this program does not know: it is \
             older than the program that wrote the database"
        )),
        MigrateError::VersionMismatch(version) => StoreError::unexpected(format!(
            "schema version {version} of the database differs from this program's"
        )),
        error => StoreError::unexpected(error),
    }
}

fn other(error: sqlx::Error, file: Option<&Path>) -> StoreError {
    let is_unavailable = matches!(
        error,
        sqlx::Error::Io(_) | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed
    );
    match primary(&error) {
        Some(CONSTRAINT) => guard(&error),
        Some(NO_MEMORY) => StoreError::unavailable(error),
        Some(code) if files::explain(code, file).is_some() => {
            StoreError::unavailable(explained(error, file))
        }
        _ if matches!(error, sqlx::Error::PoolTimedOut) => StoreError::busy(error),
        _ if is_unavailable => StoreError::unavailable(error),
        _ => StoreError::unexpected(error),
    }
}

/// The problem with the file and its remedy, followed by SQLite's code and message.
fn explained(error: sqlx::Error, file: Option<&Path>) -> Box<dyn Error + Send + Sync> {
    let explanation = primary(&error).and_then(|code| files::explain(code, file));
    match (explanation, error.as_database_error()) {
        (Some(explanation), Some(reported)) => {
            let code = reported.code().unwrap_or_default();
            let message = reported.message();
            let cause = format!("{explanation} (SQLite code {code}: {message})");
            match primary(&error) {
                Some(FULL) => no_writes(NoWritesReason::DiskFull, cause),
                Some(READ_ONLY) => no_writes(NoWritesReason::ReadOnly, cause),
                _ => cause.into(),
            }
        }
        _ => error.into(),
    }
}

fn no_writes(reason: NoWritesReason, cause: String) -> Box<dyn Error + Send + Sync> {
    Box::new(NoWrites { reason, cause })
}

/// SQLite's message names a violated `CHECK` and the columns of a violated key. Of a foreign key it names nothing.
fn guard(error: &sqlx::Error) -> StoreError {
    let message = error.as_database_error().map(DatabaseError::message);
    StoreError::Guard(message.unwrap_or("a constraint").to_owned())
}

/// Does another connection hold the lock?
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary(error), Some(BUSY | LOCKED))
}

fn primary(error: &sqlx::Error) -> Option<i32> {
    let code: Cow<'_, str> = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

    use super::*;

    async fn error_of(conn: &mut SqliteConnection, sql: &'static str) -> sqlx::Error {
        sqlx::raw_sql(sql).execute(conn).await.unwrap_err()
    }

    /// A database file has no lock of one partner.
    #[tokio::test]
    async fn lock_of_the_file_and_missing_connection_concern_every_partner() {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("penstock.db"))
            .create_if_missing(true)
            .busy_timeout(Duration::ZERO);
        let mut holder = options.connect().await.unwrap();
        let mut conn = options.connect().await.unwrap();
        sqlx::raw_sql("BEGIN IMMEDIATE")
            .execute(&mut holder)
            .await
            .unwrap();
        let locked = error_of(&mut conn, "BEGIN IMMEDIATE").await;
        assert!(begin(locked).is_busy());
        assert!(begin(sqlx::Error::PoolTimedOut).is_busy());
        assert!(!begin(sqlx::Error::PoolClosed).is_busy());
    }

    // rule: cli.database-faults
    #[tokio::test]
    async fn file_and_disk_errors_name_remedy_and_code() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("penstock.db");
        let options = SqliteConnectOptions::new().filename(&path);
        let options = options.create_if_missing(true);
        let mut conn = options.connect().await.unwrap();
        sqlx::raw_sql("CREATE TABLE notes (text TEXT); PRAGMA max_page_count = 2")
            .execute(&mut conn)
            .await
            .unwrap();
        let full = "INSERT INTO notes VALUES (printf('%9999d', 1))";
        let message_of = |fault: &StoreError| {
            assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
            kernel::causes(fault)
        };
        let fault = error_of(&mut conn, full).await;
        let message = message_of(&commit(fault));
        assert!(message.contains(" is full: free space on it"), "{message}");
        assert!(
            message.ends_with("(SQLite code 13: database or disk is full)"),
            "{message}"
        );
        let named = format!("the disk of {} is full: ", path.display());
        let fault = error_of(&mut conn, full).await;
        let message = message_of(&opening(&path, fault));
        assert!(message.contains(&named), "{message}");
        sqlx::raw_sql("PRAGMA query_only = ON")
            .execute(&mut conn)
            .await
            .unwrap();
        let fault = error_of(&mut conn, "DELETE FROM notes").await;
        let message = message_of(&opening(&path, fault));
        let named = format!("{} cannot be written: check that user ", path.display());
        assert!(message.contains(&named), "{message}");
        conn.close().await.unwrap();
        let options = SqliteConnectOptions::new().filename(folder.path().join("gone"));
        let fault = options.connect().await.unwrap_err();
        let message = message_of(&statement(fault));
        assert!(
            message.contains(" cannot be opened: check that "),
            "{message}"
        );
    }

    #[test]
    fn extended_file_codes_are_explained_as_their_primary_codes() {
        for (extended, part) in [
            (1544, "cannot be written"),
            (264, "cannot be written"),
            (526, "cannot be opened"),
            (523, "is damaged"),
            (778, "fails to read or write"),
        ] {
            let message = files::explain(extended & 0xff, None).unwrap();
            assert!(message.contains(part), "{extended}: {message}");
        }
        assert_eq!(files::explain(CONSTRAINT, None), None);
    }
}
