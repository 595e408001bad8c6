//! The program on a Postgres database: migrations, refused settings, and serving.

use std::sync::Arc;

use partner_core::usecases::master_keys::RotateMasterKey;
use test_support::test_database::{Database, run};

use crate::served::{
    POOLS, eventually, file_for_acme, open, poll, provision, quote, text, transact,
};

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Another key, in base64.
const SECOND: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
const SECRET: &str = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001";

/// Runs the program until it exits by itself, and returns its one line on stderr.
pub(crate) fn refused(arguments: &[&str], variables: &[(&str, &str)], code: i32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ended = POOLS.output(folder.path(), arguments, variables);
    let stderr = text(&ended.stderr).to_owned();
    assert_eq!(ended.status.code(), Some(code), "{stderr}");
    assert_eq!(text(&ended.stdout), "");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let left = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(left.count(), 0, "the program creates no file");
    stderr
}

/// Runs a statement as the owner of the database.
fn as_owner(database: &Database, sql: &str) {
    let tokio = tokio::runtime::Runtime::new().unwrap();
    tokio.block_on(async { run(&mut database.owner().await, sql).await });
}

// rule: program.migrate, config.embedded-migrates, health.ready
#[test]
fn owner_migrates_and_another_role_serves() {
    let database = Database::bare_now();
    let (owning, serving) = (database.owning(), database.serving());
    let variables = [
        ("DATABASE_URL", serving.as_str()),
        ("MIGRATE_DATABASE_URL", owning.as_str()),
        ("MASTER_KEY", KEY),
    ];
    let stderr = refused(&["serve"], &variables, 1);
    assert!(stderr.contains("run `pools-service migrate`"), "{stderr}");
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "the database was empty; its schema is now version ",
        "the schema is already version ",
    ] {
        let migrated = POOLS.output(folder.path(), &["migrate"], &variables[..2]);
        assert_eq!(
            migrated.status.code(),
            Some(0),
            "migrating needs no master key"
        );
        let printed = text(&migrated.stdout);
        assert!(printed.starts_with(line), "{printed}");
    }
    let tokio = tokio::runtime::Runtime::new().unwrap();
    tokio.block_on(database.grant());
    let operating = database.operating();
    let operator = [("DATABASE_URL", operating.as_str()), variables[2]];
    provision(folder.path(), &operator, &file_for_acme(SECRET, None));
    let served = POOLS.start(folder.path(), &variables);
    assert!(served.get("/health/ready").contains(r#""database":"ok""#));
    let bearer = format!("Bearer {SECRET}");
    let headers = [("Authorization", bearer.as_str())];
    let quote = quote(&served, &headers, "10.00");
    let opened = transact(&served, &headers, &quote);
    assert_eq!(opened["status"], "reserved", "{opened}");
    let polled = poll(&served, &headers, &quote);
    assert_eq!(polled["status"], "settled", "{polled}");
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0), "{logged}");
    as_owner(
        &database,
        "UPDATE _sqlx_migrations SET version = 9000 WHERE version = 1",
    );
    let stderr = refused(&["serve"], &variables, 1);
    assert!(
        stderr.contains("9000") && stderr.contains("run the newer one"),
        "{stderr}"
    );
    let stderr = refused(&["migrate"], &variables, 1);
    assert!(stderr.contains("9000"), "{stderr}");
}

/// A replica that was started with only the old key settles nothing after another key became current, and is not ready.
// rule: base.master-key-rotation, health.ready
#[test]
fn service_without_the_current_master_key_stores_nothing_under_the_old_one() {
    let database = Database::make_now();
    let (serving, operating) = (database.serving(), database.operating());
    let serve = [("DATABASE_URL", serving.as_str()), ("MASTER_KEY", KEY)];
    let both = format!("{KEY},{SECOND}");
    let rotate = [
        ("DATABASE_URL", operating.as_str()),
        ("MASTER_KEY", both.as_str()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let operator = [rotate[0], serve[1]];
    provision(folder.path(), &operator, &file_for_acme(SECRET, None));
    let served = POOLS.start(folder.path(), &serve);
    let bearer = format!("Bearer {SECRET}");
    let headers = [("Authorization", bearer.as_str())];
    let quote = quote(&served, &headers, "10.00");
    transact(&served, &headers, &quote);
    promote(&rotate);
    eventually(|| {
        let ready = served.get("/health/ready");
        ready.starts_with("HTTP/1.1 503").then_some(())
    });
    let path = format!("GET /v1/pools/transactions/{quote}");
    let refused = served.send(&path, &headers, "");
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused.contains(r#""code":"service_unavailable""#),
        "{refused}"
    );
    let (_, logged) = served.end("-TERM");
    let message = "The database's current master key is not configured";
    assert!(logged.contains(message), "{logged}");
    let restarted = POOLS.start(folder.path(), &[serve[0], rotate[1]]);
    let polled = poll(&restarted, &headers, &quote);
    assert_eq!(polled["status"], "settled", "{polled}");
    assert_eq!(restarted.end("-TERM").0, Some(0));
}

/// Makes the second of two keys the current one.
fn promote(variables: &[(&str, &str)]) {
    let tokio = tokio::runtime::Runtime::new().unwrap();
    tokio.block_on(async {
        let base = open(variables).await;
        let rotation = RotateMasterKey {
            store: base.store.clone(),
            sealer: Arc::clone(&base.sealer),
            entropy: Arc::clone(&base.entropy),
        };
        let held: Vec<_> = base.sealer.held().collect();
        rotation
            .promote(held[0], held[1], &base.derived)
            .await
            .unwrap();
        base.store.close().await;
    });
}

/// The same as after a failover to a standby that was not promoted, over HTTP.
// rule: base.database-readiness, base.database-refuses-writes
#[test]
fn service_is_not_ready_and_leaves_no_unknown_outcome_while_database_refuses_writes() {
    let database = Database::make_now();
    let (serving, operating) = (database.serving(), database.operating());
    let key = ("MASTER_KEY", KEY);
    let folder = tempfile::tempdir().unwrap();
    let operator = [("DATABASE_URL", operating.as_str()), key];
    provision(folder.path(), &operator, &file_for_acme(SECRET, None));
    let variables = [
        ("DATABASE_URL", serving.as_str()),
        key,
        ("METRICS_LISTEN", "127.0.0.1:0"),
    ];
    let served = POOLS.start(folder.path(), &variables);
    let bearer = format!("Bearer {SECRET}");
    let headers = [("Authorization", bearer.as_str())];
    let quote = quote(&served, &headers, "10.00");
    transact(&served, &headers, &quote);
    let now = |on: &str| {
        format!(
            "BEGIN READ WRITE; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {on}', current_database()); END $$; COMMIT; \
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    };
    as_owner(&database, &now("on"));
    let status_is = |wanted: &str| {
        let ready = served.get("/health/ready");
        ready
            .starts_with(&format!("HTTP/1.1 {wanted}"))
            .then_some(())
    };
    eventually(|| status_is("503"));
    assert!(served.get("/health").starts_with("HTTP/1.1 200"));
    let path = format!("GET /v1/pools/transactions/{quote}");
    let refused = served.send(&path, &headers, "");
    assert!(
        refused.contains(r#""code":"service_unavailable""#),
        "{refused}"
    );
    let metrics = crate::served::get(&served.metrics_address(), "/metrics");
    let unknown = r#"penstock_store_faults_total{kind="commit_unknown"}"#;
    let counted = metrics
        .lines()
        .find_map(|line| line.strip_prefix(unknown)?.strip_prefix(' '));
    assert!(counted.is_none_or(|count| count == "0"), "{metrics}");
    as_owner(&database, &now("off"));
    eventually(|| status_is("200"));
    let polled = poll(&served, &headers, &quote);
    assert_eq!(polled["status"], "settled", "{polled}");
    assert_eq!(served.end("-TERM").0, Some(0));
}

// rule: base.durability-reported
#[test]
fn service_logs_level_of_synchronous_commit_that_it_found() {
    let database = Database::make_now();
    let serving = database.serving();
    let variables = [("DATABASE_URL", serving.as_str()), ("MASTER_KEY", KEY)];
    let folder = tempfile::tempdir().unwrap();
    for (default, is_raised) in [("off", true), ("remote_apply", false)] {
        let setting = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = {default}', current_database()); END $$"
        );
        as_owner(&database, &setting);
        let (code, logged) = POOLS.start(folder.path(), &variables).end("-TERM");
        assert_eq!(code, Some(0), "{logged}");
        let found = format!(r#""database.synchronous_commit":"{default}""#);
        assert!(logged.contains(&found), "{logged}");
        let warning = "The default of synchronous_commit acknowledges commits";
        assert_eq!(logged.contains(warning), is_raised, "{logged}");
    }
}

// rule: config.embedded-migrates
#[test]
fn serving_migrates_server_if_configured() {
    let database = Database::bare_now();
    let owning = database.owning();
    let variables = [
        ("DATABASE_URL", owning.as_str()),
        ("AUTO_MIGRATE", "true"),
        ("MASTER_KEY", KEY),
    ];
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let served = POOLS.start(folder.path(), &variables);
        assert_eq!(served.end("-TERM").0, Some(0));
    }
    let elsewhere = [("MIGRATE_DATABASE_URL", "sqlite://some.db")];
    let stderr = refused(&["serve"], &[&variables[..], &elsewhere].concat(), 2);
    let message = "PENSTOCK_MIGRATE_DATABASE_URL: expected the owner's connection";
    assert!(stderr.starts_with(message), "{stderr}");
}

// rule: config.database-server, base.master-key-server
#[test]
fn missing_key_and_unreachable_server_are_reported_without_passwords() {
    let away = "postgres://penstock:hunter2@127.0.0.1:1/penstock";
    let key = ("MASTER_KEY", KEY);
    for (variables, code, message) in [
        (
            &[("DATABASE_URL", away)][..],
            2,
            "PENSTOCK_MASTER_KEY: expected 32 bytes",
        ),
        (
            &[("DATABASE_URL", away), key],
            1,
            "the database cannot be opened: ",
        ),
    ] {
        let stderr = refused(&["serve"], variables, code);
        assert!(
            stderr.starts_with(message) && !stderr.contains("hunter2"),
            "{stderr}"
        );
    }
    let stderr = refused(&["migrate"], &[("DATABASE_URL", away)], 1);
    assert!(
        stderr.contains("the server at 127.0.0.1:1: ") && !stderr.contains("hunter2"),
        "{stderr}"
    );
    let folder = tempfile::tempdir().unwrap();
    let shown = POOLS.output(folder.path(), &["config"], &[("DATABASE_URL", away), key]);
    let shown = text(&shown.stdout);
    let url = "database_url = \"postgres://penstock:***@127.0.0.1:1/penstock\"";
    assert!(shown.contains(url) && !shown.contains("hunter2"), "{shown}");
}
