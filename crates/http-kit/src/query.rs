//! Reads query strings. Known parameters are strict, unknown parameters are ignored.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use kernel::{Bound, Timestamp};

use crate::error::ApiError;

/// The decoded query of a request.
///
/// A parameter that a route reads must not be repeated.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Decodes a raw query string.
    ///
    /// # Errors
    /// 400 if a percent escape is invalid or the decoded text is not UTF-8.
    pub fn read(raw: &str) -> Result<Self, ApiError> {
        let mut pairs = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self { pairs })
    }

    /// The names of the parameters, in the order of the query.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(name, _)| name.as_str())
    }

    /// A parameter's text; `None` if the query does not have the parameter.
    ///
    /// # Errors
    /// 400 if the parameter is repeated or contains a NUL.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, ApiError> {
        let mut found = self.pairs.iter().filter(|(known, _)| known == name);
        let Some((_, value)) = found.next() else {
            return Ok(None);
        };
        if found.next().is_some() {
            return Err(error(name, "must not be repeated"));
        }
        if value.contains('\0') {
            return Err(error(name, "must not contain a NUL character"));
        }
        Ok(Some(value))
    }

    /// An integer within a range.
    ///
    /// # Errors
    /// 400 if the parameter is not an integer or is out of range.
    pub fn integer(
        &self,
        name: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        let read = |text: &str| match read_integer(text).map(u32::try_from) {
            Some(Ok(value)) if range.contains(&value) => Ok(value),
            _ => Err(outside(name, &range)),
        };
        self.text(name)?.map(read).transpose()
    }

    /// An integer, clamped to a range.
    ///
    /// # Errors
    /// 400 if the parameter is not an integer.
    pub fn clamped(
        &self,
        name: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ApiError> {
        let read = |text: &str| -> Result<u32, ApiError> {
            let value = read_integer(text).ok_or_else(|| error(name, "must be an integer"))?;
            let value = u32::try_from(value.max(0)).unwrap_or(u32::MAX);
            Ok(value.clamp(*range.start(), *range.end()))
        };
        self.text(name)?.map(read).transpose()
    }

    /// One of the allowed values, as its Rust value.
    ///
    /// # Errors
    /// 400 with a message that lists the allowed values.
    pub fn one_of<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*value));
        }
        let list: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        Err(error(name, &format!("must be one of {}", list.join(", "))))
    }

    /// An instant that is a bound of a range.
    ///
    /// # Errors
    /// 400, with a hint if a `+` was decoded to a space.
    pub fn instant(&self, name: &'static str, bound: Bound) -> Result<Option<Timestamp>, ApiError> {
        self.parsed(name, |text| Timestamp::parse(text, bound))
    }

    /// Any other value. The parser's error describes the expected value.
    ///
    /// # Errors
    /// 400 with the parser's message.
    pub fn parsed<T, E: Display>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, ApiError> {
        let parsed = self.text(name)?.map(parse).transpose();
        parsed.map_err(|expected| {
            ApiError::invalid_request(format!("Query parameter `{name}`: {expected}."))
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

/// Parses digits with an optional minus. A number beyond 64 bits is still an integer, so it becomes
/// the largest or smallest `i64`.
fn read_integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let beyond = if negative { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(beyond))
}

fn outside(name: &'static str, range: &RangeInclusive<u32>) -> ApiError {
    let expected = format!(
        "must be an integer from {} to {}",
        range.start(),
        range.end()
    );
    error(name, &expected)
}

fn error(name: &'static str, expected: &str) -> ApiError {
    ApiError::invalid_request(format!("Query parameter `{name}` {expected}."))
}

fn decode(text: &str) -> Result<String, ApiError> {
    let bytes = percent_decode(text).ok_or_else(|| {
        ApiError::invalid_request("The query string has a broken percent escape.")
    })?;
    String::from_utf8(bytes.into_owned())
        .map_err(|_| ApiError::invalid_request("The query string is not valid UTF-8."))
}

/// Decodes percent escapes and `+`; `None` if an escape is invalid.
pub(crate) fn percent_decode(text: &str) -> Option<Cow<'_, [u8]>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            plain => plain,
        });
    }
    Some(Cow::Owned(decoded))
}

pub(crate) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::read(raw).unwrap()
    }

    fn message(error: &ApiError) -> &str {
        assert_eq!(
            (error.status().as_u16(), error.code()),
            (400, "invalid_request")
        );
        error.message()
    }

    #[test]
    fn query_ignores_unknown_and_refuses_repeated_parameters() {
        let read = query("utm=1&utm=2&limit=5&limit=6&side=on%5Framp&&=x&flag");
        assert_eq!(read.text("side").unwrap(), Some("on_ramp"));
        assert_eq!(read.text("cursor").unwrap(), None);
        assert_eq!(read.text("flag").unwrap(), Some(""));
        assert_eq!(
            message(&read.integer("limit", 1..=100).unwrap_err()),
            "Query parameter `limit` must not be repeated."
        );
    }

    #[test]
    fn query_refuses_invalid_encodings() {
        for raw in ["a=%", "a=%4", "a=%zz", "%ff=1", "a=%c0%80", "x=%ed%a0%80"] {
            assert_eq!(Query::read(raw).unwrap_err().status(), 400, "{raw}");
        }
        assert!(query("a=%00").text("a").is_err());
        assert_eq!(query("a=%F0%9F%8C%8A+%2B").text("a").unwrap(), Some("🌊 +"));
    }

    #[test]
    fn integers_are_parsed_exactly() {
        let limit = |raw: &str| query(&format!("limit={raw}")).integer("limit", 1..=100);
        assert_eq!(limit("1").unwrap(), Some(1));
        assert_eq!(limit("100").unwrap(), Some(100));
        assert_eq!(limit("007").unwrap(), Some(7));
        for bad in [
            "",
            "0",
            "101",
            "-1",
            "1.0",
            "1e1",
            "%2B5",
            "5 ",
            "٣",
            "99999999999999999999",
        ] {
            let error = limit(bad).unwrap_err();
            assert_eq!(
                message(&error),
                "Query parameter `limit` must be an integer from 1 to 100.",
                "{bad}"
            );
        }
        let clamped = |raw: &str| query(&format!("limit={raw}")).clamped("limit", 1..=200);
        assert_eq!(clamped("0").unwrap(), Some(1));
        assert_eq!(clamped("-99999999999999999999").unwrap(), Some(1));
        assert_eq!(clamped("99999999999999999999").unwrap(), Some(200));
        assert!(clamped("ten").is_err());
    }

    #[test]
    fn errors_name_allowed_values_and_plus_hint() {
        let sides = [("on_ramp", 1), ("off_ramp", 2)];
        let read = query("side=sideways&created_after=2026-05-25T12:00:00+02:00");
        assert_eq!(
            message(&read.one_of("side", &sides).unwrap_err()),
            "Query parameter `side` must be one of `on_ramp`, `off_ramp`."
        );
        assert_eq!(
            query("side=off_ramp").one_of("side", &sides).unwrap(),
            Some(2)
        );
        let error = read.instant("created_after", Bound::Lower).unwrap_err();
        assert!(message(&error).contains("%2B"), "{error}");
    }
}
