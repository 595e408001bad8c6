//! The sandbox: an engine and rates for mode test, without real money.
//!
//! Rates are fixed, except those of two amounts, which change with the time. The fractional part of an amount chooses what happens to
//! an order. The fraction is compared by value with two decimals, so `10.11` and `10.110` choose the same and `10.115` chooses nothing.
//! Every outcome of a trade depends only on the amount, the number of the attempt and the trade's known status, so it is the same after
//! a restart and on every replica. The events after a delivery do not depend on whether the delivery was reported: a poll whose
//! response was lost counts as an attempt, and the next poll finds the next outcome.
//!
//! | fraction | what happens |
//! |---|---|
//! | `.11` | quote: `pool_dry` |
//! | `.12` | quote: `engine_unavailable` |
//! | `.13` | quote: `rate_unavailable` |
//! | `.21` | stays reserved on the first poll, settles on the second |
//! | `.31` | the poll finds it failed |
//! | `.32` | the poll finds it released |
//! | `.33` | no response on the first poll (stays reserved), settles on the second |
//! | `.41` | settles, and the next poll finds it returned |
//! | `.51` | transact: the reservation is refused |
//! | `.71` | quote: one unit of fiat buys more from second to second, up to 10 % more, and starts over each hour |
//! | `.72` | quote: it buys less from second to second, down to 10 % less, and starts over each hour |
//! | else | settles on the first poll |

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Clock, Mid, Named, Timestamp, UpstreamName};
use partner_core::Tenant;
use partner_core::ports::RateSource;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{EngineReport, TradeId, TradeStatus};
use rust_decimal::Decimal;

/// Units of 10^-8 in one whole and in a hundredth.
const WHOLE: i64 = 100_000_000;
const HUNDREDTH: i64 = 1_000_000;

/// The spread of every pair, in basis points.
const SPREAD_BPS: u16 = 25;

/// The scenario that the fractional part of an amount chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxScenario {
    Dry,
    SilentDepth,
    NoRate,
    SlowDelivery,
    Fails,
    Releases,
    SilentFirstPoll,
    NeverArrives,
    Returns,
    HoldRefused,
    BuysMore,
    BuysLess,
    Settles,
}

impl SandboxScenario {
    pub(crate) fn of(amount: Amount) -> Self {
        let fraction = amount.units() % WHOLE;
        if fraction % HUNDREDTH != 0 {
            return Self::Settles;
        }
        match fraction / HUNDREDTH {
            11 => Self::Dry,
            12 => Self::SilentDepth,
            13 => Self::NoRate,
            21 => Self::SlowDelivery,
            31 => Self::Fails,
            32 => Self::Releases,
            33 => Self::SilentFirstPoll,
            34 => Self::NeverArrives,
            41 => Self::Returns,
            51 => Self::HoldRefused,
            71 => Self::BuysMore,
            72 => Self::BuysLess,
            _ => Self::Settles,
        }
    }
}

/// How long the rates of `.71` and `.72` move in one direction, before they start over.
const DRIFT: Duration = Duration::from_hours(1);
/// How far they move: one tenth.
const DRIFT_PARTS: i64 = 10;

/// The sandbox's rates: four pairs with 25 bps spread.
pub struct SandboxRates {
    clock: Arc<dyn Clock>,
}

impl SandboxRates {
    /// Rates whose changes follow this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

#[async_trait]
impl RateSource for SandboxRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, order: Amount) -> Option<SourceRate> {
        let ten_thousandths = match (fiat.code(), crypto.code()) {
            ("EUR", "USDT") => 10_850,
            ("EUR", "USDC") => 10_845,
            ("GBP", "USDT") => 12_600,
            ("USD", "USDT") => 9_995,
            _ => return None,
        };
        let fixed = Decimal::new(ten_thousandths, 4);
        let mid = match SandboxScenario::of(order) {
            SandboxScenario::NoRate => return None,
            SandboxScenario::BuysMore => fixed + drift(fixed, self.clock.now())?,
            SandboxScenario::BuysLess => fixed - drift(fixed, self.clock.now())?,
            _ => fixed,
        };
        Some(SourceRate {
            mid: Mid::new(mid)?,
            spread_bps: SPREAD_BPS,
        })
    }
}

/// How far a rate has moved, cut to eight digits: nothing at the start of an hour, one tenth at its end.
fn drift(fixed: Decimal, now: Timestamp) -> Option<Decimal> {
    let whole = i64::try_from(DRIFT.as_millis()).ok()?;
    let past = Decimal::from(now.millis().rem_euclid(whole));
    let moved = fixed.checked_mul(past)?;
    let moved = moved.checked_div(Decimal::from(whole.checked_mul(DRIFT_PARTS)?))?;
    Some(moved.trunc_with_scale(8))
}

/// The sandbox's engine. It stores nothing; each response follows from the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct SandboxEngine;

impl Named for SandboxEngine {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in("sandbox")
    }
}

#[async_trait]
impl Engine for SandboxEngine {
    async fn depth(&self, _: &Tenant, order: &Order) -> Option<Depth> {
        match SandboxScenario::of(order.amount) {
            SandboxScenario::SilentDepth => None,
            SandboxScenario::Dry => Some(Depth::Insufficient),
            SandboxScenario::NoRate
            | SandboxScenario::SlowDelivery
            | SandboxScenario::Fails
            | SandboxScenario::Releases
            | SandboxScenario::SilentFirstPoll
            | SandboxScenario::NeverArrives
            | SandboxScenario::Returns
            | SandboxScenario::HoldRefused
            | SandboxScenario::BuysMore
            | SandboxScenario::BuysLess
            | SandboxScenario::Settles => Some(Depth::Enough),
        }
    }

    async fn hold(&self, _: &Tenant, _: TradeId, order: &Order, _: Amount) -> Option<Hold> {
        match SandboxScenario::of(order.amount) {
            SandboxScenario::HoldRefused => Some(Hold::Refused),
            _ => Some(Hold::Held),
        }
    }

    async fn confirm(&self, _: &Tenant, _: TradeId) -> Option<Confirmation> {
        Some(Confirmation::Confirmed)
    }

    async fn release(&self, _: &Tenant, _: TradeId) -> Option<()> {
        Some(())
    }

    async fn report(&self, _: &Tenant, request: &TradeReportRequest) -> Option<EngineReport> {
        let path = SandboxScenario::of(request.order.amount);
        // A poll never asks about a trade that has ended, so every other trade is at work.
        if request.known == TradeStatus::Settled {
            Some(delivered(path, request))
        } else {
            at_work(path, request)
        }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }
}

fn at_work(path: SandboxScenario, request: &TradeReportRequest) -> Option<EngineReport> {
    let first = request.attempt <= 1;
    match path {
        SandboxScenario::SlowDelivery if first => Some(EngineReport::InProgress),
        SandboxScenario::SilentFirstPoll if first => None,
        SandboxScenario::Fails => Some(EngineReport::CannotComplete),
        SandboxScenario::Releases => Some(EngineReport::Released),
        SandboxScenario::SlowDelivery
        | SandboxScenario::SilentFirstPoll
        | SandboxScenario::Dry
        | SandboxScenario::SilentDepth
        | SandboxScenario::NoRate
        | SandboxScenario::NeverArrives
        | SandboxScenario::Returns
        | SandboxScenario::HoldRefused
        | SandboxScenario::BuysMore
        | SandboxScenario::BuysLess
        | SandboxScenario::Settles => Some(delivered(path, request)),
    }
}

/// The first attempt reports the delivery. A later attempt reports what follows it, even if the response to the first was lost.
fn delivered(path: SandboxScenario, request: &TradeReportRequest) -> EngineReport {
    if path == SandboxScenario::Returns && request.attempt > 1 {
        EngineReport::Reversed(Some(fill(request)))
    } else {
        EngineReport::Delivered(fill(request).into())
    }
}

/// The reference of a trade's only fill, derived from the trade's id.
fn fill(request: &TradeReportRequest) -> String {
    format!("sbx_{}", request.trade.ulid())
}

#[cfg(test)]
pub(crate) mod tests {
    use kernel::Mode;
    use partner_core::PartnerId;
    use pools_core::profile::{Network, PoolId};
    use pools_core::quote::Side;

    use super::*;

    /// A clock that is stopped at an instant.
    pub(crate) struct StoppedClock(pub(crate) Timestamp);

    impl Clock for StoppedClock {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    /// The mid of a rate, this many seconds after an hour began.
    async fn mid(amount: &str, second: i64) -> String {
        let hour = 490_000 * 3_600;
        let now = Timestamp::from_millis((hour + second) * 1_000).unwrap();
        let rates = SandboxRates::new(Arc::new(StoppedClock(now)));
        let (eur, usdt) = (Asset::fiat("EUR").unwrap(), Asset::crypto("USDT").unwrap());
        let order = Amount::parse(amount, eur).unwrap();
        rates.rate(eur, usdt, order).await.unwrap().mid.to_string()
    }

    // rule: sandbox.rate-changes
    #[tokio::test]
    async fn rates_of_two_amounts_change_with_every_second_of_an_hour() {
        for (amount, second, expected) in [
            ("250.00", 0, "1.0850"),
            ("250.00", 1_800, "1.0850"),
            ("250.71", 0, "1.0850"),
            ("250.71", 30, "1.08590416"),
            ("250.71", 1_800, "1.13925"),
            ("250.72", 30, "1.08409584"),
            ("250.72", 1_800, "1.03075"),
            ("250.72", 3_600, "1.0850"),
        ] {
            let found: Decimal = mid(amount, second).await.parse().unwrap();
            let expected: Decimal = expected.parse().unwrap();
            assert_eq!(found, expected, "{amount} {second}");
        }
    }

    fn acme() -> Tenant {
        Tenant {
            partner: PartnerId::parse("acme").unwrap(),
            mode: Mode::Test,
        }
    }

    fn order(amount: &str, asset: &str) -> Order {
        let asset = Asset::parse(asset).unwrap();
        Order {
            pool: PoolId::parse("EUR-USDT").unwrap(),
            side: match asset.kind() {
                kernel::AssetKind::Fiat => Side::OnRamp,
                kernel::AssetKind::Crypto => Side::OffRamp,
            },
            amount: Amount::parse(amount, asset).unwrap(),
            network: Network::Tron,
            destination: None,
        }
    }

    fn trade() -> TradeId {
        TradeId::parse("txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap()
    }

    async fn report(amount: &str, attempt: u32, known: TradeStatus) -> String {
        let request = TradeReportRequest {
            trade: trade(),
            order: order(amount, "EUR"),
            attempt,
            known,
        };
        let report = SandboxEngine.report(&acme(), &request).await;
        match report {
            None => "silence".to_owned(),
            Some(EngineReport::Delivered(fill)) => {
                assert_eq!(fill.reference, format!("sbx_{}", trade().ulid()));
                "Delivered".to_owned()
            }
            Some(EngineReport::Reversed(fill)) => {
                assert_eq!(fill, Some(format!("sbx_{}", trade().ulid())));
                "Reversed".to_owned()
            }
            Some(other) => format!("{other:?}"),
        }
    }

    // rule: sandbox.returned, sandbox.ahead
    #[tokio::test]
    async fn outcome_is_independent_of_lost_responses() {
        for (amount, end) in [
            ("100", TradeStatus::Settled),
            ("100.21", TradeStatus::Settled),
            ("100.31", TradeStatus::Failed),
            ("100.32", TradeStatus::Released),
            ("100.33", TradeStatus::Settled),
            ("100.41", TradeStatus::Returned),
        ] {
            // Each bit says whether the response to an attempt arrives. The last two always arrive.
            for heard in 0..1_u32 << 5 {
                let mut known = TradeStatus::Reserved;
                for attempt in 1..=7 {
                    let is_heard = attempt > 5 || heard & (1 << (attempt - 1)) != 0;
                    let said = report(amount, attempt, known).await;
                    known = match (is_heard, said.as_str(), known) {
                        (true, "Delivered", TradeStatus::Reserved) => TradeStatus::Settled,
                        (true, "CannotComplete", TradeStatus::Reserved) => TradeStatus::Failed,
                        (true, "Released", TradeStatus::Reserved) => TradeStatus::Released,
                        (true, "Reversed", _) => TradeStatus::Returned,
                        _ => known,
                    };
                }
                assert_eq!(known, end, "{amount}, responses that arrived: {heard:05b}");
            }
        }
    }

    // rule: sandbox.by-value
    #[tokio::test]
    async fn fraction_is_compared_by_value() {
        for (amount, asset, depth) in [
            ("10.110", "USDT", Some(Depth::Insufficient)),
            ("10.110000", "USDT", Some(Depth::Insufficient)),
            ("10.11000000", "BTC", Some(Depth::Insufficient)),
            ("10.115", "USDT", Some(Depth::Enough)),
            ("10.110001", "USDT", Some(Depth::Enough)),
            ("10.110", "BHD", Some(Depth::Insufficient)),
            ("11", "JPY", Some(Depth::Enough)),
            ("0.1", "EUR", Some(Depth::Enough)),
        ] {
            let order = order(amount, asset);
            let found = SandboxEngine.depth(&acme(), &order).await;
            assert_eq!(found, depth, "{amount} {asset}");
        }
    }
}
