//! The schema: which version it has, and bringing it up to date.

use std::collections::BTreeSet;

use failpoints::{Step, around};
use kernel::StoreError;
use sqlx::migrate::Migrator;
use sqlx::{Connection as _, PgConnection};

use crate::errors;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/postgres");

/// Names the lock that migrations hold: "penstock" in a number.
const LOCK: i64 = 0x7065_6e73_746f_636b;

/// In one transaction, and one after the other: two programs starting at once do not both migrate.
/// The lock is the transaction's, so it needs no session of its own.
pub(crate) async fn migrate(conn: &mut PgConnection) -> Result<(), StoreError> {
    let mut tx = conn.begin().await.map_err(errors::statement)?;
    // What is there already is no news.
    sqlx::query("SET LOCAL client_min_messages = warning")
        .execute(&mut *tx)
        .await
        .map_err(errors::statement)?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *tx)
        .await
        .map_err(errors::statement)?;
    // Whoever comes after one that waits for a table waits too, so a long reader of it is not waited for.
    sqlx::query("SET LOCAL lock_timeout = '1s'")
        .execute(&mut *tx)
        .await
        .map_err(errors::statement)?;
    let migrator = Migrator {
        migrations: MIGRATIONS.migrations.clone(),
        locking: false,
        ..Migrator::DEFAULT
    };
    // `run` itself takes anything that hands out connections, which hides from the compiler that
    // this future can move between threads.
    let running = migrator.run_direct(None, &mut *tx, false);
    let running = async { running.await.map_err(errors::migration) };
    around(Step::MigrationRun, running).await?;
    let committing = async { tx.commit().await.map_err(errors::commit) };
    around(Step::MigrationCommit, committing).await
}

/// Is the schema the one this program knows? Says what to do where it is not.
pub(crate) async fn check(conn: &mut PgConnection) -> Result<(), StoreError> {
    let known = MIGRATIONS.iter().map(|migration| migration.version).max();
    let found = version(conn).await?;
    match (found, known) {
        (found, known) if found == known => Ok(()),
        (None, _) => Err(StoreError::unexpected(
            "the database has no schema: run `pools-service migrate` first",
        )),
        (Some(found), Some(known)) if found < known => Err(StoreError::unexpected(format!(
            "the database has schema version {found}, this program needs {known}: run `pools-service migrate` first"
        ))),
        (Some(found), _) => Err(StoreError::unexpected(format!(
            "the database has schema version {found}, which this program does not know: it is \
             older than the program that wrote the database; run the newer one"
        ))),
    }
}

/// The names of the constraints and unique indexes that the migrations make.
pub(crate) fn rules() -> BTreeSet<&'static str> {
    let mut rules = BTreeSet::new();
    for migration in MIGRATIONS.iter() {
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

async fn version(conn: &mut PgConnection) -> Result<Option<i64>, StoreError> {
    let found = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
        .fetch_one(conn)
        .await;
    match found {
        Err(error) if errors::is_no_table(&error) => Ok(None),
        found => found.map_err(errors::statement),
    }
}
