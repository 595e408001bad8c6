//! Texts that people type and that must be unique: what is refused, and what counts as the same text.

use crate::fixture::{ACME, Done, Installation, POOL};

fn with_acme() -> Installation {
    let installation = Installation::new();
    assert_eq!(installation.apply(ACME, &[]).code, 0);
    installation
}

const BALANCE: &str = "balance credit --partner acme --currency EUR --amount 100.00 --ref";
const CRYPTO: &str = "crypto credit --partner acme --asset USDT --network tron --amount 500 --ref";

fn credit(installation: &Installation, command: &str, reference: &str) -> Done {
    let words: Vec<&str> = command.split(' ').chain([reference]).collect();
    installation.run(&words)
}

/// Whether a credit was applied, and the balance after it.
fn credited(installation: &Installation, command: &str, reference: &str) -> (bool, String) {
    let words = command.split(' ').chain([reference, "--output", "json"]);
    let done = installation.run(&words.collect::<Vec<_>>()).json();
    let applied = done["applied"].as_bool().unwrap();
    (applied, done["balance"].as_str().unwrap().to_owned())
}

/// One character of each refused class, and its name in errors.
const REFUSED: [(char, &str); 10] = [
    ('\u{202a}', "U+202A, an invisible format character"),
    ('\u{2066}', "U+2066, an invisible format character"),
    ('\u{200b}', "U+200B, an invisible format character"),
    ('\u{34f}', "U+034F, an invisible character"),
    ('\u{fe0f}', "U+FE0F, an invisible character"),
    ('\u{85}', "U+0085, a control character"),
    ('\u{2028}', "U+2028, a line separator"),
    ('\u{2029}', "U+2029, a paragraph separator"),
    ('\u{e000}', "U+E000, a private-use character"),
    ('\u{378}', "U+0378, an unassigned character"),
];

// rule: text.refused-characters, cli.credit.once
#[test]
fn credit_refuses_reference_with_characters_that_readers_do_not_see() {
    let installation = with_acme();
    for (command, reference) in [(BALANCE, "wire-7"), (CRYPTO, "tx-7")] {
        let first = credited(&installation, command, reference);
        assert!(first.0);
        for (character, class) in REFUSED {
            for pasted in [
                format!("{character}{reference}"),
                format!("{reference}{character}"),
                reference.replace('-', &format!("-{character}")),
            ] {
                let done = credit(&installation, command, &pasted);
                assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
                let expected = format!(
                    "--ref: expected 1 to 255 visible characters, found {class}; remove what was pasted beside the reference\n"
                );
                assert_eq!(done.err, expected);
            }
        }
        let again = credited(&installation, command, reference);
        assert_eq!(again, (false, first.1));
    }
}

// rule: text.compared, cli.credit.once
#[test]
fn reference_is_credited_once_in_every_normal_form() {
    let installation = with_acme();
    for command in [BALANCE, CRYPTO] {
        let number = if command == BALANCE { 1 } else { 2 };
        let composed = format!("\u{dc}berweisung {number}");
        let first = credited(&installation, command, &composed);
        assert!(first.0);
        for spelling in [
            format!("U\u{308}berweisung {number}"),
            format!("\u{dc}berweisung\u{a0}{number}"),
            composed,
        ] {
            let again = credited(&installation, command, &spelling);
            assert_eq!(again, (false, first.1.clone()), "{spelling:?}");
        }
        let other = format!("\u{fc}berweisung {number}");
        assert!(credited(&installation, command, &other).0, "case counts");
    }
    assert_eq!(installation.run(&["verify"]).code, 0);
}

// rule: cli.credit.hash
#[test]
fn receipt_is_credited_once_for_every_spelling_of_its_hash() {
    let installation = with_acme();
    let hash = "1b5b".repeat(16);
    let upper = hash.to_uppercase();
    let first = credited(&installation, CRYPTO, &format!("0x{hash}"));
    assert_eq!(first, (true, "500".to_owned()));
    for spelling in [
        hash.clone(),
        upper.clone(),
        format!("0x{upper}"),
        format!("0X{hash}"),
    ] {
        let again = credited(&installation, CRYPTO, &spelling);
        assert_eq!(again, (false, "500".to_owned()), "{spelling}");
        let fiat = credit(&installation, BALANCE, &spelling);
        assert_eq!(fiat.code, 1, "{fiat:?}");
    }
    let output = credited(&installation, CRYPTO, &format!("{hash}:1"));
    assert_eq!(output, (true, "1000".to_owned()), "another output");
    let output = credited(&installation, CRYPTO, &format!("0x{upper}:1"));
    assert_eq!(output, (false, "1000".to_owned()));
    let other = hash.replacen('1', "2", 1);
    assert!(credited(&installation, CRYPTO, &other).0, "another hash");
}

/// A file for a partner with this funding reference and perhaps a deposit address.
fn depositing(partner: &str, reference: &str, address: Option<&str>) -> String {
    let table = ACME.replace("acme", partner);
    let terms = address.map(|address| {
        format!(
            "[[partners.pools.terms]]\npool = \"EUR-USDT\"\ncrypto_deposit_address = \"{address}\"\n"
        )
    });
    let terms = terms.unwrap_or_default();
    format!("{table}[partners.pools]\nfunding_reference = \"{reference}\"\n{terms}")
}

// rule: apply.deposits-of-one-partner, apply.deposits-compared
#[test]
fn apply_refuses_second_owner_in_another_spelling() {
    let installation = Installation::new();
    let tron = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
    let evm = "0x5cbdd86a2fa8dc4bddd8a8f69dba48572eec07fb";
    let acme = depositing("acme", "P\u{c9}N-7F3K", Some(tron));
    assert_eq!(installation.apply(&format!("{POOL}{acme}"), &[]).code, 0);
    for reference in [
        "p\u{e9}n 7f3k",
        "PE\u{301}N-7F3K",
        "(P\u{c9}N)/7F:3,K",
        "P\u{c9}N\u{a0}7F3K",
    ] {
        let done = installation.apply(&depositing("rival", reference, None), &[]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
        let expected = format!(
            "file.toml: line 5: partners.pools.funding_reference: funding reference {reference:?} counts as \"P\u{c9}N-7F3K\", which belongs to `acme`; give `rival` another funding_reference\n"
        );
        assert_eq!(done.err, expected);
    }
    let upper = format!("0x{}", evm.trim_start_matches("0x").to_uppercase());
    for address in [evm, &upper] {
        let done = installation.apply(&depositing("rival", "R", Some(address)), &[]);
        assert_eq!(done.code, 2, "{done:?}");
        let expected = format!(
            "deposit address {address} counts as {tron:?}, which belongs to `acme`; give `rival` another crypto_deposit_address\n"
        );
        assert!(done.err.ends_with(&expected), "{done:?}");
    }
    let done = installation.apply(&depositing("rival", "R", None), &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(installation.run(&["verify"]).code, 0);
}

// rule: text.refused-characters, apply.unique-texts
#[test]
fn apply_refuses_reference_and_label_with_characters_that_readers_do_not_see() {
    let installation = with_acme();
    for (character, class) in REFUSED {
        let escape = format!("\\U{:08X}", u32::from(character));
        let reference = depositing("rival", &format!("PEN{escape}-1"), None);
        let label = format!("[[partners.keys]]\nkind = \"secret\"\nlabel = \"sh{escape}op\"\n");
        for (file, line, key) in [
            (reference, 5, "partners.pools.funding_reference"),
            (format!("{ACME}{label}"), 6, "partners.keys.label"),
        ] {
            let done = installation.apply(&file, &[]);
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
            let expected = format!("file.toml: line {line}: {key}: expected ");
            assert!(done.err.starts_with(&expected), "{done:?}");
            assert_eq!(done.err.lines().count(), 1, "{done:?}");
            // The reader of every label refuses control characters.
            let named = format!("visible characters without {class}, found ");
            let is_control = class.ends_with("control character");
            assert!(is_control || done.err.contains(&named), "{done:?}");
        }
        let create = ["key", "create", "--partner", "acme", "--kind", "secret"];
        let label = format!("sh{character}op");
        let done = installation.run(&[&create[..], &["--label", &label]].concat());
        assert_eq!(done.code, 2, "{done:?}");
        let expected = format!(
            "--label: expected 1 to 64 printable characters, found {class}; type it without this character\n"
        );
        assert_eq!(done.err, expected);
    }
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

// rule: apply.sepa-warning
#[test]
fn apply_warns_of_reference_that_a_transfer_does_not_carry() {
    let installation = Installation::new();
    let warning = "partner acme: a SEPA transfer does not carry 'É' '_' of funding_reference \"É_1\", so a deposit may arrive under another text; use letters without accents, digits, spaces and / - ? : ( ) . , ' +";
    let file = depositing("acme", "\u{c9}_1", None);
    for words in [&["--dry-run"][..], &[], &[]] {
        let done = installation.apply(&file, words);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(done.err, format!("warning: {warning}\n"));
    }
    let json = installation.json(&["apply", "-f", "file.toml"]);
    assert_eq!(json["warnings"], serde_json::json!([warning]));
    let carried = depositing("acme", "Acme-1 (a) /?:.,'+", None);
    let done = installation.apply(&carried, &[]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
}

// rule: apply.default-reference, apply.sepa-warning
#[test]
fn default_reference_has_a_hyphen_for_an_underscore() {
    let installation = Installation::new();
    let table = ACME.replace("acme", "acme_pay");
    let default = format!("{table}[partners.pools]\n");
    let done = installation.apply(&default, &[]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let changed = |file: &str, line: &str| {
        let done = installation.apply(file, &[]);
        assert_eq!(done.code, 0, "{done:?}");
        let line = format!("partner acme_pay: pools.funding_reference {line}\n");
        assert!(done.out.starts_with(&line), "{done:?}");
    };
    let written = |reference: &str| depositing("acme_pay", reference, None);
    changed(&written("X"), "ACME-PAY -> X");
    changed(&default, "X -> ACME-PAY");
    // The default of an earlier version stays.
    changed(&written("ACME_PAY"), "ACME-PAY -> ACME_PAY");
    let done = installation.apply(&default, &[]);
    assert!(done.out.starts_with("nothing to change"), "{done:?}");
    assert!(done.err.contains("does not carry '_' of"), "{done:?}");
    // The default of another partner is the same text for a bank.
    let twin = ACME.replace("acme", "acme-pay");
    changed(&written("X"), "ACME_PAY -> X");
    let done = installation.apply(&format!("{twin}[partners.pools]\n"), &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = installation.apply(&default, &[]);
    assert_eq!(done.code, 2, "{done:?}");
    let remedy = "belongs to `acme-pay`; give `acme_pay` another funding_reference";
    assert!(done.err.contains(remedy), "{done:?}");
}
