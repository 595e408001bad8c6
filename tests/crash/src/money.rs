//! Amounts as whole numbers of their smallest step, computed apart from the product.

/// The hundredths of an amount of euros as the service writes it: two decimals, a sign perhaps.
pub(crate) fn cents(text: &str) -> Option<i64> {
    scaled(text, 2)
}

/// What a purchase delivers: amount × rate, rounded down to a millionth.
pub(crate) fn bought(cents: i64, rate: &str) -> Option<i64> {
    let rate = i128::from(scaled(rate, 8)?);
    let product = i128::from(cents).checked_mul(rate)?;
    i64::try_from(product / 10_000).ok()
}

/// What a sale pays out: amount × rate, rounded down to a cent.
pub(crate) fn sold(millionths: i64, rate: &str) -> Option<i64> {
    let rate = i128::from(scaled(rate, 8)?);
    let product = i128::from(millionths).checked_mul(rate)?;
    i64::try_from(product / 1_000_000_000_000).ok()
}

/// The millionths of an amount of USDT.
pub(crate) fn millionths(text: &str) -> Option<i64> {
    scaled(text, 6)
}

/// A decimal string as an integer of `10^-digits`; `None` where it is finer or no number.
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
    fn amounts_are_read_exactly_or_not_at_all() {
        assert_eq!(cents("12.30"), Some(1230));
        assert_eq!(cents("-0.05"), Some(-5));
        assert_eq!(cents("7"), Some(700));
        assert_eq!(cents("1.234"), None);
        assert_eq!(cents(""), None);
        assert_eq!(millionths("107.90325"), Some(107_903_250));
    }

    #[test]
    fn what_is_bought_is_rounded_down() {
        assert_eq!(bought(10_000, "1.0790325"), Some(107_903_250));
        assert_eq!(bought(1, "1.07903259"), Some(10_790));
    }

    #[test]
    fn what_a_sale_pays_is_rounded_down() {
        assert_eq!(sold(100_000_000, "0.91658986"), Some(9_165));
        assert_eq!(sold(10_000, "0.91658986"), Some(0));
    }
}
