//! What the driver reports, as the cores know it. Judged by code, never by text.

use std::borrow::Cow;
use std::error::Error;
use std::path::Path;

use kernel::StoreError;
use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

use crate::files::{self, FULL, ForeignFile, NOT_A_DATABASE};

/// SQLite's primary result codes; the upper bits of an extended code refine them.
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NO_MEMORY: i32 = 7;
const CONSTRAINT: i32 = 19;

/// A fault of a statement inside a transaction or of a read.
pub(crate) fn statement(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::Retry,
        _ => other(error, None),
    }
}

/// A fault of opening the database in a file, before anything of it was changed.
pub(crate) fn opening(file: &Path, error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::unavailable(error),
        Some(NOT_A_DATABASE) => StoreError::unexpected(ForeignFile::of_another_kind(file)),
        _ => other(error, Some(file)),
    }
}

/// A fault of opening a transaction: nothing was tried, and the writer was waited for already.
pub(crate) fn begin(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::unavailable(error),
        _ => other(error, None),
    }
}

/// A fault of a commit. Where SQLite says that it did not commit, nothing was written; anything
/// else leaves the outcome open.
pub(crate) fn commit(error: sqlx::Error) -> StoreError {
    match primary(&error) {
        Some(BUSY | LOCKED) => StoreError::Retry,
        Some(CONSTRAINT) => guard(&error),
        Some(FULL) => StoreError::unavailable(said(error, None)),
        _ => StoreError::CommitUnknown(said(error, None)),
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

fn other(error: sqlx::Error, file: Option<&Path>) -> StoreError {
    let away = matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
    );
    match primary(&error) {
        Some(CONSTRAINT) => guard(&error),
        Some(NO_MEMORY) => StoreError::unavailable(error),
        Some(code) if files::explain(code, file).is_some() => {
            StoreError::unavailable(said(error, file))
        }
        _ if away => StoreError::unavailable(error),
        _ => StoreError::unexpected(error),
    }
}

/// What is wrong with the file and what to do, then what SQLite says.
fn said(error: sqlx::Error, file: Option<&Path>) -> Box<dyn Error + Send + Sync> {
    let explained = primary(&error).and_then(|code| files::explain(code, file));
    match (explained, error.as_database_error()) {
        (Some(explained), Some(reported)) => {
            let code = reported.code().unwrap_or_default();
            let message = reported.message();
            format!("{explained} (SQLite code {code}: {message})").into()
        }
        _ => error.into(),
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

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

    use super::*;

    async fn refused(conn: &mut SqliteConnection, sql: &'static str) -> sqlx::Error {
        sqlx::raw_sql(sql).execute(conn).await.unwrap_err()
    }

    // rule: cli.database-faults
    #[tokio::test]
    async fn faults_of_file_and_disk_name_the_remedy_and_the_code() {
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
        let told = |fault: &StoreError| {
            assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
            kernel::causes(fault)
        };
        let fault = refused(&mut conn, full).await;
        let said = told(&commit(fault));
        assert!(said.contains(" is full: free space on it"), "{said}");
        assert!(
            said.ends_with("(SQLite code 13: database or disk is full)"),
            "{said}"
        );
        let named = format!("the disk of {} is full: ", path.display());
        let fault = refused(&mut conn, full).await;
        let said = told(&opening(&path, fault));
        assert!(said.contains(&named), "{said}");
        sqlx::raw_sql("PRAGMA query_only = ON")
            .execute(&mut conn)
            .await
            .unwrap();
        let fault = refused(&mut conn, "DELETE FROM notes").await;
        let said = told(&opening(&path, fault));
        let named = format!("{} cannot be written: check that user ", path.display());
        assert!(said.contains(&named), "{said}");
        conn.close().await.unwrap();
        let options = SqliteConnectOptions::new().filename(folder.path().join("gone"));
        let fault = options.connect().await.unwrap_err();
        let said = told(&statement(fault));
        assert!(said.contains(" cannot be opened: check that "), "{said}");
    }

    #[test]
    fn extended_codes_of_files_are_explained_as_their_primary_ones() {
        for (extended, part) in [
            (1544, "cannot be written"),
            (264, "cannot be written"),
            (526, "cannot be opened"),
            (523, "is damaged"),
            (778, "fails to read or write"),
        ] {
            let told = files::explain(extended & 0xff, None).unwrap();
            assert!(told.contains(part), "{extended}: {told}");
        }
        assert_eq!(files::explain(CONSTRAINT, None), None);
    }
}
