//! Amounts as whole numbers of their smallest step, computed independently of the product.

/// Parses the service's euro amount into hundredths: two decimals, with an optional sign.
pub(crate) fn cents(text: &str) -> Option<i64> {
    scaled(text, 2)
}

/// Computes what a purchase delivers: amount × rate, rounded down to a millionth.
pub(crate) fn bought(cents: i64, rate: &str) -> Option<i64> {
    let rate = i128::from(scaled(rate, 8)?);
    let product = i128::from(cents).checked_mul(rate)?;
    i64::try_from(product / 10_000).ok()
}

/// Computes what a sale pays out: amount × rate, rounded down to a cent.
pub(crate) fn sold(millionths: i64, rate: &str) -> Option<i64> {
    let rate = i128::from(scaled(rate, 8)?);
    let product = i128::from(millionths).checked_mul(rate)?;
    i64::try_from(product / 1_000_000_000_000).ok()
}

/// Parses an amount of USDT into millionths.
pub(crate) fn millionths(text: &str) -> Option<i64> {
    scaled(text, 6)
}

/// Parses a decimal string into an integer of `10^-digits`; `None` if it is finer or not a number.
fn scaled(text: &str, digits: usize) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || fraction.len() > digits {
        return None;
    }
    let number: i64 = format!("{whole}{fraction:0<digits$}").parse().ok()?;
    number.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_parse_exactly_or_fail() {
        assert_eq!(cents("12.30"), Some(1230));
        assert_eq!(cents("-0.05"), Some(-5));
        assert_eq!(cents("7"), Some(700));
        assert_eq!(cents("1.234"), None);
        assert_eq!(cents(""), None);
        assert_eq!(millionths("107.90325"), Some(107_903_250));
    }

    #[test]
    fn purchase_is_rounded_down() {
        assert_eq!(bought(10_000, "1.0790325"), Some(107_903_250));
        assert_eq!(bought(1, "1.07903259"), Some(10_790));
    }

    #[test]
    fn sale_payout_is_rounded_down() {
        assert_eq!(sold(100_000_000, "0.91658986"), Some(9_165));
        assert_eq!(sold(10_000, "0.91658986"), Some(0));
    }
}
