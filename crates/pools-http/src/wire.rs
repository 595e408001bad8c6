//! JSON shapes that several resources share, and the text form of domain values.

use kernel::Timestamp;
use rust_decimal::Decimal;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A decimal as a JSON number, written digit by digit and never converted to a float.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonNumber(pub(crate) Decimal);

impl Serialize for JsonNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.normalize().to_string();
        RawValue::from_string(text)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

/// An instant as RFC 3339 in UTC with milliseconds.
pub(crate) fn instant(at: Timestamp) -> String {
    at.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_is_a_json_number_with_unchanged_digits() {
        for (text, json) in [
            ("10", "10"),
            ("10.50", "10.5"),
            ("0.1", "0.1"),
            ("100000", "100000"),
            ("0.30000000000000000001", "0.30000000000000000001"),
        ] {
            let number = JsonNumber(Decimal::from_str_exact(text).unwrap());
            assert_eq!(serde_json::to_string(&number).unwrap(), json);
        }
    }
}
