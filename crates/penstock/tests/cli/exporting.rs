//! `export` and `completions`: what they print, and what they refuse.

use serde_json::Value;

use crate::fixture::{ACME, Installation, POOL, SHOP};
use crate::master_keys::{IBAN, sell};
use crate::sandbox::{Sandbox, demo_of};

const EVER: &str = "--partner acme --from 2020-01-01 --to 2100-01-01";

fn with_deposits() -> Installation {
    let installation = Installation::new();
    assert_eq!(
        installation.apply(&format!("{POOL}{ACME}{SHOP}"), &[]).code,
        0
    );
    for words in [
        "balance credit --partner acme --currency EUR --amount 1000 --ref bank-1",
        "crypto credit --partner acme --asset USDT --network tron --amount 5.25 --ref =HYPERLINK(1)",
        "balance credit --partner acme --currency EUR --amount 0.50 --ref a,\"b\"",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(installation.run(&words).code, 0, "{words:?}");
    }
    installation
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

// rule: cli.export, cli.export.formulas
#[test]
fn ledger_export_prints_one_csv_row_per_entry() {
    let installation = with_deposits();
    let command = format!("export ledger {EVER}");
    let done = installation.run(&words(&command));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(
        lines[0],
        "mode,partnerId,id,currency,sequence,reason,debit,credit,amount,delta,balanceAfter,ref,network,transactId,part,createdAt"
    );
    assert_eq!(lines.len(), 4, "{done:?}");
    let starts = "test,acme,le_test_";
    assert!(lines.iter().skip(1).all(|line| line.starts_with(starts)));
    for (line, middle) in lines.iter().skip(1).zip([
        ",EUR,1,payin_credit,outside,partner,1000.00,1000.00,1000.00,bank-1,,,,20",
        ",USDT,1,crypto_receipt,outside,partner,5.25,5.25,5.25,'=HYPERLINK(1),tron,,,20",
        ",EUR,2,payin_credit,outside,partner,0.50,0.50,1000.50,\"a,\"\"b\"\"\",,,,20",
    ]) {
        assert!(line.contains(middle) && line.ends_with('Z'), "{line}");
    }
    assert_eq!(installation.run(&words(&command)).out, done.out);

    let array = installation.json(&words(&command));
    let rows = array.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        rows[1]["ref"], "=HYPERLINK(1)",
        "JSON has the text unchanged"
    );
    assert_eq!(
        (&rows[0]["sequence"], &rows[0]["network"]),
        (&1.into(), &Value::Null)
    );
}

// rule: cli.export
#[test]
fn empty_window_exports_only_column_names() {
    let installation = with_deposits();
    let header = installation.run(&words(&format!("export trades {EVER}")));
    assert_eq!(header.out.lines().count(), 1, "{header:?}");
    assert!(
        header
            .out
            .starts_with("mode,partnerId,transactId,quoteId,poolId,side,status,")
    );
    // New columns are only added at the end.
    let ends = ",attempts,leaseToken,leaseUntil,midRate,fillRate,engine\n";
    assert!(header.out.ends_with(ends), "{header:?}");
    let past = "export ledger --partner acme --from 2020-01-01 --to 2020-01-02T00:00:00+02:00";
    assert_eq!(installation.run(&words(past)).out.lines().count(), 1);
    assert_eq!(installation.json(&words(past)), Value::Array(Vec::new()));
}

// rule: cli.export.payments
#[test]
fn payments_export_shows_what_a_customer_pays_and_no_account() {
    let installation = Installation::in_a_file();
    let sandbox = Sandbox::start(&installation, &[]);
    sell(sandbox.gate(), &demo_of(&installation));
    let ever =
        "--partner demo --from 2020-01-01 --to 2100-01-01 --database-url sqlite://s/penstock.db";
    let command = format!("export payments {ever}");
    let done = installation.run(&words(&command));
    assert_eq!(done.code, 0, "{done:?}");
    let begins = "mode,partnerId,railId,kind,hosted,sessionId,quoteId,txRefid,status,";
    let ends = ",required,received,receivedAt,openItem,openItemAt,attempts\n";
    let header = done.out.split_inclusive('\n').next().unwrap();
    assert!(
        header.starts_with(begins) && header.ends_with(ends),
        "{done:?}"
    );
    assert!(!done.out.contains(IBAN), "{done:?}");
    let array = installation.json(&words(&command));
    let [row] = &array.as_array().unwrap()[..] else {
        panic!("{array}")
    };
    for (column, text) in [
        ("partnerId", "demo"),
        ("kind", "pay_out"),
        ("hosted", "true"),
        ("fiatAmount", "100.33"),
        ("rail", "sandbox"),
        ("paymentMethod", "sepa"),
    ] {
        assert_eq!(row[column], text, "{row}");
    }
    assert_eq!(row["required"], row["cryptoAmount"], "{row}");
    assert_eq!(
        (&row["received"], &row["openItem"]),
        (&Value::Null, &Value::Null),
        "{row}"
    );
    assert!(row["payUntil"].is_string(), "{row}");
}

// rule: cli.exit-codes
#[test]
fn invalid_windows_and_partners_are_refused_on_one_line() {
    let installation = with_deposits();
    for (rest, code, message) in [
        (
            "--partner acme --from yesterday --to 2100-01-01",
            2,
            "--from: expected an RFC 3339",
        ),
        (
            "--partner acme --from 2020-01-01 --to 2020-13-01",
            2,
            "--to: expected an RFC 3339",
        ),
        (
            "--partner acme --from 2020-01-01 --to 2020-01-01",
            2,
            "--from: expected an instant before --to",
        ),
        (
            "--partner stranger --from 2020-01-01 --to 2100-01-01",
            1,
            "no partner `stranger` in mode test of ",
        ),
        (
            "--partner NO --from 2020-01-01 --to 2100-01-01",
            2,
            "--partner: expected 1 to 64",
        ),
        (
            "--partner acme --from 2020-01-01",
            2,
            "error: the following required arguments",
        ),
    ] {
        let command = format!("export ledger {rest}");
        let done = installation.run(&words(&command));
        assert_eq!((done.code, done.out.as_str()), (code, ""), "{done:?}");
        assert!(done.err.starts_with(message), "{command}: {done:?}");
        let one = done.err.lines().count() == 1;
        assert!(one || message.starts_with("error: "), "{done:?}");
    }
}

/// Writes to a full device.
#[test]
fn export_fails_if_output_cannot_be_written() {
    let installation = with_deposits();
    let out = std::fs::File::options().write(true).open("/dev/full");
    let run = installation
        .program(&words(&format!("export ledger {EVER}")))
        .stdout(out.unwrap())
        .output()
        .unwrap();
    let done = crate::fixture::ended(run);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err.starts_with("the export cannot be written"),
        "{done:?}"
    );
}

// rule: cli.completions
#[test]
fn completions_need_no_installation() {
    let installation = Installation::new();
    for (shell, mark) in [
        ("bash", "complete -F _penstock"),
        ("zsh", "#compdef penstock"),
        ("fish", "complete -c penstock"),
    ] {
        let done = installation.run(&["completions", shell]);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert!(
            done.out.contains(mark) && done.out.contains("rotate-secret"),
            "{shell}"
        );
    }
    assert!(!installation.database_exists());
}
