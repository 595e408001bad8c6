//! A strict JSON reader that keeps the text of numbers.
//!
//! It refuses JSON that is legal but ambiguous or harmful: duplicate keys, NUL characters, lone
//! surrogates, deep nesting. It never converts a number to a float, so a number of a million digits
//! stays text.

use std::borrow::Cow;
use std::fmt;

use crate::query::hex;

/// How deep objects and arrays may nest.
pub(crate) const MAX_DEPTH: usize = 32;

/// A value and its source text.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) raw: &'a str,
    pub(crate) value: Value<'a>,
}

/// A JSON value.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    /// A number; [`Node`] has its text.
    Number,
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Why a text is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScanError {
    Empty,
    ByteOrderMark,
    NotUtf8,
    NotAnObject,
    TooDeep,
    Nul,
    LoneSurrogate,
    DuplicateKey(String),
    TrailingCharacters(usize),
    Malformed(usize),
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("The body is empty; a JSON object is expected."),
            Self::ByteOrderMark => f.write_str("The body begins with a byte order mark."),
            Self::NotUtf8 => f.write_str("The body is not valid UTF-8."),
            Self::NotAnObject => f.write_str("The body must be a JSON object."),
            Self::TooDeep => write!(f, "The body is nested deeper than {MAX_DEPTH} levels."),
            Self::Nul => f.write_str("The body contains a NUL character."),
            Self::LoneSurrogate => f.write_str("The body contains a lone surrogate."),
            Self::DuplicateKey(key) => write!(f, "The key `{key}` stands twice in one object."),
            Self::TrailingCharacters(at) => {
                write!(f, "There is more after the end of the JSON, at byte {at}.")
            }
            Self::Malformed(at) => write!(f, "The body is not well-formed JSON at byte {at}."),
        }
    }
}

/// Reads a body that must be one JSON object.
pub(crate) fn read_object(bytes: &[u8]) -> Result<Node<'_>, ScanError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(ScanError::ByteOrderMark);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ScanError::NotUtf8)?;
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_space();
    if scanner.peek().is_none() {
        return Err(ScanError::Empty);
    }
    let node = scanner.value(0)?;
    scanner.skip_space();
    if scanner.peek().is_some() {
        return Err(ScanError::TrailingCharacters(scanner.at));
    }
    if matches!(node.value, Value::Object(_)) {
        Ok(node)
    } else {
        Err(ScanError::NotAnObject)
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn value(&mut self, depth: usize) -> Result<Node<'a>, ScanError> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.malformed()),
        };
        Ok(Node {
            raw: self.since(start),
            value,
        })
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, ScanError> {
        if depth == MAX_DEPTH {
            return Err(ScanError::TooDeep);
        }
        self.at += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.malformed());
            }
            let key = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            let node = self.value(depth + 1)?;
            members.push((key, node));
            self.skip_space();
            if self.take(b'}') {
                refuse_duplicates(&members)?;
                return Ok(Value::Object(members));
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, ScanError> {
        if depth == MAX_DEPTH {
            return Err(ScanError::TooDeep);
        }
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            self.expect(b',')?;
        }
    }

    /// Reads a string. Borrows the text if it has no escapes, which is nearly always.
    fn string(&mut self) -> Result<Cow<'a, str>, ScanError> {
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut plain = start;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = self.since(plain);
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(rest),
                        Some(mut text) => {
                            text.push_str(rest);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_with(String::new);
                    text.push_str(self.since(plain));
                    self.at += 1;
                    let letter = self.escape()?;
                    text.push(letter);
                    plain = self.at;
                }
                Some(0) => return Err(ScanError::Nul),
                Some(0x01..=0x1f) | None => return Err(self.malformed()),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, ScanError> {
        let letter = match self.peek() {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.malformed()),
        };
        self.at += 1;
        Ok(letter)
    }

    fn unicode(&mut self) -> Result<char, ScanError> {
        let first = self.four_digits()?;
        match first {
            0 => Err(ScanError::Nul),
            0xd800..=0xdbff => {
                if !(self.take(b'\\') && self.take(b'u')) {
                    return Err(ScanError::LoneSurrogate);
                }
                let second = self.four_digits()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(ScanError::LoneSurrogate);
                }
                let scalar = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                char::from_u32(scalar).ok_or(ScanError::LoneSurrogate)
            }
            _ => char::from_u32(first).ok_or(ScanError::LoneSurrogate),
        }
    }

    fn four_digits(&mut self) -> Result<u32, ScanError> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(hex).ok_or_else(|| self.malformed())?;
            value = value << 4 | u32::from(digit);
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value<'a>, ScanError> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Value::Number)
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.malformed());
        }
        Ok(())
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, ScanError> {
        for byte in word.bytes() {
            self.expect(byte)?;
        }
        Ok(value)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text since this position. The scanner stops only after ASCII bytes, so the slice always
    /// exists.
    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn malformed(&self) -> ScanError {
        if self.peek() == Some(0) {
            ScanError::Nul
        } else {
            ScanError::Malformed(self.at)
        }
    }
}

/// Refuses duplicate keys. Compares a few keys with each other but sorts many, so that a body of
/// many keys costs no more than reading it.
fn refuse_duplicates(members: &[(Cow<'_, str>, Node<'_>)]) -> Result<(), ScanError> {
    const FEW: usize = 12;
    let twice = if members.len() <= FEW {
        members.iter().enumerate().find_map(|(at, (key, _))| {
            let earlier = members.iter().take(at);
            earlier.map(|(other, _)| other).find(|other| *other == key)
        })
    } else {
        let mut keys: Vec<&Cow<'_, str>> = members.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.windows(2).find_map(|pair| match pair {
            [first, second] if first == second => Some(*first),
            _ => None,
        })
    };
    match twice {
        None => Ok(()),
        Some(key) => Err(ScanError::DuplicateKey(key.chars().take(64).collect())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Theirs;

    use super::*;

    fn fault(text: &str) -> ScanError {
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
        assert_eq!(fault(""), ScanError::Empty);
        assert_eq!(fault(" \n"), ScanError::Empty);
        assert_eq!(fault("\u{feff}{}"), ScanError::ByteOrderMark);
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
            assert_eq!(fault(other), ScanError::NotAnObject);
        }
        assert_eq!(fault("{\"a\":\"\0\"}"), ScanError::Nul);
        assert_eq!(fault(r#"{"a":"x\u0000"}"#), ScanError::Nul);
        assert_eq!(fault(r#"{"\u0000":1}"#), ScanError::Nul);
        assert_eq!(fault("{}\0"), ScanError::TrailingCharacters(2));
        assert_eq!(fault("{} {}"), ScanError::TrailingCharacters(3));
        for lone in [
            r#"\ud800"#,
            r#"\udc00"#,
            r#"\ud800x"#,
            r#"\ud800\n"#,
            r#"\ud800\ud800"#,
        ] {
            assert_eq!(
                fault(&format!("{{\"a\":\"{lone}\"}}")),
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
                matches!(fault(bad), ScanError::Malformed(_)),
                "{bad}: {:?}",
                fault(bad)
            );
        }
    }

    #[test]
    fn scanner_finds_duplicate_keys_at_any_depth() {
        let key = |text: &str| ScanError::DuplicateKey(text.to_owned());
        assert_eq!(fault(r#"{"a":1,"a":1}"#), key("a"));
        assert_eq!(fault(r#"{"a":1,"\u0061":2}"#), key("a"));
        assert_eq!(fault(r#"{"x":[{"b":{},"c":1,"b":{}}]}"#), key("b"));
        assert!(read_object(br#"{"a":{"a":1},"b":{"a":1},"A":1}"#).is_ok());
        let many: Vec<String> = (0..6000).map(|n| format!("\"k{n}\":0")).collect();
        let text = format!("{{{}}}", many.join(","));
        assert!(read_object(text.as_bytes()).is_ok());
        let text = format!("{{{},\"k77\":0}}", many.join(","));
        assert_eq!(fault(&text), key("k77"));
    }

    #[test]
    fn scanner_stops_at_depth_limit() {
        let nested = |depth: usize| {
            let inner = depth - 1;
            format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
        };
        assert!(read_object(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(fault(&nested(MAX_DEPTH + 1)), ScanError::TooDeep);
        assert_eq!(fault(&"{\"a\":".repeat(20_000)), ScanError::TooDeep);
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
                    Err(fault) => prop_assert!(fault.to_string().starts_with("number out of range"), "{}: {}", fault, text),
                }
            }
        }
    }
}
