//! The amount that a session is bound to: a decimal, stored as the partner wrote it.

use std::fmt;

/// Maximum amount, 10^10, in units of 10^-8.
const LARGEST: u64 = 1_000_000_000_000_000_000;

/// Maximum fractional digits of an amount, for every currency.
const DIGITS: usize = 8;

/// A positive decimal. Responses return the text that the partner wrote.
///
/// Two amounts are equal as numbers if their units are equal, whatever their texts.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionAmount {
    text: String,
    units: u64,
}

/// Why a text is not a session amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not digits, optionally followed by a dot and 1 to 8 digits.
    #[error("expected a decimal string such as \"100.00\", with at most 8 fractional digits")]
    Malformed,
    #[error("expected an amount greater than zero")]
    Zero,
    /// Above 10^10.
    #[error("expected at most 10000000000")]
    OutOfRange,
}

impl SessionAmount {
    /// Reads digits, optionally a dot and 1 to 8 fractional digits.
    ///
    /// # Errors
    /// [`AmountError`]. The checks run in the order malformed, zero, out of range.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let (whole, fraction) = split(text).ok_or(AmountError::Malformed)?;
        if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
            return Err(AmountError::Zero);
        }
        let units = units_of(whole, fraction).filter(|units| *units <= LARGEST);
        Ok(Self {
            text: text.to_owned(),
            units: units.ok_or(AmountError::OutOfRange)?,
        })
    }

    /// The text that the partner wrote.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number in units of 10^-8.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.units
    }
}

impl fmt::Debug for SessionAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Splits a text into whole and fractional digits if it obeys the grammar.
fn split(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (text, ""),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let shaped = !whole.is_empty() && digits(whole) && digits(fraction);
    (shaped && fraction.len() <= DIGITS).then_some((whole, fraction))
}

/// The number in units of 10^-8; `None` if it does not fit into 64 bits. Ignores leading zeros.
fn units_of(whole: &str, fraction: &str) -> Option<u64> {
    let zeros = std::iter::repeat_n(b'0', DIGITS.checked_sub(fraction.len())?);
    let mut digits = whole.bytes().chain(fraction.bytes()).chain(zeros);
    digits.try_fold(0_u64, |sum, digit| {
        sum.checked_mul(10)?
            .checked_add(u64::from(digit.checked_sub(b'0')?))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // rule: gate.session.amount-grammar, gate.session.amount-as-sent
    #[test]
    fn amount_keeps_its_text() {
        for (text, units) in [
            ("1", 100_000_000),
            ("100.00", 10_000_000_000),
            ("0.00000001", 1),
            ("007.50", 750_000_000),
            ("10000000000", LARGEST),
            ("10000000000.00000000", LARGEST),
        ] {
            let amount = SessionAmount::parse(text).unwrap();
            assert_eq!((amount.as_str(), amount.units()), (text, units));
        }
        let long = format!("{}1", "0".repeat(1_000));
        assert_eq!(SessionAmount::parse(&long).unwrap().units(), 100_000_000);
    }

    // rule: gate.session.amount-grammar
    #[test]
    fn amount_outside_grammar_is_refused() {
        for bad in [
            "",
            ".",
            ".5",
            "1.",
            "1.2.3",
            "-1",
            "+1",
            "1e3",
            "0x10",
            " 1",
            "1 ",
            "1,5",
            "1_000",
            "٣",
            "NaN",
            "inf",
            "1.000000000",
            "½",
        ] {
            assert_eq!(
                SessionAmount::parse(bad),
                Err(AmountError::Malformed),
                "{bad}"
            );
        }
        for zero in ["0", "0.0", "000.00000000"] {
            assert_eq!(SessionAmount::parse(zero), Err(AmountError::Zero), "{zero}");
        }
    }

    // rule: gate.session.amount-range
    #[test]
    fn large_amount_is_out_of_range_at_any_length() {
        let long = "9".repeat(5_000);
        for large in [
            "10000000000.00000001",
            "10000000001",
            "99999999999999999999",
            &long,
        ] {
            assert_eq!(SessionAmount::parse(large), Err(AmountError::OutOfRange));
        }
    }

    proptest! {
        // rule: gate.session.amount-as-sent
        #[test]
        fn amount_in_grammar_parses(whole in 0..10_000_000_000_u64, fraction in "[0-9]{1,8}") {
            let text = format!("{whole}.{fraction}");
            let places = u32::try_from(8 - fraction.len()).unwrap();
            let units = whole * 100_000_000 + fraction.parse::<u64>().unwrap() * 10_u64.pow(places);
            match SessionAmount::parse(&text) {
                Ok(amount) => prop_assert_eq!((amount.as_str(), amount.units()), (&*text, units)),
                Err(error) => prop_assert_eq!((error, units), (AmountError::Zero, 0)),
            }
        }
    }
}
