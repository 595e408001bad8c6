//! Migrates the schema and checks its version.

use std::collections::BTreeSet;

use instruments::failpoint::{around, around_commit};
use kernel::{StoreError, StoreResult};
use sqlx::{Connection as _, Executor, PgConnection, Postgres};
use store_sql::schema::{Applied, Migrated, Standing};

use crate::conn::Conn;
use crate::durability::raise_synchronous_commit;
use crate::errors;
use crate::migrations::{self, MIGRATOR};

/// The id of the advisory lock that migrations hold: "penstock" as a number.
const LOCK: i64 = 0x7065_6e73_746f_636b;

/// Runs each missing migration in its own transaction, so that it locks its tables only for its own duration. If a migration
/// fails or the program ends, the next run continues after the last committed migration.
pub(crate) async fn migrate(conn: &mut PgConnection) -> StoreResult<Migrated> {
    let applied = applied(&mut *conn).await?;
    let migrated = migrations::migrated(&applied);
    match migrations::compare(&applied) {
        // A program of the previous release has nothing to do.
        Standing::OneAhead => return Ok(migrated),
        newer @ Standing::Unknown { .. } => check_standing(newer)?,
        Standing::Current | Standing::Missing | Standing::Behind { .. } => {}
    }
    for migration in MIGRATOR.iter() {
        migrate_to(conn, migration.version).await?;
    }
    Ok(migrated)
}

/// Runs the missing migrations up to a version. An advisory lock of the transaction makes programs that start together run them
/// one after the other.
async fn migrate_to(conn: &mut PgConnection, version: i64) -> StoreResult<()> {
    let mut tx = conn.begin().await.map_err(errors::statement)?;
    for setting in SETTINGS {
        sqlx::query(setting)
            .execute(&mut *tx)
            .await
            .map_err(errors::statement)?;
    }
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *tx)
        .await
        .map_err(errors::statement)?;
    sqlx::query(LOCK_TIMEOUT)
        .execute(&mut *tx)
        .await
        .map_err(errors::statement)?;
    // `Migrator::run` is generic over sources of connections, so its future is not known to be `Send`.
    let running = MIGRATOR.run_direct(Some(version), &mut *tx, false);
    let running = async { running.await.map_err(errors::migration) };
    around("migration.run", running).await?;
    let committing = async { tx.commit().await.map_err(errors::commit) };
    around_commit("migration", committing).await
}

/// Suppresses notices about existing objects, and sets no timeout, because a migration may rebuild a table.
const SETTINGS: [&str; 3] = [
    "SET LOCAL client_min_messages = warning",
    "SET LOCAL statement_timeout = 0",
    concat!("SELECT ", raise_synchronous_commit!()),
];
/// Other statements queue after a migration that waits for a table, so it waits only briefly for a reader.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '1s'";

/// Checks that this program supports the schema. The error names the command to run.
pub(crate) async fn check(conn: &mut Conn) -> StoreResult<()> {
    check_standing(migrations::compare(&applied(conn).await?))
}

fn check_standing(standing: Standing) -> StoreResult<()> {
    match standing.refusal("pools-service migrate") {
        None => Ok(()),
        Some(why) => Err(StoreError::unexpected(why)),
    }
}

/// The names of the constraints and unique indexes that the migrations create.
pub(crate) fn rules() -> BTreeSet<&'static str> {
    let mut rules = BTreeSet::new();
    for migration in MIGRATOR.iter() {
        let words: Vec<&str> = migration.sql.as_str().split_whitespace().collect();
        for three in words.windows(3) {
            match three {
                ["DROP", "CONSTRAINT" | "INDEX", name] => {
                    rules.remove(name.trim_end_matches([',', ';']));
                }
                [_, "CONSTRAINT", name] | ["UNIQUE", "INDEX", name] => {
                    rules.insert(*name);
                }
                _ => {}
            }
        }
    }
    rules
}

/// The migrations that were run on the database.
async fn applied<'c>(conn: impl Executor<'c, Database = Postgres>) -> StoreResult<Vec<Applied>> {
    let found = sqlx::query_as("SELECT version, description FROM _sqlx_migrations WHERE success")
        .fetch_all(conn)
        .await;
    let found: Vec<(i64, String)> = match found {
        Err(error) if errors::is_missing_table(&error) => Vec::new(),
        found => found.map_err(errors::statement)?,
    };
    let applied = |(version, description)| Applied {
        version,
        description,
    };
    Ok(found.into_iter().map(applied).collect())
}
