//! Initial state of a world: pools, two partners and the settings of the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use gate_core::limits::{Group, Limits};
use gate_core::profile::GateProfile;
use kernel::Mode;
use partner_core::origin::AllowedDomain;
use partner_core::throttle::Tier;
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use rust_decimal::Decimal;
use store_postgres::Waits;
use test_support::test_database::LONG_WAITS;

/// Start time of every world: 2026-05-25T12:00:00Z.
pub const START: i64 = 1_779_710_400_000;
/// A partner with everything provisioned.
pub const ACME: &str = "acme";
/// Another partner, without terms or a webhook.
pub const RIVAL: &str = "rival";
/// Acme's first secret key.
pub const ACME_SECRET: &str = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001";
/// Acme's second secret key.
pub const ACME_SECRET_2: &str = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0002";
/// Acme's publishable key.
pub const ACME_PUBLISHABLE: &str = "pk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0003";
/// Rival's secret key.
pub const RIVAL_SECRET: &str = "sk_test_RivalRivalRivalRivalRivalRiv0001";
/// Rival's publishable key.
pub const RIVAL_PUBLISHABLE: &str = "pk_test_RivalRivalRivalRivalRivalRiv0002";
/// The secret of the rail's notifications.
pub const RAIL_SECRET: &str = "a-secret-of-the-rail";
/// The secret of the former rail's notifications.
pub const FORMER_RAIL_SECRET: &str = "a-secret-of-the-former-rail";
/// Origin of acme's pages.
pub const SHOP: &str = "https://shop.example";
/// Origin of rival's pages.
pub const RIVAL_SHOP: &str = "https://rival.example";
/// Origin of the hosted widget.
pub(crate) const GATE: &str = "https://gate.example";
/// The origin of the hosted widget.
pub const WIDGET: &str = "https://widget.example";
/// An address with a valid checksum.
pub const ADDRESS: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

/// The built-in catalogue of the gate.
const CATALOGUE: &str = include_str!("../../../crates/gate-core/src/catalogue/built_in.toml");

/// Existing pools. Partners are allowed in all but the last.
const POOLS: [&str; 7] = [
    "EUR-USDT", "EUR-USDC", "GBP-USDT", "EUR-BTC", "JPY-USDT", "JPY-USDC", "USD-USDT",
];

/// Settings that differ between worlds.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The process's mode.
    pub mode: Mode,
    /// The tiers of the throttle; `None` turns it off.
    pub tiers: Option<Vec<Tier>>,
    /// Lifetime of a firm quote.
    pub quote_ttl: Duration,
    /// How long idempotency keys are kept.
    pub idempotency_ttl: Duration,
    /// The rolling window of the velocity cap.
    pub velocity_window: Duration,
    /// Networks whose `X-Forwarded-For` is trusted.
    pub proxies: Vec<String>,
    /// The limits of the gate; `None` turns them off.
    pub gate_limits: Option<Limits>,
    /// The catalogue of the gate, as a file.
    pub catalogue: String,
    /// Lifetime of a session.
    pub session_ttl: Duration,
    /// Lifetime of a preview.
    pub preview_ttl: Duration,
    /// Lifetime of a signed quote.
    pub signed_quote_ttl: Duration,
    /// How long the sandbox's rail leaves a payment in a widget in progress.
    pub settles_after: Duration,
    /// How long a transaction waits for a locked row, in a database on a server.
    pub lock_timeout: Duration,
}

impl Setup {
    /// Waits for a locked row as briefly as a service does, for a test that keeps a row locked until a request gives up.
    pub fn give_up_locked_rows(&mut self) {
        self.lock_timeout = Waits::default().lock;
    }

    /// Leaves payments in widgets in progress until a test moves the clock on or pretends.
    pub fn settle_later(&mut self) {
        self.settles_after = Duration::from_secs(30);
    }
}

impl Default for Setup {
    fn default() -> Self {
        // High limits: only throttle tests reach them, but every response has their headers.
        let tier = |name, seconds| Tier {
            name,
            limit: 1_000_000,
            per: Duration::from_secs(seconds),
        };
        let short = || vec![tier("short", 60)];
        let gate = limits(|group| match group {
            Group::BootstrapCeiling => vec![tier("medium", 60)],
            Group::Global => vec![tier("short", 10), tier("medium", 60), tier("long", 3600)],
            _ => short(),
        });
        Self {
            mode: Mode::Test,
            gate_limits: Some(gate),
            catalogue: CATALOGUE.to_owned(),
            session_ttl: Duration::from_secs(24 * 60 * 60),
            preview_ttl: Duration::from_secs(5 * 60),
            signed_quote_ttl: Duration::from_secs(60),
            settles_after: Duration::ZERO,
            lock_timeout: LONG_WAITS.lock,
            tiers: Some(vec![tier("short", 1), tier("medium", 60)]),
            quote_ttl: Duration::from_secs(15),
            idempotency_ttl: Duration::from_secs(24 * 60 * 60),
            velocity_window: Duration::from_secs(24 * 60 * 60),
            proxies: Vec::new(),
        }
    }
}

pub(crate) fn pools() -> Vec<Pool> {
    POOLS.map(|id| pool(id, &Network::ALL)).to_vec()
}

pub(crate) fn pool(id: &str, networks: &[Network]) -> Pool {
    let id = PoolId::parse(id).expect("a pool id");
    Pool {
        id,
        networks: networks.to_vec(),
        available: true,
        native_addresses: false,
    }
}

/// A partner's default access: purchases in six pools, a pre-funded balance, no cap.
pub fn profile(reference: &str) -> PoolsProfile {
    let allowed: BTreeSet<PoolId> = POOLS[..6]
        .iter()
        .filter_map(|id| PoolId::parse(id))
        .collect();
    PoolsProfile {
        enabled: true,
        access: PoolsAccess::Active,
        kyc: Kyc::Approved,
        tier: "standard".to_owned(),
        allowed,
        balance_gate: true,
        velocity_cap: None,
        iban: Some("DE89370400440532013000".to_owned()),
        funding_reference: reference.to_owned(),
        terms: BTreeMap::new(),
    }
}

/// A partner's default access to the gate, with its pages at this origin.
#[must_use]
pub fn gate_profile(page: &str) -> GateProfile {
    GateProfile {
        enabled: true,
        allowed_domains: [AllowedDomain::stored(page).expect("an origin")].into(),
        flow_sessions: true,
        kyc_trusted: true,
        rails: true,
        preview_locks: true,
        ..GateProfile::default()
    }
}

/// Acme's terms in EUR-USDT; other pools have the default terms.
pub(crate) fn acme_terms() -> PoolTerms {
    PoolTerms {
        draw_fee_bps: 30,
        spread_cap_bps: 50,
        min_order_usdt: Decimal::from(10),
        max_order_usdt: Some(Decimal::from(100_000)),
        off_ramp: true,
        crypto_deposit_address: Some(ADDRESS.to_owned()),
    }
}

/// Limits of the gate, group by group.
pub fn limits(of: impl Fn(Group) -> Vec<Tier>) -> Limits {
    let limits: Result<_, Infallible> = Limits::new(|group| Ok(of(group)));
    limits.unwrap_or_else(|never| match never {})
}
