//! Texts that people type and that must be unique: what is refused, and what counts as the same text.

use crate::fixture::{ACME, Done, Installation, POOL, SHOP};

fn with_acme() -> Installation {
    let installation = Installation::new();
    let pool = POOL.replace("\"tron\"", "\"tron\", \"ethereum\"");
    let file = format!("{pool}{ACME}{SHOP}");
    assert_eq!(installation.apply(&file, &[]).code, 0);
    installation
}

const BALANCE: &str = "balance credit --partner acme --currency EUR --amount 100.00 --ref";
const CRYPTO: &str = "crypto credit --partner acme --asset USDT --network tron --amount 500 --ref";

fn credit(installation: &Installation, command: &str, reference: &str) -> Done {
    let words: Vec<&str> = command.split(' ').chain([reference]).collect();
    installation.run(&words)
}

// rule: text.refused-characters, cli.credit.once
#[test]
fn credit_refuses_reference_that_looks_like_another_one() {
    let installation = with_acme();
    let form = "--ref: expected 1 to 255 ";
    for (command, reference, character, class) in [
        (
            BALANCE,
            "wire-7",
            '\u{202a}',
            "U+202A, an invisible format character",
        ),
        (CRYPTO, "tx-7", '\u{85}', "U+0085, a control character"),
    ] {
        assert_eq!(credit(&installation, command, reference).code, 0);
        let seen = format!("{form}visible characters, found {class}; remove what was pasted");
        for (pasted, message) in [
            (format!("{reference}{character}"), seen.as_str()),
            (format!("{reference} "), form),
            (String::new(), form),
        ] {
            let done = credit(&installation, command, &pasted);
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
            assert!(done.err.starts_with(message), "{done:?}");
            assert!(done.err.contains("; remove what was pasted"), "{done:?}");
        }
        let again = credit(&installation, command, reference);
        assert!(again.out.starts_with("nothing done: "), "{again:?}");
    }
}

// rule: cli.credit.once
#[test]
fn refused_credit_names_earlier_credit_or_other_command() {
    let installation = with_acme();
    assert_eq!(credit(&installation, CRYPTO, "tx-77").code, 0);
    for (command, code, message) in [
        (
            CRYPTO.replace("tron", "ethereum"),
            1,
            "used before, for 500 USDT on tron; ",
        ),
        (
            BALANCE.replace("EUR", "USDT"),
            2,
            "; `penstock crypto credit` credits USDT\n",
        ),
        (
            CRYPTO.replace("USDT", "EUR"),
            2,
            "; `penstock balance credit` credits EUR\n",
        ),
    ] {
        let done = credit(&installation, &command, "tx-77");
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.err.contains(message), "{done:?}");
    }
}

// rule: text.refused-characters, apply.unique-texts
#[test]
fn apply_refuses_reference_and_label_with_characters_that_readers_do_not_see() {
    let installation = with_acme();
    let class = "U+202A, an invisible format character";
    let rival = ACME.replace("acme", "rival");
    let reference = format!("{rival}[partners.pools]\nfunding_reference = \"PEN\\u202A-1\"\n");
    let label = format!("{ACME}[[partners.keys]]\nkind = \"secret\"\nlabel = \"sh\\u202Aop\"\n");
    for (file, place) in [
        (reference, "line 5: partners.pools.funding_reference"),
        (label, "line 6: partners.keys.label"),
    ] {
        let done = installation.apply(&file, &[]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
        let expected = format!("file.toml: {place}: expected ");
        assert!(done.err.starts_with(&expected), "{done:?}");
        assert_eq!(done.err.lines().count(), 1, "{done:?}");
        let named = format!("visible characters without {class}, found ");
        assert!(done.err.contains(&named), "{done:?}");
    }
    let create = ["key", "create", "--partner", "acme", "--kind", "secret"];
    let done = installation.run(&[&create[..], &["--label", "sh\u{202a}op"]].concat());
    assert_eq!(done.code, 2, "{done:?}");
    let expected = format!(
        "--label: expected 1 to 64 printable characters, found {class}; type it without this character\n"
    );
    assert_eq!(done.err, expected);
}

// rule: text.compared, apply.unique-texts
#[test]
fn label_in_another_normal_form_generates_no_second_key() {
    let installation = Installation::new();
    let labelled = |label: &str| {
        let file = format!("{ACME}[[partners.keys]]\nkind = \"secret\"\nlabel = \"{label}\"\n");
        std::fs::write(installation.folder.path().join("file.toml"), file).unwrap();
        installation.json(&["apply", "-f", "file.toml"])
    };
    let first = labelled("B\u{fc}ro");
    assert_eq!(first["created_keys"].as_array().unwrap().len(), 1);
    let again = labelled("Bu\u{308}ro");
    assert!(again["created_keys"].as_array().unwrap().is_empty());
    assert!(again["changed"].as_array().unwrap().is_empty(), "{again}");
    let other = labelled("b\u{fc}ro");
    assert_eq!(other["created_keys"].as_array().unwrap().len(), 1);
}

// rule: apply.sepa-warning, apply.dry-run
#[test]
fn apply_warns_of_reference_that_a_transfer_does_not_carry() {
    let installation = Installation::new();
    assert_eq!(installation.apply(POOL, &[]).code, 0);
    let file = format!(
        "{ACME}[partners.pools]\nfunding_reference = \"\u{c9}_1\"\n[[partners.keys]]\nkind = \"secret\"\n"
    );
    let warning = "warning: partner acme: a SEPA transfer does not carry '\u{c9}' '_' of funding_reference \"\u{c9}_1\", ";
    for (words, is_applied) in [(&["--dry-run"][..], false), (&[], true)] {
        let done = installation.apply(&file, words);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.err.contains(warning), "{done:?}");
        assert_eq!(done.out.contains("sk_test_"), is_applied, "{done:?}");
        let listed = installation.run(&["key", "list", "--partner", "acme"]);
        assert_eq!(listed.code == 0, is_applied, "{listed:?}");
    }
}
