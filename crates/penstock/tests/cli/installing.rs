//! The right installation: its mode, its database, and entries of a file whose partner is mistyped.

use std::path::Path;

use crate::fixture::{ACME, Done, Installation, KEY, KEYS, POOL, SHOP, ended};
use test_support::test_database::Database;

/// Runs a command with the master key that mode live requires, and no other variable than the database's.
fn run(installation: &Installation, words: &[&str]) -> Done {
    let mut program = installation.program(words);
    let server = installation.server.as_ref();
    let owner = server.map(|it| ("PENSTOCK_MIGRATE_DATABASE_URL", it.owning()));
    let program = program.env("PENSTOCK_MASTER_KEY", KEY).envs(owner);
    ended(program.output().unwrap())
}

/// An installation of mode live with the partner `biz_09`.
fn live() -> Installation {
    let installation = Installation::new();
    assert_eq!(run(&installation, &["migrate", "--mode", "live"]).code, 0);
    let file = format!("{POOL}{ACME}{SHOP}").replace("acme", "biz_09");
    std::fs::write(installation.folder.path().join("file.toml"), file).unwrap();
    let done = run(&installation, &["apply", "-f", "file.toml"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.starts_with("live, "), "{done:?}");
    installation
}

// rule: base.installation-mode, base.installation-named
#[test]
fn command_takes_mode_of_database_and_refuses_another() {
    let installation = live();
    let create = "key create --partner biz_09 --kind secret";
    let create: Vec<&str> = create.split(' ').collect();
    let done = run(&installation, &create);
    assert_eq!(done.code, 0, "{done:?}");
    let scheme = match installation.server {
        None => "live, sqlite:///",
        Some(_) => "live, postgres://127.0.0.1:",
    };
    assert!(done.err.starts_with(scheme), "{done:?}");
    let made = run(
        &installation,
        &[&create[..], &["--output", "json"]].concat(),
    )
    .json();
    assert_eq!(made["mode"], "live");
    assert!(made["key"].as_str().unwrap().starts_with("sk_live_"));
    let database = made["database"].as_str().unwrap();
    assert!(!database.contains('@'), "{database}");
    for words in [
        &["apply", "-f", "file.toml", "--mode", "test"][..],
        &["key", "list", "--partner", "biz_09", "--mode", "test"],
        &["verify", "--mode", "test"],
        &["migrate", "--mode", "test"],
    ] {
        let done = run(&installation, words);
        assert_eq!(done.code, 2, "{words:?}: {done:?}");
        let message = "PENSTOCK_MODE: expected live, the mode of the installation in ";
        assert!(done.err.starts_with(message), "{words:?}: {done:?}");
        assert!(
            done.err.contains("runs in mode test"),
            "{words:?}: {done:?}"
        );
        assert_eq!(done.err.lines().count(), 1, "{words:?}: {done:?}");
    }
}

// rule: config.live-database
#[test]
fn mode_live_without_database_url_stops_and_creates_nothing() {
    let installation = Installation::in_a_file();
    for words in [
        "verify",
        "migrate",
        "balance credit --partner a --currency EUR --amount 1.00 --ref r",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let mut program = installation.program(&words);
        let program = program.env_remove("PENSTOCK_DATABASE_URL");
        let variables = [("PENSTOCK_MODE", "live"), ("PENSTOCK_MASTER_KEY", KEY)];
        let done = ended(program.envs(variables).output().unwrap());
        assert_eq!(done.code, 2, "{words:?}: {done:?}");
        let message = "PENSTOCK_DATABASE_URL: expected sqlite://<file> or postgres://";
        assert!(done.err.starts_with(message), "{words:?}: {done:?}");
        assert!(done.err.contains("quote the URL"), "{words:?}: {done:?}");
        let files = std::fs::read_dir(installation.folder.path()).unwrap();
        assert_eq!(files.count(), 0, "{words:?}");
    }
}

// rule: cli.needs-a-database
#[test]
fn only_migrate_creates_a_database_in_mode_live() {
    let installation = Installation::in_a_file();
    std::fs::write(installation.folder.path().join("file.toml"), POOL).unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let words = [&["apply", "-f", "file.toml", "--mode", "live"][..], more].concat();
        let done = run(&installation, &words);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(
            done.err.contains("run it first") && !installation.database_exists(),
            "{done:?}"
        );
    }
    let done = run(&installation, &["migrate", "--mode", "live"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.starts_with("the database was empty"), "{done:?}");
    assert!(done.err.starts_with("live, sqlite:///"), "{done:?}");
    let again = run(&installation, &["migrate", "--output", "json"]).json();
    assert_eq!(
        (&again["mode"], &again["from"]),
        (&"live".into(), &again["to"])
    );
}

// rule: cli.needs-a-database
#[test]
fn apply_reports_the_database_that_it_creates() {
    let installation = Installation::in_a_file();
    let done = installation.apply(POOL, &[]);
    let [place, created] = done.err.lines().collect::<Vec<_>>()[..] else {
        panic!("{done:?}");
    };
    let database = place.strip_prefix("test, ").unwrap();
    assert_eq!(created, format!("created the database {database}"));
    assert_eq!(installation.apply(POOL, &[]).err.lines().count(), 1);
    let shut = POOL.replace("EUR", "GBP").replace("available = true", "");
    let done = installation.apply(&shut, &[]);
    assert!(
        done.out.contains("pool GBP-USDT: created, not available"),
        "{done:?}"
    );
}

// rule: apply.mistyped-partner
#[test]
fn entry_for_mistyped_partner_is_refused_or_reported_before_it_is_written() {
    let installation = live();
    let apply = |text: &str, words: &[&str]| {
        std::fs::write(installation.folder.path().join("file.toml"), text).unwrap();
        run(
            &installation,
            &[&["apply", "-f", "file.toml"], words].concat(),
        )
    };
    let suspended = ACME
        .replace("acme", "biz_9")
        .replace("name", "status = \"suspended\"\nname");
    let done = apply(&suspended, &[]);
    assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
    let message = "file.toml: line 1: partners.id: there is no partner `biz_9` in this mode";
    assert!(done.err.starts_with(message), "{done:?}");
    assert!(done.err.ends_with("; did you mean `biz_09`?\n"), "{done:?}");
    let with_keys = format!("{suspended}{KEYS}");
    let done = apply(&with_keys, &["--dry-run"]);
    assert_eq!(done.code, 0, "{done:?}");
    let message = "warning: partner biz_9 is new, and the file suspends it; did you mean `biz_09`?";
    assert!(done.err.contains(message), "{done:?}");
    let renamed = apply(&ACME.replace("acme", "biz_09").replace("Acme", "Beta"), &[]);
    assert_eq!(renamed.code, 0, "{renamed:?}");
    let message = "warning: partner biz_09 is renamed from \"Acme\" to \"Beta\"\n";
    assert!(renamed.err.contains(message), "{renamed:?}");
}

// rule: cli.exit-codes
#[test]
fn empty_file_is_refused() {
    let installation = Installation::in_a_file();
    for text in ["", "\n", "# nothing yet\n"] {
        let done = installation.apply(text, &[]);
        assert_eq!(done.code, 2, "{done:?}");
        let message = "file.toml: expected at least one [[pools]] or [[partners]] table";
        assert!(done.err.starts_with(message), "{done:?}");
        assert!(!installation.database_exists());
    }
}

// rule: cli.credit.needs-pool
#[test]
fn credit_needs_a_pool_of_its_currency_and_network() {
    let installation = Installation::new();
    assert_eq!(
        installation.apply(&format!("{POOL}{ACME}{SHOP}"), &[]).code,
        0
    );
    for (words, message) in [
        (
            "balance credit --partner acme --currency USD --amount 1.00 --ref r",
            "--currency: no pool trades USD, so it could not be used; expected one of EUR\n",
        ),
        (
            "crypto credit --partner acme --asset BTC --network tron --amount 1 --ref r",
            "--asset: no pool trades BTC, so it could not be used; expected one of USDT\n",
        ),
        (
            "crypto credit --partner acme --asset USDT --network solana --amount 1 --ref r",
            "--network: no pool of USDT has the network solana; expected one of tron\n",
        ),
    ] {
        let done = installation.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!((done.code, done.err.as_str()), (2, message), "{done:?}");
    }
}

// rule: config.serving-secrets
#[test]
fn command_needs_no_secret_of_an_upstream() {
    let installation = live();
    let settings = "mode = \"live\"\nengine = \"http:https://engine.example\"\n\
                    rail = \"http:https://rail.example\"\nverifier = \"http:https://verifier.example\"\n";
    std::fs::write(installation.folder.path().join("penstock.toml"), settings).unwrap();
    let words = [
        "--config",
        "penstock.toml",
        "key",
        "list",
        "--partner",
        "biz_09",
    ];
    let done = run(&installation, &words);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
}

// rule: config.library-settings
#[test]
fn quotes_around_a_value_are_refused() {
    let installation = Installation::in_a_file();
    for quote in ['"', '\''] {
        let mut program = installation.program(&["verify"]);
        let url = format!("{quote}sqlite:///srv/penstock.db{quote}");
        let done = ended(program.env("PENSTOCK_DATABASE_URL", url).output().unwrap());
        assert_eq!(done.code, 2, "{done:?}");
        assert!(
            done.err
                .starts_with("PENSTOCK_DATABASE_URL: expected sqlite://<file>"),
            "{done:?}"
        );
        assert!(
            done.err
                .ends_with(&format!(", without the {quote} at both ends\n")),
            "{done:?}"
        );
    }
}

// rule: base.master-key-file
#[test]
fn key_is_beside_the_file_that_a_symbolic_link_names() {
    let installation = Installation::in_a_file();
    let folder = installation.folder.path();
    std::fs::create_dir(folder.join("data")).unwrap();
    std::os::unix::fs::symlink("data/real.db", folder.join("penstock.db")).unwrap();
    let done = installation.apply(POOL, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("data/real.db\n"), "{done:?}");
    let is_there = |name: &str| Path::new(&folder.join(name)).exists();
    assert!(is_there("data/master.key") && is_there("data/real.db"));
    assert!(!is_there("master.key"));
    assert_eq!(installation.run(&["verify"]).code, 0);
}

// rule: cli.output-written
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let installation = Installation::in_a_file();
    for words in [&["--help"][..], &["--version"], &["completions", "bash"]] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = installation.program(words).stdout(full).output().unwrap();
        let done = ended(output);
        assert_eq!(done.code, 1, "{words:?}: {done:?}");
        assert!(
            done.err.starts_with("cannot write to stdout ("),
            "{words:?}: {done:?}"
        );
    }
}

// rule: cli.verify.metrics
#[test]
fn verify_replaces_the_file_of_its_metrics() {
    let installation = Installation::new();
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    let file = installation.folder.path().join("verify.prom");
    std::fs::write(&file, "of yesterday").unwrap();
    let done = installation.run(&["verify", "--metrics", "verify.prom"]);
    assert_eq!(done.code, 0, "{done:?}");
    let metrics = std::fs::read_to_string(&file).unwrap();
    for line in [
        "penstock_verify_ok{mode=\"test\"} 1\n",
        "penstock_verify_breaches{mode=\"test\"} 0\n",
        "\npenstock_verify_completed_timestamp_seconds{mode=\"test\"} ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let done = installation.run(&["verify", "--metrics", "nowhere/verify.prom"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err
            .contains("--metrics: nowhere/verify.prom cannot be written"),
        "{done:?}"
    );
}

// rule: base.reads-write-nothing
#[tokio::test(flavor = "multi_thread")]
async fn reading_commands_need_no_right_to_write() {
    let installation = Installation::on_a_server(Database::make().await);
    let file = format!("{POOL}{ACME}{SHOP}");
    assert_eq!(installation.apply(&file, &[]).code, 0);
    let database = installation.server.as_ref().unwrap();
    let mut owner = database.owner().await;
    let (_, name) = database
        .owning()
        .rsplit_once('/')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let only_reads = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    test_support::test_database::run(&mut owner, &only_reads).await;
    for words in [
        "verify",
        "key list --partner acme",
        "clock show",
        "master-key list",
        "export trades --partner acme --from 2026-01-01 --to 2027-01-01",
        "export ledger --partner acme --from 2026-01-01 --to 2027-01-01",
    ] {
        let done = installation.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(done.code, 0, "{words}: {done:?}");
    }
    let done = installation.apply(&file.replace("Acme", "Beta"), &[]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err
            .contains("name the primary in PENSTOCK_DATABASE_URL"),
        "{done:?}"
    );
}
