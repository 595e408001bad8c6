//! Opening a database, and the errors if its server or schema is missing or unsupported.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use kernel::StoreError;
use partner_core::ports::{Audit as _, Readiness as _};
use partner_core::sealing::{MasterKey, Sealer};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection as _};
use store_postgres::PostgresStore;
use test_support::contract::outages::soon_ready;
use test_support::contract::{WINDOW, upgrades};
use test_support::test_database::LONG_TIMEOUTS;

use crate::fixture::{Database, options, run, with_ids};

/// Much longer than the timeout of the migration.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(60);
/// Longer than the result of a readiness probe counts.
const PROBE_AGE: Duration = Duration::from_millis(600);

async fn refused(url: &str) -> String {
    let refused = PostgresStore::open(url, options(WINDOW, None)).await;
    match refused.unwrap_err() {
        StoreError::Unexpected(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn open_names_migrate_command_when_schema_is_missing() {
    let database = Database::bare().await;
    let message = refused(&database.owning()).await;
    assert!(message.contains("pools-service migrate"), "{message}");
    // Two concurrent migrations and a third one create the schema once.
    let url = database.owning();
    let (one, two) = tokio::join!(
        PostgresStore::migrate(&url, LONG_TIMEOUTS, None),
        PostgresStore::migrate(&url, LONG_TIMEOUTS, None)
    );
    one.unwrap();
    two.unwrap();
    PostgresStore::migrate(&url, LONG_TIMEOUTS, None)
        .await
        .unwrap();
    let store = PostgresStore::open(&url, options(WINDOW, None))
        .await
        .unwrap();
    soon_ready(&store).await;
    store.close().await;
}

#[tokio::test]
async fn open_distinguishes_older_and_newer_schemas() {
    let database = Database::make().await;
    let mut owner = database.owner().await;
    let opened = PostgresStore::open(&database.owning(), options(WINDOW, None)).await;
    let store = opened.unwrap();
    run(
        &mut owner,
        "UPDATE _sqlx_migrations SET version = 9000 WHERE version = 4",
    )
    .await;
    let message = refused(&database.owning()).await;
    assert!(
        message.contains("9000") && message.contains("run the newer one"),
        "{message}"
    );
    let error = store.ready().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(error.source().is_some());
    run(&mut owner, "DELETE FROM _sqlx_migrations WHERE version > 1").await;
    let message = refused(&database.owning()).await;
    assert!(message.contains("pools-service migrate"), "{message}");
    let newer = "UPDATE _sqlx_migrations SET version = 9000";
    run(&mut owner, newer).await;
    let refused = PostgresStore::migrate(&database.owning(), LONG_TIMEOUTS, None).await;
    assert!(
        matches!(refused, Err(StoreError::Unexpected(_))),
        "{refused:?}"
    );
    owner.close().await.unwrap();
}

/// Other statements queue after a migration that waits for a table, so it must not wait for a long read.
#[tokio::test]
async fn migration_does_not_wait_for_long_reader() {
    let database = Database::bare().await;
    let (mut owner, mut reader) = (database.owner().await, database.owner().await);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
    let all = Migrator::new(folder.as_path()).await.unwrap();
    let before = all.iter().filter(|migration| migration.version < 11);
    let before = Migrator {
        migrations: before.cloned().collect::<Vec<_>>().into(),
        ..Migrator::DEFAULT
    };
    before.run_direct(None, &mut owner, false).await.unwrap();
    run(&mut reader, "BEGIN; SELECT FROM commitments").await;
    let url = database.owning();
    let migrating = tokio::time::timeout(
        MIGRATION_DEADLINE,
        PostgresStore::migrate(&url, LONG_TIMEOUTS, None),
    );
    let refused = migrating.await.unwrap().unwrap_err();
    let StoreError::Unavailable(error) = refused else {
        panic!("{refused:?}")
    };
    assert!(error.to_string().contains("version 11"), "{error}");
    reader.close().await.unwrap();
    PostgresStore::migrate(&url, LONG_TIMEOUTS, None)
        .await
        .unwrap();
    owner.close().await.unwrap();
}

#[tokio::test]
async fn open_is_unavailable_without_server() {
    let nowhere = "postgres://unknown@127.0.0.1:1/nothing";
    let error = PostgresStore::open(nowhere, options(WINDOW, None)).await;
    assert!(
        matches!(error, Err(StoreError::Unavailable(_))),
        "{error:?}"
    );
    let malformed = PostgresStore::open("postgres://[", options(WINDOW, None)).await;
    assert!(matches!(malformed, Err(StoreError::Unexpected(_))));
}

// rule: base.schema-one-ahead
#[tokio::test]
async fn schema_one_additive_migration_ahead_is_served_and_any_other_refused() {
    let database = Database::make().await;
    let url = database.serving();
    let mut owner = database.owner().await;
    let opened = PostgresStore::open(&url, options(WINDOW, None)).await;
    let store = opened.unwrap();
    let next_release = "CREATE TABLE labels (id bigint PRIMARY KEY);
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9000, 'labels additive', TRUE, '\\x00', 0)";
    run(&mut owner, next_release).await;
    soon_ready(&store).await;
    let again = PostgresStore::open(&url, options(WINDOW, None)).await;
    soon_ready(&again.unwrap()).await;
    PostgresStore::migrate(&database.owning(), LONG_TIMEOUTS, None)
        .await
        .unwrap();
    for next in [
        "UPDATE _sqlx_migrations SET description = 'labels' WHERE version = 9000",
        "UPDATE _sqlx_migrations SET description = 'labels additive' WHERE version = 9000;
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9001, 'names additive', TRUE, '\\x00', 0)",
    ] {
        run(&mut owner, next).await;
        let message = refused(&url).await;
        assert!(message.contains("run the newer one"), "{message}");
        tokio::time::sleep(PROBE_AGE).await;
        let error = store.ready().await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    owner.close().await.unwrap();
}

// rule: gate.session.one-payment
#[tokio::test]
async fn migration_keeps_sessions_that_were_paid_more_than_once() {
    let database = Database::bare().await;
    let mut owner = database.owner().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
    let all = Migrator::new(folder.as_path()).await.unwrap();
    let before = all.iter().filter(|migration| migration.version < 18);
    let before = Migrator {
        migrations: before.cloned().collect::<Vec<_>>().into(),
        ..Migrator::DEFAULT
    };
    before.run_direct(None, &mut owner, false).await.unwrap();
    let rows = upgrades::sessions_paid_more_than_once();
    database.damage(&rows).await;
    PostgresStore::migrate(&database.owning(), LONG_TIMEOUTS, None)
        .await
        .unwrap();
    let wrong = AssertSqlSafe(with_ids(&upgrades::wrong_predates_rule()));
    let wrong: i64 = sqlx::query_scalar(wrong)
        .fetch_one(&mut owner)
        .await
        .unwrap();
    assert_eq!(wrong, 0);
    run(&mut owner, "SET session_replication_role = replica").await;
    let further = AssertSqlSafe(with_ids(&upgrades::further_payment()));
    let further = sqlx::raw_sql(further).execute(&mut owner).await;
    let refused = further.unwrap_err().to_string();
    assert!(refused.contains("rail_records_session_once"), "{refused}");
    run(&mut owner, &with_ids(&upgrades::late_settlement())).await;
    owner.close().await.unwrap();
}

/// Version 3 created the table without rows for existing accounts, and a sale took a missing row for zero.
// rule: money.credit-limit
#[tokio::test]
async fn migration_raises_contingent_credits_to_balance_and_possible_returns() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    const NOW: i64 = 100 * DAY;
    let database = Database::bare().await;
    let mut owner = database.owner().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
    let all = Migrator::new(folder.as_path()).await.unwrap();
    let before = all.iter().filter(|migration| migration.version < 26);
    let before = Migrator {
        migrations: before.cloned().collect::<Vec<_>>().into(),
        ..Migrator::DEFAULT
    };
    before.run_direct(None, &mut owner, false).await.unwrap();
    let settled = |days: i64| format!("'settled', {}", NOW - days * DAY);
    let trades = [
        ("off_ramp", 5, 1, settled(30)),
        ("off_ramp", 7, 3, "'reserved', NULL".to_owned()),
        ("on_ramp", 11, 2, "'reserved', NULL".to_owned()),
        // No trade is returned so late, or twice.
        ("off_ramp", 1_000, 1, settled(31)),
        ("off_ramp", 2_000, 1, format!("'returned', {NOW}")),
    ];
    let trades = trades.iter().enumerate();
    let trades = trades.map(|(number, (side, fiat, crypto, state))| {
        let id = format!("01KSFVT4Z2V6B9C1D3F5G7H8T{number}");
        let reserved = if *side == "on_ramp" { fiat } else { crypto };
        format!(
            "INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
                                 notional, reserved, created_at, status, settled_at)
             VALUES ('test', 'acme', '{id}', '{id}', 'EUR-USDT', '{side}', 'tron', {fiat}, {crypto}, '1', 0, 0, 1,
                     {reserved}, 1, {state});"
        )
    });
    let rows = format!(
        "INSERT INTO partners (mode, partner_id, name, status) VALUES ('test', 'acme', 'Acme', 'active');
         INSERT INTO books (mode, partner_id, version, at) VALUES ('test', 'acme', 1, {NOW});
         INSERT INTO accounts (mode, partner_id, asset, available, sequence)
         VALUES ('test', 'acme', 'EUR', 100, 1), ('test', 'acme', 'USDT', 20, 1), ('test', 'acme', 'GBP', 9, 1);
         INSERT INTO commitments (mode, partner_id, asset, total)
         VALUES ('test', 'acme', 'EUR', 7), ('test', 'acme', 'GBP', 500);
         {}",
        trades.collect::<String>()
    );
    database.damage(&rows).await;
    PostgresStore::migrate(&database.owning(), LONG_TIMEOUTS, None)
        .await
        .unwrap();
    let totals: Vec<(String, i64)> =
        sqlx::query_as("SELECT asset::text, total FROM commitments ORDER BY asset")
            .fetch_all(&mut owner)
            .await
            .unwrap();
    owner.close().await.unwrap();
    let expected = [("EUR", 123), ("GBP", 500), ("USDT", 23)];
    assert_eq!(
        totals,
        expected.map(|(asset, total)| (asset.to_owned(), total))
    );
}

/// The database is older than the rule that a deposit has one owner.
// rule: apply.deposits-of-one-partner
#[tokio::test]
async fn shared_deposits_outlive_the_migration_and_are_named() {
    let database = Database::bare().await;
    let mut conn = database.owner().await;
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
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
             VALUES ('test', '{partner}', false, 'active', 'pending', 't', '[]', false, '{reference}', '{address}');"
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
    run(&mut conn, &profiles.concat()).await;
    PostgresStore::migrate(&database.owning(), LONG_TIMEOUTS, None)
        .await
        .unwrap();
    let store = PostgresStore::open(&database.owning(), options(WINDOW, None)).await;
    let store = store.unwrap();
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
