//! JSON objects that Penstock stores and returns: it checks their size and keeps every digit.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::IgnoredAny;

/// Maximum size of an object as compact UTF-8, in bytes.
const LARGEST: usize = 16 * 1024;

/// Maximum number of metadata keys.
const METADATA_KEYS: usize = 50;

/// A JSON object as compact text. Its numbers keep their spelling.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonObject(String);

/// Why a JSON value is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    #[error("expected an object")]
    NotObject,
    /// An object without keys, although at least one is required.
    #[error("expected an object with at least one key")]
    Empty,
    /// More than 50 keys.
    #[error("expected at most 50 keys")]
    TooManyKeys,
    /// More than 16 KiB.
    #[error("expected at most 16 KiB")]
    TooLarge,
}

impl JsonObject {
    /// Parses metadata: at most 50 keys and 16 KiB.
    ///
    /// # Errors
    /// [`ObjectError`], checked in the order object, keys, size.
    pub fn metadata(text: &str) -> Result<Self, ObjectError> {
        let (object, keys) = read(text)?;
        if keys > METADATA_KEYS {
            return Err(ObjectError::TooManyKeys);
        }
        object.within_bounds()
    }

    /// Parses a KYC package: at least one key and at most 16 KiB.
    ///
    /// # Errors
    /// [`ObjectError`], checked in the order object, keys, size.
    pub fn kyc_package(text: &str) -> Result<Self, ObjectError> {
        let (object, keys) = read(text)?;
        if keys == 0 {
            return Err(ObjectError::Empty);
        }
        object.within_bounds()
    }

    /// Parses the form of a verification or the answers to it: at most 16 KiB.
    ///
    /// # Errors
    /// [`ObjectError`], checked in the order object, size.
    pub fn form(text: &str) -> Result<Self, ObjectError> {
        read(text)?.0.within_bounds()
    }

    /// The empty object: the default of metadata.
    #[must_use]
    pub fn empty() -> Self {
        Self("{}".to_owned())
    }

    /// An object read from the store, from the text of [`JsonObject::as_str`].
    #[must_use]
    pub fn stored(text: &str) -> Option<Self> {
        read(text).ok().map(|(object, _)| object)
    }

    /// The compact text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn within_bounds(self) -> Result<Self, ObjectError> {
        if self.0.len() > LARGEST {
            Err(ObjectError::TooLarge)
        } else {
            Ok(self)
        }
    }
}

/// The content may be personal data, so `Debug` omits it.
impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonObject({} bytes)", self.0.len())
    }
}

/// Parses an object into compact form, with the number of its keys.
fn read(text: &str) -> Result<(JsonObject, usize), ObjectError> {
    let keys: BTreeMap<String, IgnoredAny> =
        serde_json::from_str(text).map_err(|_| ObjectError::NotObject)?;
    let compact = compact(text).ok_or(ObjectError::NotObject)?;
    Ok((JsonObject(compact), keys.len()))
}

/// Valid JSON without whitespace between tokens and with the shortest spelling of strings. Numbers are never
/// converted to binary floats.
fn compact(text: &str) -> Option<String> {
    let mut compact = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if next == '"' {
            let (string, behind) = rest.split_at_checked(string_end(rest)?)?;
            let value: String = serde_json::from_str(string).ok()?;
            compact.push_str(&serde_json::to_string(&value).ok()?);
            rest = behind;
        } else {
            if !next.is_ascii_whitespace() {
                compact.push(next);
            }
            rest = rest.get(next.len_utf8()..)?;
        }
    }
    Some(compact)
}

/// The length of the string at the start of a text, including both quotes.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    let closing = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    closing.checked_add(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn metadata(text: &str) -> Result<String, ObjectError> {
        JsonObject::metadata(text).map(|object| object.as_str().to_owned())
    }

    // rule: gate.session.metadata-exact
    #[test]
    fn numbers_stay_digit_for_digit() {
        let written = "{ \"a\" : 1.10, \"b\":\t1e400,\n\"c\":[ -0, 12345678901234567890.5 ],\
                       \"d \\\" e\": {\"f\\u00e9\": \"x  y\", \"g\\\\\": null} }";
        assert_eq!(
            metadata(written).unwrap(),
            "{\"a\":1.10,\"b\":1e400,\"c\":[-0,12345678901234567890.5],\"d \\\" e\":{\"fé\":\"x  y\",\"g\\\\\":null}}"
        );
        let kept = metadata(written).unwrap();
        assert_eq!(JsonObject::stored(&kept).unwrap().as_str(), kept);
    }

    // rule: gate.session.metadata
    #[test]
    fn metadata_has_bounds() {
        let keys = |count: usize| {
            let all: Vec<String> = (0..count)
                .map(|key| format!("\"k{key}\":{{\"n\":1}}"))
                .collect();
            format!("{{{}}}", all.join(","))
        };
        assert!(metadata(&keys(50)).is_ok());
        assert_eq!(metadata(&keys(51)), Err(ObjectError::TooManyKeys));
        let sized = |bytes: usize| format!("{{ \"a\" : \"{}\" }}", "x".repeat(bytes - 8));
        assert_eq!(metadata(&sized(16_384)).unwrap().len(), 16_384);
        assert_eq!(metadata(&sized(16_385)), Err(ObjectError::TooLarge));
        assert_eq!(metadata("{}").unwrap(), "{}");
        // The limit counts UTF-8 bytes, not escape sequences.
        let escaped = format!("{{\"a\":\"{}\"}}", "\\u00e9".repeat(8_000));
        assert_eq!(metadata(&escaped).unwrap().len(), 16_008);
        for bad in ["[]", "1", "\"a\"", "null", "", "{", "{\"a\":\"\\ud800\"}"] {
            assert_eq!(metadata(bad), Err(ObjectError::NotObject), "{bad}");
        }
    }

    // rule: gate.session.kyc-package
    #[test]
    fn kyc_package_requires_one_key() {
        let package = JsonObject::kyc_package(" { \"level\" : 2 } ").unwrap();
        assert_eq!(package.as_str(), "{\"level\":2}");
        assert_eq!(format!("{package:?}"), "JsonObject(11 bytes)");
        assert_eq!(JsonObject::kyc_package("{}"), Err(ObjectError::Empty));
        assert_eq!(JsonObject::kyc_package("[1]"), Err(ObjectError::NotObject));
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(16_384));
        assert_eq!(JsonObject::kyc_package(&large), Err(ObjectError::TooLarge));
    }

    // rule: gate.verification.form
    #[test]
    fn form_is_bounded_by_size_alone() {
        let many: Vec<String> = (0..60).map(|key| format!("\"k{key}\":1")).collect();
        assert!(JsonObject::form(&format!("{{{}}}", many.join(","))).is_ok());
        assert!(JsonObject::form("{}").is_ok());
        assert_eq!(JsonObject::form("[1]"), Err(ObjectError::NotObject));
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(JsonObject::form(&sized(16_384)).is_ok());
        assert_eq!(JsonObject::form(&sized(16_385)), Err(ObjectError::TooLarge));
    }

    proptest! {
        // rule: gate.session.metadata-exact
        #[test]
        fn compact_text_means_the_same(key in ".{0,20}", value in ".{0,40}", number in -1_000_000..1_000_000_i64) {
            let object = serde_json::json!({ key: [value, number, { "n": [] }] });
            let pretty = serde_json::to_string_pretty(&object).unwrap();
            let compact = metadata(&pretty).unwrap();
            prop_assert_eq!(&compact, &serde_json::to_string(&object).unwrap());
            prop_assert_eq!(metadata(&compact).unwrap(), compact);
        }
    }
}
