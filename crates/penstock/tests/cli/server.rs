//! What is particular to a database on a server: who makes it, its key, and where commands stop.

use scratch::Database;

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
