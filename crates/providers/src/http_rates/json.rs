//! Finds a value in a response and parses its text. Numbers never pass through a float.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use kernel::{Bound, Timestamp};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A place in a document: a JSON Pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    /// Parses `/data/0/mid`. In a name, `~1` means a slash and `~0` a tilde. An empty pointer means the whole document.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let tokens = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(unescaped).collect::<Option<_>>()?,
            None if text.is_empty() => Vec::new(),
            None => return None,
        };
        Some(Self {
            text: text.to_owned(),
            tokens,
        })
    }

    /// The value at this place, if there is exactly one.
    pub(super) fn find<'d>(&self, document: &Document<'d>) -> Option<&'d RawValue> {
        let mut tokens = self.tokens.iter();
        tokens.try_fold(document.whole, |value, token| document.step(value, token))
    }

    /// Whether this place would be an item of a list that is empty.
    pub(super) fn is_in_empty_list(&self, document: &Document<'_>) -> bool {
        let mut value = document.whole;
        for token in &self.tokens {
            match document.step(value, token) {
                Some(next) => value = next,
                None => return is_empty_list(value) && token.parse::<usize>().is_ok(),
            }
        }
        false
    }
}

fn is_empty_list(value: &RawValue) -> bool {
    let items = value.get().strip_prefix('[');
    items.is_some_and(|items| items.trim_start().starts_with(']'))
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// Unescapes a name. Returns `None` if a tilde starts no valid escape.
fn unescaped(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (escaped, rest) = part.split_at_checked(1)?;
        name.push(match escaped {
            "0" => '~',
            "1" => '/',
            _ => return None,
        });
        name.push_str(rest);
    }
    Some(name)
}

/// A document that parses each object and each list once, however many pointers pass through it. A response may be long, and
/// every pair looks up values in it.
pub(super) struct Document<'d> {
    whole: &'d RawValue,
    /// The parsed objects and lists, by the address of their text.
    opened: RefCell<BTreeMap<usize, Opened<'d>>>,
}

/// The parts of an object or a list.
enum Opened<'d> {
    /// The members by name. A name that occurs twice maps to `None`, because parsers differ on which value counts.
    Object(BTreeMap<String, Option<&'d RawValue>>),
    List(Vec<&'d RawValue>),
}

impl<'d> Document<'d> {
    pub(super) const fn new(whole: &'d RawValue) -> Self {
        Self {
            whole,
            opened: RefCell::new(BTreeMap::new()),
        }
    }

    fn step(&self, value: &'d RawValue, token: &str) -> Option<&'d RawValue> {
        let mut opened = self.opened.borrow_mut();
        let begins = value.get().as_ptr().addr();
        let opened = opened.entry(begins).or_insert_with(|| Opened::of(value));
        match opened {
            Opened::Object(members) => *members.get(token)?,
            Opened::List(items) => {
                let plain = token == "0" || !token.starts_with(['0', '+']);
                let at = token.parse::<usize>().ok().filter(|_| plain)?;
                items.get(at).copied()
            }
        }
    }
}

impl<'d> Opened<'d> {
    /// Parses an object or a list. Any other value counts as an empty list.
    fn of(value: &'d RawValue) -> Self {
        let text = value.get();
        if text.starts_with('{') {
            let Members(members) = serde_json::from_str(text).unwrap_or_default();
            Self::Object(members)
        } else {
            Self::List(serde_json::from_str(text).unwrap_or_default())
        }
    }
}

/// The members of an object.
#[derive(Default)]
struct Members<'d>(BTreeMap<String, Option<&'d RawValue>>);

impl<'de: 'd, 'd> Deserialize<'de> for Members<'d> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    let of_name = members.entry(name);
                    of_name
                        .and_modify(|twice| *twice = None)
                        .or_insert(Some(value));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Each)
    }
}

/// The text of a number or a string.
fn text_of(value: &RawValue) -> Option<String> {
    let text = value.get();
    if text.starts_with('"') {
        return serde_json::from_str(text).ok();
    }
    let number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    number.then(|| text.to_owned())
}

/// Parses a price: a number or a numeric string, greater than zero, with all its digits.
pub(super) fn price(value: &RawValue) -> Option<Decimal> {
    let text = text_of(value)?;
    exact(&text).filter(|price| *price > Decimal::ZERO)
}

/// Parses a decimal, with or without an exponent. Returns `None` if a digit would be lost.
fn exact(text: &str) -> Option<Decimal> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = Decimal::from_str_exact(digits).ok().filter(|_| plain)?;
    let scale = i32::try_from(value.scale()).ok()?.checked_sub(exponent)?;
    let (mantissa, scale) = match u32::try_from(scale) {
        Ok(scale) => (value.mantissa(), scale),
        Err(_) => {
            let more = 10_i128.checked_pow(scale.unsigned_abs())?;
            (value.mantissa().checked_mul(more)?, 0)
        }
    };
    Decimal::try_from_i128_with_scale(mantissa, scale).ok()
}

kernel::closed_list! {
    /// The format of an instant.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum TimeForm {
        /// RFC 3339 text.
        Rfc3339 = "rfc3339",
        /// Seconds since 1970.
        Seconds = "seconds",
        /// Milliseconds since 1970.
        Milliseconds = "milliseconds",
    }
}

impl TimeForm {
    pub(super) fn read(self, value: &RawValue) -> Option<Timestamp> {
        let text = text_of(value)?;
        let per = match self {
            Self::Rfc3339 => return Timestamp::parse(&text, Bound::Upper).ok(),
            Self::Seconds => 1000,
            Self::Milliseconds => 1,
        };
        let millis = exact(&text)?.checked_mul(Decimal::from(per))?.trunc();
        Timestamp::from_millis(i64::try_from(millis).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    // rule: rates.http.exact
    #[test]
    fn numbers_are_parsed_exactly() {
        for (text, value) in [
            ("1.0850", "1.085"),
            ("\"1.0850\"", "1.085"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("1.2600000000000000000000001", "1.2600000000000000000000001"),
            ("1.05e-05", "0.0000105"),
            ("12E2", "1200"),
            ("1.25e+1", "12.5"),
            ("60000", "60000"),
        ] {
            let read = price(&raw(text)).map(|price| price.normalize().to_string());
            assert_eq!(read.as_deref(), Some(value), "{text}");
        }
        for bad in [
            "0",
            "-1",
            "\"\"",
            "\"-1\"",
            "\" 1\"",
            "\"1,5\"",
            "\"1_0\"",
            "\"NaN\"",
            "true",
            "null",
            "[1]",
            "1e400",
            "1e-40",
            "1.00000000000000000000000000001",
            "\"+1\"",
        ] {
            assert_eq!(price(&raw(bad)), None, "{bad}");
        }
    }

    // rule: rates.http.pointer
    #[test]
    fn pointer_finds_value_only_if_unique() {
        let text = raw(r#"{"a":{"b/c":[10,{"~":1.10}]},"twice":1,"twice":2,"":7,"m~n":8}"#);
        let document = Document::new(&text);
        for (pointer, found) in [
            ("/a/b~1c/0", Some("10")),
            ("/a/b~1c/1/~0", Some("1.10")),
            ("/", Some("7")),
            ("/m~0n", Some("8")),
            ("/twice", None),
            ("/a/b~1c/2", None),
            ("/a/b~1c/00", None),
            ("/a/b~1c/+1", None),
            ("/a/b~1c/-", None),
            ("/a/none", None),
            ("/a/b~1c/0/x", None),
        ] {
            let value = Pointer::parse(pointer).unwrap();
            let value = value.find(&document).map(RawValue::get);
            assert_eq!(value, found, "{pointer}");
        }
        let whole = Pointer::parse("").unwrap();
        let number = raw("1.5");
        let found = whole.find(&Document::new(&number));
        assert_eq!(found.map(RawValue::get), Some("1.5"));
        for bad in ["a", "a/b", "/~", "/~2", "/a~"] {
            assert_eq!(Pointer::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn place_is_in_empty_list_only_if_it_would_be_an_item() {
        let text = raw(r#"{"b":[ ],"a":[[]],"c":[1],"d":{},"e":"[]"}"#);
        let document = Document::new(&text);
        for (pointer, expected) in [
            ("/b/0", true),
            ("/b/0/0", true),
            ("/a/0/1", true),
            ("/b", false),
            ("/b/price", false),
            ("/a/1", false),
            ("/c/1", false),
            ("/d/0", false),
            ("/e/0", false),
            ("/none/0", false),
        ] {
            let place = Pointer::parse(pointer).unwrap();
            assert_eq!(place.is_in_empty_list(&document), expected, "{pointer}");
        }
    }

    #[test]
    fn long_response_is_parsed_once_for_all_pairs() {
        let pairs = (0..8000)
            .map(|pair| format!(r#""P{pair}":{{"bid":["1.0849","3"],"ask":["1.0851","1"]}}"#));
        let text = format!(
            r#"{{"result":{{{}}}}}"#,
            pairs.collect::<Vec<_>>().join(",")
        );
        let text = raw(&text);
        let look_up = |pairs: usize| {
            let begun = Instant::now();
            let document = Document::new(&text);
            for pair in 0..pairs {
                let bid = Pointer::parse(&format!("/result/P{pair}/bid/0")).unwrap();
                assert!(bid.find(&document).is_some());
            }
            begun.elapsed()
        };
        let quickest = |pairs| (0..3).map(|_| look_up(pairs)).min().unwrap();
        let (one, many) = (quickest(1), quickest(64));
        assert!(many < one * 10, "{many:?} for 64, {one:?} for one");
    }

    #[test]
    fn instants_are_read_in_three_forms() {
        let at = Timestamp::from_millis(1_779_710_400_250).unwrap();
        for (form, text) in [
            ("rfc3339", "\"2026-05-25T12:00:00.250Z\""),
            ("rfc3339", "\"2026-05-25T14:00:00.250+02:00\""),
            ("seconds", "1779710400.25"),
            ("seconds", "\"1779710400.2509\""),
            ("milliseconds", "1779710400250"),
            ("milliseconds", "1.779710400250e12"),
        ] {
            let form = TimeForm::parse(form).unwrap();
            assert_eq!(form.read(&raw(text)), Some(at), "{text}");
        }
        for (form, text) in [
            ("rfc3339", "1779710400"),
            ("seconds", "\"now\""),
            ("seconds", "1e20"),
            ("seconds", "null"),
        ] {
            assert_eq!(
                TimeForm::parse(form).unwrap().read(&raw(text)),
                None,
                "{text}"
            );
        }
    }
}
