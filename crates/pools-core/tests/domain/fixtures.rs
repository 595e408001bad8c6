//! Shared values of the tests, and test doubles of the upstreams.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Clock, Entropy, Mid, Mode, Named, Rate, Timestamp, UpstreamName};
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::key::{KeyId, KeyKind, KeyRecord};
use partner_core::ports::RateSource;
use partner_core::{Access, Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::batch::IdempotencyRecord;
use pools_core::destination::{DestNetwork, Destination, EvmAddress};
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use pools_core::quote::{Quote, QuoteId, QuoteOutcome, Side, Terms};
use pools_core::trade::{EngineReport, Trade, TradeId, TradeState};
use proptest::test_runner::Config;
use rust_decimal::Decimal;

pub(crate) const TTL: Duration = Duration::from_secs(15);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
pub(crate) const ADDRESS: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

/// The start of every test.
pub(crate) fn noon() -> Timestamp {
    Timestamp::from_millis(1_780_000_000_000).unwrap()
}

pub(crate) fn after(millis: u64) -> Timestamp {
    noon().plus(Duration::from_millis(millis))
}

pub(crate) fn pool() -> PoolId {
    PoolId::parse("EUR-USDT").unwrap()
}

pub(crate) fn amount(text: &str, asset: Asset) -> Amount {
    if text == "0" {
        Amount::zero(asset)
    } else {
        Amount::parse(text, asset).unwrap()
    }
}

pub(crate) fn eur(text: &str) -> Amount {
    amount(text, pool().fiat())
}

pub(crate) fn usdt(text: &str) -> Amount {
    amount(text, pool().crypto())
}

pub(crate) fn mid(text: &str) -> Mid {
    Mid::new(Decimal::from_str_exact(text).unwrap()).unwrap()
}

pub(crate) fn destination() -> Destination {
    Destination {
        address: EvmAddress::parse(ADDRESS).unwrap().into(),
        network: DestNetwork::Quoted(Network::Ethereum),
    }
}

/// A purchase of 107.90325 USDT for 100 EUR, or a sale of 100 USDT for 91.65 EUR.
pub(crate) fn terms(side: Side) -> Terms {
    let (fiat, crypto, rate, notional) = match side {
        Side::OnRamp => ("100", "107.90325", "1.0790325", 10_850_000_000),
        Side::OffRamp => ("91.65", "100", "0.91658986", 10_000_000_000),
    };
    Terms {
        pool: pool(),
        side,
        network: Network::Ethereum,
        fiat: eur(fiat),
        crypto: usdt(crypto),
        rate: Rate::parse(rate).unwrap(),
        mid: Some(mid("1.0850")),
        spread_bps: 25,
        fee_bps: 30,
        notional,
        destination: (side == Side::OnRamp).then(destination),
    }
}

pub(crate) fn quote(side: Side) -> Quote {
    Quote {
        id: QuoteId::new(Mode::Test, noon(), &Counter::from(7)),
        terms: terms(side),
        created_at: noon(),
        expires_at: noon().plus(TTL),
        outcome: QuoteOutcome::Open,
    }
}

pub(crate) fn trade(side: Side, reserved: Option<Amount>) -> Trade {
    Trade {
        id: TradeId::new(Mode::Test, noon(), &Counter::from(8)),
        quote: quote(side).id,
        terms: terms(side),
        engine: Some(UpstreamName::built_in("engine")),
        reserved,
        created_at: noon(),
        state: TradeState::Reserved,
        attempts: 0,
        lease: None,
    }
}

pub(crate) fn tenant(partner: &str) -> Tenant {
    Tenant {
        partner: PartnerId::parse(partner).unwrap(),
        mode: Mode::Test,
    }
}

pub(crate) fn key_id(number: u64) -> KeyId {
    KeyId::new(Mode::Test, noon(), &Counter::from(number))
}

/// A partner that may do everything in every pool given, under the balance gate and without a cap.
pub(crate) fn access(partner: &str, key: KeyId, pools: &[PoolId]) -> Access<PoolsProfile> {
    let terms = PoolTerms {
        draw_fee_bps: 30,
        off_ramp: true,
        ..PoolTerms::default()
    };
    let who = tenant(partner);
    let profile = PoolsProfile {
        enabled: true,
        access: PoolsAccess::Active,
        kyc: Kyc::Approved,
        allowed: pools.iter().copied().collect::<BTreeSet<_>>(),
        balance_gate: true,
        terms: pools
            .iter()
            .map(|pool| (*pool, terms.clone()))
            .collect::<BTreeMap<_, _>>(),
        ..PoolsProfile::absent(&who.partner)
    };
    let record = KeyRecord {
        id: key,
        kind: KeyKind::Secret,
        prefix: "sk_test_Ab3d".to_owned(),
        last4: "9xYz".to_owned(),
        generated: true,
        created_at: noon(),
        revoked_at: None,
        label: None,
        expires_at: None,
    };
    let partner = Partner {
        id: who.partner,
        name: partner.to_owned(),
        status: PartnerStatus::Active,
    };
    Access::new(Mode::Test, record, partner, profile)
}

pub(crate) fn open_pool(id: PoolId) -> Pool {
    Pool {
        id,
        networks: vec![Network::Tron, Network::Ethereum],
        available: true,
        native_addresses: false,
    }
}

pub(crate) fn scope(who: &Tenant, pool: PoolId, key: &str) -> Scope {
    Scope {
        tenant: who.clone(),
        route: format!("POST /v1/pools/{pool}/transact"),
        key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
    }
}

pub(crate) fn fingerprint(quote: QuoteId) -> Fingerprint {
    Fingerprint::of(quote.to_string().as_bytes())
}

/// The record of another request, which used the same key.
pub(crate) fn of_another(expires_at: Timestamp) -> IdempotencyRecord {
    IdempotencyRecord {
        fingerprint: Fingerprint::of(b"another"),
        expires_at,
    }
}

pub(crate) fn forbid_sales(profile: &mut PoolsProfile) {
    for terms in profile.terms.values_mut() {
        terms.off_ramp = false;
    }
}

/// Money properties run fifty times as many cases as other properties. `.cargo/config.toml` has the number.
pub(crate) fn money_cases() -> Config {
    let usual = Config::default();
    Config {
        cases: usual.cases.saturating_mul(50),
        ..usual
    }
}

/// Runs a use case whose test doubles respond at the first poll.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future is not ready at its first poll"),
    }
}

/// Deterministic randomness: every id differs, and every run has the same ids.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl From<u64> for Counter {
    fn from(start: u64) -> Self {
        Self(AtomicU64::new(start))
    }
}

impl Entropy for Counter {
    fn fill(&self, buffer: &mut [u8]) {
        let count = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        buffer.fill(0);
        for (slot, byte) in buffer.iter_mut().rev().zip(count.into_iter().rev()) {
            *slot = byte;
        }
    }
}

/// What test doubles were asked, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A clock with a fixed instant.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }
}

pub(crate) fn stopped() -> Arc<dyn Clock> {
    Arc::new(Stopped(noon()))
}

mockall::mock! {
    pub(crate) Rates {}

    #[async_trait]
    impl RateSource for Rates {
        async fn rate(&self, fiat: Asset, crypto: Asset, order: Amount) -> Option<SourceRate>;
    }
}

mockall::mock! {
    pub(crate) FarEngine {}

    #[async_trait]
    impl Engine for FarEngine {
        async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth>;
        async fn hold(&self, who: &Tenant, trade: TradeId, order: &Order, output: Amount) -> Option<Hold>;
        async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation>;
        async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()>;
        async fn report(&self, who: &Tenant, request: &TradeReportRequest) -> Option<EngineReport>;
        fn timeout(&self) -> Duration;
    }

    impl Named for FarEngine {
        fn name(&self) -> UpstreamName;
    }
}
