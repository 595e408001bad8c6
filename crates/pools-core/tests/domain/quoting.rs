//! Creating quotes: every error of a request, the order of the checks, and the calls of the upstreams.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kernel::rates::SourceRate;
use kernel::{AmountError, Asset, StoreError, StoreResult};
use partner_core::Access;
use partner_core::ports::Submit;
use pools_core::destination::{AddressError, DestNetwork, EvmNetwork};
use pools_core::ports::{Depth, NewQuote, QuoteQueue};
use pools_core::pricing::PriceError;
use pools_core::profile::{Network, Pool, PoolId, PoolsProfile};
use pools_core::quote::{Quote, QuoteOutcome, Side};
use pools_core::usecases::create_quote::{
    CreateQuote, Leg, QuoteError, QuoteInput, QuoteInputError, QuoteResult, Unavailable,
};
use rust_decimal::Decimal;

use crate::fixtures::{
    ADDRESS, Counter, MockFarEngine, MockRates, TTL, access, forbid_sales, key_id, mid, noon,
    open_pool, pool, ready, stopped, usdt,
};

/// A queue that stores at noon, or is full.
#[derive(Debug, Default)]
struct Queue {
    stored: Mutex<Vec<NewQuote>>,
    is_full: bool,
}

#[async_trait]
impl Submit<NewQuote, Quote> for Queue {
    async fn submit(&self, quote: NewQuote) -> StoreResult<Quote> {
        if self.is_full {
            return Err(StoreError::Overloaded);
        }
        self.stored.lock().unwrap().push(quote.clone());
        Ok(Quote {
            id: quote.id,
            terms: quote.terms,
            created_at: noon(),
            expires_at: noon().plus(quote.ttl),
            outcome: QuoteOutcome::Open,
        })
    }
}

/// A use case with its test doubles.
struct Scene {
    access: Access<PoolsProfile>,
    pool: Pool,
    rates: MockRates,
    engine: MockFarEngine,
    queue: Arc<Queue>,
}

type Outcome = Result<QuoteResult, QuoteError>;

/// Upstreams that must not be called: a test double panics at an unexpected call.
fn scene(id: PoolId) -> Scene {
    let mut access = access("acme", key_id(1), &[id]);
    for terms in access.profile.terms.values_mut() {
        terms.min_order_usdt = Decimal::ONE;
        terms.max_order_usdt = Some(Decimal::from(1_000));
    }
    Scene {
        access,
        pool: open_pool(id),
        rates: MockRates::new(),
        engine: MockFarEngine::new(),
        queue: Arc::default(),
    }
}

impl Scene {
    fn rate(mut self, crypto: &'static str, rate: Option<&'static str>) -> Self {
        let rate = rate.map(|rate| SourceRate {
            mid: mid(rate),
            spread_bps: 25,
        });
        self.rates
            .expect_rate()
            .withf(move |_, asked, _| asked.code() == crypto)
            .times(1)
            .return_const(rate);
        self
    }

    fn depth(mut self, depth: Option<Depth>) -> Self {
        let who = self.access.tenant.clone();
        self.engine
            .expect_depth()
            .withf(move |asked, _| *asked == who)
            .times(1)
            .return_const(depth);
        self
    }

    fn result(self, ask: &QuoteInput) -> (Outcome, Vec<NewQuote>) {
        let quoting = CreateQuote {
            rates: Arc::new(self.rates),
            engine: Arc::new(self.engine),
            queue: Arc::clone(&self.queue) as Arc<QuoteQueue>,
            clock: stopped(),
            entropy: Arc::new(Counter::from(1)),
            ttl: TTL,
        };
        let result = ready(quoting.quote(&self.access, &self.pool, ask));
        let stored = self.queue.stored.lock().unwrap().clone();
        (result, stored)
    }
}

/// Upstreams with a rate and with depth for every order.
fn plenty() -> Scene {
    scene(pool())
        .rate("USDT", Some("1.0850"))
        .depth(Some(Depth::Enough))
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

fn buy(amount: &str) -> QuoteInput {
    QuoteInput {
        side: text("on_ramp"),
        fiat_currency: text("EUR"),
        crypto_currency: text("USDT"),
        amount: text(amount),
        crypto_network: text("ethereum"),
        dest_address: text(ADDRESS),
        ..QuoteInput::default()
    }
}

fn sell(amount: &str) -> QuoteInput {
    QuoteInput {
        side: text("off_ramp"),
        dest_address: None,
        ..buy(amount)
    }
}

fn fault(ask: &QuoteInput) -> QuoteInputError {
    match scene(pool()).result(ask) {
        (Err(QuoteError::Ask(fault)), stored) if stored.is_empty() => fault,
        other => panic!("expected an error of the request, got {other:?}"),
    }
}

/// The pool's leg that a field must name.
fn leg(field: &'static str, asset: &str) -> Leg {
    Leg {
        field,
        expected: Asset::parse(asset).unwrap(),
        pool: pool(),
    }
}

fn off_network(networks: &str) -> QuoteInputError {
    QuoteInputError::NetworkNotSupported {
        pool: pool(),
        networks: networks.to_owned(),
    }
}

fn off_allowlist() -> QuoteInputError {
    QuoteInputError::DestNetworkNotSupported {
        networks: "arbitrum, ethereum, bsc, optimism, polygon".to_owned(),
    }
}

const fn usdt_contract() -> QuoteInputError {
    QuoteInputError::Contract {
        asset: "USDT",
        network: "ethereum",
    }
}

/// A change of one field: its name, and its value unless it is missing.
type Change = (&'static str, Option<&'static str>);

const ZERO_ADDRESS: &str = "0x0000000000000000000000000000000000000000";
const BURN_ADDRESS: &str = "0x000000000000000000000000000000000000dEaD";
const CONTRACT: &str = "0xdac17f958d2ee523a2206206994597c13d831ec7";
const WRONG_CHECKSUM: &str = "0x5aAeb6053f3E94C9b9A09f33669435E7Ef1BeAed";

fn change(ask: &mut QuoteInput, (field, value): Change) {
    let place = match field {
        "side" => &mut ask.side,
        "type" => &mut ask.kind,
        "fiatCurrency" => &mut ask.fiat_currency,
        "cryptoCurrency" => &mut ask.crypto_currency,
        "amount" => &mut ask.amount,
        "cryptoNetwork" => &mut ask.crypto_network,
        "destNetwork" => &mut ask.dest_network,
        "destAddress" => &mut ask.dest_address,
        _ => panic!("there is no field {field}"),
    };
    *place = value.map(str::to_owned);
}

/// Every error of a request, grouped by the check that finds it, in the order of the checks.
fn faults() -> Vec<Vec<(Change, QuoteInputError)>> {
    use QuoteInputError as F;
    let no = |field| ((field, None), F::Missing(vec![field]));
    let fiat = || leg("fiatCurrency", "EUR");
    let crypto = || leg("cryptoCurrency", "USDT");
    let not_allowed = |field, value, words| ((field, Some(value)), F::NotAllowed(field, words));
    let amount = |value, fault| (("amount", Some(value)), F::Amount(fault));
    let unknown = |leg: Leg, value| ((leg.field, Some(value)), F::UnknownCurrency(leg));
    let mismatch = |leg: Leg, value| ((leg.field, Some(value)), F::CurrencyMismatch(leg));
    let pool_networks = "tron, ethereum";
    let network = |value| (("cryptoNetwork", Some(value)), off_network(pool_networks));
    let target = |value| (("destNetwork", Some(value)), off_allowlist());
    let address = |value, fault| (("destAddress", Some(value)), F::Address(fault));
    vec![
        vec![
            no("side"),
            not_allowed("side", "ON_RAMP", "on_ramp, off_ramp"),
            not_allowed("type", "spot", "firm, indicative"),
            no("fiatCurrency"),
            no("cryptoCurrency"),
            no("amount"),
            amount("-1", AmountError::Malformed),
            amount("1e2", AmountError::Malformed),
            amount("0.00", AmountError::Zero),
        ],
        vec![
            unknown(fiat(), "XXX"),
            unknown(fiat(), "USDT"),
            unknown(crypto(), "DOGE"),
            unknown(crypto(), ""),
        ],
        vec![mismatch(fiat(), "USD"), mismatch(crypto(), "BTC")],
        vec![
            network("bsc"),
            network("Ethereum"),
            network("arbitrum"),
            target("tron"),
            target("Optimism"),
        ],
        vec![
            (("destAddress", None), F::MissingAddress),
            address("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", AddressError::Invalid),
            address(ZERO_ADDRESS, AddressError::Nobodys),
            address(BURN_ADDRESS, AddressError::Nobodys),
            address(WRONG_CHECKSUM, AddressError::Checksum),
            (("destAddress", Some(CONTRACT)), usdt_contract()),
        ],
        vec![
            amount("100.000", AmountError::TooPrecise(2)),
            amount("10000000000.01", AmountError::OutOfRange),
        ],
    ]
}

// rule: pools.quote.side, pools.quote.unknown-currency, pools.quote.currency-mismatch, pools.quote.network, pools.quote.dest-network, pools.quote.address-required, pools.quote.address-form, pools.quote.address-nobodys, pools.quote.address-contract, pools.quote.address-checksum, money.grammar, money.zero, money.fiat-digits, pools.quote.codes-upper-cased
#[test]
fn request_error_is_reported_without_upstream_calls() {
    for (wrong, due) in faults().concat() {
        let mut ask = buy("100");
        change(&mut ask, wrong);
        assert_eq!(fault(&ask), due);
    }
}

// rule: pools.quote.order
#[test]
fn error_of_earlier_check_is_reported_first() {
    let steps = faults();
    for (at, step) in steps.iter().enumerate() {
        for (earlier, due) in step {
            for (later, _) in steps[at + 1..].concat() {
                let mut ask = buy("100");
                change(&mut ask, later);
                change(&mut ask, *earlier);
                // Two changes of one field give one error, because the second overwrites the first.
                match (fault(&ask), due) {
                    // All missing fields are named together, including the address.
                    (QuoteInputError::Missing(all), QuoteInputError::Missing(one)) => {
                        assert!(one.iter().all(|field| all.contains(field)), "{all:?}");
                    }
                    (found, due) => assert_eq!(found, *due),
                }
            }
        }
    }
}

// rule: pools.quote.order, pools.quote.rate-unavailable, pools.quote.pool-dry, pools.quote.engine-unavailable, pools.quote.unavailable
#[test]
fn availability_checks_rates_then_pool_then_engine() {
    let shut = |mut scene: Scene| {
        scene.pool.available = false;
        scene
    };
    let rated = || scene(pool()).rate("USDT", Some("1.0850"));
    for (scene, due) in [
        (scene(pool()).rate("USDT", None), Unavailable::Rate),
        (shut(scene(pool()).rate("USDT", None)), Unavailable::Rate),
        (shut(rated()), Unavailable::Dry),
        (rated().depth(None), Unavailable::Engine),
        (rated().depth(Some(Depth::Insufficient)), Unavailable::Dry),
    ] {
        // The amount is out of range, which shows that the size is checked later.
        let (result, stored) = scene.result(&buy("0.01"));
        assert!(
            matches!(result, Ok(QuoteResult::Unavailable(reason)) if reason == due),
            "{result:?}"
        );
        assert!(stored.is_empty());
    }
    let words =
        [Unavailable::Rate, Unavailable::Engine, Unavailable::Dry].map(|reason| reason.as_str());
    assert_eq!(
        words,
        ["rate_unavailable", "engine_unavailable", "pool_dry"]
    );
}

// rule: pools.quote.rate-unavailable
#[test]
fn order_without_usdt_rate_is_unavailable() {
    let id = PoolId::parse("EUR-BTC").unwrap();
    let ask = QuoteInput {
        crypto_currency: text("BTC"),
        ..buy("100")
    };
    let (result, _) = scene(id)
        .rate("BTC", Some("0.00001"))
        .rate("USDT", None)
        .result(&ask);
    assert!(
        matches!(result, Ok(QuoteResult::Unavailable(Unavailable::Rate))),
        "{result:?}"
    );
}

// rule: pools.quote.below-minimum, pools.quote.above-maximum, pools.quote.order
#[test]
fn size_is_checked_after_availability_for_both_kinds() {
    for kind in ["firm", "indicative"] {
        for (amount, due) in [
            ("0.92", PriceError::BelowMinimum),
            ("921.66", PriceError::AboveMaximum),
        ] {
            let ask = QuoteInput {
                kind: text(kind),
                ..buy(amount)
            };
            let (result, stored) = plenty().result(&ask);
            assert!(
                matches!(result, Err(QuoteError::Price(fault)) if fault == due),
                "{result:?}"
            );
            assert!(stored.is_empty());
        }
        for amount in ["0.93", "921.65"] {
            let ask = QuoteInput {
                kind: text(kind),
                ..buy(amount)
            };
            assert!(
                plenty().result(&ask).0.is_ok(),
                "{amount} is within 1 to 1000 USDT"
            );
        }
    }
}

// rule: money.out-of-range
#[test]
fn leg_that_rounds_to_zero_is_out_of_range() {
    // At 0.91658986 EUR the first amount is worth slightly less than a cent, the second slightly more.
    for (amount, due) in [
        ("0.01091", PriceError::OutOfRange),
        ("0.010911", PriceError::BelowMinimum),
    ] {
        let (result, stored) = plenty().result(&sell(amount));
        assert!(
            matches!(result, Err(QuoteError::Price(fault)) if fault == due),
            "{result:?}"
        );
        assert!(stored.is_empty());
    }
}

// rule: pools.quote.firm, pools.quote.firm-is-default, pools.quote.ttl, pools.quote-record.locked, pools.quote.codes-upper-cased
#[test]
fn firm_quote_is_stored_with_its_terms() {
    let ask = QuoteInput {
        fiat_currency: text("eur"),
        crypto_currency: text("usdt"),
        ..buy("100")
    };
    let (result, stored) = plenty().result(&ask);
    let Ok(QuoteResult::Firm(quote, _)) = result else {
        panic!("{result:?}")
    };
    let [new] = stored.as_slice() else {
        panic!("{stored:?}")
    };
    assert_eq!((new.id, new.ttl, &new.terms), (quote.id, TTL, &quote.terms));
    assert_eq!(new.who.partner.as_str(), "acme");
    let terms = &quote.terms;
    assert_eq!(
        (terms.pool, terms.side, terms.network),
        (pool(), Side::OnRamp, Network::Ethereum)
    );
    let figures = (
        terms.fiat.to_string(),
        terms.crypto.to_string(),
        terms.rate.to_string(),
    );
    assert_eq!(
        figures,
        (
            "100.00".to_owned(),
            "107.90325".to_owned(),
            "1.0790325".to_owned()
        )
    );
    assert_eq!(
        (terms.spread_bps, terms.fee_bps, terms.notional),
        (25, 30, 10_850_000_000)
    );
    let target = terms.destination.as_ref().unwrap();
    assert_eq!(
        (target.address.as_str(), target.network),
        (ADDRESS, DestNetwork::Quoted(Network::Ethereum))
    );
}

// rule: pools.quote.indicative
#[test]
fn indicative_quote_is_never_stored() {
    let (result, stored) = plenty().result(&QuoteInput {
        kind: text("indicative"),
        ..buy("100")
    });
    let Ok(QuoteResult::Indicative(priced, _)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(priced.rate.to_string(), "1.0790325");
    assert!(stored.is_empty());
}

// rule: pools.quote.network-default, pools.quote.dest-network-default, pools.quote.dest-network
#[test]
fn networks_default_when_absent() {
    let network = |ask: &QuoteInput| {
        let (_, stored) = plenty().result(ask);
        let terms = stored[0].terms.clone();
        (terms.network, terms.destination.unwrap().network)
    };
    let silent = QuoteInput {
        crypto_network: None,
        ..buy("100")
    };
    assert_eq!(
        network(&silent),
        (Network::Tron, DestNetwork::Quoted(Network::Tron))
    );
    let named = QuoteInput {
        dest_network: text("arbitrum"),
        ..buy("100")
    };
    assert_eq!(
        network(&named),
        (Network::Ethereum, DestNetwork::Named(EvmNetwork::Arbitrum))
    );

    let mut no_tron = scene(pool());
    no_tron
        .pool
        .networks
        .retain(|network| *network != Network::Tron);
    let (result, _) = no_tron.result(&silent);
    let due = off_network("ethereum");
    assert!(
        matches!(&result, Err(QuoteError::Ask(fault)) if *fault == due),
        "{result:?}"
    );
}

// rule: pools.quote.off-ramp-open, pools.quote.amount-side
#[test]
fn sale_requires_neither_destination_nor_sell_entitlement() {
    let mut scene = plenty();
    forbid_sales(&mut scene.access.profile);
    let (result, stored) = scene.result(&sell("100.000001"));
    assert!(matches!(result, Ok(QuoteResult::Firm(..))), "{result:?}");
    assert_eq!(
        (stored[0].terms.crypto, &stored[0].terms.destination),
        (usdt("100.000001"), &None)
    );

    // An address is optional, but it must be valid. It is not stored.
    let odd = QuoteInput {
        dest_address: text("0x12"),
        ..sell("100")
    };
    assert_eq!(fault(&odd), QuoteInputError::Address(AddressError::Invalid));
    let given = QuoteInput {
        dest_address: text(ADDRESS),
        ..sell("100")
    };
    assert_eq!(plenty().result(&given).1[0].terms.destination, None);
}

// rule: money.crypto-digits
#[test]
fn sale_amount_has_precision_of_crypto() {
    assert_eq!(
        fault(&sell("1.0000001")),
        QuoteInputError::Amount(AmountError::TooPrecise(6))
    );
}

// rule: pools.price.usdt-crypto
#[test]
fn sale_of_other_asset_is_valued_by_two_fiat_mids() {
    let id = PoolId::parse("EUR-BTC").unwrap();
    let ask = QuoteInput {
        crypto_currency: text("BTC"),
        ..sell("0.001")
    };
    let scene = scene(id)
        .rate("BTC", Some("0.00001"))
        .rate("USDT", Some("1.0850"));
    let (result, stored) = scene.depth(Some(Depth::Enough)).result(&ask);
    assert!(matches!(result, Ok(QuoteResult::Firm(..))), "{result:?}");
    assert_eq!(
        stored[0].terms.notional, 10_850_000_000,
        "0.001 BTC = 100 EUR = 108.50 USDT"
    );
}

#[test]
fn rates_are_requested_with_order_size() {
    let mut scene = scene(pool()).depth(Some(Depth::Enough));
    let rate = Some(SourceRate {
        mid: mid("1.0850"),
        spread_bps: 25,
    });
    let eur = Asset::fiat("EUR").unwrap();
    scene
        .rates
        .expect_rate()
        .withf(move |fiat, crypto, order| {
            (*fiat, crypto.code(), order.to_string().as_str()) == (eur, "USDT", "100.00")
        })
        .times(1)
        .return_const(rate);
    assert!(scene.result(&buy("100")).0.is_ok());
}

#[test]
fn full_queue_is_store_error() {
    let scene = Scene {
        queue: Arc::new(Queue {
            is_full: true,
            ..Queue::default()
        }),
        ..plenty()
    };
    let (result, _) = scene.result(&buy("100"));
    assert!(
        matches!(result, Err(QuoteError::Store(StoreError::Overloaded))),
        "{result:?}"
    );
}
