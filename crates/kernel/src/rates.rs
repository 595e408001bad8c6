//! Rates of a source for a pair, and the rate that a partner gets.
//!
//! A pair is quoted as mid = crypto per fiat. The rate of a purchase is mid × (1 − bps), the rate of a sale is (1 − bps) / mid.
//! Both are exact fractions, rounded down once. The operator keeps the remainder.

use crate::{Mid, Rate};

/// One whole in basis points.
pub const WHOLE_BPS: u16 = 10_000;

/// The largest spread any quote can carry, in basis points.
pub const SPREAD_CEILING_BPS: u16 = 50;

crate::closed_list! {
    /// The direction of an order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Side {
        /// Fiat paid in, crypto delivered.
        OnRamp = "on_ramp",
        /// Crypto sold, fiat paid out.
        OffRamp = "off_ramp",
    }
}

/// A rate that a source returned for a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRate {
    /// Crypto per fiat, midway between the buying and the selling price.
    pub mid: Mid,
    /// The source's spread in basis points, before any cap.
    pub spread_bps: u16,
}

/// Output per unit of input: the mid minus `cut_bps`. Returns `None` if the result is zero.
#[must_use]
pub fn rate_of(mid: &Mid, side: Side, cut_bps: u16) -> Option<Rate> {
    let kept = WHOLE_BPS.checked_sub(cut_bps)?;
    let base = match side {
        Side::OnRamp => mid.fraction(),
        Side::OffRamp => mid.fraction().inverse()?,
    };
    Rate::floor(&base.times_ratio(kept.into(), WHOLE_BPS.into())?)
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;

    // rule: pools.price.rate, pools.price.rate-rounding
    #[test]
    fn rate_is_mid_minus_cut_rounded_down_once() {
        let mid = Mid::new(Decimal::from_str_exact("1.0850").unwrap()).unwrap();
        let rate = |side, cut| rate_of(&mid, side, cut).map(|rate| rate.to_string());
        assert_eq!(rate(Side::OnRamp, 25), Some("1.0822875".to_owned()));
        assert_eq!(rate(Side::OffRamp, 25), Some("0.91935483".to_owned())); // 0.9975 / 1.0850 = 0.919354838…
        assert_eq!(rate(Side::OnRamp, 10_000), None);
        assert_eq!(rate(Side::OffRamp, 10_001), None);
    }

    #[test]
    fn side_parses_its_own_text() {
        for side in [Side::OnRamp, Side::OffRamp] {
            assert_eq!(Side::parse(side.as_str()), Some(side));
        }
        assert_eq!(Side::parse("swap"), None);
    }
}
