//! Keys, credits and `verify`: exit codes and JSON.

use crate::fixture::{ACME, Installation, POOL, SHOP, ended};

fn with_acme() -> Installation {
    let installation = Installation::new();
    assert_eq!(
        installation.apply(&format!("{POOL}{ACME}{SHOP}"), &[]).code,
        0
    );
    installation
}

// rule: cli.exit-codes
#[test]
fn unknown_partner_is_reported_with_database_and_most_similar_name() {
    let installation = with_acme();
    for words in [
        "key list --partner acmee",
        "key create --partner acmee --kind secret",
        "balance credit --partner acmee --currency EUR --amount 1.00 --ref r",
        "webhook rotate-secret --partner acmee --service pools",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let done = installation.run(&words);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(
            done.err.starts_with("no partner `acmee` in mode test of "),
            "{done:?}"
        );
        assert!(done.err.ends_with("; did you mean `acme`?\n"), "{done:?}");
    }
    let negative = "balance credit --partner acme --currency EUR --amount -5.00 --ref r";
    let done = installation.run(&negative.split(' ').collect::<Vec<_>>());
    assert_eq!(done.code, 2, "{done:?}");
    assert_eq!(done.err, "--amount: expected an amount greater than zero\n");
}

// rule: cli.apply-file, cli.exit-codes, cli.json
#[test]
fn file_without_its_flag_is_refused_with_the_right_command() {
    let installation = Installation::in_a_file();
    let done = installation.run(&["apply", "p.toml"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
    assert!(
        done.err.contains("unexpected argument 'p.toml'"),
        "{done:?}"
    );
    assert!(done.err.contains("penstock apply -f p.toml"), "{done:?}");
    let done = installation.run(&["--output", "json", "apply", "p.toml", "--dry-run"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.error().contains("penstock apply -f p.toml"),
        "{done:?}"
    );
    let done = installation.run(&["verify", "p.toml"]);
    assert!(!done.err.contains("-f p.toml"), "{done:?}");
}

// rule: cli.key.create, cli.webhook.rotate
#[test]
fn failed_output_exits_1_and_names_what_was_lost() {
    let installation = with_acme();
    let full = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let sink = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut program = installation.program(&words);
        ended(program.stdout(sink.unwrap()).output().unwrap())
    };
    let done = full("key create --partner acme --kind secret");
    assert_eq!(done.code, 1, "{done:?}");
    let list = installation.json(&["key", "list", "--partner", "acme"]);
    let id = list[0]["id"].as_str().unwrap();
    let remedy = format!("`penstock key revoke --key-id {id}`, then create another key");
    assert!(done.err.contains(&remedy), "{done:?}");

    let webhook = "[partners.pools.webhook]\nurl = \"http://127.0.0.1:9/p\"\n[[partners.keys]]\nkind = \"publishable\"\n";
    let file = installation.folder.path().join("file.toml");
    std::fs::write(file, format!("{ACME}{webhook}")).unwrap();
    let done = full("apply -f file.toml");
    assert_eq!(done.code, 1, "{done:?}");
    let list = installation.json(&["key", "list", "--partner", "acme"]);
    let id = list[1]["id"].as_str().unwrap();
    let remedy = format!("`penstock key revoke --key-id {id}`, then create another key");
    assert!(done.err.contains(&remedy), "{done:?}");
    let rotate = "webhook rotate-secret --partner acme --service pools";
    assert!(
        done.err.contains(&format!("`penstock {rotate}`")),
        "{done:?}"
    );

    let done = full(rotate);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err.contains(&format!("`penstock {rotate}` again")),
        "{done:?}"
    );
    assert_eq!(full("key list --partner acme").code, 1);
}

// rule: cli.key.revoke
#[test]
fn unknown_key_of_other_mode_is_reported_with_mode_flag() {
    let installation = with_acme();
    let live = "key_live_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let done = installation.run(&["key", "revoke", "--key-id", live]);
    assert_eq!(done.code, 1);
    assert_eq!(
        done.err,
        format!("no key {live} in mode test; try --mode live\n")
    );
}

// rule: cli.exit-codes
#[test]
fn refusals_exit_1_and_bad_input_exits_2() {
    let installation = with_acme();
    for (words, code) in [
        ("key create --partner stranger --kind secret", 1),
        ("key create --partner No --kind secret", 2),
        ("key create --partner acme --kind golden", 2),
        ("key list --partner stranger", 1),
        ("key revoke --key-id key_test_01ARZ3NDEKTSV4RRFFQ69G5FAV", 1),
        ("key revoke --key-id key_live_01ARZ3NDEKTSV4RRFFQ69G5FAV", 1),
        ("key revoke --key-id golden", 2),
        (
            "balance credit --partner stranger --currency EUR --amount 1.00 --ref r",
            1,
        ),
        (
            "balance credit --partner acme --currency XXX --amount 1.00 --ref r",
            2,
        ),
        (
            "balance credit --partner acme --currency EUR --amount 1.001 --ref r",
            2,
        ),
        (
            "balance credit --partner acme --currency EUR --amount -1 --ref r",
            2,
        ),
        (
            "balance credit --partner acme --currency EUR --amount 0 --ref r",
            2,
        ),
        (
            "balance credit --partner acme --currency EUR --amount 10000000000.01 --ref r",
            2,
        ),
        ("balance credit --partner acme --currency EUR --amount 1", 2),
        (
            "crypto credit --partner acme --asset DOGE --network tron --amount 1 --ref r",
            2,
        ),
        (
            "crypto credit --partner acme --asset USDT --network lightning --amount 1 --ref r",
            2,
        ),
        ("apply -f nowhere.toml", 2),
        ("verify --mode prod", 2),
        ("verify --database-url mysql://x", 2),
        ("verify --config nowhere.toml", 2),
        ("verify now", 2),
        ("sandbox --dir", 2),
        ("sandbox --check --mode live", 2),
        (
            "sandbox --check --database-url postgres://u@127.0.0.1:1/x",
            2,
        ),
        ("webhook", 2),
        ("webhook rotate-secret --partner acme --service gate", 1),
        ("webhook rotate-secret --partner acme --service pools", 1),
        (
            "webhook rotate-secret --partner acme --service pools --overlap soon",
            2,
        ),
        ("export", 2),
        (
            "export trades --partner acme --from 2026-01-02 --to 2026-01-01",
            2,
        ),
        (
            "export quotes --partner acme --from 2026-01-01 --to 2026-01-02",
            2,
        ),
        ("completions", 2),
        ("completions tcsh", 2),
        ("levitate", 2),
        ("", 2),
        ("--help", 0),
        ("--version", 0),
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let done = installation.run(&words);
        assert_eq!(done.code, code, "{words:?}: {done:?}");
        assert_eq!(done.err.is_empty(), code == 0, "{words:?}: {done:?}");
        // Only arguments that cannot be parsed print the usage.
        let usage = done.err.contains("Usage: ") || done.err.contains("For more information");
        assert!(
            done.err.lines().count() <= 1 || usage,
            "{words:?}: {done:?}"
        );
    }
    for (words, code) in [
        ("key list --partner stranger", 1),
        ("verify --mode prod", 2),
        ("levitate", 2),
    ] {
        let words = words.split(' ').chain(["--output", "json"]);
        let done = installation.run(&words.collect::<Vec<_>>());
        assert_eq!((done.code, done.out.as_str()), (code, ""), "{done:?}");
        assert!(!done.error().is_empty(), "{done:?}");
    }
}

// rule: cli.verify, cli.json, config.embedded-migrates
#[test]
fn fresh_database_passes_verify() {
    let installation = with_acme();
    let report = installation.json(&["verify"]);
    assert_eq!(report["ok"], true);
    assert_eq!(report["breaches"], serde_json::json!([]));
    assert!(report["figures"].is_object());
    let done = installation.run(&["verify"]);
    assert!(done.out.trim_end().ends_with("invariants hold"), "{done:?}");
}

/// Passes a key in place of each argument, as a user who pastes a key into the wrong place. What counts as a key is a matter of
/// the function that masks it.
// rule: auth.keys-never-logged
#[test]
fn key_among_arguments_is_masked_in_errors() {
    let installation = with_acme();
    let key = format!("sk_test_{}", "q7".repeat(16));
    for words in [
        "KEY",
        "--KEY",
        "--output KEY",
        "--mode KEY verify",
        "--config KEY verify",
        "--database-url KEY verify",
        "--database-url postgres://KEY@h/d verify",
        "key KEY",
        "key KEY --output json",
        "key create --partner KEY --kind secret",
        "key create --partner acme --kind KEY",
        "key create --partner acme --kind secret KEY",
        "key list --partner KEY",
        "key list --partner KEY --output json",
        "key revoke --key-id KEY",
        "apply -f KEY",
        "sandbox --dir KEY/x --check --mode live",
        "balance credit --partner KEY --currency EUR --amount 1.00 --ref r",
        "balance credit --partner acme --currency KEY --amount 1.00 --ref r",
        "balance credit --partner acme --currency EUR --amount KEY --ref r",
        "balance credit --partner acme --currency EUR --amount 1.00 --ref KEY",
        "balance credit --partner acme --currency EUR --amount 1.00 --ref KEY",
        "balance credit --partner acme --currency EUR --amount 2.00 --ref KEY",
        "crypto credit --partner acme --asset KEY --network tron --amount 1 --ref r",
        "crypto credit --partner acme --asset USDT --network KEY --amount 1 --ref r",
    ] {
        let words = words.replace("KEY", &key);
        let done = installation.run(&words.split(' ').collect::<Vec<_>>());
        let printed = done.out + &done.err;
        assert!(!printed.contains("q7q7"), "{words}: {printed}");
    }
}
