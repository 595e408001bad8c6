//! The error type of the HTTP layer, and its envelope.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use kernel::{StoreError, causes};
use serde::Serialize;

use crate::service_info::ServiceInfo;

/// The `type` of the envelope: what a client branches on first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The request must change.
    InvalidRequest,
    /// The credential is missing or unknown.
    Unauthorized,
    /// The credential is known but not allowed to do this.
    Forbidden,
    /// The partner has no such object.
    NotFound,
    /// The object's state does not allow it.
    Conflict,
    /// Too many requests, or too much money in the window.
    RateLimited,
    /// Not the client's fault.
    ServerError,
}

impl Kind {
    /// The kind of a status. A code may override it.
    #[must_use]
    pub fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 => Self::RateLimited,
            500.. => Self::ServerError,
            _ => Self::InvalidRequest,
        }
    }

    /// The text in the envelope.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
        }
    }
}

/// The message of a 5xx. The cause is logged under the request id.
const GENERIC: &str = "Something went wrong on our side. Retry with bounded backoff; a write keeps its Idempotency-Key.";

/// A refusal or a failure that becomes an error envelope.
///
/// The outermost layer renders it, because only that layer knows the request id. The type is boxed
/// to keep the results of the HTTP crates small.
#[derive(Debug, Clone)]
pub struct ApiError(Box<Fields>);

#[derive(Debug, Clone)]
struct Fields {
    status: StatusCode,
    kind: Kind,
    code: &'static str,
    message: Cow<'static, str>,
    headers: HeaderMap,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl ApiError {
    /// Any status with any code; the kind follows from the status.
    #[must_use]
    pub fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Fields {
            status,
            kind: Kind::of(status),
            code,
            message: message.into(),
            headers: HeaderMap::new(),
            cause: None,
        }))
    }

    /// 400 with a specific code.
    #[must_use]
    pub fn invalid(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 400 `invalid_request`. The message names the field and the expected value.
    #[must_use]
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid("invalid_request", message)
    }

    /// 401 `unauthorized`.
    #[must_use]
    pub fn unauthorized(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 402: the balance cannot cover the order.
    #[must_use]
    pub fn payment_required(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::PAYMENT_REQUIRED, code, message)
    }

    /// 403 with a specific code.
    #[must_use]
    pub fn forbidden(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// 404 `resource_not_found`, with a message that names the kind of object, such as `pool`.
    ///
    /// An unknown object and another partner's object give the same message, so it does not mention
    /// the id.
    #[must_use]
    pub fn not_found(kind: &str) -> Self {
        Self::not_found_as("resource_not_found", format!("No such {kind}."))
    }

    /// 404 with a specific code.
    #[must_use]
    pub fn not_found_as(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// 409 with a specific code.
    #[must_use]
    pub fn conflict(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 429 with the code of the limit.
    #[must_use]
    pub fn rate_limited(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message)
    }

    /// 500 `internal_error`. The cause is logged with its whole chain and never sent.
    #[must_use]
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", GENERIC).caused_by(cause)
    }

    /// 501: the capability is not enabled, and a retry does not enable it.
    #[must_use]
    pub fn not_implemented(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, code, message)
    }

    /// 503 with a code and the seconds to wait before a retry.
    #[must_use]
    pub fn unavailable(
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
        retry_after: u32,
    ) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(retry_after))
    }

    /// 503 `overloaded`: a queue is full and the request had no effect.
    #[must_use]
    pub fn overloaded() -> Self {
        Self::unavailable(
            "overloaded",
            "The service is busy. Nothing was changed; retry shortly.",
            1,
        )
    }

    /// 503 `overloaded`: the connection is over a limit and the request is not a health check.
    pub(crate) fn connections_taken() -> Self {
        Self::unavailable(
            "overloaded",
            "Too many connections are open. Nothing was changed; retry shortly, over fewer connections.",
            1,
        )
        .closing()
    }

    /// Overrides the kind of the status.
    #[must_use]
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Attaches a cause for the log.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(Arc::from(cause.into()));
        self
    }

    /// Closes the connection after this response, because the rest of the request is unread.
    #[must_use]
    pub(crate) fn closing(self) -> Self {
        self.with_header(header::CONNECTION, HeaderValue::from_static("close"))
    }

    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Whether the service failed. A capability that is not enabled is a refusal like a 4xx,
    /// despite its 501.
    pub(crate) fn is_fault(&self) -> bool {
        self.0.status.is_server_error() && self.0.status != StatusCode::NOT_IMPLEMENTED
    }

    /// The `type` of the envelope.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The `code` of the envelope, which is also the metric label.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// The `message` of the envelope.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The headers that this error adds to its response.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// All causes in one line, outermost first; `None` if there is no cause.
    #[must_use]
    pub fn cause_chain(&self) -> Option<String> {
        Some(causes(self.0.cause.as_deref()?))
    }

    /// The envelope with its six documented fields, as JSON.
    #[must_use]
    pub fn envelope(&self, request_id: &str, site: &ServiceInfo) -> Bytes {
        let fields = Envelope {
            kind: self.0.kind,
            code: self.0.code,
            message: &self.0.message,
            request_id,
            doc_url: &site.doc_url(self.0.code),
            status_code: self.0.status.as_u16(),
        };
        // Serializing texts and one number cannot fail.
        Bytes::from(serde_json::to_vec(&fields).unwrap_or_default())
    }
}

/// The JSON of every error, in the documented field order.
#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    code: &'a str,
    message: &'a str,
    request_id: &'a str,
    doc_url: &'a str,
    #[serde(rename = "statusCode")]
    status_code: u16,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {}",
            self.0.status.as_u16(),
            self.0.code,
            self.0.message
        )
    }
}

impl Error for ApiError {}

impl IntoResponse for ApiError {
    /// Attaches the error to the response without a body. Only the outermost layer knows the
    /// request id.
    fn into_response(mut self) -> Response {
        let mut response = Response::default();
        *response.status_mut() = self.0.status;
        *response.headers_mut() = std::mem::take(&mut self.0.headers);
        response.extensions_mut().insert(self);
        response
    }
}

/// The response to a store error. An unknown commit is never a 4xx, because only a retry with the
/// same key can find the outcome.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        instruments::faults::of_store(&error);
        match &error {
            StoreError::Retry | StoreError::Overloaded => Self::overloaded().caused_by(error),
            StoreError::Unavailable(_) => {
                Self::unavailable("service_unavailable", GENERIC, 1).caused_by(error)
            }
            StoreError::CommitUnknown(_) => Self::unavailable(
                "outcome_unknown",
                "The outcome is not known yet. Retry under the same Idempotency-Key to find out.",
                1,
            )
            .caused_by(error),
            StoreError::Inconsistent { .. } | StoreError::Guard(_) | StoreError::Unexpected(_) => {
                Self::internal(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_info::testing::site;

    #[test]
    fn writes_the_six_fields_in_order() {
        let error = ApiError::invalid("amount_precision", "`amount` has too many digits.");
        let bytes = error.envelope("req_1", &site());
        assert_eq!(
            std::str::from_utf8(&bytes).unwrap(),
            r#"{"type":"invalid_request","code":"amount_precision","message":"`amount` has too many digits.","request_id":"req_1","doc_url":"http://pools.test/docs#amount_precision","statusCode":400}"#
        );
    }

    #[test]
    fn kind_follows_from_status() {
        for (status, kind) in [
            (400, "invalid_request"),
            (401, "unauthorized"),
            (402, "invalid_request"),
            (403, "forbidden"),
            (404, "not_found"),
            (405, "invalid_request"),
            (408, "invalid_request"),
            (409, "conflict"),
            (413, "invalid_request"),
            (415, "invalid_request"),
            (429, "rate_limited"),
            (431, "invalid_request"),
            (500, "server_error"),
            (501, "server_error"),
            (503, "server_error"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Kind::of(status).as_str(), kind, "{status}");
            let written = serde_json::to_string(&Kind::of(status)).unwrap();
            assert_eq!(written, format!("\"{kind}\""));
        }
    }

    #[test]
    fn internal_error_hides_its_cause_and_keeps_its_chain() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::io::Error);

        let error = ApiError::from(StoreError::unexpected(Outer(std::io::Error::other(
            "inner",
        ))));
        assert_eq!(error.status(), 500);
        assert_eq!(error.code(), "internal_error");
        assert!(!error.message().contains("inner"));
        assert_eq!(
            error.cause_chain().unwrap(),
            "unexpected fault of the store: outer: inner"
        );
    }

    #[test]
    fn unknown_commit_is_a_server_error() {
        let error = ApiError::from(StoreError::CommitUnknown("gone".into()));
        assert_eq!(
            (error.status().as_u16(), error.code()),
            (503, "outcome_unknown")
        );
        assert!(error.headers().contains_key(header::RETRY_AFTER));
    }
}
