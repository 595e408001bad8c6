//! Readiness: a probe commits, so its result shows whether the database takes writes.
#![expect(clippy::unwrap_used, reason = "a test that fails is a panic")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kernel::StoreError;
use partner_core::ports::Readiness as _;
use provisioning::ports::ProvisionStore as _;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use store_sqlite::{Options, SqliteStore};
use test_support::contract::ManualClock;
use tokio::time::Instant;

/// The time within which readiness reports that writes are refused.
const READINESS_DEADLINE: Duration = Duration::from_secs(2);
/// Longer than the result of a probe counts.
const PROBE_AGE: Duration = Duration::from_millis(600);

async fn open(path: &Path) -> SqliteStore {
    let options = Options {
        velocity_window: Duration::from_secs(60),
        idempotency_ttl: Duration::from_secs(60),
    };
    let opened = SqliteStore::open(path, Arc::new(ManualClock::default()), options).await;
    opened.unwrap()
}

async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path);
    options.connect().await.unwrap()
}

/// Polls readiness until it fails.
async fn refusal(store: &SqliteStore) -> String {
    let began = Instant::now();
    loop {
        let found = store.ready().await;
        assert!(began.elapsed() < READINESS_DEADLINE, "{found:?}");
        if let Err(fault) = found {
            assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
            return kernel::causes(&fault);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

// rule: base.database-readiness
#[tokio::test]
async fn readiness_commits_a_write_that_leaves_every_row_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await;
    let mut other = connect(&path).await;
    let version = async |conn: &mut SqliteConnection| -> i64 {
        let read = sqlx::query_scalar("PRAGMA data_version").fetch_one(conn);
        read.await.unwrap()
    };
    let clock = async |conn: &mut SqliteConnection| -> i64 {
        let read = sqlx::query_scalar("SELECT at FROM clock").fetch_one(conn);
        read.await.unwrap()
    };
    let (before, at) = (version(&mut other).await, clock(&mut other).await);
    store.ready().await.unwrap();
    let probed = version(&mut other).await;
    assert_ne!(probed, before, "the probe committed");
    assert_eq!(clock(&mut other).await, at);
    store.ready().await.unwrap();
    assert_eq!(
        version(&mut other).await,
        probed,
        "the recent result counts"
    );
    other.close().await.unwrap();
    store.close().await;
    assert!(store.ready().await.is_err());
}

// rule: base.database-readiness
#[tokio::test]
async fn readiness_is_refused_while_the_file_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await;
    store.ready().await.unwrap();
    let elsewhere = folder.path().join("elsewhere.db");
    std::fs::rename(&path, &elsewhere).unwrap();
    let message = refusal(&store).await;
    let named = format!("{} cannot be opened: check that ", path.display());
    assert!(message.contains(&named), "{message}");
    std::fs::rename(&elsewhere, &path).unwrap();
    tokio::time::sleep(PROBE_AGE).await;
    store.ready().await.unwrap();
}

// rule: base.database-readiness
#[tokio::test]
async fn readiness_is_refused_while_another_program_holds_the_write_lock_and_commits_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await;
    store.ready().await.unwrap();
    let mut other = connect(&path).await;
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let message = refusal(&store).await;
    assert!(message.contains("write lock"), "{message}");
    held.rollback().await.unwrap();
    tokio::time::sleep(PROBE_AGE).await;
    store.ready().await.unwrap();
}

// rule: base.database-readiness
#[tokio::test(flavor = "multi_thread")]
async fn readiness_holds_while_the_writer_is_busy() {
    const BUSY_FOR: Duration = Duration::from_secs(4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await;
    let stop = Arc::new(AtomicBool::new(false));
    let busy = {
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut commits = 0_u32;
            while !stop.load(Ordering::Acquire) {
                let mut tx = store.provision_begin("busy").await.unwrap();
                tx.config_version_raise().await.unwrap();
                // Holds the lock for most of the time, as a large batch does.
                tokio::time::sleep(Duration::from_millis(300)).await;
                tx.commit().await.unwrap();
                commits += 1;
            }
            commits
        })
    };
    let began = Instant::now();
    while began.elapsed() < BUSY_FOR {
        let asked = Instant::now();
        store.ready().await.unwrap();
        assert!(asked.elapsed() < READINESS_DEADLINE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.store(true, Ordering::Release);
    let commits = busy.await.unwrap();
    assert!(commits > 4, "{commits}: the probes delayed the writer");
}
