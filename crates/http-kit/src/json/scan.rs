//! Reads a JSON text into a tree that keeps numbers exactly as sent.
//!
//! `serde_json` decides what is well-formed. This module refuses what JSON allows and two readers understand differently: duplicate keys,
//! NUL characters, lone surrogates and deep nesting. A number is never turned into a float: a number of a million digits stays text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep objects and arrays may nest.
pub(crate) const MAX_DEPTH: usize = 32;

/// A value and its source text.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) raw: &'a str,
    pub(crate) value: Value<'a>,
}

/// A value by its type.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    /// A number; [`Node`] has its text.
    Number,
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    /// Takes the place of a missing field. It reads as an empty or zero value of any type.
    StandIn,
}

/// Why a text is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScanError {
    #[error("The body is empty; a JSON object is expected.")]
    Empty,
    #[error("The body begins with a byte order mark.")]
    ByteOrderMark,
    #[error("The body is not valid UTF-8.")]
    NotUtf8,
    #[error("The body must be a JSON object.")]
    NotAnObject,
    #[error("The body is nested deeper than {MAX_DEPTH} levels.")]
    TooDeep,
    #[error("The body contains a NUL character.")]
    Nul,
    #[error("The body contains a lone surrogate.")]
    LoneSurrogate,
    #[error("The key `{0}` stands twice in one object.")]
    DuplicateKey(String),
    #[error("The body is not well-formed JSON at byte {0}.")]
    Malformed(usize),
}

/// Reads a body that must be one JSON object.
pub(crate) fn read_object(bytes: &[u8]) -> Result<Node<'_>, ScanError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(ScanError::ByteOrderMark);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ScanError::NotUtf8)?;
    if text.contains('\0') {
        return Err(ScanError::Nul);
    }
    if text.trim_ascii().is_empty() {
        return Err(ScanError::Empty);
    }
    let whole: &RawValue =
        serde_json::from_str(text).map_err(|error| ScanError::Malformed(byte_of(&error, text)))?;
    let node = read(whole, 0)?;
    match node.value {
        Value::Object(_) => Ok(node),
        _ => Err(ScanError::NotAnObject),
    }
}

/// The index of the byte that is wrong. A text that ends too early is wrong at its end.
fn byte_of(error: &serde_json::Error, text: &str) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let lines = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1)
}

/// Reads a value that is well-formed. Each level is scanned again by its parent, [`MAX_DEPTH`] times at most.
fn read(whole: &RawValue, depth: usize) -> Result<Node<'_>, ScanError> {
    let raw = whole.get();
    let value = match raw.as_bytes().first() {
        Some(b'{' | b'[') if depth == MAX_DEPTH => return Err(ScanError::TooDeep),
        Some(b'{') => Value::Object(object(raw, depth)?),
        Some(b'[') => {
            let items: Vec<&RawValue> = parse(raw)?;
            let items = items.into_iter().map(|item| read(item, depth + 1));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::Text(without_nul(parse::<Text<'_>>(raw)?)?),
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'n') => Value::Null,
        _ => Value::Number,
    };
    Ok(Node { raw, value })
}

fn object(raw: &str, depth: usize) -> Result<Vec<(Cow<'_, str>, Node<'_>)>, ScanError> {
    let Members(members) = parse(raw)?;
    let mut seen = HashSet::with_capacity(members.len());
    if let Some((Text(key), _)) = members.iter().find(|(key, _)| !seen.insert(&key.0)) {
        return Err(ScanError::DuplicateKey(key.chars().take(64).collect()));
    }
    let members = members.into_iter();
    let members = members.map(|(key, value)| Ok((without_nul(key)?, read(value, depth + 1)?)));
    members.collect()
}

/// Parses a part of a text that is known to be well-formed. What is left to find is a string that is no Unicode text.
fn parse<'a, T: Deserialize<'a>>(raw: &'a str) -> Result<T, ScanError> {
    serde_json::from_str(raw).map_err(|_| ScanError::LoneSurrogate)
}

fn without_nul(Text(text): Text<'_>) -> Result<Cow<'_, str>, ScanError> {
    if text.contains('\0') {
        return Err(ScanError::Nul);
    }
    Ok(text)
}

/// A string, borrowed from the body if it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object in their order, with duplicates.
struct Members<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Theirs;

    use super::*;

    fn error(text: &str) -> ScanError {
        read_object(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn scanner_accepts_well_formed_objects() {
        for good in [
            "{}",
            " \t\r\n{ \"a\" : [ 1 , -0.5e+10 , true , false , null , \"x\" ] , \"b\" : { } } ",
            r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83c\udf0a é 🌊 "}"#,
            r#"{"a":1e400,"b":-0,"c":0.0000000000000000000000000000000000001}"#,
            "{\"a\":\"\u{2028}\u{202e}\u{7f}\"}",
        ] {
            assert!(read_object(good.as_bytes()).is_ok(), "{good}");
        }
        let long = format!("{{\"a\":{}}}", "9".repeat(1_000_000));
        let node = read_object(long.as_bytes()).unwrap();
        let Value::Object(members) = node.value else {
            panic!("an object")
        };
        assert_eq!(members[0].1.raw.len(), 1_000_000);
    }

    #[test]
    fn scanner_decodes_strings() {
        let text = r#"{"a\u0062":"x\n\ud83c\udf0ay"}"#;
        let node = read_object(text.as_bytes()).unwrap();
        assert_eq!(node.raw, text);
        let Value::Object(members) = node.value else {
            panic!("an object")
        };
        assert_eq!(members[0].0, "ab");
        assert!(matches!(&members[0].1.value, Value::Text(text) if text == "x\n🌊y"));
    }

    #[test]
    fn scanner_names_each_refusal() {
        assert_eq!(error(""), ScanError::Empty);
        assert_eq!(error(" \n"), ScanError::Empty);
        assert_eq!(error("\u{feff}{}"), ScanError::ByteOrderMark);
        assert_eq!(
            read_object(b"{\"a\":\"\xff\"}").unwrap_err(),
            ScanError::NotUtf8
        );
        assert_eq!(
            read_object(b"{\"a\":\"\xc0\x80\"}").unwrap_err(),
            ScanError::NotUtf8
        );
        assert_eq!(
            read_object(b"{\"a\":\"\xed\xa0\x80\"}").unwrap_err(),
            ScanError::NotUtf8
        );
        for other in ["[]", "1", "\"x\"", "null", "true"] {
            assert_eq!(error(other), ScanError::NotAnObject);
        }
        assert_eq!(error("{\"a\":\"\0\"}"), ScanError::Nul);
        assert_eq!(error(r#"{"a":"x\u0000"}"#), ScanError::Nul);
        assert_eq!(error(r#"{"\u0000":1}"#), ScanError::Nul);
        assert_eq!(error("{}\0"), ScanError::Nul);
        assert_eq!(error("{}\n  {}"), ScanError::Malformed(5));
        assert_eq!(error("{\"a\":nul}"), ScanError::Malformed(8));
        assert_eq!(error("{\"a\":"), ScanError::Malformed(5));
        for lone in [
            r#"\ud800"#,
            r#"\udc00"#,
            r#"\ud800x"#,
            r#"\ud800\n"#,
            r#"\ud800\ud800"#,
        ] {
            assert_eq!(
                error(&format!("{{\"a\":\"{lone}\"}}")),
                ScanError::LoneSurrogate
            );
        }
    }

    #[test]
    fn scanner_refuses_invalid_json() {
        for bad in [
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "{\"a\":01}",
            "{\"a\":+1}",
            "{\"a\":.5}",
            "{\"a\":1.}",
            "{\"a\":1e}",
            "{\"a\":-}",
            "{\"a\":NaN}",
            "{\"a\":nul}",
            "{\"a\":[1,]}",
            "{\"a\":[}",
            "{\"a\":\"x}",
            "// {}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\u12g4\"}",
            "{\"a\":\"\n\"}",
            "{\"a\" 1}",
            "{,}",
            "{\"a\":Infinity}",
            "{\"a\":\u{a0}1}",
        ] {
            assert!(
                matches!(error(bad), ScanError::Malformed(_)),
                "{bad}: {:?}",
                error(bad)
            );
        }
    }

    #[test]
    fn scanner_finds_duplicate_keys_at_any_depth() {
        let key = |text: &str| ScanError::DuplicateKey(text.to_owned());
        assert_eq!(error(r#"{"a":1,"a":1}"#), key("a"));
        assert_eq!(error(r#"{"a":1,"\u0061":2}"#), key("a"));
        assert_eq!(error(r#"{"x":[{"b":{},"c":1,"b":{}}]}"#), key("b"));
        assert!(read_object(br#"{"a":{"a":1},"b":{"a":1},"A":1}"#).is_ok());
        let many: Vec<String> = (0..6000).map(|n| format!("\"k{n}\":0")).collect();
        let text = format!("{{{}}}", many.join(","));
        assert!(read_object(text.as_bytes()).is_ok());
        let text = format!("{{{},\"k77\":0}}", many.join(","));
        assert_eq!(error(&text), key("k77"));
    }

    #[test]
    fn scanner_stops_at_depth_limit() {
        let nested = |depth: usize| {
            let inner = depth - 1;
            format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
        };
        assert!(read_object(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(error(&nested(MAX_DEPTH + 1)), ScanError::TooDeep);
        let deepest = nested(32_000);
        assert_eq!(error(&deepest), ScanError::TooDeep);
    }

    /// Any document, as a `serde_json` value.
    fn document() -> impl Strategy<Value = Theirs> {
        let text = || "[^\\x00]{0,12}";
        let leaf = prop_oneof![
            Just(Theirs::Null),
            any::<bool>().prop_map(Theirs::from),
            any::<i64>().prop_map(Theirs::from),
            text().prop_map(Theirs::from),
        ];
        let value = leaf.prop_recursive(5, 40, 6, move |inner| {
            let members = prop::collection::btree_map(text(), inner.clone(), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Theirs::from),
                members.prop_map(|members| Theirs::Object(members.into_iter().collect())),
            ]
        });
        let members = prop::collection::btree_map(text(), value, 0..6);
        members.prop_map(|members| Theirs::Object(members.into_iter().collect()))
    }

    fn same(ours: &Node<'_>, theirs: &Theirs) -> bool {
        match (&ours.value, theirs) {
            (Value::Null, Theirs::Null) => true,
            (Value::Bool(one), Theirs::Bool(other)) => one == other,
            (Value::Number, Theirs::Number(other)) if !other.is_f64() => {
                ours.raw == other.to_string()
            }
            (Value::Number, Theirs::Number(other)) => {
                let (one, other): (f64, f64) = (ours.raw.parse().unwrap(), other.as_f64().unwrap());
                // `serde_json` rounds fractions differently in a few of the last bits.
                one.to_bits().abs_diff(other.to_bits()) <= 8
            }
            (Value::Text(one), Theirs::String(other)) => one == other,
            (Value::Array(one), Theirs::Array(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| same(one, other))
            }
            (Value::Object(one), Theirs::Object(other)) => {
                let told = |(key, value): &(Cow<'_, str>, Node<'_>)| {
                    other
                        .get(key.as_ref())
                        .is_some_and(|other| same(value, other))
                };
                one.len() == other.len() && one.iter().all(told)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn document_written_by_serde_json_reads_the_same(document in document(), indented in any::<bool>()) {
            let text = if indented { format!("{document:#}") } else { document.to_string() };
            let node = read_object(text.as_bytes()).unwrap();
            prop_assert_eq!(node.raw, &text);
            prop_assert!(same(&node, &document), "{}", text);
        }

        /// The scanner accepts no text that `serde_json` refuses, except numbers out of range, and
        /// reads the same values.
        #[test]
        fn changed_document_is_refused_or_read_the_same(document in document(), at in any::<prop::sample::Index>(), put in "[\\[\\]{}:,\"0-9eE.+a-z\\\\ -]{0,2}") {
            let mut text: Vec<char> = document.to_string().chars().collect();
            let at = at.index(text.len());
            text.splice(at..=at, put.chars());
            let text: String = text.into_iter().collect();
            if let Ok(node) = read_object(text.as_bytes()) {
                match serde_json::from_str(&text) {
                    Ok(theirs) => prop_assert!(same(&node, &theirs), "{}", text),
                    Err(error) => prop_assert!(error.to_string().starts_with("number out of range"), "{}: {}", error, text),
                }
            }
        }
    }
}
