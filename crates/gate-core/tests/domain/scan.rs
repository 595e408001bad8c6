//! What a customer scans: the examples that the libraries of wallets read too, and payments without a code.

use std::collections::BTreeMap;

use gate_core::catalogue::Catalogue;
use gate_core::rail::{Instructions, RailKind, RailRecord, RailState, Received};
use gate_core::signed_quote::{Conversion, Source};
use kernel::rates::Side;
use kernel::{Amount, Asset};
use serde_json::Value;

use crate::fixtures::noon;
use crate::rails::{failed, record};

const EXAMPLES: &str = include_str!("../scan_examples.json");
const BUILT_IN: &str = include_str!("../../src/catalogue/built_in.toml");
/// Assets that the built-in catalogue lacks.
const MORE: &str = r#"
[[assets]]
symbol = "SOL"
name = "Solana"
decimals = 8
limits = { currency = "EUR", min_amount = 1, max_amount = 9 }
networks = [{ chain = "solana" }]

[[assets]]
symbol = "GUSD"
name = "Gemini dollar"
decimals = 2
limits = { currency = "EUR", min_amount = 1, max_amount = 9 }
networks = [{ chain = "ethereum", evm = true, chain_id = 1, token_decimals = 2, contract_address = "0x056Fd409E1d7A124BD7017459dFEa2F387b6d5Cd" }]

[[assets]]
symbol = "WBTC"
name = "Wrapped bitcoin"
decimals = 8
limits = { currency = "EUR", min_amount = 1, max_amount = 9 }
networks = [
    { chain = "ethereum", evm = true, chain_id = 1, contract_address = "0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599" },
    { chain = "base", evm = true, chain_id = 8453 },
    { chain = "bitcoin" },
    { chain = "solana" },
    { chain = "litecoin" },
]
"#;

const EVM: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
/// The same address with another case, so that its checksum is wrong.
const MISTYPED: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";
const BITCOIN: &str = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq";
const SOLANA: &str = "mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN";
const TRON: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

fn catalogue() -> Catalogue {
    Catalogue::parse(&format!("{BUILT_IN}{MORE}")).unwrap()
}

/// What a customer pays: an amount of an asset on a network, or of a currency.
type Pays<'p> = (&'p str, &'p str, Option<&'p str>);

fn asset(code: &str) -> Asset {
    Asset::fiat(code).unwrap_or_else(|| catalogue().asset(code).unwrap().asset)
}

/// An open payment in the widget with these instructions.
fn payment(
    kind: RailKind,
    (amount, code, network): Pays<'_>,
    named: BTreeMap<String, String>,
) -> RailRecord {
    let mut record = record((kind, true), RailState::Processing);
    let amount = Amount::parse(amount, asset(code)).unwrap();
    let network = network.unwrap_or("tron").to_owned();
    let terms = &mut record.terms;
    match kind {
        RailKind::PayIn => terms.priced.fiat = amount,
        RailKind::PayOut => {
            terms.conversion = Conversion::ramp(Side::OffRamp, "sepa".to_owned());
            terms.priced.crypto = amount;
            terms.network = network;
        }
        RailKind::Swap => terms.conversion = Conversion::Swap(Source { amount, network }),
    }
    record.instructions = Some(Instructions(named));
    record
}

fn named(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    texts.iter().map(owned).collect()
}

fn received(text: &str, code: &str) -> Received {
    Received {
        amount: Amount::parse(text, asset(code)).unwrap(),
        at: noon(),
    }
}

// rule: gate.payment.scan, gate.payment.scan-transfer
#[test]
fn customer_scans_the_uri_of_the_chain_or_the_code_of_the_transfer() {
    let catalogue = catalogue();
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap();
    for example in examples.as_array().unwrap() {
        let pays = |field: &str| example["pays"][field].as_str();
        let network = pays("network");
        let code = pays("asset").or(pays("currency")).unwrap();
        let kinds = match network {
            None => &[RailKind::PayIn][..],
            Some(_) => &[RailKind::PayOut, RailKind::Swap],
        };
        let texts = example["instructions"].clone();
        let texts: BTreeMap<String, String> = serde_json::from_value(texts).unwrap();
        for kind in kinds {
            let pays = (pays("amount").unwrap(), code, network);
            let mut payment = payment(*kind, pays, texts.clone());
            payment.received = example["received"].as_str().map(|it| received(it, code));
            let scan = payment.scan(&catalogue);
            assert_eq!(scan.as_deref(), example["scan"].as_str(), "{example}");
        }
    }
}

// rule: gate.payment.scan
#[test]
fn customer_scans_the_bare_address_if_no_uri_says_the_rest() {
    let catalogue = catalogue();
    for (code, network, address, memo) in [
        ("USDT", "tron", TRON, ""),
        // Their URIs have no memo.
        ("USDT", "ethereum", EVM, "7"),
        ("BTC", "bitcoin", BITCOIN, "7"),
        ("USDT", "tron", TRON, "7"),
        // The catalogue lacks the digits of the contract, the chain's id, the chain or the asset.
        ("WBTC", "ethereum", EVM, ""),
        ("WBTC", "base", EVM, ""),
        ("WBTC", "litecoin", "ltc1example", ""),
        ("USDC", "bsc", EVM, ""),
        // Without a contract the URI would ask for another asset.
        ("WBTC", "bitcoin", BITCOIN, ""),
        ("WBTC", "solana", SOLANA, ""),
        // No address of the network.
        ("USDT", "ethereum", MISTYPED, ""),
        ("BTC", "bitcoin", "bc1qexample?amount=9", ""),
        ("USDC", "solana", EVM, ""),
    ] {
        let texts = named(&[("address", address), ("memo", memo)]);
        let payment = payment(RailKind::PayOut, ("1.5", code, Some(network)), texts);
        let scan = payment.scan(&catalogue);
        assert_eq!(scan.as_deref(), Some(address), "{code} {network} {memo}");
    }
    let without = payment(
        RailKind::PayOut,
        ("1.5", "USDT", Some("ethereum")),
        named(&[("address", "")]),
    );
    assert_eq!(without.scan(&catalogue), None);
}

const HOLDER: (&str, &str) = ("account_holder", "Example Payments");
const IBAN: (&str, &str) = ("iban", "DE89370400440532013000");

// rule: gate.payment.scan-transfer
#[test]
fn transfer_that_does_not_fit_its_code_has_none() {
    let catalogue = catalogue();
    let scan = |amount, currency, texts: &[(&str, &str)]| {
        let pays = (amount, currency, None);
        payment(RailKind::PayIn, pays, named(texts)).scan(&catalogue)
    };
    let euro = |changed: (&str, &str)| scan("100.00", "EUR", &[HOLDER, IBAN, changed]);
    assert!(scan("100.00", "EUR", &[HOLDER, IBAN]).is_some());
    for (amount, currency) in [
        ("100.00", "GBP"),
        ("100.00", "USD"),
        ("1000000000.00", "EUR"),
    ] {
        let scan = scan(amount, currency, &[HOLDER, IBAN]);
        assert_eq!(scan, None, "{amount} {currency}");
    }
    for texts in [&[HOLDER][..], &[IBAN], &[("reference", "r-1")], &[]] {
        assert_eq!(scan("100.00", "EUR", texts), None, "{texts:?}");
    }
    let (long_holder, long_reference) = ("é".repeat(71), "é".repeat(141));
    for changed in [
        ("account_holder", long_holder.as_str()),
        ("account_holder", ""),
        ("account_holder", "  "),
        ("account_holder", "Example\nPayments"),
        ("account_holder", "Example Payments\n"),
        ("account_holder", "Example\u{2028}Payments"),
        ("account_holder", "Example\u{85}Payments"),
        ("iban", "DE00370400440532013000"),
        ("iban", "DE89370400440532013000\nEUR1.00"),
        ("iban", ""),
        ("bic", "COBADEFF\nXX"),
        ("bic", "COBADEFFXX"),
        ("bic", "cobadeff"),
        ("reference", "r\r1"),
        ("reference", "r\t1"),
        ("reference", long_reference.as_str()),
    ] {
        assert_eq!(euro(changed), None, "{changed:?}");
    }
    let (holder, reference) = ("é".repeat(70), "r".repeat(140));
    for (name, text) in [("account_holder", &holder), ("reference", &reference)] {
        assert!(euro((name, text.as_str())).is_some(), "{name}");
    }
    // Each text fits by itself, and the whole code has at most 331 bytes.
    for (length, bytes) in [(129, Some(331)), (130, None)] {
        let texts = [
            ("account_holder", holder.as_str()),
            IBAN,
            ("bic", "COBADEFFXXX"),
            ("reference", reference.get(..length).unwrap()),
        ];
        let scan = scan("100.00", "EUR", &texts);
        assert_eq!(scan.map(|text| text.len()), bytes);
    }
}

// rule: gate.payment.scan
#[test]
fn customer_scans_nothing_unless_something_is_still_to_pay() {
    let catalogue = catalogue();
    let pays = ("1.5", "USDT", Some("ethereum"));
    let open = payment(RailKind::PayOut, pays, named(&[("address", EVM)]));
    assert!(open.scan(&catalogue).is_some());
    for state in [
        RailState::Settled {
            at: noon(),
            reference: None,
        },
        failed(noon()),
        RailState::Cancelled { at: noon() },
    ] {
        let ended = RailRecord {
            state,
            ..open.clone()
        };
        assert_eq!(ended.scan(&catalogue), None, "{:?}", ended.state);
    }
    for amount in ["1.5", "1.500001", "9"] {
        let arrived = RailRecord {
            received: Some(received(amount, "USDT")),
            ..open.clone()
        };
        assert_eq!(arrived.scan(&catalogue), None, "{amount}");
    }
    let not_hosted = RailRecord {
        hosted: None,
        ..open.clone()
    };
    let silent = RailRecord {
        instructions: None,
        ..open
    };
    let texts = named(&[("type", "redirect"), HOLDER, IBAN]);
    let redirected = payment(RailKind::PayIn, ("100.00", "EUR", None), texts);
    for payment in [not_hosted, silent, redirected] {
        assert_eq!(payment.scan(&catalogue), None, "{payment:?}");
    }
}
