//! Databases on a server: who creates the schema, the master key, and failures of commands.

use test_support::test_database::Database;

use crate::fixture::{ACME, Done, Installation, KEY, POOL, SHOP, ended};

const READING: [&str; 4] = [
    "verify",
    "key list --partner acme",
    "export trades --partner acme --from 2026-01-01 --to 2027-01-01",
    "export ledger --partner acme --from 2026-01-01 --to 2027-01-01",
];

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn with_key(installation: &Installation, words: &[&str], key: &str) -> Done {
    let mut program = installation.program(words);
    ended(program.env("PENSTOCK_MASTER_KEY", key).output().unwrap())
}

// rule: cli.server, program.migrate
#[test]
fn commands_never_create_or_change_schema_of_server() {
    let installation = Installation::on_a_server(Database::bare_now());
    for command in READING {
        let done = installation.run(&words(command));
        assert_eq!(done.code, 1, "{command}: {done:?}");
        assert!(done.err.contains("run `pools-service migrate`"), "{done:?}");
    }
    for more in [&[][..], &["--dry-run"]] {
        let done = installation.apply(&format!("{POOL}{ACME}{SHOP}"), more);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains("run `pools-service migrate`"), "{done:?}");
    }
}

// rule: cli.server, cli.exit-codes
#[test]
fn every_command_works_on_server_with_operating_role() {
    let installation = Installation::on_a_server(Database::make_now());
    let database = installation.server.as_ref().unwrap();
    let webhook = "[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/p\"\n";
    let applied = installation.apply(&format!("{POOL}{ACME}{webhook}"), &[]);
    assert_eq!(applied.code, 0, "{applied:?}");
    let again = installation.apply(&format!("{POOL}{ACME}{webhook}"), &[]);
    assert!(again.out.starts_with("nothing to change"), "{again:?}");
    let made = installation.json(&words("key create --partner acme --kind secret"));
    let revoke = format!("key revoke --key-id {}", made["id"].as_str().unwrap());
    for command in [
        revoke.as_str(),
        "balance credit --partner acme --currency EUR --amount 1000.00 --ref bank",
        "crypto credit --partner acme --asset USDT --network tron --amount 5 --ref chain",
        "webhook rotate-secret --partner acme --service pools --overlap 24h",
    ] {
        let done = installation.run(&words(command));
        assert_eq!(done.code, 0, "{command}: {done:?}");
        let place = format!("test, postgres://{}/", place(&database.operating()));
        assert!(done.err.starts_with(&place), "{command}: {done:?}");
    }
    for command in READING {
        let done = installation.run(&words(command));
        assert_eq!(done.code, 0, "{command}: {done:?}");
        let shown = if command == "verify" { "test, " } else { "" };
        assert!(done.err.starts_with(shown), "{command}: {done:?}");
        assert_eq!(done.err.is_empty(), shown.is_empty(), "{command}: {done:?}");
        let again = installation.run(&words(command));
        assert_eq!(
            again.out, done.out,
            "{command}: the output should be identical"
        );
    }
    let folder = std::fs::read_dir(installation.folder.path()).unwrap();
    assert_eq!(
        folder.count(),
        1,
        "the folder contains only the applied file"
    );
}

// rule: base.serving-role-provisions-nothing
#[test]
fn provisioning_commands_report_required_role_to_serving_role() {
    let installation = Installation::on_a_server(Database::make_now());
    assert_eq!(installation.apply(&format!("{ACME}{SHOP}"), &[]).code, 0);
    let serving = installation.server.as_ref().unwrap().serving();
    for command in [
        "apply -f file.toml",
        "key create --partner acme --kind secret",
        "webhook rotate-secret --partner acme --service pools",
    ] {
        let words = format!("{command} --database-url {serving}");
        let done = installation.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(done.code, 1, "{command}: {done:?}");
        assert!(
            done.err.contains("`penstock` as penstock_operate"),
            "{done:?}"
        );
    }
}

// rule: base.master-key-server, base.master-key-mismatch
#[test]
fn server_database_needs_key_of_first_opening() {
    let installation = Installation::on_a_server(Database::make_now());
    let without = with_key(&installation, &["verify"], "");
    assert_eq!(without.code, 2, "{without:?}");
    let message = "PENSTOCK_MASTER_KEY: expected 32 bytes in base64";
    assert!(without.err.starts_with(message), "{without:?}");
    let other = KEY.replace("AAEC", "BBEC");
    std::fs::write(installation.folder.path().join("file.toml"), POOL).unwrap();
    let dry = with_key(
        &installation,
        &words("apply -f file.toml --dry-run"),
        &other,
    );
    assert_eq!(dry.code, 0, "{dry:?}");
    assert_eq!(
        installation.apply(POOL, &[]).code,
        0,
        "a dry run stores no key"
    );
    let refused = with_key(&installation, &["verify"], &other);
    assert_eq!(refused.code, 2, "{refused:?}");
    let message = "PENSTOCK_MASTER_KEY: expected the database's master key, fingerprint ";
    let shown = refused.err.contains(&other) || refused.err.contains(KEY);
    assert!(refused.err.starts_with(message) && !shown, "{refused:?}");
}

/// Runs `verify` on this URL instead of the installation's.
fn verify_on(url: &str) -> Done {
    let installation = Installation::in_a_file();
    let mut program = installation.program(&["verify"]);
    program.env("PENSTOCK_DATABASE_URL", url);
    ended(program.env("PENSTOCK_MASTER_KEY", KEY).output().unwrap())
}

/// The host and port of a URL, such as `127.0.0.1:5432`.
fn place(url: &str) -> &str {
    let (_, rest) = url.rsplit_once('@').unwrap();
    rest.split(['/', '?']).next().unwrap()
}

fn assert_names(done: &Done, parts: &[&str]) {
    assert_eq!(done.code, 1, "{done:?}");
    for part in parts {
        assert!(done.err.contains(part), "{part}: {done:?}");
    }
    assert!(!done.err.contains("unexpected fault"), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
}

// rule: cli.database-faults
#[test]
fn missing_database_is_reported_with_server_and_remedy() {
    let database = Database::bare_now();
    let url = database.owning();
    let (base, _) = url.rsplit_once('/').unwrap();
    let done = verify_on(&format!("{base}/nowhere"));
    let server = format!("the server at {}: ", place(&url));
    assert_names(
        &done,
        &[
            &server,
            "it has no database `nowhere`",
            "`createdb",
            "PENSTOCK_DATABASE_URL",
        ],
    );
}

// rule: base.database-suitable
#[tokio::test]
async fn database_with_another_encoding_is_reported_with_remedy() {
    let database = Database::bare().await;
    let url = database.owning();
    let (base, name) = url.rsplit_once('/').unwrap();
    let latin = format!("{name}_latin");
    let making = format!(
        "CREATE DATABASE {latin} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    );
    let mut owner = database.owner().await;
    test_support::test_database::run(&mut owner, &making).await;
    let done = verify_on(&format!("{base}/{latin}"));
    let dropping = format!("DROP DATABASE {latin} WITH (FORCE)");
    test_support::test_database::run(&mut owner, &dropping).await;
    let server = format!("the server at {}, database `{latin}`: ", place(&url));
    assert_names(&done, &[&server, "its encoding is LATIN1", "createdb"]);
}

// rule: cli.database-faults
#[test]
fn refused_role_is_reported_with_remedy() {
    let database = Database::bare_now();
    let url = database.owning();
    let place = place(&url);
    let (_, name) = url.rsplit_once('/').unwrap();
    let done = verify_on(&format!("postgres://stranger:hunter2@{place}/{name}"));
    let server = format!("the server at {place}: ");
    assert_names(
        &done,
        &[
            &server,
            "role `stranger`",
            "password",
            "deploy/postgres/roles.sql",
        ],
    );
    assert!(!done.err.contains("hunter2"), "{done:?}");
}

// rule: cli.database-faults
#[tokio::test]
async fn role_without_rights_is_reported_with_file_of_rights() {
    let database = Database::make().await;
    let mut owner = database.owner().await;
    let right = "REVOKE SELECT ON _sqlx_migrations FROM penstock_operate";
    test_support::test_database::run(&mut owner, right).await;
    let url = database.owning();
    let (_, name) = url.rsplit_once('/').unwrap();
    let server = format!("the server at {}, database `{name}`: ", place(&url));
    let done = verify_on(&database.operating());
    assert_names(&done, &[&server, "deploy/postgres/roles.sql"]);
}
