//! Rates: exact decimals, multiplied and divided as wide integers.
//!
//! A 28-digit decimal rounds silently if a product does not fit. So every product and quotient is formed in 512 bits and
//! rounded once, at the place that the rule names.

use std::cmp::Ordering;
use std::fmt;

use ruint::aliases::U512;
use rust_decimal::Decimal;

use crate::amount::UNITS_SCALE;
use crate::{Amount, Asset};

/// Fractional digits of a rate, at most.
const MAX_SCALE: u32 = 28;

/// A mid-market rate of a pair: crypto per fiat, greater than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mid(Decimal);

impl Mid {
    /// Converts a decimal greater than zero.
    #[must_use]
    pub fn new(value: Decimal) -> Option<Self> {
        (value > Decimal::ZERO).then(|| Self(value.normalize()))
    }

    /// Parses a decimal greater than zero, in the form that [`Mid`] prints.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let ends = |edge: Option<u8>| edge.is_some_and(|byte| byte.is_ascii_digit());
        let whole = ends(text.bytes().next()) && ends(text.bytes().last());
        let value = Decimal::from_str_exact(text).ok()?;
        Self::new(value).filter(|_| plain && whole)
    }

    /// The mid as an exact fraction.
    #[must_use]
    pub fn fraction(&self) -> Fraction {
        Fraction::of(&self.0)
    }
}

impl fmt::Display for Mid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An all-in rate: output per unit of input, greater than zero.
///
/// Rounded down to 8 decimals, or to 8 significant digits if that is finer. Printed without trailing zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(Decimal);

impl Rate {
    /// Rounds an exact fraction down to a rate; `None` if the result is zero or too large.
    #[must_use]
    pub fn floor(exact: &Fraction) -> Option<Self> {
        let eight_digits = U512::from(10_000_000_u64);
        (u32::from(UNITS_SCALE)..=MAX_SCALE)
            .find_map(|scale| {
                let digits = exact.scaled(scale)?;
                (digits >= eight_digits || scale == MAX_SCALE).then_some((digits, scale))
            })
            .and_then(|(digits, scale)| {
                let digits = i128::try_from(u128::try_from(digits).ok()?).ok()?;
                let value = Decimal::try_from_i128_with_scale(digits, scale).ok()?;
                Self::new(value)
            })
    }

    /// Parses the text that [`Rate`] prints.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::new(Decimal::from_str_exact(text).ok()?)
    }

    fn new(value: Decimal) -> Option<Self> {
        (value > Decimal::ZERO).then(|| Self(value.normalize()))
    }

    /// The other leg: `amount` × rate, rounded down to the scale of `asset`. The operator keeps the remainder. `None` above 10^10.
    #[must_use]
    pub fn convert(&self, amount: &Amount, asset: Asset) -> Option<Amount> {
        let units = Fraction::of(&self.0).times(amount.units())?.scaled(0)?;
        Amount::floor(u128::try_from(units).ok()?, asset)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An exact, non-negative fraction of 512-bit integers.
///
/// Wide enough for every product of the pricing rules: an amount (60 bits) times two rates (96 bits each), each with a power of
/// ten up to 28.
#[derive(Debug, Clone, Copy)]
pub struct Fraction {
    numerator: U512,
    denominator: U512,
}

impl Fraction {
    /// A decimal as a fraction. A negative decimal counts as zero.
    #[must_use]
    pub fn of(value: &Decimal) -> Self {
        let numerator = u128::try_from(value.mantissa()).unwrap_or_default();
        Self {
            numerator: U512::from(numerator),
            denominator: ten_to(value.scale()),
        }
    }

    /// This fraction times `numerator` / `denominator`; `None` above 512 bits or if the denominator is zero.
    #[must_use]
    pub fn times_ratio(&self, numerator: u64, denominator: u64) -> Option<Self> {
        let numerator = self.numerator.checked_mul(U512::from(numerator))?;
        let denominator = self.denominator.checked_mul(U512::from(denominator))?;
        (!denominator.is_zero()).then_some(Self {
            numerator,
            denominator,
        })
    }

    /// This fraction times a non-negative integer.
    #[must_use]
    pub fn times(&self, units: i64) -> Option<Self> {
        self.times_ratio(u64::try_from(units).ok()?, 1)
    }

    /// This fraction divided by another; `None` if the divisor is zero, or above 512 bits.
    #[must_use]
    pub fn over(&self, other: &Self) -> Option<Self> {
        let numerator = self.numerator.checked_mul(other.denominator)?;
        let denominator = self.denominator.checked_mul(other.numerator)?;
        (!denominator.is_zero()).then_some(Self {
            numerator,
            denominator,
        })
    }

    /// The reciprocal; `None` of zero.
    #[must_use]
    pub fn inverse(&self) -> Option<Self> {
        (!self.numerator.is_zero()).then_some(Self {
            numerator: self.denominator,
            denominator: self.numerator,
        })
    }

    /// Rounded up to a whole number of at most 63 bits.
    #[must_use]
    pub fn ceil(&self) -> Option<i64> {
        let floor = self.numerator.checked_div(self.denominator)?;
        let exact = floor.checked_mul(self.denominator)? == self.numerator;
        let whole = if exact {
            floor
        } else {
            floor.checked_add(U512::ONE)?
        };
        i64::try_from(u64::try_from(whole).ok()?).ok()
    }

    /// Compares exactly with a decimal; `None` only above 512 bits.
    #[must_use]
    pub fn compare(&self, other: &Decimal) -> Option<Ordering> {
        let other = Self::of(other);
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Some(left.cmp(&right))
    }

    /// This fraction × 10^`scale`, rounded down.
    fn scaled(&self, scale: u32) -> Option<U512> {
        self.numerator
            .checked_mul(ten_to(scale))?
            .checked_div(self.denominator)
    }
}

fn ten_to(scale: u32) -> U512 {
    U512::from(10_u128.pow(scale.min(MAX_SCALE)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::money_cases;

    fn decimal(text: &str) -> Decimal {
        Decimal::from_str_exact(text).unwrap()
    }

    fn rate(text: &str) -> String {
        Rate::floor(&Fraction::of(&decimal(text)))
            .map_or("none".to_owned(), |rate| rate.to_string())
    }

    // rule: pools.price.rate-rounding
    #[test]
    fn rate_rounds_down_to_eight_decimals_or_digits() {
        assert_eq!(rate("1.0790325"), "1.0790325");
        assert_eq!(rate("1.123456789"), "1.12345678");
        assert_eq!(rate("60000.123456789"), "60000.12345678");
        assert_eq!(rate("0.0123456789999"), "0.012345678");
        assert_eq!(rate("0.0000000012345678999"), "0.0000000012345678");
        assert_eq!(rate("0"), "none");
    }

    // rule: pools.price.other-leg
    #[test]
    fn conversion_rounds_down() {
        let eur = Asset::fiat("EUR").unwrap();
        let usdt = Asset::crypto("USDT").unwrap();
        let amount = Amount::parse("99.99", eur).unwrap();
        let rate = Rate::parse("1.0790325").unwrap();
        assert_eq!(
            rate.convert(&amount, usdt).unwrap().to_string(),
            "107.892459"
        );
    }

    #[test]
    fn fraction_compares_and_rounds_exactly() {
        let third = Fraction::of(&decimal("1")).times_ratio(1, 3).unwrap();
        assert_eq!(
            third.compare(&decimal("0.3333333333333333333333333333")),
            Some(Ordering::Greater)
        );
        assert_eq!(third.times(3).unwrap().ceil(), Some(1));
        assert_eq!(third.times(4).unwrap().ceil(), Some(2));
        assert_eq!(third.inverse().unwrap().ceil(), Some(3));
    }

    proptest! {
        #![proptest_config(money_cases())]

        #[test]
        fn converted_leg_is_exact_product_rounded_once(cents in 1_i64..1_000_000_000, micros in 1_i64..100_000_000) {
            let eur = Asset::fiat("EUR").unwrap();
            let usdt = Asset::crypto("USDT").unwrap();
            let amount = Amount::from_units(cents * 1_000_000, eur).unwrap();
            let rate = Rate::new(Decimal::new(micros, 6)).unwrap();
            let exact = i128::from(cents) * i128::from(micros); // 10^-8
            let expected = exact - exact % 100;
            let converted = rate.convert(&amount, usdt).unwrap();
            prop_assert_eq!(i128::from(converted.units()), expected);
        }
    }
}
