//! Constants of a scene: one partner, its quotes, and durations.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::{Amount, Asset, Entropy, Id, IdKind, Mode, Rate, Timestamp};
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey};
use partner_core::key::{KeyId, KeyKind, KeyRecord};
use partner_core::{Access, Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::destination::{DestNetwork, Destination, EvmAddress};
use pools_core::profile::{Kyc, Network, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use pools_core::quote::{Quote, QuoteId, QuoteOutcome, Side, Terms};

/// One step of the clock. The engine's timeout is zero, so a poll's lease lasts one step.
pub(crate) const TICK: Duration = Duration::from_secs(2);
/// Lifetime of a quote, in steps of the clock.
const QUOTE_TICKS: u32 = 2;
/// Lifetime of an idempotency record.
pub(crate) const IDEMPOTENCY_TTL: Duration = Duration::from_secs(6);
/// The window of the velocity cap.
pub(crate) const WINDOW: Duration = Duration::from_secs(6);

/// 2026-05-25T12:00:00Z.
const START: i64 = 1_779_710_400_000;

/// Returns the instant of a step of the clock.
pub(crate) fn at(tick: u8) -> Timestamp {
    let start = Timestamp::from_millis(START).unwrap();
    start.plus(TICK * u32::from(tick))
}

/// Returns the partner.
pub(crate) fn who() -> Tenant {
    Tenant {
        partner: PartnerId::parse("acme").unwrap(),
        mode: Mode::Test,
    }
}

pub(crate) fn pool() -> PoolId {
    PoolId::parse("EUR-USDT").unwrap()
}

pub(crate) fn eur(text: &str) -> Amount {
    Amount::parse(text, pool().fiat()).unwrap()
}

fn usdt(text: &str) -> Amount {
    Amount::parse(text, pool().crypto()).unwrap()
}

/// The two currencies of accounts.
pub(crate) fn assets() -> [Asset; 2] {
    [pool().fiat(), pool().crypto()]
}

/// Returns a client's idempotency key for a transact.
pub(crate) fn key(number: u8) -> OperationKey {
    OperationKey {
        operation: Operation::new("POST", "/v1/pools/EUR-USDT/transact"),
        key: IdempotencyKey::parse(format!("key-{number}").as_bytes()).unwrap(),
    }
}

pub(crate) fn quote_id(number: usize) -> QuoteId {
    id(1_000 + number as u64)
}

/// Returns an id that is the same in every run.
fn id<K: IdKind>(number: u64) -> Id<K> {
    Id::new(Mode::Test, at(0), &Numbered(number))
}

/// A counter in place of randomness.
pub(crate) struct Numbered(pub(crate) u64);

impl Entropy for Numbered {
    fn fill(&self, buffer: &mut [u8]) {
        let bytes = self.0.to_be_bytes();
        for (slot, byte) in buffer.iter_mut().zip(bytes.iter().cycle()) {
            *slot = *byte;
        }
    }
}

/// A new quote: 100 EUR for USDT, or 100 USDT for EUR.
pub(crate) fn quote(number: usize, side: Side) -> Quote {
    let (fiat, crypto, rate) = match side {
        Side::OnRamp => ("100", "107.90325", "1.0790325"),
        Side::OffRamp => ("91.65", "100", "0.91658986"),
    };
    let destination = Destination {
        address: EvmAddress::parse("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
            .unwrap()
            .into(),
        network: DestNetwork::Quoted(Network::Ethereum),
    };
    Quote {
        id: quote_id(number),
        terms: Terms {
            pool: pool(),
            side,
            network: Network::Ethereum,
            fiat: eur(fiat),
            crypto: usdt(crypto),
            rate: Rate::parse(rate).unwrap(),
            mid: None,
            spread_bps: 25,
            fee_bps: 30,
            notional: 100,
            destination: (side == Side::OnRamp).then_some(destination),
        },
        created_at: at(0),
        expires_at: at(0).plus(TICK * QUOTE_TICKS),
        outcome: QuoteOutcome::Open,
    }
}

/// The partner's key with all entitlements.
pub(crate) fn access(velocity_cap: Option<i64>) -> Access<PoolsProfile> {
    let terms = PoolTerms {
        draw_fee_bps: 30,
        off_ramp: true,
        ..PoolTerms::default()
    };
    let who = who();
    let profile = PoolsProfile {
        enabled: true,
        access: PoolsAccess::Active,
        kyc: Kyc::Approved,
        allowed: [pool()].into(),
        balance_gate: true,
        velocity_cap,
        terms: BTreeMap::from([(pool(), terms)]),
        ..PoolsProfile::absent(&who.partner)
    };
    let key: KeyId = id(1);
    let record = KeyRecord {
        id: key,
        kind: KeyKind::Secret,
        prefix: "sk_test_Ab3d".to_owned(),
        last4: "9xYz".to_owned(),
        generated: true,
        created_at: at(0),
        revoked_at: None,
        label: None,
        expires_at: None,
    };
    let partner = Partner {
        id: who.partner,
        name: "Acme".to_owned(),
        status: PartnerStatus::Active,
    };
    Access::new(Mode::Test, record, partner, profile)
}
