//! What the driver reports, as the cores know it. Judged by code, never by text.

use std::borrow::Cow;

use kernel::StoreError;
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK: &str = "40P01";
const LOCK_TIMEOUT: &str = "55P03";
const QUERY_CANCELED: &str = "57014";
const NO_SUCH_TABLE: &str = "42P01";
const READ_ONLY: &str = "25006";
const IDLE_TOO_LONG: &str = "25P03";

/// Classes of codes: the first two characters.
const CONSTRAINT: &str = "23";
const CONNECTION: &str = "08";
/// Such as for a password that was changed: the next one may be right.
const NOT_LET_IN: &str = "28";
const NO_RESOURCES: &str = "53";
const SHUTTING_DOWN: &str = "57";
const SYSTEM: &str = "58";

/// A fault of a statement inside a transaction or of a read.
pub(crate) fn statement(error: sqlx::Error) -> StoreError {
    match code(&error).as_deref() {
        Some(SERIALIZATION_FAILURE | DEADLOCK) => StoreError::Retry,
        Some(code) if code.starts_with(CONSTRAINT) => guard(&error),
        Some(code) if is_away(code) => StoreError::unavailable(error),
        None if is_broken(&error) => StoreError::unavailable(error),
        _ => StoreError::unexpected(error),
    }
}

/// A fault of a commit. Where the server says that it did not commit, nothing was written; anything
/// else leaves the outcome open, and so does a statement that commits by itself.
pub(crate) fn commit(error: sqlx::Error) -> StoreError {
    match code(&error).as_deref() {
        Some(SERIALIZATION_FAILURE | DEADLOCK) => StoreError::Retry,
        Some(code) if code.starts_with(CONSTRAINT) => guard(&error),
        Some(LOCK_TIMEOUT | QUERY_CANCELED) => StoreError::unavailable(error),
        None if matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => {
            StoreError::unavailable(error)
        }
        _ => StoreError::CommitUnknown(error.into()),
    }
}

/// A fault of bringing the schema up to date.
pub(crate) fn migration(error: MigrateError) -> StoreError {
    match error {
        MigrateError::ExecuteMigration(error, version)
            if code(&error).as_deref() == Some(LOCK_TIMEOUT) =>
        {
            StoreError::unavailable(format!(
                "a table that schema version {version} changes is being read for long, by an audit, a backup or another \
                 program: migrate once that is over"
            ))
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => statement(error),
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

/// Is there no such table?
pub(crate) fn is_no_table(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some(NO_SUCH_TABLE)
}

/// The server, or a lock of it, cannot be had now; it has rolled back.
fn is_away(code: &str) -> bool {
    [CONNECTION, NOT_LET_IN, NO_RESOURCES, SHUTTING_DOWN, SYSTEM]
        .iter()
        .any(|class| code.starts_with(class))
        || [LOCK_TIMEOUT, READ_ONLY, IDLE_TOO_LONG].contains(&code)
}

fn is_broken(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed
    )
}

/// Postgres names the constraint.
fn guard(error: &sqlx::Error) -> StoreError {
    let said = error.as_database_error().map(|error| {
        let error = error.try_downcast_ref::<PgDatabaseError>();
        let named = error.and_then(PgDatabaseError::constraint);
        let message = error.map(PgDatabaseError::message).unwrap_or_default();
        named.unwrap_or(message).to_owned()
    });
    StoreError::Guard(said.unwrap_or_else(|| "a constraint".to_owned()))
}

fn code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

    use super::*;

    /// Which one of the faults it is.
    fn kind(fault: &StoreError) -> &'static str {
        match fault {
            StoreError::Retry => "retry",
            StoreError::Unavailable(_) => "unavailable",
            StoreError::Overloaded => "overloaded",
            StoreError::CommitUnknown(_) => "commit unknown",
            StoreError::Inconsistent { .. } => "inconsistent",
            StoreError::Guard(_) => "guard",
            StoreError::Unexpected(_) => "unexpected",
        }
    }

    async fn raised(conn: &mut PgConnection, code: &str) -> sqlx::Error {
        let raising = format!("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$");
        let raised = sqlx::raw_sql(AssertSqlSafe(raising)).execute(conn).await;
        raised.unwrap_err()
    }

    #[tokio::test]
    async fn what_the_server_reports_is_told_by_its_code() {
        let server = std::env::var("PENSTOCK_TEST_POSTGRES_URL")
            .expect("PENSTOCK_TEST_POSTGRES_URL: run `cargo xtask test`, which starts a server");
        let mut conn = PgConnection::connect(&server).await.unwrap();
        for (code, inside, at_commit) in [
            ("40001", "retry", "retry"),
            ("40P01", "retry", "retry"),
            ("23505", "guard", "guard"),
            ("23514", "guard", "guard"),
            ("23503", "guard", "guard"),
            ("55P03", "unavailable", "unavailable"),
            ("57014", "unavailable", "unavailable"),
            ("57P01", "unavailable", "commit unknown"),
            ("57P03", "unavailable", "commit unknown"),
            ("25P03", "unavailable", "commit unknown"),
            ("25006", "unavailable", "commit unknown"),
            ("53300", "unavailable", "commit unknown"),
            ("53100", "unavailable", "commit unknown"),
            ("08006", "unavailable", "commit unknown"),
            ("28P01", "unavailable", "commit unknown"),
            ("58030", "unavailable", "commit unknown"),
            ("42501", "unexpected", "commit unknown"),
            ("XX000", "unexpected", "commit unknown"),
        ] {
            let fault = raised(&mut conn, code).await;
            assert_eq!(kind(&statement(fault)), inside, "{code}");
            let fault = raised(&mut conn, code).await;
            assert_eq!(kind(&commit(fault)), at_commit, "{code}");
        }
    }

    #[test]
    fn a_broken_connection_leaves_a_commit_open_and_nothing_else() {
        let broken = || sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert_eq!(kind(&statement(broken())), "unavailable");
        assert_eq!(kind(&commit(broken())), "commit unknown");
        for none in [sqlx::Error::PoolTimedOut, sqlx::Error::PoolClosed] {
            assert_eq!(kind(&statement(none)), "unavailable");
        }
        assert_eq!(kind(&commit(sqlx::Error::PoolTimedOut)), "unavailable");
    }
}
