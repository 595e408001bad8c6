//! The audit of a database file, and its documentation.
#![expect(clippy::unwrap_used, reason = "a test that fails is a panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kernel::Mode;
use partner_core::ports::Audit as _;
use partner_core::sealing::{MasterKey, Sealer};
use provisioning::ports::ProvisionStore as _;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use store_sqlite::{Options, SqliteStore};
use test_support::contract::ManualClock;

async fn open(path: &Path) -> SqliteStore {
    let options = Options {
        velocity_window: Duration::from_secs(60),
        idempotency_ttl: Duration::from_secs(60),
        turn_timeout: store_sqlite::TURN_TIMEOUT,
    };
    let clock = Arc::new(ManualClock::default());
    SqliteStore::open(path, clock, options).await.unwrap()
}

async fn run(path: &Path, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(path);
    let mut conn = options.connect().await.unwrap();
    let sql = sqlx::raw_sql(AssertSqlSafe(sql));
    sql.execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

// rule: cli.verify
#[tokio::test]
async fn documentation_lists_exactly_the_audited_invariants() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("penstock.db")).await;
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    let report = store.audit(&sealer, |_| true, &|_| ()).await.unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let described: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let checked: Vec<&str> = report.findings.iter().map(|one| one.invariant).collect();
    assert_eq!(described, checked);
}

/// The index has other values than its table.
#[tokio::test]
async fn audit_finds_damaged_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await;
    let mut tx = store.provision_begin("partner").await.unwrap();
    let partner = partner_core::Partner {
        id: partner_core::PartnerId::parse("acme").unwrap(),
        name: "Acme".to_owned(),
        status: partner_core::PartnerStatus::Active,
    };
    tx.partner_put(Mode::Test, &partner).await.unwrap();
    tx.commit().await.unwrap();
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    assert!(
        store
            .audit(&sealer, |_| true, &|_| ())
            .await
            .unwrap()
            .clean()
    );
    run(
        &path,
        "CREATE INDEX damaged ON partners (name);
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE INDEX damaged ON partners (status)' WHERE name = 'damaged';
         PRAGMA writable_schema = RESET",
    )
    .await;
    let report = store.audit(&sealer, |_| true, &|_| ()).await.unwrap();
    let broken: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.count > 0)
        .collect();
    assert!(
        broken
            .iter()
            .any(|finding| finding.invariant == "database-is-whole"),
        "{broken:?}"
    );
}
