//! Request bodies as strict JSON.

#[cfg(test)]
mod fuzz;
mod missing;
mod read;
mod scan;

use std::fmt;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Visitor};

use crate::body;
use crate::codes;
use crate::error::ApiError;

pub use missing::UnknownFields;

/// A JSON body, parsed before the handler runs.
///
/// It must be the handler's last argument, so that the credential is checked first. A `null` is an
/// absent value for an `Option`. Unknown fields are ignored unless the type denies them. An invalid
/// body is 400 with a message that names the field.
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let bytes = body::read(request.into_body()).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body with its unknown fields, for routes that check for missing fields themselves.
#[derive(Debug, Clone)]
pub struct JsonWithUnknown<T>(pub T, pub UnknownFields);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonWithUnknown<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let bytes = body::read(request.into_body()).await?;
        missing::read(&bytes).map(|(value, unknown)| Self(value, unknown))
    }
}

/// A JSON body that may be absent.
#[derive(Debug, Clone, Copy)]
pub struct OptionalJson<T>(pub Option<T>);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let bytes = body::read(body).await?;
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        require_json(&parts.headers)?;
        parse(&bytes).map(|value| Self(Some(value)))
    }
}

/// Parses a body that must be one strict JSON object.
///
/// # Errors
/// - 400 `invalid_json`: the body is not strict JSON.
/// - 400 `invalid_request`: a field is invalid. The message names it and the expected value.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    missing::read(bytes).map(|(value, _)| value)
}

fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    body::refuse_encoded(headers)?;
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let json = match (types.next(), types.next()) {
        (Some(only), None) => {
            let essence = only.as_bytes().split(|byte| *byte == b';').next();
            essence.is_some_and(|essence| {
                essence
                    .trim_ascii()
                    .eq_ignore_ascii_case(b"application/json")
            })
        }
        _ => false,
    };
    if json {
        Ok(())
    } else {
        Err(ApiError::new(
            codes::UNSUPPORTED_MEDIA_TYPE,
            "The body must be sent with `Content-Type: application/json`.",
        ))
    }
}

/// A JSON value that is stored and returned unchanged. Numbers of any size keep every digit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJson(String);

impl RawJson {
    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The JSON text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<'de> Deserialize<'de> for RawJson {
    /// Works within [`Json`] only, whose reader has the text of each value.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = RawJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawJson, E> {
                Ok(RawJson(text.to_owned()))
            }
        }

        deserializer.deserialize_newtype_struct(read::RAW, Text)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use kernel::rates;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Order {
        amount: String,
        side: Side,
        fast: Option<bool>,
        limit: Option<u8>,
        parts: Option<Vec<Part>>,
        metadata: Option<RawJson>,
    }

    crate::words! {
        /// A closed list.
        Side of rates::Side, read by rates::Side::parse;
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Part {
        name: String,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Branding {
        #[serde(rename = "logo_url")]
        _logo_url: Option<String>,
        #[serde(rename = "brand_name")]
        _brand_name: Option<String>,
    }

    fn error<T: DeserializeOwned + fmt::Debug>(text: &str) -> (&'static str, String) {
        let error = parse::<T>(text.as_bytes()).unwrap_err();
        assert_eq!(error.status(), 400);
        (error.code(), error.message().to_owned())
    }

    fn order_fault(text: &str) -> String {
        let (code, message) = error::<Order>(text);
        assert_eq!(code, "invalid_request", "{message}");
        message
    }

    #[derive(Debug, Deserialize)]
    struct Whole {
        #[serde(rename = "firstName")]
        _first_name: String,
        #[serde(rename = "side")]
        _side: Side,
        #[serde(rename = "count")]
        _count: u32,
        #[serde(rename = "isFast")]
        _is_fast: bool,
        #[serde(rename = "parts")]
        _parts: Vec<Part>,
        #[serde(rename = "raw")]
        _raw: RawJson,
        #[serde(rename = "note")]
        _note: Option<String>,
    }

    // rule: error.all-missing
    #[test]
    fn parse_names_all_missing_fields_and_misspelt_ones() {
        let whole = |text: &str| error::<Whole>(text).1;
        assert_eq!(
            whole("{}"),
            "`firstName`, `side`, `count`, `isFast`, `parts` and `raw` are required."
        );
        assert_eq!(
            whole(r#"{"firstname":"a","side":null,"count":1,"isFast":true,"parts":[],"raw":1}"#),
            "`side` and `firstName` are required. `firstname` is no field of this request: did you mean `firstName`?"
        );
        assert_eq!(
            whole(
                r#"{"first_name":"a","side":"on_ramp","count":1,"isFast":true,"parts":[],"raw":1,"x":2}"#
            ),
            "`firstName` is required. `first_name` is no field of this request: did you mean `firstName`?"
        );
        // An invalid field is reported before missing fields, because it is read first.
        assert_eq!(whole(r#"{"count":"x"}"#), "`count` must be an integer.");
        // A missing field of a nested object is reported alone.
        let nested =
            r#"{"firstName":"a","side":"on_ramp","count":1,"isFast":true,"parts":[{}],"raw":1}"#;
        assert_eq!(whole(nested), "`parts[0].name` is required.");
    }

    #[test]
    fn parse_reads_known_fields_and_ignores_others() {
        let order: Order = parse(
            br#"{"amount":"1\u00300","side":"on_ramp","fast":null,"limit":7,"more":{"x":[1e400]},
                "parts":[{"name":"a"}],"metadata":{ "n": 1.10, "big": 1e400 }}"#,
        )
        .unwrap();
        assert_eq!(order.amount, "100");
        assert_eq!(order.side.0, rates::Side::OnRamp);
        assert_eq!((order.fast, order.limit), (None, Some(7)));
        let metadata = order.metadata.unwrap();
        assert_eq!(metadata.as_str(), r#"{ "n": 1.10, "big": 1e400 }"#);
    }

    #[test]
    fn parse_names_field_and_expected_value() {
        let cases = [
            (r#"{"side":"on_ramp"}"#, "`amount` is required."),
            (
                r#"{"amount":null,"side":"on_ramp"}"#,
                "`amount` is required.",
            ),
            (
                r#"{"amount":5,"side":"on_ramp"}"#,
                "`amount` must be a string such as \"100.00\".",
            ),
            (
                r#"{"amount":{},"side":"on_ramp"}"#,
                "`amount` must be a string such as \"100.00\".",
            ),
            (
                r#"{"amount":"5","side":"both"}"#,
                "`side` must be one of `on_ramp`, `off_ramp`.",
            ),
            (
                r#"{"amount":"5","side":["on_ramp"]}"#,
                "`side` must be a string.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","fast":"yes"}"#,
                "`fast` must be a boolean.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","limit":"1"}"#,
                "`limit` must be an integer.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","limit":256}"#,
                "`limit` must be an integer from 0 to 255.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","limit":1.0}"#,
                "`limit` must be an integer from 0 to 255.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","parts":{}}"#,
                "`parts` must be an array.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","parts":[{"name":"a"},{"name":1}]}"#,
                "`parts[1].name` must be a string.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","parts":[{}]}"#,
                "`parts[0].name` is required.",
            ),
            (
                r#"{"amount":"5","side":"on_ramp","parts":[1]}"#,
                "`parts[0]` must be an object.",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(order_fault(text), expected, "{text}");
        }
    }

    #[test]
    fn parse_lists_accepted_fields_if_type_denies_others() {
        let (code, message) = error::<Branding>(r#"{"brand":"x"}"#);
        assert_eq!(code, "invalid_request");
        assert_eq!(
            message,
            "`brand`: this field is not accepted here; the accepted fields are `logo_url`, `brand_name`."
        );
    }

    #[test]
    fn parse_separates_invalid_json_from_invalid_fields() {
        let (code, message) = error::<Order>(r#"{"amount":"1","amount":"2"}"#);
        assert_eq!(code, "invalid_json");
        assert_eq!(message, "The key `amount` stands twice in one object.");
        assert_eq!(error::<Order>("").0, "invalid_json");
        assert_eq!(error::<Order>("[]").0, "invalid_json");
    }

    #[tokio::test]
    async fn json_requires_content_type() {
        for (content_type, accepted) in [
            (Some("application/json"), true),
            (Some("Application/JSON; charset=utf-8"), true),
            (Some("application/json ;x"), true),
            (Some("text/plain"), false),
            (Some("application/jsonp"), false),
            (Some("application/x-www-form-urlencoded"), false),
            (None, false),
        ] {
            let mut request = Request::builder();
            if let Some(content_type) = content_type {
                request = request.header("content-type", content_type);
            }
            let request = request.body(Body::from(r#"{"name":"a"}"#)).unwrap();
            let read = Json::<Part>::from_request(request, &()).await;
            let code = read.map_or_else(|error| error.code(), |_| "accepted");
            let expected = if accepted {
                "accepted"
            } else {
                "unsupported_media_type"
            };
            assert_eq!(code, expected, "{content_type:?}");
        }
    }

    #[tokio::test]
    async fn optional_body_may_be_absent() {
        let absent = Request::new(Body::empty());
        let read = OptionalJson::<Part>::from_request(absent, &())
            .await
            .unwrap();
        assert_eq!(read.0, None);
        let encoded = Request::builder().header("content-type", "application/json");
        let encoded = encoded.header("content-encoding", "gzip");
        let encoded = encoded.body(Body::from("{}")).unwrap();
        let error = OptionalJson::<Part>::from_request(encoded, &())
            .await
            .unwrap_err();
        assert_eq!(error.code(), "unsupported_media_type");
        assert!(error.message().contains("gzip"), "{error}");
        let untyped = Request::new(Body::from("{}"));
        let error = OptionalJson::<Part>::from_request(untyped, &())
            .await
            .unwrap_err();
        assert_eq!(error.status(), 415);
    }
}
