//! Converts the driver's errors to [`StoreError`], by their codes and never by their texts.

use std::borrow::Cow;
use std::error::Error;
use std::io::{self, ErrorKind};

use kernel::{NoWrites, NoWritesReason, StoreError};
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSeverity};

pub(crate) use store_sql::{exactly, rows};

const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK: &str = "40P01";
const LOCK_TIMEOUT: &str = "55P03";
const QUERY_CANCELED: &str = "57014";
const NO_SUCH_TABLE: &str = "42P01";
const READ_ONLY: &str = "25006";
const DISK_FULL: &str = "53100";
const LIMIT_EXCEEDED: &str = "53400";
const NOT_ALLOWED: &str = "42501";
const NO_DATABASE: &str = "3D000";
const IDLE_TOO_LONG: &str = "25P03";
const CANNOT_CONNECT_NOW: &str = "57P03";
const IDLE_SESSION: &str = "57P05";

/// A class of codes is their first two characters.
const CONSTRAINT: &str = "23";
const CONNECTION: &str = "08";
/// The server refuses the role, such as after a password change. The next attempt may succeed.
const NOT_LET_IN: &str = "28";
const NO_RESOURCES: &str = "53";
const SHUTTING_DOWN: &str = "57";
const SYSTEM: &str = "58";
const FORBIDDEN: &str = "42";

/// An error of a statement in a transaction, or of a read.
pub(crate) fn statement(error: sqlx::Error) -> StoreError {
    match code(&error).as_deref() {
        Some(SERIALIZATION_FAILURE | DEADLOCK) => StoreError::Retry,
        Some(code) if code.starts_with(CONSTRAINT) => guard(&error),
        Some(code) if is_unavailable(code) => StoreError::unavailable(described(error)),
        Some(NOT_ALLOWED) => StoreError::unexpected(format!(
            "the database role may not do this ({}): migrations run as the database's owner, services connect as penstock_serve, `penstock` as \
             penstock_operate, both created by deploy/postgres/roles.sql",
            described(error)
        )),
        None if is_broken(&error) => StoreError::unavailable(error),
        _ => StoreError::unexpected(described(error)),
    }
}

/// An error of opening a session. The caller adds the server's name.
pub(crate) fn connecting(error: sqlx::Error, options: &PgConnectOptions) -> StoreError {
    let role = options.get_username();
    let database = options.get_database().unwrap_or(role);
    let why = match code(&error).as_deref() {
        Some(NO_DATABASE) => format!(
            "it has no database `{database}`: create it with `createdb` and `pools-service migrate` as described in docs/operating.md, or \
             name another in PENSTOCK_DATABASE_URL"
        ),
        Some(code) if code.starts_with(NOT_LET_IN) => format!(
            "it does not let role `{role}` in: check the role and its password in PENSTOCK_DATABASE_URL; deploy/postgres/roles.sql \
             creates the roles"
        ),
        Some(NOT_ALLOWED) => format!(
            "role `{role}` may not use database `{database}`: grant it CONNECT, or use a role that deploy/postgres/roles.sql creates"
        ),
        None if is_tls(&error) => {
            "no session: check sslmode, sslrootcert, sslcert, sslkey and the characters of the password in PENSTOCK_DATABASE_URL".to_owned()
        }
        None if is_unreadable_file(&error) && !has_socket(options) => {
            "a file that PENSTOCK_DATABASE_URL names in sslrootcert, sslcert or sslkey does not exist or may not be read".to_owned()
        }
        _ => return statement(error),
    };
    StoreError::unavailable(format!("{why} ({})", described(error)))
}

/// An error of a commit, or of a statement that commits by itself.
///
/// Most errors mean that the server did not commit. Errors that end a session or cancel a statement may follow a commit, because
/// the server handles such requests whenever it writes to its log. A panic of the server may follow a commit too. A pooler
/// reports a lost response with a code of class 08.
pub(crate) fn commit(error: sqlx::Error) -> StoreError {
    match code(&error).as_deref() {
        Some(_) if is_panic(&error) => StoreError::CommitUnknown(described(error)),
        Some(SERIALIZATION_FAILURE | DEADLOCK) => StoreError::Retry,
        Some(code) if code.starts_with(CONSTRAINT) => guard(&error),
        Some(code) if is_rolled_back(code) => StoreError::unavailable(described(error)),
        None if matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => {
            StoreError::unavailable(error)
        }
        _ => StoreError::CommitUnknown(described(error)),
    }
}

/// Should the session take another statement after this error?
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

/// An error of a migration.
pub(crate) fn migration(error: MigrateError) -> StoreError {
    match error {
        MigrateError::ExecuteMigration(error, version)
            if code(&error).as_deref() == Some(LOCK_TIMEOUT) =>
        {
            StoreError::unavailable(format!(
                "an audit, a backup or another program keeps reading a table that schema version {version} changes: migrate \
                 when it has finished"
            ))
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => statement(error),
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

/// Does the table not exist?
pub(crate) fn is_missing_table(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some(NO_SUCH_TABLE)
}

/// Has the statement used more than a limit of the server's configuration?
pub(crate) fn is_over_limit(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some(LIMIT_EXCEEDED)
}

/// Is the statement forbidden to this role, or unknown to the server?
pub(crate) fn is_forbidden(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code.starts_with(FORBIDDEN))
}

/// Is the server or a lock unavailable now? The transaction has been rolled back.
fn is_unavailable(code: &str) -> bool {
    [CONNECTION, NOT_LET_IN, NO_RESOURCES, SHUTTING_DOWN, SYSTEM]
        .iter()
        .any(|class| code.starts_with(class))
        || [LOCK_TIMEOUT, READ_ONLY, IDLE_TOO_LONG].contains(&code)
}

/// Does the server report this code instead of committing?
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

fn is_panic(error: &sqlx::Error) -> bool {
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

/// Did the handshake fail, or are its files or the password of no use? The driver returns a certificate that it refuses as an error of the socket.
fn is_tls(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Tls(_) | sqlx::Error::Configuration(_) => true,
        sqlx::Error::Io(error) => error.kind() == ErrorKind::InvalidData,
        _ => false,
    }
}

/// Can a file not be read? An unknown host name is no error of the system.
fn is_unreadable_file(error: &sqlx::Error) -> bool {
    let unreadable = |error: &io::Error| {
        let kinds = [ErrorKind::NotFound, ErrorKind::PermissionDenied];
        kinds.contains(&error.kind()) && error.raw_os_error().is_some()
    };
    matches!(error, sqlx::Error::Io(error) if unreadable(error))
}

/// Is the server reached through a socket of the file system?
fn has_socket(options: &PgConnectOptions) -> bool {
    options.get_socket().is_some() || options.get_host().starts_with('/')
}

/// The server's message with its code, after the remedy if the server takes no writes. The driver's own text adds a source line of the
/// server.
fn described(error: sqlx::Error) -> Box<dyn Error + Send + Sync> {
    let (Some(reported), Some(code)) = (error.as_database_error(), code(&error)) else {
        return error.into();
    };
    let message = format!("{} (SQLSTATE {code})", reported.message());
    let (reason, remedy) = match &*code {
        DISK_FULL => (
            NoWritesReason::DiskFull,
            "the disk of the database server is full: free space on it, then writes resume",
        ),
        READ_ONLY => (
            NoWritesReason::ReadOnly,
            "the database takes no writes: it is a standby, or was made read-only; name the primary in PENSTOCK_DATABASE_URL",
        ),
        _ => return message.into(),
    };
    let cause = format!("{remedy}: {message}");
    Box::new(NoWrites { reason, cause })
}

/// The violated constraint's name, or the server's message.
fn guard(error: &sqlx::Error) -> StoreError {
    let constraint = error.as_database_error().map(|error| {
        let error = error.try_downcast_ref::<PgDatabaseError>();
        let named = error.and_then(PgDatabaseError::constraint);
        let message = error.map(PgDatabaseError::message).unwrap_or_default();
        named.unwrap_or(message).to_owned()
    });
    StoreError::Guard(constraint.unwrap_or_else(|| "a constraint".to_owned()))
}

fn code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

    use super::*;

    /// The name of the error's variant.
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
    async fn server_errors_are_classified_by_code() {
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
    async fn server_error_message_ends_with_its_code() {
        let server = std::env::var("PENSTOCK_TEST_POSTGRES_URL")
            .expect("PENSTOCK_TEST_POSTGRES_URL: run `cargo xtask test`, which starts a server");
        let mut conn = PgConnection::connect(&server).await.unwrap();
        let fault = sqlx::query("SELECT * FROM nowhere")
            .execute(&mut conn)
            .await;
        let message = kernel::causes(&statement(fault.unwrap_err()));
        assert!(
            message.ends_with("relation \"nowhere\" does not exist (SQLSTATE 42P01)"),
            "{message}"
        );
    }

    #[test]
    fn broken_connection_leaves_only_commit_unknown() {
        let broken = || sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert_eq!(kind(&statement(broken())), "unavailable");
        assert_eq!(kind(&commit(broken())), "commit unknown");
        for none in [sqlx::Error::PoolTimedOut, sqlx::Error::PoolClosed] {
            assert_eq!(kind(&statement(none)), "unavailable");
        }
        assert_eq!(kind(&commit(sqlx::Error::PoolTimedOut)), "unavailable");
    }
}
