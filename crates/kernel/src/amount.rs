//! Amounts: exact, in units of 10^-8, never finer than their asset.

use std::fmt;

use crate::Asset;

/// Every amount counts units of 10^-8, so that both databases add exactly.
pub const UNITS_SCALE: u8 = 8;

/// The largest amount of an order or credit: 10^10.
const LARGEST: i64 = 1_000_000_000_000_000_000;

/// An amount of an asset, in units of 10^-8. Never negative, never finer than the asset's
/// scale. There are no operators: adding is [`Amount::checked_add`], and two assets never mix.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Amount {
    units: i64,
    asset: Asset,
}

/// Why a text is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not `0` or digits without leading zero, with an optional dot and digits.
    #[error("expected a decimal string such as \"100.00\"")]
    Malformed,
    #[error("expected an amount greater than zero")]
    Zero,
    /// More fractional digits than the asset has. Trailing zeros count.
    #[error("at most {0} fractional digits")]
    TooPrecise(u8),
    /// Above 10^10.
    #[error("expected at most 10000000000")]
    OutOfRange,
}

impl Amount {
    /// The zero amount of an asset.
    #[must_use]
    pub const fn zero(asset: Asset) -> Self {
        Self { units: 0, asset }
    }

    /// From units of 10^-8; `None` if negative or finer than the asset.
    #[must_use]
    pub fn from_units(units: i64, asset: Asset) -> Option<Self> {
        (units >= 0 && units % step(asset) == 0).then_some(Self { units, asset })
    }

    /// From units of 10^-8, rounded down to the asset's scale; `None` if the result exceeds 10^10.
    #[must_use]
    pub fn floor(units: u128, asset: Asset) -> Option<Self> {
        let units = i64::try_from(units).ok()?;
        let rest = units.checked_rem(step(asset))?;
        let kept = units.checked_sub(rest).filter(|kept| *kept <= LARGEST)?;
        Self::from_units(kept, asset)
    }

    /// From units of 10^-8, rounded up to the asset's scale; `None` if the result exceeds 10^10.
    #[must_use]
    pub fn ceil(units: u128, asset: Asset) -> Option<Self> {
        let step = u128::try_from(step(asset)).ok()?;
        Self::floor(units.checked_next_multiple_of(step)?, asset)
    }

    /// Parses the positive amount of a partner or operator: `0` or digits without leading zero, an optional dot and digits.
    /// Trailing zeros of the fraction count.
    ///
    /// # Errors
    /// [`AmountError`], checked in the order malformed, zero, too precise, out of range.
    pub fn parse(text: &str, asset: Asset) -> Result<Self, AmountError> {
        let (whole, fraction) = positive(text)?;
        if fraction.len() > usize::from(asset.scale()) {
            return Err(AmountError::TooPrecise(asset.scale()));
        }
        let units = units_of(whole, fraction).filter(|units| *units <= LARGEST);
        Ok(Self {
            units: units.ok_or(AmountError::OutOfRange)?,
            asset,
        })
    }

    /// Parses what an upstream says has moved, which may be zero, and rounds it down to the asset's digits.
    ///
    /// # Errors
    /// [`AmountError::Malformed`] or [`AmountError::OutOfRange`].
    pub fn parse_floor(text: &str, asset: Asset) -> Result<Self, AmountError> {
        let (whole, fraction) = split(text).ok_or(AmountError::Malformed)?;
        let kept = fraction
            .get(..usize::from(asset.scale()))
            .unwrap_or(fraction);
        let units = units_of(whole, kept).filter(|units| *units <= LARGEST);
        Ok(Self {
            units: units.ok_or(AmountError::OutOfRange)?,
            asset,
        })
    }

    /// Checks only the grammar, before the asset is known.
    ///
    /// # Errors
    /// [`AmountError::Malformed`] or [`AmountError::Zero`].
    pub fn check_grammar(text: &str) -> Result<(), AmountError> {
        positive(text).map(|_| ())
    }

    /// Units of 10^-8, as a store keeps them.
    #[must_use]
    pub const fn units(&self) -> i64 {
        self.units
    }

    /// The asset.
    #[must_use]
    pub const fn asset(&self) -> Asset {
        self.asset
    }

    /// Whether the amount is zero.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.units == 0
    }

    /// The sum; `None` across assets or above 64 bits.
    #[must_use]
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        let units = self.units.checked_add(other.units)?;
        (self.asset == other.asset).then_some(Self { units, ..*self })
    }

    /// The difference; `None` across assets or if it would be negative.
    #[must_use]
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        let units = self
            .units
            .checked_sub(other.units)
            .filter(|units| *units >= 0)?;
        (self.asset == other.asset).then_some(Self { units, ..*self })
    }
}

/// Splits a text that is an amount greater than zero.
fn positive(text: &str) -> Result<(&str, &str), AmountError> {
    let parts = split(text).ok_or(AmountError::Malformed)?;
    let zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if zero {
        Err(AmountError::Zero)
    } else {
        Ok(parts)
    }
}

/// Splits `text` into whole and fractional digits if it obeys the grammar.
fn split(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (text, ""),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let led = whole == "0" || !whole.starts_with('0');
    (!whole.is_empty() && led && digits(whole) && digits(fraction)).then_some((whole, fraction))
}

/// The value in units of 10^-8, or `None` above 64 bits. `fraction` has at most eight digits.
fn units_of(whole: &str, fraction: &str) -> Option<i64> {
    let padding = usize::from(UNITS_SCALE).checked_sub(fraction.len())?;
    let zeros = std::iter::repeat_n(b'0', padding);
    whole
        .bytes()
        .chain(fraction.bytes())
        .chain(zeros)
        .try_fold(0_i64, |sum, digit| {
            sum.checked_mul(10)?
                .checked_add(i64::from(digit.checked_sub(b'0')?))
        })
}

/// The smallest step of an asset, in units of 10^-8.
fn step(asset: Asset) -> i64 {
    10_i64.pow(u32::from(UNITS_SCALE.saturating_sub(asset.scale())))
}

/// Fiat shows all its minor units (`100.00`), a crypto asset no trailing zeros (`107.31`).
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_i64.pow(u32::from(UNITS_SCALE));
        let (whole, rest) = (self.units / one, self.units % one);
        let digits = format!("{rest:08}");
        let shown = digits
            .get(..usize::from(self.asset.scale()))
            .unwrap_or(&digits);
        let shown = match self.asset.kind() {
            crate::AssetKind::Fiat => shown,
            crate::AssetKind::Crypto => shown.trim_end_matches('0'),
        };
        if shown.is_empty() {
            write!(f, "{whole}")
        } else {
            write!(f, "{whole}.{shown}")
        }
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} {}", self.asset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::*;
    use crate::money_cases;

    fn eur() -> Asset {
        Asset::fiat("EUR").unwrap()
    }

    // rule: money.print-fiat, money.print-crypto
    #[test]
    fn amount_parses_and_prints() {
        let usdt = Asset::crypto("USDT").unwrap();
        let jpy = Asset::fiat("JPY").unwrap();
        for (text, asset, shown) in [
            ("100", eur(), "100.00"),
            ("100.5", eur(), "100.50"),
            ("0.01", eur(), "0.01"),
            ("10000000000", eur(), "10000000000.00"),
            ("107.310000", usdt, "107.31"),
            ("5", usdt, "5"),
            ("1500", jpy, "1500"),
        ] {
            assert_eq!(Amount::parse(text, asset).unwrap().to_string(), shown);
        }
    }

    // rule: money.grammar, money.zero, money.fiat-digits, money.digits-as-written, money.out-of-range
    #[test]
    fn amount_parser_reports_most_specific_error() {
        let long = "9".repeat(60_000);
        for (text, error) in [
            ("", AmountError::Malformed),
            ("1e3", AmountError::Malformed),
            ("+1", AmountError::Malformed),
            ("-1", AmountError::Malformed),
            ("01", AmountError::Malformed),
            ("00.5", AmountError::Malformed),
            (".5", AmountError::Malformed),
            ("1.", AmountError::Malformed),
            ("1.2.3", AmountError::Malformed),
            (" 1", AmountError::Malformed),
            ("NaN", AmountError::Malformed),
            ("٣", AmountError::Malformed),
            ("1,000", AmountError::Malformed),
            ("0", AmountError::Zero),
            ("0.00000000", AmountError::Zero),
            ("1.000", AmountError::TooPrecise(2)),
            ("10000000000.01", AmountError::OutOfRange),
            (long.as_str(), AmountError::OutOfRange),
        ] {
            assert_eq!(Amount::parse(text, eur()), Err(error), "{text:.20}");
        }
    }

    #[test]
    fn amount_arithmetic_refuses_negative_results_and_mixed_assets() {
        let one = Amount::parse("1", eur()).unwrap();
        let two = Amount::parse("2", eur()).unwrap();
        let coin = Amount::parse("1", Asset::crypto("USDT").unwrap()).unwrap();
        assert_eq!(one.checked_sub(&two), None);
        assert_eq!(one.checked_add(&coin), None);
        assert_eq!(two.checked_sub(&one), Some(one));
    }

    // rule: money.out-of-range
    #[test]
    fn amount_limit_applies_after_rounding() {
        let most = u128::from(LARGEST.unsigned_abs());
        let usdt = Asset::crypto("USDT").unwrap();
        let shown = |units| Amount::floor(units, usdt).map(|amount| amount.to_string());
        assert_eq!(shown(most), Some("10000000000".to_owned()));
        assert_eq!(shown(most + 99), Some("10000000000".to_owned()));
        assert_eq!(shown(most + 100), None);
        assert_eq!(shown(99), Some("0".to_owned()));
        assert_eq!(shown(u128::MAX), None);
    }

    /// Assets of different scales.
    fn assets() -> impl Strategy<Value = Asset> {
        let assets = [Asset::fiat("JPY"), Asset::fiat("EUR"), Asset::crypto("BTC")];
        prop::sample::select(assets.map(Option::unwrap).to_vec())
    }

    fn amounts(asset: Asset) -> impl Strategy<Value = Amount> {
        let steps = 0..=LARGEST / step(asset);
        steps.prop_map(move |steps| Amount::from_units(steps * step(asset), asset).unwrap())
    }

    proptest! {
        #![proptest_config(money_cases())]

        #[test]
        fn printed_amount_parses_again(amount in assets().prop_flat_map(amounts)) {
            let read = Amount::parse(&amount.to_string(), amount.asset());
            prop_assert_eq!(read, if amount.is_zero() { Err(AmountError::Zero) } else { Ok(amount) });
        }

        /// Compares with another decimal library: the parsed value equals the written one, and the grammar is our own.
        #[test]
        fn amount_text_is_parsed_exactly_or_refused(text in "[0-9]{1,12}([.][0-9]{1,10})?|[0-9.e+ -]{0,8}", asset in assets()) {
            let written = Decimal::from_str_exact(&text);
            match Amount::parse(&text, asset) {
                Ok(amount) => prop_assert_eq!(written.unwrap(), Decimal::new(amount.units(), UNITS_SCALE.into())),
                Err(AmountError::Zero) => prop_assert!(written.unwrap().is_zero()),
                Err(AmountError::TooPrecise(scale)) => prop_assert!(written.unwrap().scale() > scale.into()),
                Err(AmountError::OutOfRange) => prop_assert!(written.unwrap() > Decimal::from(10_000_000_000_u64)),
                Err(AmountError::Malformed) => {
                    let whole = text.split('.').next().unwrap_or_default();
                    let led = whole.len() > 1 && whole.starts_with('0');
                    let odd = text.bytes().any(|byte| !byte.is_ascii_digit() && byte != b'.');
                    let dots = text.matches('.').count() > 1 || text.starts_with('.') || text.ends_with('.');
                    prop_assert!(text.is_empty() || led || odd || dots, "{}", text);
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in ".{0,40}") {
            let _outcome = Amount::parse(&text, eur());
        }

        #[test]
        fn sums_and_differences_are_exact_and_never_negative((one, other) in assets().prop_flat_map(|asset| (amounts(asset), amounts(asset)))) {
            let sum = one.checked_add(&other).unwrap();
            prop_assert_eq!(sum.units(), one.units() + other.units());
            prop_assert_eq!(sum.checked_sub(&other), Some(one));
            prop_assert_eq!(one.checked_sub(&other).is_some(), one.units() >= other.units());
        }

        #[test]
        fn floor_and_ceiling_are_the_nearest_amounts(units in 0..=2 * LARGEST.unsigned_abs(), asset in assets()) {
            let floor = Amount::floor(units.into(), asset);
            let kept = units - units % step(asset).unsigned_abs();
            prop_assert_eq!(floor.map(|amount| amount.units().unsigned_abs()), (kept <= LARGEST.unsigned_abs()).then_some(kept));
            let raised = units.next_multiple_of(step(asset).unsigned_abs());
            let ceil = Amount::ceil(units.into(), asset);
            prop_assert_eq!(ceil.map(|amount| amount.units().unsigned_abs()), (raised <= LARGEST.unsigned_abs()).then_some(raised));
        }
    }
}
