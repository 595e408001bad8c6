//! Readiness: a probe commits, so its result shows whether the database takes writes.
#![expect(clippy::unwrap_used, reason = "a test that fails is a panic")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use kernel::StoreError;
use partner_core::ports::Readiness as _;
use provisioning::ports::ProvisionStore as _;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use store_sqlite::{Options, SqliteStore};
use test_support::contract::ManualClock;
use test_support::contract::outages::soon_ready;
use tokio::time::Instant;

/// The time within which readiness reports on a busy machine that writes are refused.
const READINESS_DEADLINE: Duration = Duration::from_secs(20);

async fn open(path: &Path) -> SqliteStore {
    let options = Options {
        velocity_window: Duration::from_secs(60),
        idempotency_ttl: Duration::from_secs(60),
        turn_timeout: store_sqlite::TURN_TIMEOUT,
    };
    let opened = SqliteStore::open(path, Arc::new(ManualClock::default()), options).await;
    opened.unwrap()
}

async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path);
    options.connect().await.unwrap()
}

/// Polls readiness until it fails with a message that contains this text. On a busy machine a probe may be late before.
async fn refused(store: &SqliteStore, text: &str) {
    let began = Instant::now();
    loop {
        let found = store.ready().await;
        assert!(began.elapsed() < READINESS_DEADLINE, "{found:?}");
        if let Err(fault) = found {
            assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
            if kernel::causes(&fault).contains(text) {
                return;
            }
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
    let mut counted = false;
    // On a busy machine the result may be too old already.
    for _ in 0..20 {
        soon_ready(&store).await;
        let probed = version(&mut other).await;
        assert_ne!(probed, before, "the probe committed");
        assert_eq!(clock(&mut other).await, at);
        soon_ready(&store).await;
        counted = version(&mut other).await == probed;
        if counted {
            break;
        }
    }
    assert!(counted, "the recent result counts");
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
    soon_ready(&store).await;
    let elsewhere = folder.path().join("elsewhere.db");
    std::fs::rename(&path, &elsewhere).unwrap();
    let named = format!("{} cannot be opened: check that ", path.display());
    refused(&store, &named).await;
    std::fs::rename(&elsewhere, &path).unwrap();
    soon_ready(&store).await;
}

// rule: base.database-readiness
#[tokio::test]
async fn readiness_is_refused_while_another_program_holds_the_write_lock_and_commits_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await;
    soon_ready(&store).await;
    let mut other = connect(&path).await;
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    refused(&store, "write lock").await;
    held.rollback().await.unwrap();
    soon_ready(&store).await;
}

// rule: base.database-readiness
#[tokio::test(flavor = "multi_thread")]
async fn readiness_holds_while_the_writer_is_busy() {
    const BUSY_LIMIT: Duration = Duration::from_secs(60);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await;
    let stop = Arc::new(AtomicBool::new(false));
    let commits = Arc::new(AtomicU32::new(0));
    let busy = {
        let (store, stop, commits) = (store.clone(), Arc::clone(&stop), Arc::clone(&commits));
        tokio::spawn(async move {
            while !stop.load(Ordering::Acquire) {
                let mut tx = store.provision_begin("busy").await.unwrap();
                tx.config_version_raise().await.unwrap();
                // Holds the lock for most of the time, as a large batch does.
                tokio::time::sleep(Duration::from_millis(300)).await;
                tx.commit().await.unwrap();
                commits.fetch_add(1, Ordering::AcqRel);
            }
        })
    };
    let began = Instant::now();
    let (mut ready, mut refusals) = (0, Vec::new());
    while commits.load(Ordering::Acquire) < 5 || ready < 20 {
        match store.ready().await {
            Ok(()) => ready += 1,
            Err(fault) => refusals.push(fault),
        }
        let made = commits.load(Ordering::Acquire);
        assert!(
            began.elapsed() < BUSY_LIMIT,
            "{made} commits, {ready} ready, {refusals:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // On a busy machine a probe may be late, or a commit may take longer than the probe waits.
    assert!(refusals.len() < ready, "{refusals:?}");
    stop.store(true, Ordering::Release);
    busy.await.unwrap();
}
