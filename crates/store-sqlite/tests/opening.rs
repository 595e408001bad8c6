//! Opening a database: together, again, damaged, or written by a newer program.
#![expect(clippy::unwrap_used, reason = "a test that fails is a panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Mode, StoreError};
use partner_core::ports::{Directory as _, ProvisionStore as _, Readiness as _};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use store_contract::ManualClock;
use store_sqlite::{Options, SqliteStore};

async fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    let options = Options {
        velocity_window: Duration::from_secs(60),
        idempotency_ttl: Duration::from_secs(60),
    };
    SqliteStore::open(path, Arc::new(ManualClock::default()), options).await
}

async fn run(path: &Path, sql: &str) {
    let mut conn = SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&mut conn)
        .await
        .unwrap();
    conn.close().await.unwrap();
}

/// Two programs may start on one fresh folder.
// rule: base.database-file
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_open_a_fresh_database_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fresh").join("penstock.db");
        let opening: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move { open(&path).await })
            })
            .collect();
        for one in opening {
            one.await.unwrap().unwrap().ready().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_schema_of_a_newer_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await.unwrap();
    run(
        &path,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'newer', TRUE, x'00', 0)",
    )
    .await;
    assert!(matches!(
        store.ready().await,
        Err(StoreError::Unavailable(_))
    ));
    store.close().await;
    let Err(StoreError::Unexpected(refused)) = open(&path).await else {
        panic!()
    };
    assert!(
        refused.to_string().contains("schema version 9999"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_schema_that_was_edited_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    open(&path).await.unwrap().close().await;
    run(
        &path,
        "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1",
    )
    .await;
    assert!(matches!(open(&path).await, Err(StoreError::Unexpected(_))));
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    std::fs::write(
        &path,
        "this is a letter, and a long one, not a database".repeat(100),
    )
    .unwrap();
    assert!(open(&path).await.is_err());
    assert!(matches!(
        open(folder.path()).await,
        Err(StoreError::Unavailable(_))
    ));
}

/// Reading a row parses it: the error names table, column and row.
#[tokio::test]
async fn an_impossible_row_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await.unwrap();
    run(&path, "INSERT INTO pools (mode, id, networks, available) VALUES ('test', 'EUR-USDT', '[\"moon\"]', 1)").await;
    let Err(StoreError::Inconsistent { table, column, row }) = store.pools_all(Mode::Test).await
    else {
        panic!()
    };
    assert_eq!(
        (table, column, row.as_str()),
        ("pools", "networks", "EUR-USDT")
    );
}

/// A writer that is held for long is waited for, and then said to be away.
#[tokio::test]
async fn a_foreign_writer_makes_the_store_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await.unwrap();
    let mut other = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let refused = store.provision_begin("waiting").await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    held.rollback().await.unwrap();
    let mut tx = store.provision_begin("free").await.unwrap();
    tx.config_version_raise().await.unwrap();
    tx.commit().await.unwrap();
}
