//! What the widget offers: networks whose addresses can be checked, and payout methods whose account form is known.

use std::sync::Arc;

use async_trait::async_trait;
use gate_core::catalogue::Catalogue;
use gate_core::session::{Flow, SessionState, Terms};
use gate_core::usecases::list_options::{ListOptions, PricedFor, SideOptions};
use gate_core::usecases::pay_session::PaymentRequest;
use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Timestamp};
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

/// The sides with their networks and methods, as one text each.
fn listed(change: impl FnOnce(&mut Terms)) -> Vec<String> {
    let options = ListOptions {
        catalogue: Arc::new(Catalogue::parse(CATALOGUE).unwrap()),
        rates: Arc::new(NoRates),
    };
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
