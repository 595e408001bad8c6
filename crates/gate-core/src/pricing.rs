//! Pricing of previews and signed quotes: from a source rate and a fee schedule to both legs.
//!
//! The rate is output per input before fees: the source's mid less its spread. Fees are in the fiat currency. A
//! purchase delivers (fiat − fees) × rate; a sale pays crypto × rate − fees.
//!
//! A swap is priced through the session's currency (`pricing/swap.rs`).
//!
//! Each output leg is rounded down once, to its scale, so a client that calculates with the shown figures gets the
//! same leg. Each fee is rounded up. The operator keeps the remainder of the rounding.

mod swap;

use kernel::rates::{SPREAD_CEILING_BPS, Side, SourceRate, WHOLE_BPS, rate_of};
use kernel::{Amount, Asset, Rate};

pub use swap::{PricedSwap, SwapLeg, price_swap};

/// The fees of an order, before its amount is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeeSchedule {
    /// The service fee as a share of the fiat leg, in basis points.
    pub service_bps: u16,
    /// The minimum service fee, in the fiat currency.
    pub service_least: Amount,
    /// The network fee, in the fiat currency.
    pub network: Amount,
}

/// The fees of one order, in its fiat currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fees {
    /// The service fee.
    pub service: Amount,
    /// The network fee.
    pub network: Amount,
    /// The sum of both fees.
    pub total: Amount,
}

/// A priced order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priced {
    /// Output per unit of input, before fees.
    pub rate: Rate,
    /// The fiat leg: paid on a purchase, received on a sale, the value of a swap.
    pub fiat: Amount,
    /// The crypto leg: received on a purchase or swap, sold on a sale.
    pub crypto: Amount,
    pub fees: Fees,
}

/// A leg rounds to zero, does not cover its fees, or exceeds 10^10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a leg of the order rounds to zero, does not cover the fees or exceeds 10000000000")]
pub struct OutOfRange;

impl Fees {
    /// The sum of both fees; `None` if the currencies differ or the sum overflows an amount.
    #[must_use]
    pub fn of(service: Amount, network: Amount) -> Option<Self> {
        Some(Self {
            service,
            network,
            total: service.checked_add(&network)?,
        })
    }
}

impl FeeSchedule {
    /// The fees of an order worth `fiat` before fees. Each fee is rounded up to the currency's scale.
    fn fees(&self, fiat: Amount) -> Option<Fees> {
        let units = u128::try_from(fiat.units()).ok()?;
        let share = units
            .checked_mul(self.service_bps.into())?
            .div_ceil(WHOLE_BPS.into());
        let share = Amount::ceil(share, fiat.asset())?;
        let least = self.service_least;
        let service = if share.units() < least.units() {
            least
        } else {
            share
        };
        Fees::of(service, self.network)
    }

    /// Whether something remains of an amount after the fees.
    pub(crate) fn leave_some_of(&self, fiat: Amount) -> bool {
        let remains = self
            .fees(fiat)
            .and_then(|fees| fiat.checked_sub(&fees.total));
        remains.is_some_and(|remains| !remains.is_zero())
    }
}

/// Prices an order. `input` is the input leg: fiat on a purchase, crypto on a sale. `output` is the asset of the
/// other leg.
///
/// The output leg is rounded down to its scale.
///
/// # Errors
/// [`OutOfRange`] if a leg rounds to zero, does not cover its fees, or exceeds 10^10.
pub fn price(
    side: Side,
    input: Amount,
    output: Asset,
    source: &SourceRate,
    schedule: &FeeSchedule,
) -> Result<Priced, OutOfRange> {
    let spread_bps = source.spread_bps.min(SPREAD_CEILING_BPS);
    let rate = rate_of(&source.mid, side, spread_bps).ok_or(OutOfRange)?;
    let priced = match side {
        Side::OnRamp => bought(input, output, rate, schedule),
        Side::OffRamp => sold(input, output, rate, schedule),
    };
    priced
        .filter(|priced| !priced.fiat.is_zero() && !priced.crypto.is_zero())
        .ok_or(OutOfRange)
}

/// Prices a sale from the fiat that its user receives: the least crypto of which at least this much remains after the
/// fees. The crypto leg is rounded up to its scale, and the operator keeps the remainder.
///
/// # Errors
/// [`OutOfRange`] if no amount of crypto up to 10^10 is worth that much after the fees.
pub fn price_received(
    received: Amount,
    asset: Asset,
    source: &SourceRate,
    schedule: &FeeSchedule,
) -> Result<Priced, OutOfRange> {
    let spread_bps = source.spread_bps.min(SPREAD_CEILING_BPS);
    let rate = rate_of(&source.mid, Side::OffRamp, spread_bps).ok_or(OutOfRange)?;
    // Sales above 10^10 leave enough, so that the search ends below them.
    let leaves_too_little = |units: u128| {
        let worth =
            Amount::floor(units, asset).map(|crypto| rate.convert(&crypto, received.asset()));
        let Some(Some(worth)) = worth else {
            return false;
        };
        let Some(fees) = schedule.fees(worth) else {
            return false;
        };
        let remains = worth.checked_sub(&fees.total);
        remains.is_none_or(|remains| remains.units() < received.units())
    };
    // The greatest number of units that leaves too little, bit by bit: what remains never falls as the crypto grows.
    let too_little = (0..u64::BITS).rev().fold(0_u128, |found, bit| {
        let tried = found | 1_u128 << bit;
        if leaves_too_little(tried) {
            tried
        } else {
            found
        }
    });
    let crypto = Amount::ceil(too_little.saturating_add(1), asset).ok_or(OutOfRange)?;
    let sale = sold(crypto, received.asset(), rate, schedule).ok_or(OutOfRange)?;
    Ok(Priced {
        fiat: received,
        ..sale
    })
}

fn bought(fiat: Amount, asset: Asset, rate: Rate, schedule: &FeeSchedule) -> Option<Priced> {
    let fees = schedule.fees(fiat)?;
    let crypto = rate.convert(&fiat.checked_sub(&fees.total)?, asset)?;
    Some(Priced {
        rate,
        fiat,
        crypto,
        fees,
    })
}

/// Fees have the scale of the currency, so they are subtracted after the rounding.
fn sold(crypto: Amount, currency: Asset, rate: Rate, schedule: &FeeSchedule) -> Option<Priced> {
    let worth = rate.convert(&crypto, currency)?;
    let fees = schedule.fees(worth)?;
    Some(Priced {
        rate,
        fiat: worth.checked_sub(&fees.total)?,
        crypto,
        fees,
    })
}

#[cfg(test)]
mod tests {
    use kernel::Mid;
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::*;

    fn fiat(code: &str, text: &str) -> Amount {
        let asset = Asset::fiat(code).unwrap();
        Amount::parse(text, asset).unwrap_or(Amount::zero(asset))
    }

    fn crypto(symbol: &str, text: &str) -> Amount {
        Amount::parse(text, Asset::crypto(symbol).unwrap()).unwrap()
    }

    fn source(mid: &str, spread_bps: u16) -> SourceRate {
        SourceRate {
            mid: Mid::new(Decimal::from_str_exact(mid).unwrap()).unwrap(),
            spread_bps,
        }
    }

    fn schedule(code: &str, bps: u16, least: &str, network: &str) -> FeeSchedule {
        FeeSchedule {
            service_bps: bps,
            service_least: fiat(code, least),
            network: fiat(code, network),
        }
    }

    /// Fiat leg, crypto leg, rate and total fees, as they are printed.
    fn shown(priced: Result<Priced, OutOfRange>) -> [String; 4] {
        let priced = priced.unwrap();
        [
            priced.fiat.to_string(),
            priced.crypto.to_string(),
            priced.rate.to_string(),
            priced.fees.total.to_string(),
        ]
    }

    // rule: gate.price.rate, gate.price.fees, gate.price.purchase
    #[test]
    fn purchase_delivers_fiat_less_fees_times_rate() {
        let fees = schedule("EUR", 100, "0", "0.50");
        let usdt = Asset::crypto("USDT").unwrap();
        let priced = price(
            Side::OnRamp,
            fiat("EUR", "100.00"),
            usdt,
            &source("1.0850", 25),
            &fees,
        );
        // 1.0850 x 0.9975 = 1.0822875; (100 - 1.50) x 1.0822875 = 106.60531875, rounded down to 6 digits.
        assert_eq!(shown(priced), ["100.00", "106.605318", "1.0822875", "1.50"]);
    }

    // rule: gate.price.rate, gate.price.fees, gate.price.sale
    #[test]
    fn sale_pays_crypto_times_rate_less_fees() {
        let fees = schedule("EUR", 100, "0", "0.50");
        let eur = Asset::fiat("EUR").unwrap();
        let priced = price(
            Side::OffRamp,
            crypto("USDT", "100"),
            eur,
            &source("1.0850", 25),
            &fees,
        );
        // 100 x 0.91935483 = 91.935483, rounded down to 91.93; 1 % of it is 0.9193, rounded up to 0.92.
        assert_eq!(shown(priced), ["90.51", "100", "0.91935483", "1.42"]);
    }

    #[test]
    fn service_fee_has_minimum_and_rounds_to_currency_scale() {
        let usdt = Asset::crypto("USDT").unwrap();
        let least = schedule("EUR", 100, "2.00", "0");
        let priced = price(
            Side::OnRamp,
            fiat("EUR", "10.00"),
            usdt,
            &source("1", 0),
            &least,
        );
        assert_eq!(shown(priced), ["10.00", "8", "1", "2.00"]);
        let yen = schedule("JPY", 30, "0", "0");
        let priced = price(
            Side::OnRamp,
            fiat("JPY", "1001"),
            usdt,
            &source("0.0064", 0),
            &yen,
        );
        assert_eq!(shown(priced), ["1001", "6.3808", "0.0064", "4"]);
    }

    // rule: gate.price.spread
    #[test]
    fn source_spread_is_capped() {
        let free = schedule("EUR", 0, "0", "0");
        let usdt = Asset::crypto("USDT").unwrap();
        let priced = price(
            Side::OnRamp,
            fiat("EUR", "1.00"),
            usdt,
            &source("1", 400),
            &free,
        );
        assert_eq!(priced.unwrap().rate.to_string(), "0.995");
    }

    // rule: gate.price.out-of-range
    #[test]
    fn zero_or_excessive_leg_is_refused() {
        let fees = schedule("EUR", 0, "1.00", "0");
        let free = schedule("EUR", 0, "0", "0");
        let (eur, usdt) = (Asset::fiat("EUR").unwrap(), Asset::crypto("USDT").unwrap());
        let even = source("1", 0);
        let refused = |side, input, output, source, schedule: &FeeSchedule| {
            assert_eq!(
                price(side, input, output, source, schedule),
                Err(OutOfRange)
            );
        };
        refused(Side::OnRamp, fiat("EUR", "0.99"), usdt, &even, &fees);
        refused(Side::OnRamp, fiat("EUR", "1.00"), usdt, &even, &fees);
        refused(Side::OffRamp, crypto("USDT", "1"), eur, &even, &fees);
        refused(Side::OffRamp, crypto("USDT", "0.009999"), eur, &even, &free);
        let dear = source("2", 0);
        refused(Side::OnRamp, fiat("EUR", "9999999999"), usdt, &dear, &free);
    }

    proptest! {
        // rule: gate.price.purchase, gate.price.sale
        #[test]
        fn rounding_never_favours_the_customer_and_a_client_gets_the_same(
            cents in 1_i64..1_000_000_000, micros in 1_000_i64..100_000_000, bps in 0_u16..1_000, network in 0_i64..1_000,
        ) {
            let (eur, usdt) = (Asset::fiat("EUR").unwrap(), Asset::crypto("USDT").unwrap());
            let rate = SourceRate { mid: Mid::new(Decimal::new(micros, 6)).unwrap(), spread_bps: 25 };
            let fees = FeeSchedule {
                service_bps: bps,
                service_least: Amount::zero(eur),
                network: Amount::from_units(network * 1_000_000, eur).unwrap(),
            };
            let decimal = |amount: Amount| Decimal::new(amount.units(), 8);
            let times = |amount: Decimal, rate: &Rate| amount * Decimal::from_str_exact(&rate.to_string()).unwrap();
            let input = Amount::from_units(cents * 1_000_000, eur).unwrap();
            if let Ok(priced) = price(Side::OnRamp, input, usdt, &rate, &fees) {
                let exact = times(decimal(priced.fiat) - decimal(priced.fees.total), &priced.rate);
                prop_assert_eq!(decimal(priced.crypto), exact.trunc_with_scale(6));
                prop_assert!(decimal(priced.fees.service) * Decimal::from(10_000) >= decimal(input) * Decimal::from(bps));
            }
            let input = Amount::from_units(cents * 1_000_000, usdt).unwrap();
            if let Ok(priced) = price(Side::OffRamp, input, eur, &rate, &fees) {
                let exact = times(decimal(priced.crypto), &priced.rate) - decimal(priced.fees.total);
                prop_assert_eq!(decimal(priced.fiat), exact.trunc_with_scale(2));
            }
        }

        // rule: gate.price.received
        #[test]
        fn sale_priced_from_received_fiat_is_the_least_that_leaves_it(
            cents in 1_i64..1_000_000_000, micros in 1_000_i64..100_000_000, bps in 0_u16..1_000, network in 0_i64..1_000,
        ) {
            let (eur, usdt) = (Asset::fiat("EUR").unwrap(), Asset::crypto("USDT").unwrap());
            let rate = SourceRate { mid: Mid::new(Decimal::new(micros, 6)).unwrap(), spread_bps: 25 };
            let fees = FeeSchedule {
                service_bps: bps,
                service_least: Amount::zero(eur),
                network: Amount::from_units(network * 1_000_000, eur).unwrap(),
            };
            let wanted = Amount::from_units(cents * 1_000_000, eur).unwrap();
            let given = |micros: i64| {
                let crypto = Amount::from_units(micros * 100, usdt)?;
                price(Side::OffRamp, crypto, eur, &rate, &fees).ok()
            };
            if let Ok(priced) = price_received(wanted, usdt, &rate, &fees) {
                prop_assert_eq!(priced.fiat, wanted);
                let steps = priced.crypto.units() / 100;
                let sale = given(steps).unwrap();
                prop_assert!(sale.fiat.units() >= wanted.units());
                prop_assert_eq!((sale.fees, sale.rate), (priced.fees, priced.rate));
                prop_assert!(given(steps - 1).is_none_or(|less| less.fiat.units() < wanted.units()));
            }
        }
    }
}
