//! Texts and numbers of the file with their own rules.

use iban::{Iban, IbanLike as _};
use rust_decimal::Decimal;

/// Maximum of a USDT figure, which is the balance limit of an account.
const LARGEST: i64 = 90_000_000_000;

/// Maximum fractional digits of a USDT figure, so that it is a whole number of stored units.
const DIGITS: u32 = kernel::UNITS_SCALE as u32;

/// The form that [`usdt`] accepts, for messages.
pub(crate) const USDT: &str =
    "a decimal from 0 to 90000000000 with at most 8 fractional digits, such as \"250000.5\"";

/// Parses a USDT figure: digits, optionally a dot and digits.
pub(crate) fn usdt(text: &str) -> Option<Decimal> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (text, ""),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let led = whole == "0" || !whole.starts_with('0');
    let shaped = !whole.is_empty() && led && digits(whole) && digits(fraction);
    let short = whole.len() <= 11 && fraction.len() <= usize::try_from(DIGITS).ok()?;
    if !(shaped && short) {
        return None;
    }
    let value = Decimal::from_str_exact(text).ok()?;
    (value <= Decimal::from(LARGEST)).then_some(value)
}

/// Parses a USDT figure into units of 10^-8 USDT.
pub(crate) fn usdt_units(text: &str) -> Option<i64> {
    let mut value = usdt(text)?;
    value.rescale(DIGITS);
    i64::try_from(value.mantissa()).ok()
}

/// Parses an IBAN, with or without the spaces of its printed form. It checks country, length and check digits, and
/// returns the IBAN without spaces.
pub(crate) fn iban(text: &str) -> Option<String> {
    let iban: Iban = text.parse().ok()?;
    Some(iban.electronic_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usdt_figures_are_read_exactly() {
        for (text, units) in [
            ("0", 0),
            ("10", 1_000_000_000),
            ("0.00000001", 1),
            ("250000.50", 25_000_050_000_000),
            ("90000000000", 9_000_000_000_000_000_000),
        ] {
            assert_eq!(usdt_units(text), Some(units), "{text}");
        }
        for bad in [
            "",
            "-1",
            "+1",
            "01",
            "1.",
            ".5",
            "1e3",
            "inf",
            "nan",
            "1_000",
            "1,5",
            " 1",
            "٣",
            "0.000000001",
            "90000000000.00000001",
            "100000000000",
        ] {
            assert_eq!(usdt_units(bad), None, "{bad}");
        }
    }

    #[test]
    fn ibans_are_checked_and_kept_without_spaces() {
        let plain = "DE89370400440532013000";
        assert_eq!(iban(plain).as_deref(), Some(plain));
        assert_eq!(iban("DE89 3704 0044 0532 0130 00").as_deref(), Some(plain));
        for bad in [
            "",
            "DE88370400440532013000",
            "DE8937040044053201300",
            "ZZ82WEST12345698765432",
            "DE89-3704-0044-0532-0130-00",
        ] {
            assert_eq!(iban(bad), None, "{bad}");
        }
    }
}
