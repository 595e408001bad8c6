//! What is particular to a database on a server: who makes it, its key, and where commands stop.

use test_support::test_database::Database;

use crate::fixture::{ACME, Done, Installation, KEY, POOL, ended};

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
fn no_command_makes_or_changes_the_schema_of_a_server() {
    let installation = Installation::on_a_server(Database::bare_now());
    for command in READING {
        let done = installation.run(&words(command));
        assert_eq!(done.code, 1, "{command}: {done:?}");
        assert!(done.err.contains("run `pools-service migrate`"), "{done:?}");
    }
    for more in [&[][..], &["--dry-run"]] {
        let done = installation.apply(&format!("{POOL}{ACME}"), more);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains("run `pools-service migrate`"), "{done:?}");
    }
}

// rule: cli.server, cli.exit-codes
#[test]
fn every_command_works_on_a_server_as_the_role_that_operates() {
    let installation = Installation::on_a_server(Database::make_now());
    let webhook = "[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/p\"\n";
    let applied = installation.apply(&format!("{POOL}{ACME}{webhook}"), &[]);
    assert_eq!(applied.code, 0, "{applied:?}");
    let again = installation.apply(&format!("{POOL}{ACME}"), &[]);
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
        assert_eq!(
            (done.code, done.err.as_str()),
            (0, ""),
            "{command}: {done:?}"
        );
    }
    for command in READING {
        let done = installation.run(&words(command));
        assert_eq!(
            (done.code, done.err.as_str()),
            (0, ""),
            "{command}: {done:?}"
        );
        let again = installation.run(&words(command));
        assert_eq!(again.out, done.out, "{command}: the same, byte for byte");
    }
    let folder = std::fs::read_dir(installation.folder.path()).unwrap();
    assert_eq!(
        folder.count(),
        1,
        "nothing is kept here but the file applied"
    );
}

// rule: base.serving-role-provisions-nothing
#[test]
fn commands_that_provision_name_their_role_to_the_serving_role() {
    let installation = Installation::on_a_server(Database::make_now());
    assert_eq!(installation.apply(ACME, &[]).code, 0);
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
fn a_server_needs_the_key_it_was_first_opened_with() {
    let installation = Installation::on_a_server(Database::make_now());
    let without = with_key(&installation, &["verify"], "");
    assert_eq!(without.code, 2, "{without:?}");
    let told = "PENSTOCK_MASTER_KEY: expected 32 bytes in base64";
    assert!(without.err.starts_with(told), "{without:?}");
    assert_eq!(installation.run(&["verify"]).code, 0);
    let other = KEY.replace("AAEC", "BBEC");
    let refused = with_key(&installation, &["verify"], &other);
    assert_eq!(refused.code, 2, "{refused:?}");
    let told = "PENSTOCK_MASTER_KEY: expected the database's master key, fingerprint ";
    let shown = refused.err.contains(&other) || refused.err.contains(KEY);
    assert!(refused.err.starts_with(told) && !shown, "{refused:?}");
}

// rule: config.database-server, cli.exit-codes
#[test]
fn a_url_that_is_none_and_a_server_that_is_not_there_are_told_apart() {
    let installation = Installation::in_a_file();
    let verify = |url: &str| {
        let words = ["verify", "--database-url", url];
        with_key(&installation, &words, KEY)
    };
    let none = verify("postgres://acme:hunter2@127.0.0.1:port/penstock");
    assert_eq!(none.code, 2, "{none:?}");
    assert!(
        none.err.starts_with("--database-url: expected "),
        "{none:?}"
    );
    let away = verify("postgres://acme:hunter2@127.0.0.1:1/penstock");
    assert_eq!(away.code, 1, "{away:?}");
    assert!(away.err.contains("the server at 127.0.0.1:1"), "{away:?}");
    for done in [none, away] {
        assert_eq!(done.err.lines().count(), 1, "{done:?}");
        assert!(!done.err.contains("hunter2"), "{done:?}");
    }
}

// rule: cli.sandbox.refuses
#[test]
fn the_sandbox_takes_no_server() {
    let installation = Installation::on_a_server(Database::make_now());
    let done = installation.run(&["sandbox", "--check"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("names a server"), "{done:?}");
    let folder = std::fs::read_dir(installation.folder.path()).unwrap();
    assert_eq!(folder.count(), 0);
}

/// Runs `verify` on another URL than the installation's.
fn verify_on(url: &str) -> Done {
    let installation = Installation::in_a_file();
    let mut program = installation.program(&["verify"]);
    program.env("PENSTOCK_DATABASE_URL", url);
    ended(program.env("PENSTOCK_MASTER_KEY", KEY).output().unwrap())
}

/// Where the server is, such as `127.0.0.1:5432`.
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
fn database_that_does_not_exist_is_named_with_its_server_and_the_remedy() {
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

// rule: cli.database-faults
#[test]
fn role_that_the_server_does_not_let_in_is_named_with_the_remedy() {
    let database = Database::bare_now();
    let url = database.owning();
    let place = place(&url);
    let (_, name) = url.rsplit_once('/').unwrap();
    let done = verify_on(&format!("postgres://nobody:hunter2@{place}/{name}"));
    let server = format!("the server at {place}: ");
    assert_names(
        &done,
        &[
            &server,
            "role `nobody`",
            "password",
            "deploy/postgres/roles.sql",
        ],
    );
    assert!(!done.err.contains("hunter2"), "{done:?}");
}

// rule: cli.database-faults
#[tokio::test]
async fn role_without_its_rights_is_told_where_to_get_them() {
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
