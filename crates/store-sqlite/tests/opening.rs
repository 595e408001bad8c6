//! Opening a database that is new, current, damaged, or written by a newer program.
#![expect(clippy::unwrap_used, reason = "a test that fails is a panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Mode, StoreError, StoreResult};
use partner_core::ports::{Audit as _, Directory, Readiness as _};
use partner_core::sealing::{MasterKey, Sealer};
use pools_core::profile::PoolsProfile;
use provisioning::ports::ProvisionStore as _;
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};
use store_sqlite::{Options, SqliteStore};
use test_support::contract::outages::soon_ready;
use test_support::contract::{ManualClock, upgrades};

/// Longer than the result of a readiness probe counts.
const PROBE_AGE: Duration = Duration::from_millis(600);

async fn open(path: &Path) -> StoreResult<SqliteStore> {
    let options = Options {
        velocity_window: Duration::from_secs(60),
        idempotency_ttl: Duration::from_secs(60),
        turn_timeout: store_sqlite::TURN_TIMEOUT,
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

/// Several programs may start with the same new folder.
// rule: base.database-file
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_stores_open_new_database_together() {
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
            soon_ready(&one.await.unwrap().unwrap()).await;
        }
    }
}

#[tokio::test]
async fn open_refuses_schema_of_newer_program() {
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
async fn open_refuses_edited_migration() {
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
async fn open_refuses_file_that_is_not_a_database() {
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

/// The error names table, column and row.
#[tokio::test]
async fn read_names_malformed_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await.unwrap();
    run(&path, "INSERT INTO pools (mode, id, networks, available) VALUES ('test', 'EUR-USDT', '[\"moon\"]', 1)").await;
    let store: &dyn Directory<PoolsProfile> = &store;
    let Err(StoreError::Inconsistent { table, column, row }) = store.listing(Mode::Test).await
    else {
        panic!()
    };
    assert_eq!(
        (table, column, row.as_str()),
        ("pools", "networks", "EUR-USDT")
    );
}

/// Another program holds the write lock for longer than the timeout.
#[tokio::test]
async fn begin_is_unavailable_while_another_program_writes() {
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

/// The migration of the next release: a table, and the row that records it.
fn next_release(version: i64, description: &str) -> String {
    format!(
        "CREATE TABLE labels_{version} (id INTEGER PRIMARY KEY) STRICT;
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES ({version}, '{description}', TRUE, x'00', 0)"
    )
}

// rule: base.schema-one-ahead
#[tokio::test]
async fn schema_one_additive_migration_ahead_is_served_and_any_other_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let store = open(&path).await.unwrap();
    run(&path, &next_release(9000, "labels additive")).await;
    soon_ready(&store).await;
    soon_ready(&open(&path).await.unwrap()).await;
    for next in [
        "UPDATE _sqlx_migrations SET description = 'labels' WHERE version = 9000",
        "UPDATE _sqlx_migrations SET description = 'labels additive' WHERE version = 9000;
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9001, 'names additive', TRUE, x'00', 0)",
    ] {
        run(&path, next).await;
        tokio::time::sleep(PROBE_AGE).await;
        let error = store.ready().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        let refused = open(&path).await.unwrap_err();
        assert!(matches!(refused, StoreError::Unexpected(_)), "{refused:?}");
    }
}

// rule: gate.session.one-payment
#[tokio::test]
async fn migration_keeps_sessions_that_were_paid_more_than_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("penstock.db");
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .foreign_keys(false);
    let mut conn = options.connect().await.unwrap();
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/sqlite");
    let all = Migrator::new(all.as_path()).await.unwrap();
    let before = all.iter().filter(|migration| migration.version < 18);
    let before = Migrator {
        migrations: before.cloned().collect::<Vec<_>>().into(),
        ..Migrator::DEFAULT
    };
    before.run_direct(None, &mut conn, false).await.unwrap();
    let execute = async |conn: &mut SqliteConnection, sql: String| {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await
    };
    execute(&mut conn, upgrades::sessions_paid_more_than_once())
        .await
        .unwrap();
    drop(open(&path).await.unwrap());
    let wrong = AssertSqlSafe(upgrades::wrong_predates_rule());
    let wrong: i64 = sqlx::query_scalar(wrong)
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(wrong, 0);
    let further = execute(&mut conn, upgrades::further_payment()).await;
    let refused = further.unwrap_err().to_string();
    assert!(refused.contains("rail_records.session_id"), "{refused}");
    execute(&mut conn, upgrades::late_settlement())
        .await
        .unwrap();
    let whole: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(whole, "ok");
    conn.close().await.unwrap();
}

/// The database is older than the rule that a deposit has one owner.
// rule: apply.deposits-of-one-partner
#[tokio::test]
async fn shared_deposits_outlive_the_migration_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("older.db");
    let connect = SqliteConnectOptions::new().filename(&path);
    let mut conn = connect.create_if_missing(true).connect().await.unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/sqlite");
    let all = Migrator::new(files.as_path()).await.unwrap();
    let before = all.iter().filter(|migration| migration.version < 19);
    let before = Migrator {
        migrations: before.cloned().collect::<Vec<_>>().into(),
        ..Migrator::DEFAULT
    };
    before.run_direct(None, &mut conn, false).await.unwrap();
    let profile = |partner: &str, reference: &str, address: &str| {
        format!(
            "INSERT INTO partners (mode, partner_id, name, status) VALUES ('test', '{partner}', 'P', 'active');
             INSERT INTO pools_profiles (mode, partner_id, enabled, access, kyc, tier, allowed, balance_gate, funding_reference, terms)
             VALUES ('test', '{partner}', 0, 'active', 'pending', 't', '[]', 0, '{reference}', '{address}');"
        )
    };
    let terms = |address: &str| {
        format!(
            "{{\"EUR-USDT\":{{\"draw_fee_bps\":0,\"spread_cap_bps\":0,\"min_order_usdt\":\"1\",\"max_order_usdt\":null,\"off_ramp\":false,\"crypto_deposit_address\":{address}}}}}"
        )
    };
    let evm = "0x52908400098527886E0F7030069857D2E4169EE7";
    let (mixed, lower) = (format!("\"{evm}\""), format!("\"{}\"", evm.to_lowercase()));
    let profiles = [
        profile("b", "Shared", &terms(&lower)),
        profile("a", "sharED", &terms(&mixed)),
        profile("c", "C", &terms("null")),
        profile("d", "D", "{}"),
    ];
    conn.close().await.unwrap();
    run(&path, &profiles.concat()).await;
    let store = open(&path).await.unwrap();
    let mut conn = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    let owners: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT kind, claim, owner FROM deposit_claims WHERE mode = 'test' ORDER BY kind, claim",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    conn.close().await.unwrap();
    let row = |kind: &str, claim: &str, owner: &str| {
        (kind.to_owned(), claim.to_owned(), owner.to_owned())
    };
    let expected = [
        row("address", &evm.to_lowercase(), "a"),
        row("reference", "C", "c"),
        row("reference", "D", "d"),
        row("reference", "SHARED", "a"),
    ];
    assert_eq!(owners, expected, "the first partner by id");
    let sealer = Sealer::new(&MasterKey::new([7; 32]));
    let report = store.audit(&sealer, |_| true, &|_| ()).await.unwrap();
    let found = report
        .findings
        .iter()
        .find(|one| one.invariant == "deposits-have-one-owner");
    let mut named = found.unwrap().breaches.clone();
    named.sort();
    let address = format!("test address {} is of partners a, b", evm.to_lowercase());
    assert_eq!(
        named,
        [
            address.as_str(),
            "test reference SHARED is of partners a, b"
        ]
    );
}
