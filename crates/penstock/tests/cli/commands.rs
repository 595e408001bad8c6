//! Keys, credits and `verify`: exit codes and JSON.

use crate::fixture::{ACME, Installation, POOL, ended};

fn with_acme() -> Installation {
    let installation = Installation::new();
    assert_eq!(installation.apply(&format!("{POOL}{ACME}"), &[]).code, 0);
    installation
}

// rule: cli.key.create, cli.key.list, cli.key.revoke, cli.json
#[test]
fn key_is_created_listed_and_revoked() {
    let installation = with_acme();
    let made = installation.json(&["key", "create", "--partner", "acme", "--kind", "secret"]);
    let fields: Vec<&String> = made.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "kind", "key"]);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());

    let done = installation.run(&["key", "list", "--partner", "acme", "--output", "json"]);
    assert!(!done.out.contains(key.get(12..36).unwrap()), "{done:?}");
    let list = done.json();
    let row = list[0].as_object().unwrap();
    let fields: Vec<&String> = row.keys().collect();
    let first = [
        "id",
        "kind",
        "prefix",
        "last4",
        "key",
        "created_at",
        "revoked_at",
    ];
    assert_eq!(fields[..7], first);
    assert_eq!(fields[7..], ["label", "expires_at", "last_used_at"]);
    assert!(key.starts_with(row["prefix"].as_str().unwrap()));
    assert!(key.ends_with(row["last4"].as_str().unwrap()));
    assert!(row["revoked_at"].is_null() && row["key"].is_null());
    let create = [
        "key",
        "create",
        "--partner",
        "acme",
        "--kind",
        "publishable",
    ];
    let made = installation.json(&create);
    let list = installation.json(&["key", "list", "--partner", "acme"]);
    assert_eq!(list[1]["key"], made["key"], "a publishable key is public");

    let revoked = installation.json(&["key", "revoke", "--key-id", id]);
    assert_eq!(revoked["id"], id);
    let again = installation.json(&["key", "revoke", "--key-id", id]);
    assert_eq!(again, revoked, "the first instant is kept");
    let list = installation.json(&["key", "list", "--partner", "acme"]);
    assert_eq!(list[0]["revoked_at"], revoked["revoked_at"]);
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

// rule: cli.credit.once
#[test]
fn credit_refuses_reference_with_white_space_at_either_end() {
    let installation = with_acme();
    let balance = "balance credit --partner acme --currency EUR --amount 10.00 --ref";
    let crypto = "crypto credit --partner acme --asset USDT --network tron --amount 10 --ref";
    for command in [balance, crypto] {
        let credit = |reference: &str| {
            let words = command.split(' ').chain([reference]);
            installation.run(&words.collect::<Vec<_>>())
        };
        let reference = if command == balance {
            "wire-77"
        } else {
            "tx-77"
        };
        assert_eq!(credit(reference).code, 0);
        for pasted in [
            format!("{reference} "),
            format!(" {reference}"),
            format!("{reference}\u{a0}"),
            format!("{reference}\u{200b}"),
            format!("{reference}\n"),
            " ".to_owned(),
            String::new(),
        ] {
            let done = credit(&pasted);
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
            assert!(
                done.err.starts_with("--ref: expected 1 to 255 "),
                "{done:?}"
            );
            assert!(done.err.contains("; remove what was pasted"), "{done:?}");
        }
        assert!(credit(reference).out.starts_with("nothing done"));
    }
    let other = crypto.replace("tron", "ethereum");
    let done = installation.run(&other.split(' ').chain(["tx-77"]).collect::<Vec<_>>());
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err.contains("used before, for 10 USDT on tron; "),
        "{done:?}"
    );
    for (command, remedy) in [
        (
            balance.replace("EUR", "USDT"),
            "; `penstock crypto credit` credits USDT\n",
        ),
        (
            crypto.replace("USDT", "EUR"),
            "; `penstock balance credit` credits EUR\n",
        ),
    ] {
        let done = installation.run(&command.split(' ').chain(["r"]).collect::<Vec<_>>());
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.err.ends_with(remedy), "{done:?}");
    }
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

// rule: cli.credit.once, cli.credit.conflict, cli.credit.scope
#[test]
fn reference_is_credited_once() {
    let installation = with_acme();
    let credit = |amount: &'static str, currency: &'static str| {
        let given = [
            "--partner",
            "acme",
            "--currency",
            currency,
            "--amount",
            amount,
            "--ref",
            "r1",
        ];
        [&["balance", "credit"][..], &given].concat()
    };
    let first = installation.json(&credit("1000.00", "EUR"));
    assert_eq!(
        first,
        serde_json::json!({"applied": true, "balance": "1000.00"})
    );
    let again = installation.json(&credit("1000", "eur"));
    assert_eq!(
        again,
        serde_json::json!({"applied": false, "balance": "1000.00"})
    );
    let done = installation.run(&credit("1000.00", "EUR"));
    assert!(
        done.out
            .starts_with("nothing done: r1 was already credited"),
        "{done:?}"
    );
    for (amount, currency) in [("1000.01", "EUR"), ("1000.00", "GBP")] {
        let done = installation.run(&credit(amount, currency));
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains("used before"), "{done:?}");
    }
    let receipt = [
        "crypto",
        "credit",
        "--partner",
        "acme",
        "--asset",
        "USDT",
        "--network",
        "tron",
        "--amount",
        "500.000000",
        "--ref",
        "r2",
    ];
    let received = installation.json(&receipt);
    assert_eq!(
        received,
        serde_json::json!({"applied": true, "balance": "500"})
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
        if code != 0 && !words.is_empty() {
            let done = installation.run(&[&words[..], &["--output", "json"]].concat());
            assert_eq!(
                (done.code, done.out.as_str()),
                (code, ""),
                "{words:?}: {done:?}"
            );
            assert!(!done.error().is_empty(), "{words:?}");
        }
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

/// Passes a key in place of each argument, as a user who pastes a key into the wrong place.
// rule: auth.keys-never-logged
#[test]
fn key_among_arguments_is_masked_in_errors() {
    let installation = with_acme();
    for key in
        ["sk_test_", "pk_live_", "whsec_", "sk_"].map(|mark| mark.to_owned() + &"q7".repeat(16))
    {
        for words in [
            "KEY",
            "--KEY",
            "--output KEY",
            "--mode KEY verify",
            "--config KEY verify",
            "--database-url KEY verify",
            "--database-url postgres://KEY@h/d verify",
            "key KEY",
            "key create --partner KEY --kind secret",
            "key create --partner acme --kind KEY",
            "key create --partner acme --kind secret KEY",
            "key list --partner KEY",
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
            let words: Vec<&str> = words.split(' ').collect();
            for form in ["text", "json"] {
                let done = installation.run(&[&words[..], &["--output", form]].concat());
                assert!(!done.out.contains("q7q7"), "{words:?}: {done:?}");
                assert!(!done.err.contains("q7q7"), "{words:?}: {done:?}");
            }
        }
    }
}
