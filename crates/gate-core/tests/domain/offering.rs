//! What the widget offers: networks whose addresses can be checked, and payout methods whose account form is known.

use std::sync::Arc;

use async_trait::async_trait;
use gate_core::amount::SessionAmount;
use gate_core::catalogue::{Catalogue, CountryCode};
use gate_core::session::{Flow, SessionState, Terms};
use gate_core::usecases::list_options::{ListOptions, PricedFor, SideOptions, unpayable};
use gate_core::usecases::pay_session::PaymentRequest;
use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Mid, Timestamp};
use partner_core::ports::RateSource;

use crate::fixtures::{ready, session_at};

/// Besides networks of every known form, one whose form is unknown, and a payout method without an account form.
const CATALOGUE: &str = r#"
[[countries]]
code = "DE"
name = "Germany"
currency = "EUR"
supported = true

[[currencies]]
code = "EUR"
symbol = "€"
name = "Euro"

[[currencies]]
code = "GBP"
symbol = "£"
name = "Pound sterling"

[[assets]]
symbol = "USDT"
name = "Tether USD"
decimals = 6
limits = { currency = "EUR", min_amount = 10, max_amount = 100 }
networks = [{ chain = "ton" }, { chain = "tron" }, { chain = "ethereum", evm = true }, { chain = "solana" }]

[[assets]]
symbol = "BTC"
name = "Bitcoin"
decimals = 8
limits = { currency = "EUR", min_amount = 10, max_amount = 100 }
networks = [{ chain = "bitcoin" }]

[[assets]]
symbol = "LTC"
name = "Litecoin"
decimals = 8
limits = { currency = "EUR", min_amount = 10, max_amount = 100 }
networks = [{ chain = "litecoin" }]

[[payment_methods]]
id = "card"
name = "Card"
currency = "EUR"

[[payment_methods]]
id = "card"
name = "Card"
currency = "GBP"

[[payout_methods]]
id = "wire"
name = "Wire transfer"
currency = "EUR"

[[payout_methods]]
id = "transfer"
name = "Transfer"
currency = "EUR"
account = "iban"

[[payout_methods]]
id = "wire"
name = "Wire transfer"
currency = "GBP"

[[swaps]]
currency = "EUR"
"#;

const EVM: &str = "0x52908400098527886E0F7030069857D2E4169EE7";
const TRON: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
const BITCOIN: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";

struct NoRates;

#[async_trait]
impl RateSource for NoRates {
    async fn rate(&self, _: Asset, _: Asset, _: Amount) -> Option<SourceRate> {
        None
    }
}

/// One unit of every asset costs a little less than one unit of the currency.
struct OneRate;

#[async_trait]
impl RateSource for OneRate {
    async fn rate(&self, _: Asset, _: Asset, _: Amount) -> Option<SourceRate> {
        let mid = Mid::parse("1.08")?;
        Some(SourceRate { mid, spread_bps: 0 })
    }
}

fn options_of(catalogue: &str) -> ListOptions {
    ListOptions {
        catalogue: Arc::new(Catalogue::parse(catalogue).unwrap()),
        rates: Arc::new(NoRates),
    }
}

/// The sides with their networks and methods, as one text each.
fn listed(change: impl FnOnce(&mut Terms)) -> Vec<String> {
    let options = options_of(CATALOGUE);
    let mut terms = session_at(SessionState::Open).terms;
    change(&mut terms);
    let sides = ready(options.list(Some(&terms), None, PricedFor::default()));
    sides.iter().map(written).collect()
}

fn written(side: &SideOptions<'_>) -> String {
    let assets = side.assets.iter().map(|option| {
        let chains: Vec<&str> = option.networks.iter().map(|it| it.chain.as_str()).collect();
        format!("{} {}", option.listing.asset, chains.join(" "))
    });
    let assets: Vec<String> = assets.collect();
    let methods: Vec<&str> = side.methods.iter().map(|it| it.id.as_str()).collect();
    let (flow, assets) = (side.side.as_str(), assets.join(", "));
    format!("{flow}: {assets}; {}", methods.join(" "))
}

// rule: gate.embed.options-checked
#[test]
fn options_omit_what_the_widget_cannot_check() {
    let all = "USDT tron ethereum solana, BTC bitcoin";
    let sides = ["on_ramp", "off_ramp", "swap"];
    let methods = ["card", "transfer", ""];
    let expected: Vec<String> = sides
        .iter()
        .zip(methods)
        .map(|(side, methods)| format!("{side}: {all}; {methods}"))
        .collect();
    assert_eq!(listed(|_| {}), expected);
    // The only payout method in pounds names no account form.
    let british = listed(|terms| terms.currency = Asset::fiat("GBP").unwrap());
    assert_eq!(british, [format!("on_ramp: {all}; card")]);
    let unchecked = listed(|terms| terms.target_token = Some("LTC".to_owned()));
    assert!(unchecked.is_empty(), "{unchecked:?}");
}

// rule: gate.embed.options-wallet
#[test]
fn options_list_the_networks_that_the_wallet_fits() {
    for (wallet, expected) in [
        (EVM, "USDT ethereum"),
        (TRON, "USDT tron"),
        (BITCOIN, "BTC bitcoin"),
    ] {
        let own = listed(|terms| terms.wallet_address = Some(wallet.to_owned()));
        let ramps = [("on_ramp", "card"), ("off_ramp", "transfer")];
        let ramps = ramps.map(|(side, method)| format!("{side}: {expected}; {method}"));
        // One asset alone cannot be swapped.
        assert_eq!(own, ramps, "{wallet}");
    }
    let unfit = listed(|terms| terms.wallet_address = Some("x".to_owned()));
    assert!(unfit.is_empty(), "{unfit:?}");
}

// rule: gate.embed.options-wallet
#[test]
fn wallet_of_a_swap_restricts_the_asset_that_the_session_names() {
    let swap = |wallet: &str| {
        let wallet = wallet.to_owned();
        listed(|terms| {
            terms.flow = Some(Flow::Swap);
            terms.target_token = Some("USDT".to_owned());
            terms.wallet_address = Some(wallet);
        })
    };
    assert_eq!(swap(TRON), ["swap: USDT tron, BTC bitcoin; "]);
    let foreign = swap(BITCOIN);
    assert!(foreign.is_empty(), "{foreign:?}");
}

// rule: gate.bootstrap.not-offered
#[test]
fn session_that_no_choice_can_pay_has_a_reason() {
    let catalogue = Catalogue::parse(CATALOGUE).unwrap();
    let reason = |change: &dyn Fn(&mut Terms)| {
        let mut terms = session_at(SessionState::Open).terms;
        change(&mut terms);
        unpayable(&catalogue, &terms).map(|reason| reason.as_str())
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(reason(&|_| {}), None);
    assert_eq!(reason(&|it| it.target_network = text("TRON")), None);
    assert_eq!(reason(&|it| it.wallet_address = text(BITCOIN)), None);
    let token = reason(&|it| it.target_token = text("DOGE"));
    assert_eq!(token, Some("asset_not_supported"));
    // The widget cannot check an address of the asset's only network.
    let unchecked = reason(&|it| it.target_token = text("LTC"));
    assert_eq!(unchecked, Some("corridor_not_available"));
    let sale = reason(&|it| {
        (it.currency, it.flow) = (Asset::fiat("GBP").unwrap(), Some(Flow::OffRamp));
    });
    assert_eq!(sale, Some("corridor_not_available"));
    let network = reason(&|it| it.target_network = text("FOO"));
    assert_eq!(network, Some("network_not_supported"));
    let pair = reason(&|it| {
        (it.target_token, it.target_network) = (text("BTC"), text("TRON"));
    });
    assert_eq!(pair, Some("network_not_supported"));
    let wallet = reason(&|it| {
        (it.target_network, it.wallet_address) = (text("TRON"), text(EVM));
    });
    assert_eq!(wallet, Some("invalid_address"));
    let amount = reason(&|it| it.amount = SessionAmount::parse("10.001").unwrap());
    assert_eq!(amount, Some("amount_precision"));
    // A sale sends nothing to a wallet, and a swap only what its user receives.
    for (flow, wallet, expected) in [
        (Flow::OffRamp, "x", None),
        (Flow::Swap, BITCOIN, None),
        (Flow::Swap, "x", Some("invalid_address")),
    ] {
        let found = reason(&|it| (it.flow, it.wallet_address) = (Some(flow), text(wallet)));
        assert_eq!(found, expected, "{flow:?} {wallet}");
    }
    for (field, expected) in [
        ("DOGE", "asset_not_supported"),
        ("LTC", "corridor_not_available"),
    ] {
        let swap = reason(&|it| (it.flow, it.target_token) = (Some(Flow::Swap), text(field)));
        assert_eq!(swap, Some(expected), "{field}");
    }
    let swap = reason(&|it| (it.flow, it.target_network) = (Some(Flow::Swap), text("FOO")));
    assert_eq!(swap, Some("network_not_supported"));
    let padded = reason(&|it| it.amount = SessionAmount::parse("10.0000").unwrap());
    assert_eq!(padded, None);
}

// rule: gate.bootstrap.not-offered
#[test]
fn amount_below_the_fees_can_only_be_sold() {
    let fees = "service_least = \"0.50\"";
    let methods = "[[payment_methods]]\nid = \"card\"\nname = \"Card\"\ncurrency = \"EUR\"\n";
    let swaps = "[[swaps]]\ncurrency = \"EUR\"\n";
    let text = CATALOGUE
        .replacen(methods, &format!("{methods}{fees}\n"), 1)
        .replacen(swaps, &format!("{swaps}{fees}\n"), 1);
    let catalogue = Catalogue::parse(&text).unwrap();
    let reason = |amount: &str, flow| {
        let mut terms = session_at(SessionState::Open).terms;
        terms.amount = SessionAmount::parse(amount).unwrap();
        terms.flow = flow;
        unpayable(&catalogue, &terms).map(|reason| reason.as_str())
    };
    for flow in [Flow::OnRamp, Flow::Swap] {
        assert_eq!(reason("0.51", Some(flow)), None, "{flow:?}");
        let low = reason("0.50", Some(flow));
        assert_eq!(low, Some("amount_out_of_range"), "{flow:?}");
    }
    assert_eq!(reason("0.50", Some(Flow::OffRamp)), None);
    assert_eq!(reason("0.50", None), None);
}

// rule: warning.unpayable
#[test]
fn amount_outside_the_limits_is_payable_if_it_has_a_price() {
    let reason = |rates: Arc<dyn RateSource>, amount: &str, flow| {
        let options = ListOptions {
            rates,
            ..options_of(CATALOGUE)
        };
        let mut terms = session_at(SessionState::Open).terms;
        terms.amount = SessionAmount::parse(amount).unwrap();
        terms.flow = flow;
        let reason = ready(options.unpayable(&terms));
        reason.map(|reason| (reason.as_str(), reason.to_string()))
    };
    let priced = |amount| reason(Arc::new(OneRate), amount, None);
    let unpriced = |amount| reason(Arc::new(NoRates), amount, None);
    // No rate is needed within the limits.
    assert_eq!((priced("100.00"), unpriced("100.00")), (None, None));
    assert_eq!((priced("5000.00"), priced("5000.0000")), (None, None));
    assert_eq!(unpriced("5000.00"), None, "rates may come back");
    let swap = reason(Arc::new(NoRates), "5000.00", Some(Flow::Swap));
    assert_eq!(swap, None, "a swap has no price before it is quoted");
    let precise = priced("100.001").unwrap();
    assert_eq!(precise.0, "amount_precision");
    let (code, sentence) = priced("9999999999.00").unwrap();
    assert_eq!(code, "amount_out_of_range");
    assert!(sentence.is_ascii() && !sentence.contains(','), "{sentence}");
}

// rule: gate.embed.options-usual-time
#[test]
fn options_state_how_long_swaps_in_the_currency_take() {
    let usual_time = "usual_time = { from = \"5m\", to = \"30m\" }";
    let timed = format!("{CATALOGUE}{usual_time}\n");
    let country = CountryCode::parse("DE");
    for (catalogue, country, expected) in [
        (CATALOGUE, country, None),
        (timed.as_str(), country, Some((300, 1_800))),
        // Without a currency the swaps of each would count.
        (timed.as_str(), None, None),
    ] {
        let options = options_of(catalogue);
        let sides = ready(options.list(None, country, PricedFor::default()));
        let seconds = |side: &SideOptions<'_>| {
            let usual = side.usual_time?;
            Some((usual.from.as_secs(), usual.to.as_secs()))
        };
        let found: Vec<_> = sides.iter().map(seconds).collect();
        assert_eq!(found, [None, None, expected], "{country:?}");
    }
}

// rule: gate.payment.payout
#[test]
fn payment_request_never_shows_address_or_account() {
    let quote = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";
    let account = [("iban".to_owned(), "DE89370400440532013000".to_owned())];
    let request = PaymentRequest {
        quote: quote.to_owned(),
        wallet_address: Some(TRON.to_owned()),
        payout: Some(account.into()),
        country: None,
        until: Timestamp::from_millis(0).unwrap(),
        trace_parent: None,
    };
    let shown = format!("{request:?}");
    assert!(shown.contains(quote), "{shown}");
    assert!(!shown.contains("DE89") && !shown.contains(TRON), "{shown}");
}
