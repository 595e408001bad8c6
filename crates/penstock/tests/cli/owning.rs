//! `apply`: deposits that belong to one partner, pools with native addresses, and the terms of keys.

use crate::applying::keys;
use crate::fixture::{ACME, Installation, KEY, POOL, SHOP, acme, apply, ended};

/// A file for a partner with this funding reference and one deposit address.
fn depositing(partner: &str, reference: &str, address: &str) -> String {
    let partner_table = ACME.replace("acme", partner);
    let reference = match reference {
        "" => String::new(),
        written => format!("funding_reference = \"{written}\"\n"),
    };
    let terms = match address {
        "" => String::new(),
        written => format!(
            "[[partners.pools.terms]]\npool = \"EUR-USDT\"\ncrypto_deposit_address = \"{written}\"\n"
        ),
    };
    format!("{partner_table}[partners.pools]\n{reference}{terms}")
}

const FIRST: &str = "0x52908400098527886E0F7030069857D2E4169EE7";
const SECOND: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

// rule: apply.deposits-of-one-partner
#[test]
fn apply_refuses_second_owner_of_deposit_and_names_both() {
    let installation = Installation::new();
    let acme = depositing("acme", "", FIRST);
    assert_eq!(installation.apply(&format!("{POOL}{acme}"), &[]).code, 0);
    let lower = FIRST.to_lowercase();
    let address = "partners.pools.terms.crypto_deposit_address";
    let reference = "partners.pools.funding_reference";
    for (text, line, key) in [
        (depositing("rival", "R", FIRST), 8, address),
        (depositing("rival", "R", &lower), 8, address),
        (depositing("rival", "ACME", SECOND), 5, reference),
        (depositing("rival", "acme", SECOND), 5, reference),
    ] {
        for words in [&[][..], &["--dry-run"]] {
            let done = installation.apply(&text, words);
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
            assert!(
                done.err
                    .starts_with(&format!("file.toml: line {line}: {key}: ")),
                "{done:?}"
            );
            let field = key.rsplit('.').next().unwrap();
            let remedy = format!(" belongs to `acme`; give `rival` another {field}\n");
            assert!(done.err.ends_with(&remedy), "{done:?}");
            assert_eq!(done.err.lines().count(), 1, "{done:?}");
        }
    }
    // A partner takes the default reference of partner `acme-2` before `acme-2` exists.
    let early = depositing("early", "Acme-2", "");
    assert_eq!(installation.apply(&early, &[]).code, 0);
    let done = installation.apply(&depositing("acme-2", "", ""), &[]);
    assert_eq!(done.code, 2);
    assert!(
        done.err
            .contains("line 1: partners.pools.funding_reference: "),
        "{done:?}"
    );
    let remedy = "belongs to `early`; give `acme-2` another funding_reference";
    assert!(done.err.contains(remedy), "{done:?}");
    assert_eq!(
        installation
            .run(&["key", "list", "--partner", "acme-2"])
            .code,
        1
    );
    // Both partners are in one file.
    let both = format!(
        "{}{}",
        depositing("one", "X", SECOND),
        depositing("two", "x", SECOND)
    );
    let done = installation.apply(&both, &[]);
    assert_eq!((done.code, done.err.lines().count()), (2, 2), "{done:?}");
    for field in ["funding_reference", "crypto_deposit_address"] {
        let remedy = format!("belongs to `one`; give `two` another {field}\n");
        assert!(done.err.contains(&remedy), "{done:?}");
    }
    assert_eq!(installation.run(&["verify"]).code, 0);
}

// rule: apply.deposits-of-one-partner
#[test]
fn one_file_exchanges_deposits_between_partners() {
    let installation = Installation::new();
    let pools = format!("{POOL}{}", POOL.replace("EUR", "GBP"));
    let two = depositing("two", "B", SECOND);
    let one = depositing("one", "A", FIRST);
    let shared = format!(
        "{one}{}",
        one.split_once("[[partners.pools")
            .map(|(_, terms)| { format!("[[partners.pools{}", terms.replace("EUR", "GBP")) })
            .unwrap()
    );
    assert_eq!(
        installation
            .apply(&format!("{pools}{shared}{two}"), &[])
            .code,
        0
    );
    let exchanged = format!(
        "{}{}",
        depositing("one", "B", ""),
        depositing("two", "A", SECOND)
    );
    let done = installation.apply(&exchanged, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.out
            .contains("partner one: pools.funding_reference A -> B"),
        "{done:?}"
    );
    let again = installation.apply(&exchanged, &[]);
    assert!(again.out.starts_with("nothing to change"), "{again:?}");
    assert_eq!(installation.run(&["verify"]).code, 0);
}

// rule: apply.deposits-of-one-partner, apply.suspension-kept
#[test]
fn suspended_partner_keeps_everything_its_short_file_omits() {
    let installation = Installation::new();
    let profile = "enabled = true\nkyc = \"approved\"\ntier = \"gold\"\nallowed = [\"EUR-USDT\"]\nbalance_gate = true\nvelocity_cap_usdt = \"5\"\niban = \"DE89370400440532013000\"\n";
    let acme = depositing("acme", "ACME-7F3K", FIRST);
    let acme = acme.replace(
        "[partners.pools]\n",
        &format!("[partners.pools]\n{profile}"),
    );
    assert_eq!(installation.apply(&format!("{POOL}{acme}"), &[]).code, 0);
    let done = installation.apply(&format!("{ACME}status = \"suspended\"\n"), &[]);
    assert_eq!(done.code, 0, "{done:?}");
    // Another partner cannot claim the suspended partner's deposits.
    let rival = depositing("rival", "acme-7f3k", FIRST);
    let done = installation.apply(&rival, &[]);
    assert_eq!((done.code, done.err.lines().count()), (2, 2), "{done:?}");
    // The standing file does not mention the status, so the suspension stays.
    let kept = installation.apply(&acme, &[]);
    assert!(kept.out.starts_with("nothing to change"), "{kept:?}");
    let back = acme.replace(
        "name = \"Acme\"\n",
        "name = \"Acme\"\nstatus = \"active\"\n",
    );
    std::fs::write(installation.folder.path().join("back.toml"), &back).unwrap();
    let back = installation.json(&["apply", "-f", "back.toml", "--allow-loosening"]);
    let changed = serde_json::json!(["partner acme: status suspended -> active"]);
    assert_eq!(back["changed"], changed);
}

// rule: apply.deposits-of-one-partner
#[test]
fn concurrent_applies_give_deposit_to_one_partner() {
    let installation = Installation::new();
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    let folder = installation.folder.path();
    let programs: Vec<_> = ["one", "two", "three", "four"]
        .map(|partner| {
            let file = format!("{partner}.toml");
            std::fs::write(folder.join(&file), depositing(partner, "", FIRST)).unwrap();
            let mut program = installation.program(&["apply", "-f", &file]);
            program.stdout(std::process::Stdio::piped());
            program.stderr(std::process::Stdio::piped());
            program.spawn().unwrap()
        })
        .into_iter()
        .map(|program| ended(program.wait_with_output().unwrap()))
        .collect();
    let won = programs.iter().filter(|done| done.code == 0).count();
    assert_eq!(won, 1, "{programs:?}");
    let named = programs
        .iter()
        .any(|done| done.err.contains(" belongs to `"));
    assert!(named, "{programs:?}");
    assert_eq!(installation.run(&["verify"]).code, 0);
}

// rule: apply.native-warning
#[test]
fn apply_in_mode_live_warns_of_pools_without_native_addresses() {
    let installation = Installation::new();
    let file = |networks: &str, native: &str| {
        let pool = POOL.replace("\"tron\"", networks);
        let text = format!(
            "{pool}{native}{}",
            POOL.replace("EUR", "GBP").replace("tron", "bsc")
        );
        std::fs::write(installation.folder.path().join("pools.toml"), text).unwrap();
    };
    let run = |words: &[&str]| {
        let mut program = installation.program(words);
        program.env("PENSTOCK_MASTER_KEY", KEY);
        let server = installation.server.as_ref();
        let owner = server.map(|it| ("PENSTOCK_MIGRATE_DATABASE_URL", it.owning()));
        ended(program.envs(owner).output().unwrap())
    };
    assert_eq!(run(&["migrate", "--mode", "live"]).code, 0);
    let apply = |words: &[&str]| run(&[&["apply", "-f", "pools.toml"], words].concat());
    let warning = "warning: pool EUR-USDT delivers on tron and solana to EVM addresses";
    file("\"tron\", \"bsc\", \"solana\"", "");
    for words in [&["--dry-run"][..], &[], &[]] {
        let done = apply(words);
        assert_eq!(done.code, 0, "{done:?}");
        let lines: Vec<&str> = done.err.lines().collect();
        let [place, warned] = lines.as_slice() else {
            panic!("{done:?}");
        };
        assert!(place.starts_with("live, "), "{done:?}");
        assert!(warned.starts_with(warning), "{done:?}");
    }
    let json = apply(&["--output", "json"]);
    assert!(
        json.json()["warnings"][0]
            .as_str()
            .unwrap()
            .contains("native_addresses = true")
    );
    file("\"tron\", \"bsc\", \"solana\"", "native_addresses = true\n");
    let done = apply(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!done.err.contains("warning"), "{done:?}");
    assert!(
        done.out
            .contains("pool EUR-USDT: native_addresses false -> true"),
        "{done:?}"
    );
}

// rule: apply.key-terms
#[tokio::test(flavor = "multi_thread")]
async fn keys_get_label_and_expiry_of_file() {
    let installation = Installation::new();
    let base = installation.open().await;
    let end = "2099-01-31T00:00:00Z";
    let shop = format!("label = \"shop\"\nexpires_at = \"{end}\"\n");
    let entry = |kind: &str, lines: &str| format!("[[partners.keys]]\nkind = \"{kind}\"\n{lines}");
    let literal = format!("key = \"sk_test_{}\"\n", "a".repeat(32));
    let text = format!(
        "{ACME}{}{}{}",
        entry("secret", &shop),
        entry("secret", "label = \"office\"\n"),
        entry("secret", &literal)
    );
    let made = apply(&base, &text).await.unwrap();
    assert_eq!(made.created_keys.len(), 2, "one key for each label");
    let listed = async || {
        let listed = keys(&base).list(&acme().partner).await.unwrap();
        let mut shown: Vec<_> = listed
            .into_iter()
            .map(|key| {
                (
                    key.record.label,
                    key.record.expires_at.map(|at| at.to_string()),
                )
            })
            .collect();
        shown.sort();
        shown
    };
    let (end, office) = (
        Some("2099-01-31T00:00:00.000Z".to_owned()),
        Some("office".to_owned()),
    );
    let shop_key = (Some("shop".to_owned()), end.clone());
    assert_eq!(
        listed().await,
        [(None, None), (office.clone(), None), shop_key.clone()]
    );
    assert!(apply(&base, &text).await.unwrap().changed.is_empty());
    let literal = format!("{literal}label = \"old\"\nexpires_at = \"2020-01-01T00:00:00Z\"\n");
    let text = format!(
        "{ACME}{}{}",
        entry("secret", &literal),
        entry(
            "secret",
            "label = \"office\"\nexpires_at = \"2099-01-31\"\n"
        )
    );
    let changed = apply(&base, &text).await.unwrap().changed;
    assert_eq!(changed.len(), 3, "{changed:?}");
    assert!(
        changed[0].ends_with("aaaa label none -> old"),
        "{changed:?}"
    );
    assert!(
        changed[1].ends_with("expires_at none -> 2020-01-01T00:00:00.000Z"),
        "{changed:?}"
    );
    let old = (
        Some("old".to_owned()),
        Some("2020-01-01T00:00:00.000Z".to_owned()),
    );
    assert_eq!(listed().await, [(office, end), old, shop_key]);
    for (lines, fault) in [
        (
            "expires_at = \"2020-01-01\"\nlabel = \"new\"\n",
            "partners.keys.expires_at: this entry generates a key; expected an instant in the future",
        ),
        (
            "expires_at = \"2099-01-01\"\n",
            "partners.keys.expires_at: several keys of this kind were generated; expected the label of one",
        ),
        (
            "expires_at = \"soon\"\n",
            "partners.keys.expires_at: expected an instant such as",
        ),
        (
            "label = \" x\"\n",
            "partners.keys.label: expected 1 to 64 printable characters",
        ),
    ] {
        let done = installation.apply(&format!("{ACME}{}", entry("secret", lines)), &[]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.err.contains(fault), "{done:?}");
    }
}

// rule: cli.key-label
#[test]
fn key_create_and_list_show_label_and_expiry() {
    let installation = Installation::new();
    assert_eq!(installation.apply(&format!("{ACME}{SHOP}"), &[]).code, 0);
    let create = ["key", "create", "--partner", "acme", "--kind", "secret"];
    let terms = [
        "--label",
        "shop 1",
        "--expires",
        "2099-01-31T01:00:00+01:00",
    ];
    let made = installation.json(&[&create[..], &terms].concat());
    assert_eq!(made["label"], "shop 1");
    assert_eq!(made["expires_at"], "2099-01-31T00:00:00.000Z");
    let output = installation.run(&[&create[..], &terms].concat()).out;
    let lines: Vec<&str> = output.lines().collect();
    assert!(
        lines[0].contains(" \"shop 1\" of acme, shown only once: "),
        "{output}"
    );
    assert_eq!(lines[1], "the key expires 2099-01-31T00:00:00.000Z");
    let plain = installation.json(&create);
    let fields: Vec<&String> = plain.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "kind", "key", "mode", "database"]);
    let rows = installation.json(&["key", "list", "--partner", "acme"]);
    let fields: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
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
    assert_eq!(rows[0]["label"], "shop 1");
    assert_eq!(rows[2]["label"], serde_json::Value::Null);
    assert_eq!(rows[2]["last_used_at"], serde_json::Value::Null);
    let table = installation.run(&["key", "list", "--partner", "acme"]).out;
    assert!(
        table.contains("expires 2099-01-31T00:00:00.000Z  never used  \"shop 1\""),
        "{table}"
    );
    for (flag, value, fault) in [
        (
            "--expires",
            "2020-01-01",
            "--expires: expected an instant in the future, got 2020-01-01T00:00:00.000Z",
        ),
        (
            "--expires",
            "90d",
            "--expires: expected an RFC 3339 timestamp",
        ),
        (
            "--label",
            "",
            "--label: expected 1 to 64 printable characters",
        ),
        (
            "--label",
            " x",
            "--label: expected 1 to 64 printable characters",
        ),
    ] {
        let done = installation.run(&[&create[..], &[flag, value]].concat());
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.err.starts_with(fault), "{done:?}");
    }
}
