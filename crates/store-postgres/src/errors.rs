//! What the driver reports, as the cores know it. Judged by code, never by text.

use std::borrow::Cow;
use std::error::Error;

use kernel::StoreError;
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSeverity};

const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK: &str = "40P01";
const LOCK_TIMEOUT: &str = "55P03";
const QUERY_CANCELED: &str = "57014";
const NO_SUCH_TABLE: &str = "42P01";
const READ_ONLY: &str = "25006";
const NOT_ALLOWED: &str = "42501";
const NO_DATABASE: &str = "3D000";
const IDLE_TOO_LONG: &str = "25P03";
const CANNOT_CONNECT_NOW: &str = "57P03";
const IDLE_SESSION: &str = "57P05";

/// Classes of codes: the first two characters.
const CONSTRAINT: &str = "23";
const CONNECTION: &str = "08";
/// Such as for a password that was changed: the next one may be right.
const NOT_LET_IN: &str = "28";
const NO_RESOURCES: &str = "53";
const SHUTTING_DOWN: &str = "57";
const SYSTEM: &str = "58";
const FORBIDDEN: &str = "42";

/// A fault of a statement inside a transaction or of a read.
pub(crate) fn statement(error: sqlx::Error) -> StoreError {
    match code(&error).as_deref() {
        Some(SERIALIZATION_FAILURE | DEADLOCK) => StoreError::Retry,
        Some(code) if code.starts_with(CONSTRAINT) => guard(&error),
        Some(code) if is_away(code) => StoreError::unavailable(said(error)),
        Some(NOT_ALLOWED) => StoreError::unexpected(format!(
            "the database role may not do this ({}): migrations run as the database's owner, services connect as penstock_serve, `penstock` as \
             penstock_operate, both as deploy/postgres/roles.sql makes them",
            said(error)
        )),
        None if is_broken(&error) => StoreError::unavailable(error),
        _ => StoreError::unexpected(said(error)),
    }
}

/// A fault of opening a session. The server is named by who asks.
pub(crate) fn connecting(error: sqlx::Error, options: &PgConnectOptions) -> StoreError {
    let role = options.get_username();
    let database = options.get_database().unwrap_or(role);
    let why = match code(&error).as_deref() {
        Some(NO_DATABASE) => format!(
            "it has no database `{database}`: make it with `createdb` and `pools-service migrate`, as docs/operating.md says, or name \
             another in PENSTOCK_DATABASE_URL"
        ),
        Some(code) if code.starts_with(NOT_LET_IN) => format!(
            "it does not let role `{role}` in: check the role and its password in PENSTOCK_DATABASE_URL; deploy/postgres/roles.sql \
             makes the roles"
        ),
        Some(NOT_ALLOWED) => format!(
            "role `{role}` may not use database `{database}`: grant it CONNECT, or use a role that deploy/postgres/roles.sql makes"
        ),
        _ => return statement(error),
    };
    StoreError::unavailable(format!("{why} ({})", said(error)))
}

/// An error of a commit, or of a statement that commits by itself. Most errors are reported instead of committing. Those that
/// end a session or cancel a statement may be reported after the commit as well: the server looks for such requests
/// whenever it writes to its log. So may a breakdown be, and a pooler reports a lost answer with a code of class 08.
pub(crate) fn commit(error: sqlx::Error) -> StoreError {
    match code(&error).as_deref() {
        Some(_) if breaks_down(&error) => StoreError::CommitUnknown(said(error)),
        Some(SERIALIZATION_FAILURE | DEADLOCK) => StoreError::Retry,
        Some(code) if code.starts_with(CONSTRAINT) => guard(&error),
        Some(code) if is_rolled_back(code) => StoreError::unavailable(said(error)),
        None if matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => {
            StoreError::unavailable(error)
        }
        _ => StoreError::CommitUnknown(said(error)),
    }
}

/// Can the session take another statement after this error, and should it?
pub(crate) fn leaves_session(error: &sqlx::Error) -> bool {
    match code(error).as_deref() {
        Some(QUERY_CANCELED) => true,
        Some(READ_ONLY | IDLE_TOO_LONG) => false,
        Some(code) if code.starts_with(CONNECTION) || code.starts_with(SHUTTING_DOWN) => false,
        Some(_) => matches!(severity(error), Some(PgSeverity::Error)),
        None => matches!(
            error,
            sqlx::Error::RowNotFound
                | sqlx::Error::Encode(_)
                | sqlx::Error::Decode(_)
                | sqlx::Error::ColumnDecode { .. }
        ),
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

/// May this role not do it, or does the server not know it?
pub(crate) fn is_forbidden(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code.starts_with(FORBIDDEN))
}

/// The server, or a lock of it, cannot be had now; it has rolled back.
fn is_away(code: &str) -> bool {
    [CONNECTION, NOT_LET_IN, NO_RESOURCES, SHUTTING_DOWN, SYSTEM]
        .iter()
        .any(|class| code.starts_with(class))
        || [LOCK_TIMEOUT, READ_ONLY, IDLE_TOO_LONG].contains(&code)
}

/// Codes that the server reports instead of committing.
fn is_rolled_back(code: &str) -> bool {
    [NOT_LET_IN, NO_RESOURCES]
        .iter()
        .any(|class| code.starts_with(class))
        || [
            LOCK_TIMEOUT,
            READ_ONLY,
            IDLE_TOO_LONG,
            CANNOT_CONNECT_NOW,
            IDLE_SESSION,
        ]
        .contains(&code)
}

fn breaks_down(error: &sqlx::Error) -> bool {
    matches!(severity(error), Some(PgSeverity::Panic))
}

fn severity(error: &sqlx::Error) -> Option<PgSeverity> {
    let error = error.as_database_error()?;
    error
        .try_downcast_ref::<PgDatabaseError>()
        .map(PgDatabaseError::severity)
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

/// What the server reports, with its code. The driver's own text adds a line of the server's source.
fn said(error: sqlx::Error) -> Box<dyn Error + Send + Sync> {
    match (error.as_database_error(), code(&error)) {
        (Some(reported), Some(code)) => format!("{} (SQLSTATE {code})", reported.message()).into(),
        _ => error.into(),
    }
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
            ("57014", "unavailable", "commit unknown"),
            ("57P01", "unavailable", "commit unknown"),
            ("57P02", "unavailable", "commit unknown"),
            ("57P04", "unavailable", "commit unknown"),
            ("57P03", "unavailable", "unavailable"),
            ("25P03", "unavailable", "unavailable"),
            ("25006", "unavailable", "unavailable"),
            ("53300", "unavailable", "unavailable"),
            ("53100", "unavailable", "unavailable"),
            ("08006", "unavailable", "commit unknown"),
            ("28P01", "unavailable", "unavailable"),
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

    #[tokio::test]
    async fn what_the_server_reports_is_told_with_its_code_alone() {
        let server = std::env::var("PENSTOCK_TEST_POSTGRES_URL")
            .expect("PENSTOCK_TEST_POSTGRES_URL: run `cargo xtask test`, which starts a server");
        let mut conn = PgConnection::connect(&server).await.unwrap();
        let fault = sqlx::query("SELECT * FROM nowhere")
            .execute(&mut conn)
            .await;
        let told = kernel::causes(&statement(fault.unwrap_err()));
        assert!(
            told.ends_with("relation \"nowhere\" does not exist (SQLSTATE 42P01)"),
            "{told}"
        );
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
