//! Pricing: from a mid-market rate to a quote's terms. Each figure is rounded once.
//!
//! The rate is [`rate_of`] the pair's mid. The output leg is amount × rate, rounded down to its scale, so a client
//! that multiplies the shown figures gets the same leg. The operator keeps the remainder.

use std::cmp::Ordering;

use crate::profile::{PoolId, PoolTerms};
use kernel::rates::{SPREAD_CEILING_BPS, Side, SourceRate, rate_of};
use kernel::{Amount, AssetKind, Fraction, Mid, Rate};

/// The mid rates that price and value an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mids {
    /// The rate of the pool's own pair.
    pub pair: SourceRate,
    /// USDT per unit of the pool's fiat. It determines order sizes and velocity.
    pub usdt: Mid,
}

/// A priced order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priced {
    /// Output per unit of input, with spread and fee included.
    pub rate: Rate,
    /// The mid rate, in units of the pool's crypto per unit of its fiat.
    pub mid: Mid,
    /// The spread in the rate, in basis points.
    pub spread_bps: u16,
    /// The draw fee in the rate, in basis points.
    pub fee_bps: u16,
    /// The fiat leg.
    pub fiat: Amount,
    /// The crypto leg.
    pub crypto: Amount,
    /// The order's value in units of 10^-8 USDT, rounded up.
    pub notional: i64,
}

/// Why an order has no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// A leg rounds to zero or exceeds 10^10.
    #[error("a leg of the order rounds to zero or exceeds 10000000000")]
    OutOfRange,
    /// The value is below the minimum of the pool.
    #[error("the order is worth less than the smallest order")]
    BelowMinimum,
    /// The value is above the maximum of the pool.
    #[error("the order is worth more than the largest order")]
    AboveMaximum,
}

/// The spread of a quote: the source's spread, at most the pool's cap, and at most 50 basis points.
#[must_use]
pub fn capped_spread(source: u16, terms: &PoolTerms) -> u16 {
    source.min(terms.spread_cap_bps).min(SPREAD_CEILING_BPS)
}

/// Prices an order. `amount` is the input leg: fiat on a purchase, crypto on a sale.
///
/// The output leg is rounded down once. The notional is rounded up once, to units of 10^-8 USDT.
///
/// # Errors
/// [`PriceError`]: the legs are checked first, then the order's size as an exact fraction.
pub fn price(
    pool: &PoolId,
    side: Side,
    amount: Amount,
    mids: &Mids,
    terms: &PoolTerms,
) -> Result<Priced, PriceError> {
    let spread_bps = capped_spread(mids.pair.spread_bps, terms);
    let fee_bps = terms.draw_fee_bps;
    let rate = spread_bps
        .checked_add(fee_bps)
        .and_then(|cut_bps| rate_of(&mids.pair.mid, side, cut_bps))
        .ok_or(PriceError::OutOfRange)?;
    let (fiat, crypto) = legs(pool, side, amount, &rate).ok_or(PriceError::OutOfRange)?;
    let value = usdt_value(pool, side, amount, mids).ok_or(PriceError::OutOfRange)?;
    within(&value, amount, terms)?;
    let notional = value
        .times(amount.units())
        .and_then(|units| units.ceil())
        .ok_or(PriceError::OutOfRange)?;
    Ok(Priced {
        rate,
        mid: mids.pair.mid,
        spread_bps,
        fee_bps,
        fiat,
        crypto,
        notional,
    })
}

/// Both legs; `None` if the output leg rounds to zero or exceeds 10^10.
fn legs(pool: &PoolId, side: Side, amount: Amount, rate: &Rate) -> Option<(Amount, Amount)> {
    let legs = match side {
        Side::OnRamp => (amount, rate.convert(&amount, pool.crypto())?),
        Side::OffRamp => (rate.convert(&amount, pool.fiat())?, amount),
    };
    (!legs.0.is_zero() && !legs.1.is_zero()).then_some(legs)
}

/// The exact USDT value of one unit of the input leg. On a purchase it is the fiat's USDT mid. On a sale it is 1 for
/// USDT itself, and the quotient of the fiat's two mids for other assets.
fn usdt_value(pool: &PoolId, side: Side, amount: Amount, mids: &Mids) -> Option<Fraction> {
    debug_assert_eq!(
        amount.asset().kind() == AssetKind::Fiat,
        side == Side::OnRamp
    );
    match side {
        Side::OnRamp => Some(mids.usdt.fraction()),
        Side::OffRamp if pool.crypto().code() == "USDT" => {
            mids.usdt.fraction().over(&mids.usdt.fraction())
        }
        Side::OffRamp => mids.usdt.fraction().over(&mids.pair.mid.fraction()),
    }
}

/// Checks the order's size, as an exact fraction, against the pool's minimum and maximum.
fn within(value: &Fraction, amount: Amount, terms: &PoolTerms) -> Result<(), PriceError> {
    let size = value
        .times(amount.units())
        .and_then(|units| units.times_ratio(1, 100_000_000));
    let size = size.ok_or(PriceError::OutOfRange)?;
    if size.compare(&terms.min_order_usdt) == Some(Ordering::Less) {
        return Err(PriceError::BelowMinimum);
    }
    match terms.max_order_usdt.map(|most| size.compare(&most)) {
        Some(Some(Ordering::Greater)) => Err(PriceError::AboveMaximum),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::*;

    fn mid(text: &str) -> Mid {
        Mid::new(Decimal::from_str_exact(text).unwrap()).unwrap()
    }

    fn mids(pair: &str, usdt: &str) -> Mids {
        Mids {
            pair: SourceRate {
                mid: mid(pair),
                spread_bps: 25,
            },
            usdt: mid(usdt),
        }
    }

    fn terms(fee: u16, min: &str, max: Option<&str>) -> PoolTerms {
        PoolTerms {
            draw_fee_bps: fee,
            min_order_usdt: Decimal::from_str_exact(min).unwrap(),
            max_order_usdt: max.map(|max| Decimal::from_str_exact(max).unwrap()),
            ..PoolTerms::default()
        }
    }

    fn buy(amount: &str, terms: &PoolTerms) -> Result<Priced, PriceError> {
        let pool = PoolId::parse("EUR-USDT").unwrap();
        price(
            &pool,
            Side::OnRamp,
            Amount::parse(amount, pool.fiat()).unwrap(),
            &mids("1.0850", "1.0850"),
            terms,
        )
    }

    fn sell(amount: &str, terms: &PoolTerms) -> Result<Priced, PriceError> {
        let pool = PoolId::parse("EUR-USDC").unwrap();
        price(
            &pool,
            Side::OffRamp,
            Amount::parse(amount, pool.crypto()).unwrap(),
            &mids("1.0845", "1.0850"),
            terms,
        )
    }

    // rule: pools.price.rate, pools.price.other-leg, pools.price.usdt-fiat
    #[test]
    fn purchase_is_priced_with_spread_and_fee() {
        let priced = buy("100.00", &terms(30, "1", None)).unwrap();
        assert_eq!(priced.rate.to_string(), "1.0790325"); // 1.0850 x (1 - 0.0055)
        assert_eq!(priced.crypto.to_string(), "107.90325");
        assert_eq!((priced.spread_bps, priced.fee_bps), (25, 30));
        assert_eq!(priced.notional, 10_850_000_000);
    }

    // rule: pools.price.rate, pools.price.usdt-crypto, pools.price.usdt-rounding
    #[test]
    fn sale_is_priced_by_reciprocal() {
        let priced = sell("100", &terms(30, "1", None)).unwrap();
        assert_eq!(priced.rate.to_string(), "0.91701244"); // 0.9945 / 1.0845 = 0.917012448…
        assert_eq!(priced.fiat.to_string(), "91.70");
        assert_eq!(priced.notional, 10_004_610_420); // 100 x 1.0850 / 1.0845 = 100.0461041955… rounded up
    }

    // rule: pools.price.spread
    #[test]
    fn spread_is_capped_by_pool_and_by_50() {
        let narrow = PoolTerms {
            spread_cap_bps: 10,
            ..PoolTerms::default()
        };
        assert_eq!(capped_spread(25, &narrow), 10);
        assert_eq!(
            capped_spread(
                400,
                &PoolTerms {
                    spread_cap_bps: 60,
                    ..PoolTerms::default()
                }
            ),
            50
        );
    }

    // rule: pools.quote.limits-inclusive, pools.quote.below-minimum, pools.quote.above-maximum
    #[test]
    fn order_sizes_are_compared_exactly() {
        // 100.00 EUR are worth exactly 108.5 USDT.
        assert!(buy("100.00", &terms(0, "108.5", Some("108.5"))).is_ok());
        assert_eq!(
            buy("99.99", &terms(0, "108.5", None)),
            Err(PriceError::BelowMinimum)
        );
        assert_eq!(
            buy("100.01", &terms(0, "1", Some("108.5"))),
            Err(PriceError::AboveMaximum)
        );
        assert_eq!(
            buy("100.00", &terms(0, "108.5000000000000001", None)),
            Err(PriceError::BelowMinimum)
        );
    }

    // rule: money.out-of-range
    #[test]
    fn zero_or_excessive_leg_is_refused() {
        assert_eq!(
            sell("0.000001", &terms(0, "0", None)),
            Err(PriceError::OutOfRange)
        );
        assert_eq!(
            buy("9999999999", &terms(0, "0", None)),
            Err(PriceError::OutOfRange)
        );
    }

    proptest! {
        // rule: pools.price.remainder, pools.price.other-leg
        #[test]
        fn rounding_favours_operator_by_less_than_one_unit(
            cents in 100_i64..1_000_000_000, mid_micros in 1_000_i64..100_000_000, fee in 0_u16..5_000, spread in 0_u16..100,
        ) {
            let pool = PoolId::parse("EUR-USDT").unwrap();
            let pair = SourceRate { mid: Mid::new(Decimal::new(mid_micros, 6)).unwrap(), spread_bps: spread };
            let mids = Mids { usdt: pair.mid, pair };
            let amount = Amount::from_units(cents * 1_000_000, pool.fiat()).unwrap();
            if let Ok(priced) = price(&pool, Side::OnRamp, amount, &mids, &terms(fee, "0", None)) {
                // The product cents x mid x kept is in units of 10^-12 (10^-2 x 10^-6 x 10^-4).
                let kept = 10_000 - i128::from(fee) - i128::from(spread.min(50));
                let exact = i128::from(cents) * i128::from(mid_micros) * kept;
                let got = i128::from(priced.crypto.units()) * 10_000;
                prop_assert!(got <= exact);
                // The tolerance is one unit of the leg (10^-6), and one unit of the rate (10^-8) times the amount.
                prop_assert!(exact - got < 1_000_000 + i128::from(cents) * 100);
                let own = priced.rate.convert(&amount, pool.crypto()).unwrap();
                prop_assert_eq!(own, priced.crypto);
            }
        }
    }
}
