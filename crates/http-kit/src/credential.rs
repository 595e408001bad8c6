//! Reads the API key of a request.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use partner_core::key::{KeyKind, PresentedKey};

use crate::class::Class;
use crate::codes;
use crate::error::ApiError;
use crate::query::{Query, hex};

/// Finds the key: `Authorization: Bearer`, then `X-Secret-Key`, then `X-Publishable-Key`.
///
/// On a route for publishable keys, the query's `publishable_key` comes last.
///
/// # Errors
/// - 401 `secret_key_in_query`: the query string contains a secret key, even if a header has a
///   valid key. Access logs may contain the query by now.
/// - 401 `unauthorized`: the key is missing or malformed, or its header is repeated.
pub(crate) fn read(
    query: Option<&str>,
    headers: &HeaderMap,
    class: Class,
) -> Result<PresentedKey, ApiError> {
    refuse_exposed_key(query)?;
    if let Some(value) = single(headers, &header::AUTHORIZATION, REPEATED_KEY)?
        && let Some(token) = bearer(value)
    {
        return parse(token).ok_or_else(unknown);
    }
    for (name, kind) in [
        (HeaderName::from_static("x-secret-key"), KeyKind::Secret),
        (
            HeaderName::from_static("x-publishable-key"),
            KeyKind::Publishable,
        ),
    ] {
        if let Some(value) = single(headers, &name, REPEATED_KEY)? {
            return parse(value.as_bytes())
                .filter(|key| key.kind == kind)
                .ok_or_else(unknown);
        }
    }
    let in_query = match class {
        Class::Publishable => of_query(query.unwrap_or_default()),
        Class::AnyKey | Class::Secret | Class::Entitled | Class::Embedded | Class::Sandbox => None,
    };
    in_query.unwrap_or_else(|| Err(missing(headers.get(header::AUTHORIZATION))))
}

/// The schemes that an error may name. Any other text of `Authorization` may be a credential, so no error repeats it.
const OTHER_SCHEMES: [&str; 4] = ["Basic", "Digest", "Token", "ApiKey"];

/// 401 for a request without a key. The message says what `Authorization` has in place of `Bearer`.
fn missing(authorization: Option<&HeaderValue>) -> ApiError {
    let value = authorization.map(|value| value.as_bytes().trim_ascii());
    let value = value.unwrap_or_default();
    let mut words = value.split(|byte| *byte == b' ');
    let scheme = words.next().unwrap_or_default();
    let known = OTHER_SCHEMES
        .into_iter()
        .find(|known| known.as_bytes().eq_ignore_ascii_case(scheme));
    let found: Cow<'static, str> = match known {
        _ if value.is_empty() => "An API key is required:".into(),
        Some(known) => format!("`Authorization: {known} …` is not accepted;").into(),
        None if words.next().is_none() => "`Authorization` has one word without a scheme;".into(),
        None => "`Authorization` has another scheme than `Bearer`;".into(),
    };
    ApiError::new(
        codes::UNAUTHORIZED,
        format!("{found} send `Authorization: Bearer <API key>`."),
    )
}

/// Finds the token of a widget: the header `X-Embed-Token`.
///
/// # Errors
/// - 401 `secret_key_in_query`, as of [`read`].
/// - 401 `unauthorized`: the header is missing, repeated or not ASCII.
pub(crate) fn read_token<'h>(
    query: Option<&str>,
    headers: &'h HeaderMap,
) -> Result<&'h str, ApiError> {
    refuse_exposed_key(query)?;
    let name = HeaderName::from_static("x-embed-token");
    let value = single(headers, &name, REPEATED_TOKEN)?;
    value
        .and_then(|value| value.to_str().ok())
        .ok_or_else(dead_token)
}

/// 401 for a token that is missing, not genuine, expired or ended by newer ones. The response is the same for all of them.
#[must_use]
pub fn dead_token() -> ApiError {
    ApiError::new(
        codes::UNAUTHORIZED,
        "The `X-Embed-Token` header must hold a token of a bootstrap that is still valid. Bootstrap the widget again.",
    )
}

fn refuse_exposed_key(query: Option<&str>) -> Result<(), ApiError> {
    if query.is_some_and(exposes_secret_key) {
        return Err(ApiError::new(
            codes::SECRET_KEY_IN_QUERY,
            "A secret key must never stand in a query string. Revoke this key and send its successor in the `Authorization` header.", // plain: allow
        ));
    }
    Ok(())
}

/// The query's `publishable_key`; `None` if the query has no such parameter. [`read`] has refused
/// secret keys before.
fn of_query(query: &str) -> Option<Result<PresentedKey, ApiError>> {
    let query = match Query::read(query) {
        Ok(query) => query,
        Err(_) => return Some(Err(unknown())),
    };
    match query.text("publishable_key") {
        Ok(None) => None,
        Ok(Some(text)) => Some(PresentedKey::parse(text).ok_or_else(unknown)),
        Err(_) => Some(Err(unknown())),
    }
}

/// 401 for a malformed or unknown key. The response is the same for both, so that it does not show
/// how close a guess was.
pub(crate) fn unknown() -> ApiError {
    ApiError::new(codes::UNAUTHORIZED, "The API key is not valid.")
}

const REPEATED_KEY: &str = "The header that carries the API key must not be repeated.";
const REPEATED_TOKEN: &str = "The `X-Embed-Token` header must not be repeated.";

fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    repeated: &'static str,
) -> Result<Option<&'h HeaderValue>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(ApiError::new(codes::UNAUTHORIZED, repeated));
    }
    Ok(first)
}

/// The token after `Bearer` and its spaces; `None` for any other scheme.
fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer";
    let bytes = value.as_bytes();
    let (scheme, rest) = bytes.split_at_checked(SCHEME.len())?;
    let separate = rest.first().is_none_or(|byte| *byte == b' ');
    (scheme.eq_ignore_ascii_case(SCHEME) && separate).then(|| rest.trim_ascii())
}

fn parse(token: &[u8]) -> Option<PresentedKey> {
    PresentedKey::parse(std::str::from_utf8(token).ok()?)
}

/// Searches every level of percent encoding in one pass. A complete escape is decoded at once, and
/// the decoded byte may complete an earlier escape.
fn exposes_secret_key(query: &str) -> bool {
    let mut plain: Vec<u8> = Vec::with_capacity(query.len());
    for byte in query.bytes() {
        plain.push(byte);
        while let [.., b'%', high, low] = plain.as_slice()
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            plain.truncate(plain.len() - 3);
            plain.push(high << 4 | low);
        }
    }
    plain
        .windows(8)
        .any(|window| matches!(window, b"sk_test_" | b"sk_live_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk_test_0123456789abcdefABCDEF0123456789";
    const PUBLIC: &str = "pk_live_0123456789abcdefABCDEF0123456789";

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn repeated_header_is_named_in_its_refusal() {
        let twice = |name| headers(&[(name, "a"), (name, "a")]);
        let error = read_token(None, &twice("x-embed-token")).unwrap_err();
        assert_eq!(error.code(), "unauthorized");
        assert!(error.message().contains("`X-Embed-Token`"), "{error}");
        let error = read(None, &twice("x-secret-key"), Class::Secret).unwrap_err();
        assert!(error.message().contains("API key"), "{error}");
    }

    // rule: auth.names-scheme, auth.keys-never-logged
    #[test]
    fn refusal_names_scheme_and_never_credential() {
        let message = |value: &str| {
            let headers = headers(&[("authorization", value)]);
            let refused = read(None, &headers, Class::Secret).unwrap_err();
            assert_eq!(refused.code(), "unauthorized");
            let message = refused.message().to_owned();
            assert!(message.ends_with("send `Authorization: Bearer <API key>`."));
            assert!(!message.contains("c2tf") && !message.contains("sk_test"));
            message
        };
        let unspaced = format!("Bearer{SECRET}");
        let two_keys = format!("sk_test_1 {SECRET}");
        for (value, found) in [
            (
                "Basic c2tfdGVzdDo=",
                "`Authorization: Basic …` is not accepted",
            ),
            (
                "BASIC  c2tfdGVzdDo=",
                "`Authorization: Basic …` is not accepted",
            ),
            ("Basic", "`Authorization: Basic …` is not accepted"),
            (
                "token sk_test_1",
                "`Authorization: Token …` is not accepted",
            ),
            (SECRET, "`Authorization` has one word without a scheme"),
            (
                unspaced.as_str(),
                "`Authorization` has one word without a scheme",
            ),
            (
                two_keys.as_str(),
                "`Authorization` has another scheme than `Bearer`",
            ),
            ("", "An API key is required"),
            (" ", "An API key is required"),
        ] {
            let message = message(value);
            assert!(message.starts_with(found), "{message}");
        }
    }

    #[test]
    fn publishable_key_is_read_from_query_if_route_allows_it() {
        let escaped = PUBLIC.replace('_', "%5F");
        let nothing = HeaderMap::new();
        for query in [PUBLIC, &escaped] {
            let query = format!("a=b&publishable_key={query}");
            let key = read(Some(&query), &nothing, Class::Publishable).unwrap();
            assert_eq!(key.hash, PresentedKey::parse(PUBLIC).unwrap().hash);
            let error = read(Some(&query), &nothing, Class::Secret).unwrap_err();
            assert_eq!(error.code(), "unauthorized");
            let bearer = headers(&[("authorization", &format!("Bearer {SECRET}"))]);
            let key = read(Some(&query), &bearer, Class::Publishable).unwrap();
            assert_eq!(key.kind, KeyKind::Secret, "headers come first");
        }
        for query in [
            "publishable_key=".to_owned(),
            "publishable_key=pk_live_short".to_owned(),
            format!("publishable_key={PUBLIC}&publishable_key={PUBLIC}"),
            format!("publishable_key={PUBLIC}%"),
            format!("Publishable_Key={PUBLIC}"),
        ] {
            let error = read(Some(&query), &nothing, Class::Publishable).unwrap_err();
            assert_eq!(
                (error.status().as_u16(), error.code()),
                (401, "unauthorized")
            );
        }
    }

    #[test]
    fn secret_key_in_query_is_refused_in_any_encoding() {
        let good = headers(&[("authorization", &format!("Bearer {SECRET}"))]);
        for query in [
            format!("api_key={SECRET}"),
            SECRET.to_owned(),
            format!("a=b&x={}", SECRET.replace('_', "%5f")),
            format!("a=b&x={}", SECRET.replace('_', "%255F")),
            format!("a=b&x={}", SECRET.replace('_', "%25255F")),
            format!("x={}", SECRET.replace('s', "%7%33")),
            "x=sk%5Flive%5F".to_owned(),
            format!("x={}", "%25".repeat(9000) + "73k_test_"),
        ] {
            let error = read(Some(&query), &good, Class::Publishable).unwrap_err();
            assert_eq!(error.status(), 401);
            assert_eq!(error.code(), "secret_key_in_query", "{query}");
            let error = read_token(Some(&query), &good).unwrap_err();
            assert_eq!(error.code(), "secret_key_in_query", "{query}");
        }
        for query in [
            "",
            "publishable_key=pk_test_1",
            "x=sk_",
            "x=%",
            "x=%7",
            "x=%%%zz",
        ] {
            assert!(read(Some(query), &good, Class::Secret).is_ok(), "{query}");
        }
    }
}
