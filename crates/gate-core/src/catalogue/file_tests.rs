//! Tests of the catalogue file: valid files and errors.

use std::time::Duration;

use kernel::Rate;
use kernel::address::{AddressForm, asset_of_contract};

use super::*;
use crate::catalogue::{TRANSFER_WITHIN, WalletError};
use crate::pricing::{Fees, Priced};
use crate::signed_quote::{Conversion, QuoteTerms, Source};

const WHOLE: &str = r#"
[[countries]]
code = "CH"
name = "Switzerland"
currency = "CHF"
supported = true

[[currencies]]
code = "CHF"
symbol = "CHF"
name = "Swiss franc"

[[assets]]
symbol = "SOL"
name = "Solana"
decimals = 8
active = false
sides = ["on_ramp"]
currencies = ["CHF"]
limits = { currency = "CHF", min_amount = 0, max_amount = "100.5" }
networks = [{ chain = "solana", payout_fees = [{ currency = "CHF", amount = "0.05" }] }]

[[payment_methods]]
id = "sic"
name = "SIC"
currency = "CHF"
service_bps = 30
service_least = 1.10

[[payout_methods]]
id = "sic"
name = "SIC"
currency = "CHF"

[[swaps]]
currency = "CHF"
service_least = "0.75"
"#;

fn faults(text: &str) -> Vec<String> {
    let faults = parse(text).unwrap_err();
    faults.0.iter().map(ToString::to_string).collect()
}

/// The complete file with one text replaced.
fn with(old: &str, new: &str) -> String {
    assert!(WHOLE.contains(old), "{old}");
    WHOLE.replacen(old, new, 1)
}

// rule: gate.catalogue.file
#[test]
fn file_parses_with_defaults() {
    let catalogue = parse(WHOLE).unwrap();
    let chf = Asset::fiat("CHF").unwrap();
    let sol = catalogue.asset("sol").unwrap();
    assert_eq!((sol.asset.scale(), sol.active), (8, false));
    assert_eq!(sol.sides, [Side::OnRamp]);
    assert_eq!(sol.limits.max.to_string(), "100.50");
    let network = sol.default_network().unwrap();
    assert_eq!((network.evm, &network.contract_address), (false, &None));
    let payment = catalogue.method(Side::OnRamp, chf, "sic").unwrap();
    let fees = payment.fees(network);
    assert_eq!(fees.service_bps, 30);
    assert_eq!(fees.service_least.to_string(), "1.10");
    assert_eq!(fees.network.to_string(), "0.05");
    let payout = catalogue.method(Side::OffRamp, chf, "sic").unwrap();
    let fees = payout.fees(network);
    assert_eq!((fees.service_bps, fees.network.is_zero()), (0, true));
    assert!(fees.service_least.is_zero());
}

/// A text of the file, what replaces it, and the fault. `\n` is the end of a line.
const FAULTS: &str = r#"
code = "CH" => code = "XX" => line 3: countries.code: expected an ISO 3166 code
code = "CH" => code = "ch" => line 3: countries.code: expected an ISO 3166 code
currency = "CHF" => currency = "EUR" => line 5: countries.currency: expected a currency of [[currencies]], found "EUR"
supported = true => supported = 1 => line 6: countries.supported: expected true or false
code = "CHF"\nsymbol => code = "XAU"\nsymbol => line 5: countries.currency
symbol = "CHF" => symbol = "" => line 10: currencies.symbol: expected 1 to 64
symbol = "SOL" => symbol = "USD" => line 14: assets.symbol: expected 2 to 12 of A-Z
symbol = "SOL" => symbol = "BTC"\nx = 1 => line 15: assets.x: unknown key
decimals = 8 => decimals = 9 => line 16: assets.decimals: expected a whole number from 0 to 8
sides = ["on_ramp"] => sides = ["swap"] => line 18: assets.sides: expected on_ramp or off_ramp
currencies = ["CHF"] => currencies = ["USD"] => line 19: assets.currencies: expected a currency of
min_amount = 0, =>  => line 20: assets.limits.min_amount: missing
min_amount = 0, => min_amount = 200, => line 20: assets.limits.max_amount: expected at least min_amount
min_amount = 0, => min_amount = 0.001, => line 20: assets.limits.min_amount: expected a decimal
{ chain = "solana", => { chain = "Solana", => line 21: assets.networks.chain: expected 1 to 32 of
{ chain = "solana", => { chain = "solana", evm = true, contract_address = "0xdAC17F958D2ee523a2206206994597C13D831eC7", => line 21: assets.networks.contract_address: the address is mixed-case
amount = "0.05" => amount = "-1" => line 21: assets.networks.payout_fees.amount: expected a decimal
service_bps = 30 => service_bps = 10001 => line 27: payment_methods.service_bps: expected a whole number from 0 to 10000
service_bps = 30 => service_bsp = 30 => line 27: payment_methods.service_bsp: unknown key; the nearest known one is `service_bps`
"#;

// rule: gate.catalogue.file, gate.catalogue.faults
#[test]
fn every_error_has_its_line() {
    for row in FAULTS.trim().lines() {
        let row = row.replace(r"\n", "\n");
        let [old, new, told] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let faults = faults(&with(old, new));
        assert!(
            faults.iter().any(|error| error.starts_with(told)),
            "{told}: {faults:#?}"
        );
    }
    let both = with("code = \"CH\"", "code = \"XX\"").replace("decimals = 8", "decimals = 9");
    assert_eq!(faults(&both).len(), 2);
}

// rule: gate.catalogue.file
#[test]
fn file_with_duplicates_or_without_entries_is_refused() {
    assert_eq!(faults("").len(), 3);
    assert!(faults("[[countries]\n")[0].starts_with("line 1: "));
    let twice = |table: &str| format!("{WHOLE}\n{table}");
    for (table, told) in [
        (
            "[[countries]]\ncode = \"CH\"\nname = \"x\"\ncurrency = \"CHF\"",
            "line 40: countries.code: expected every country once",
        ),
        (
            "[[currencies]]\ncode = \"CHF\"\nsymbol = \"x\"\nname = \"x\"",
            "line 40: currencies.code: expected every currency once",
        ),
        (
            "[[payout_methods]]\nid = \"sic\"\nname = \"x\"\ncurrency = \"CHF\"",
            "line 40: payout_methods.id: expected every method of a currency once",
        ),
    ] {
        let faults = faults(&twice(table));
        assert!(
            faults.len() == 1 && faults[0].starts_with(told),
            "{faults:#?}"
        );
    }
    let changed =
        with("symbol = \"SOL\"", "symbol = \"ETH\"").replace("decimals = 8", "decimals = 6");
    assert_eq!(
        faults(&changed),
        ["line 16: assets.decimals: expected 8, the digits of ETH, found \"6\""]
    );
}

/// Limits of an asset, and their fault.
const LIMITS: &str = r#"
[{ currency = "CHF", min_amount = 1, max_amount = 9 }, { currency = "CHF", min_amount = 2, max_amount = 8 }] => .currency: expected every currency of limits once
[] => : expected { currency =
[5] => : expected an array of tables
5 => : expected a table
[{ currency = "CHF", min_amount = 9, max_amount = 1 }] => .max_amount: expected at least min_amount
[{ currency = "GBP", min_amount = 1, max_amount = 9 }] => .currency: expected a currency of [[currencies]], found "GBP"
[{ currency = "CHF", max_amount = 9 }] => .min_amount: missing
"#;

// rule: gate.catalogue.limits
#[test]
fn limits_may_be_stated_once_per_currency() {
    let one = "{ currency = \"CHF\", min_amount = 0, max_amount = \"100.5\" }";
    let listed = with(one, &format!("[{one}]"));
    assert_eq!(parse(&listed).unwrap(), parse(WHOLE).unwrap());
    let limits = "limits = [\n  { currency = \"CHF\", min_amount = 1, max_amount = 9 },\n  \
                  { currency = \"EUR\", min_amount = 2, max_amount = 8 },\n]";
    let euro = "[[currencies]]\ncode = \"EUR\"\nsymbol = \"€\"\nname = \"Euro\"\n\n[[assets]]";
    let two = with(&format!("limits = {one}"), limits).replace("[[assets]]", euro);
    let catalogue = parse(&two).unwrap();
    let sol = catalogue.asset("SOL").unwrap();
    let least = |code: Option<&str>| {
        let currency = code.and_then(Asset::fiat);
        sol.limits_in(currency).min.to_string()
    };
    assert_eq!(least(Some("EUR")), "2.00");
    for code in [None, Some("CHF"), Some("USD")] {
        assert_eq!(least(code), "1.00", "{code:?}");
    }
    for row in LIMITS.trim().lines() {
        let (limits, told) = row.split_once(" => ").unwrap();
        let faults = faults(&with(one, limits));
        let told = format!("line 20: assets.limits{told}");
        assert!(faults[0].starts_with(&told), "{told}: {faults:#?}");
    }
}

// rule: gate.catalogue.verification
#[test]
fn country_states_when_its_users_are_verified() {
    let ch = CountryCode::parse("CH");
    let chf = Asset::fiat("CHF").unwrap();
    let above = |text| VerificationRule::Above(Amount::parse(text, chf).unwrap());
    for (written, expected) in [
        ("", VerificationRule::Always),
        ("verification = \"always\"", VerificationRule::Always),
        ("verification = \"never\"", VerificationRule::Never),
        (
            "verification = { above = \"150.5\", currency = \"CHF\" }",
            above("150.50"),
        ),
        (
            "verification = { above = 150, currency = \"CHF\" }",
            above("150.00"),
        ),
        (
            "verification = { above = 0, currency = \"CHF\" }",
            VerificationRule::Above(Amount::zero(chf)),
        ),
    ] {
        let text = with("supported = true", &format!("supported = true\n{written}"));
        let catalogue = parse(&text).unwrap();
        assert_eq!(catalogue.verification_rule(ch), &expected, "{written}");
        let is_required = expected != VerificationRule::Never;
        assert_eq!(catalogue.requires_verification(), is_required, "{written}");
        for unknown in [None, CountryCode::parse("DE")] {
            let rule = catalogue.verification_rule(unknown);
            assert_eq!(rule, &VerificationRule::Always, "{written}");
        }
    }
}

/// When users of a country are verified, and its fault.
const VERIFICATIONS: &str = r#"
"sometimes" => : expected never, always or { above = "150.00", currency = "EUR" }, found "sometimes"
"Never" => : expected never, always or { above = "150.00", currency = "EUR" }, found "Never"
false => : expected never, always or { above = "150.00", currency = "EUR" }, found false
150 => : expected never, always or { above = "150.00", currency = "EUR" }, found "150"
[] => : expected never, always or { above = "150.00", currency = "EUR" }, found a array
{ currency = "CHF" } => .above: missing; expected a decimal
{ above = "150.00" } => .currency: missing; expected a currency of
{ above = "150.00", currency = "EUR" } => .currency: expected a currency of [[currencies]], found "EUR"
{ above = "150.001", currency = "CHF" } => .above: expected a decimal
{ above = "-1", currency = "CHF" } => .above: expected a decimal
{ abvoe = 1, above = 1, currency = "CHF" } => .abvoe: unknown key; the nearest known one is `above`
"#;

// rule: gate.catalogue.verification, gate.catalogue.faults
#[test]
fn wrong_verification_is_reported_with_its_line() {
    for row in VERIFICATIONS.trim().lines() {
        let (written, told) = row.split_once(" => ").unwrap();
        let text = with(
            "supported = true",
            &format!("supported = true\nverification = {written}"),
        );
        let faults = faults(&text);
        let told = format!("line 7: countries.verification{told}");
        assert!(
            faults.len() == 1 && faults[0].starts_with(&told),
            "{told}: {faults:#?}"
        );
    }
}

// rule: gate.catalogue.verification
#[test]
fn built_in_catalogue_always_verifies() {
    let catalogue = Catalogue::built_in().unwrap();
    for country in catalogue.countries() {
        let rule = catalogue.verification_rule(Some(country.code));
        assert_eq!(rule, &VerificationRule::Always, "{}", country.code);
    }
}

// rule: gate.catalogue.account
#[test]
fn payout_method_names_the_form_of_its_account() {
    let catalogue = Catalogue::built_in().unwrap();
    for method in catalogue.methods(Side::OnRamp) {
        assert_eq!((method.account, method.is_for_widget()), (None, true));
    }
    let built_in = catalogue.methods(Side::OffRamp);
    let built_in: Vec<_> = built_in.map(|it| (it.id.as_str(), it.account)).collect();
    let expected = [
        ("sepa", Some(AccountForm::Iban)),
        ("faster_payments", Some(AccountForm::Uk)),
        ("ach", Some(AccountForm::Us)),
    ];
    assert_eq!(built_in, expected);
    let without = parse(WHOLE).unwrap();
    let method = without.methods(Side::OffRamp).next().unwrap();
    assert_eq!((method.account, method.is_for_widget()), (None, false));
    for (table, at, told) in [
        (
            "payout_methods",
            "account = \"sepa\"",
            "payout_methods.account: expected iban, uk or us, found \"sepa\"",
        ),
        (
            "payment_methods",
            "account = \"iban\"",
            "payment_methods.account: unknown key",
        ),
    ] {
        let table = format!("[[{table}]]\n");
        let found = faults(&with(&table, &format!("{table}{at}\n")));
        assert!(
            matches!(&found[..], [only] if only.contains(told)),
            "{found:?}"
        );
    }
}

// rule: gate.embed.options-checked
#[test]
fn network_has_the_form_of_its_addresses() {
    let catalogue = Catalogue::built_in().unwrap();
    let networks = catalogue.assets().iter().flat_map(|it| &it.networks);
    for network in networks {
        let form = network.address_form();
        assert!(form.is_some(), "{}", network.chain);
    }
    let other = parse(&with("chain = \"solana\"", "chain = \"litecoin\"")).unwrap();
    let network = other.asset("SOL").unwrap().default_network().unwrap();
    assert_eq!(network.address_form(), None);
}

// rule: gate.payment.address-contract
#[test]
fn contract_of_any_asset_is_no_wallet_on_its_network() {
    let catalogue = Catalogue::built_in().unwrap();
    let check = |chain: &str, form, text: &str| catalogue.check_wallet(chain, form, text);
    for listing in catalogue.assets() {
        for network in &listing.networks {
            let Some(contract) = &network.contract_address else {
                continue;
            };
            let (chain, form) = (&network.chain, network.address_form().unwrap());
            let refused = WalletError::Contract {
                asset: listing.asset,
                chain: chain.clone(),
            };
            assert_eq!(check(chain, form, contract), Err(refused));
            // The pools have no catalogue. They know these contracts too.
            let known = asset_of_contract(chain, contract);
            assert_eq!(known, Some(listing.asset.code()));
        }
    }
    let usdt = "0xdac17f958d2ee523a2206206994597c13d831ec7";
    assert!(check("ethereum", AddressForm::Evm, usdt).is_err());
    assert_eq!(check("polygon", AddressForm::Evm, usdt), Ok(()));
    let tron = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
    assert_eq!(check("tron", AddressForm::Tron, tron), Ok(()));
}

// rule: gate.catalogue.swaps
#[test]
fn swaps_are_listed_once_per_currency() {
    let chf = Asset::fiat("CHF").unwrap();
    let catalogue = parse(WHOLE).unwrap();
    let offer = catalogue.swaps_in(chf).unwrap();
    assert_eq!(offer.service_bps, 0);
    let network = catalogue.asset("SOL").unwrap().default_network().unwrap();
    let fees = offer.fees(network);
    assert_eq!(fees.service_least.to_string(), "0.75");
    assert_eq!(fees.network.to_string(), "0.05");
    let without = WHOLE.split_once("[[swaps]]").unwrap().0;
    assert_eq!(parse(without).unwrap().swaps_in(chf), None);
    let twice = format!("{WHOLE}\n[[swaps]]\ncurrency = \"CHF\"\n");
    let found = faults(&twice);
    assert!(
        matches!(&found[..], [only] if only.contains("swaps.currency: expected every currency of swaps once")),
        "{found:?}"
    );
    for wrong in ["service_bps = 10001", "currency = \"EUR\"", "id = \"x\""] {
        let text = WHOLE.replace("service_least = \"0.75\"", wrong);
        assert!(parse(&text).is_err(), "{wrong}");
    }
}

/// Spans that a table names, and what they are in seconds.
const SPANS: [(&str, u64); 5] = [
    ("1s", 1),
    ("1000ms", 1),
    ("90m", 5_400),
    ("72h", 259_200),
    ("720h", 2_592_000),
];

/// The tables that may say how long a customer can pay, with the line after each header.
const PAID: [(&str, u32); 3] = [
    ("payment_methods", 24),
    ("payout_methods", 31),
    ("swaps", 36),
];

/// How long a customer can pay by the only entry of each of these tables.
fn pays_within(catalogue: &Catalogue) -> [Duration; 3] {
    let chf = Asset::fiat("CHF").unwrap();
    let method = |side| catalogue.method(side, chf, "sic").unwrap().pay_within;
    let swaps = catalogue.swaps_in(chf).unwrap();
    [
        method(Side::OnRamp),
        method(Side::OffRamp),
        swaps.pay_within,
    ]
}

// rule: gate.payment.deadline, gate.catalogue.pay-within
#[test]
fn customer_can_pay_for_as_long_as_the_table_says() {
    let defaults = [TRANSFER_WITHIN, PAY_WITHIN, PAY_WITHIN];
    assert_eq!(defaults.map(|it| it.as_secs()), [259_200, 1_800, 1_800]);
    assert_eq!(pays_within(&parse(WHOLE).unwrap()), defaults);
    for (number, (table, _)) in PAID.iter().enumerate() {
        let header = format!("[[{table}]]\n");
        for (span, seconds) in SPANS {
            let text = with(&header, &format!("{header}pay_within = \"{span}\"\n"));
            let mut expected = defaults;
            expected[number] = Duration::from_secs(seconds);
            let catalogue = parse(&text).unwrap();
            assert_eq!(pays_within(&catalogue), expected, "{table} {span}");
        }
    }
    // Only a purchase by card is paid at once.
    let card = with("id = \"sic\"", "id = \"card\"");
    let payment = parse(&card).unwrap();
    let method = payment.methods(Side::OnRamp).next().unwrap();
    assert_eq!(method.pay_within, PAY_WITHIN);
}

// rule: gate.payment.deadline, gate.catalogue.faults
#[test]
fn wrong_span_of_a_payment_is_reported_with_its_line() {
    let wrong = [
        "\"0s\"",
        "\"999ms\"",
        "\"721h\"",
        "\"3d\"",
        "\"30\"",
        "\"-1m\"",
        "\"\"",
        "30",
        "1.5",
    ];
    for (table, line) in PAID {
        let header = format!("[[{table}]]\n");
        for written in wrong {
            let text = with(&header, &format!("{header}pay_within = {written}\n"));
            let faults = faults(&text);
            let told = format!("line {line}: {table}.pay_within: expected a span from 1s to 720h");
            assert!(
                faults.len() == 1 && faults[0].starts_with(&told),
                "{written}: {faults:#?}"
            );
        }
    }
}

// rule: gate.payment.deadline, gate.catalogue.pay-within
#[test]
fn deadline_of_terms_is_that_of_their_method_or_else_the_default() {
    let catalogue = with(
        "[[payment_methods]]\n",
        "[[payment_methods]]\npay_within = \"2h\"\n",
    );
    let catalogue = parse(&catalogue).unwrap();
    let within = |currency: &str, conversion| {
        let fiat = |text| Amount::parse(text, Asset::fiat(currency).unwrap()).unwrap();
        let usdc = Asset::crypto("USDC").unwrap();
        let terms = QuoteTerms {
            conversion,
            network: "solana".to_owned(),
            priced: Priced {
                rate: Rate::parse("1").unwrap(),
                fiat: fiat("100"),
                crypto: Amount::parse("98", usdc).unwrap(),
                fees: Fees::of(fiat("1"), fiat("1")).unwrap(),
            },
        };
        catalogue.pay_within(&terms)
    };
    let purchase = |id: &str| Conversion::ramp(Side::OnRamp, id.to_owned());
    let sale = |id: &str| Conversion::ramp(Side::OffRamp, id.to_owned());
    let swap = Conversion::Swap(Source {
        amount: Amount::parse("9", Asset::crypto("USDT").unwrap()).unwrap(),
        network: "tron".to_owned(),
    });
    assert_eq!(within("CHF", purchase("sic")), Duration::from_secs(7_200));
    assert_eq!(within("CHF", sale("sic")), PAY_WITHIN);
    // The catalogue no longer has what the order was quoted by.
    assert_eq!(within("CHF", purchase("gone")), TRANSFER_WITHIN);
    assert_eq!(within("EUR", purchase("sic")), TRANSFER_WITHIN);
    assert_eq!(within("CHF", purchase("card")), PAY_WITHIN);
    assert_eq!(within("CHF", sale("gone")), PAY_WITHIN);
    assert_eq!(within("EUR", swap), PAY_WITHIN);
}
