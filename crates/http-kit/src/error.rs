//! The error type of the HTTP layer, and its envelope.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use kernel::{StoreError, causes};
use serde::Serialize;

use crate::codes;
use crate::error_code::{ErrorCode, Kind};
use crate::service_info::ServiceInfo;
use crate::throttle::whole_seconds;

/// The message of a 5xx. The cause is logged under the request id.
const GENERIC: &str = "Something went wrong on our side. Retry with bounded backoff; a write keeps its Idempotency-Key.";

/// A refusal or a failure that becomes an error envelope.
///
/// The outermost layer renders it, because only that layer knows the request id. The type is boxed
/// to keep the results of the HTTP crates small.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} {}: {}", .0.code.status.as_u16(), .0.code.text, .0.message)]
pub struct ApiError(Box<Fields>);

#[derive(Debug, Clone)]
struct Fields {
    code: &'static ErrorCode,
    message: Cow<'static, str>,
    headers: HeaderMap,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl ApiError {
    /// An error with a code. The message is for people: it names the field and the expected value.
    #[must_use]
    pub fn new(code: &'static ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Fields {
            code,
            message: message.into(),
            headers: HeaderMap::new(),
            cause: None,
        }))
    }

    /// 400 `invalid_request`. The message names the field and the expected value.
    #[must_use]
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(codes::INVALID_REQUEST, message)
    }

    /// 404 `resource_not_found`, with a message that names the kind of object, such as `pool`.
    ///
    /// An unknown object and another partner's object give the same message, so it does not mention
    /// the id.
    #[must_use]
    pub fn not_found(kind: &str) -> Self {
        Self::new(codes::RESOURCE_NOT_FOUND, format!("No such {kind}."))
    }

    /// 500 `internal_error`. The cause is logged with its whole chain and never sent.
    #[must_use]
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(codes::INTERNAL_ERROR, GENERIC).caused_by(cause)
    }

    /// A 503 that a client may retry after a second.
    #[must_use]
    pub fn unavailable(code: &'static ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code, message).with_header(header::RETRY_AFTER, HeaderValue::from(1))
    }

    /// 503 `overloaded`: a queue is full and the request had no effect.
    #[must_use]
    pub fn overloaded() -> Self {
        Self::unavailable(
            codes::OVERLOADED,
            "The service is busy. Nothing was changed; retry shortly.",
        )
    }

    /// 503 `overloaded`: the connection is over a limit and the request is not a health check.
    pub(crate) fn connections_taken() -> Self {
        Self::unavailable(
            codes::OVERLOADED,
            "Too many connections are open. Nothing was changed; retry shortly, over fewer connections.",
        )
        .closing()
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Adds `Retry-After`: whole seconds, at least one.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        let seconds = whole_seconds(wait).max(1);
        self.with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
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
        self.0.code.status
    }

    /// Whether the service failed. A capability that is not enabled is a refusal like a 4xx,
    /// despite its 501.
    pub(crate) fn is_fault(&self) -> bool {
        self.status().is_server_error() && self.status() != StatusCode::NOT_IMPLEMENTED
    }

    /// The `type` of the envelope.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.code.kind
    }

    /// The `code` of the envelope, which is also the metric label.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code.text
    }

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
            kind: self.kind().as_str(),
            code: self.code(),
            message: &self.0.message,
            request_id,
            doc_url: &site.doc_url(self.code()),
            status_code: self.status().as_u16(),
        };
        // Serializing texts and one number cannot fail.
        Bytes::from(serde_json::to_vec(&fields).unwrap_or_default())
    }
}

/// The JSON of every error, in the documented field order.
#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    code: &'a str,
    message: &'a str,
    request_id: &'a str,
    doc_url: &'a str,
    #[serde(rename = "statusCode")]
    status_code: u16,
}

impl IntoResponse for ApiError {
    /// Attaches the error to the response without a body. Only the outermost layer knows the
    /// request id.
    fn into_response(mut self) -> Response {
        let mut response = Response::default();
        *response.status_mut() = self.status();
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
                Self::unavailable(codes::SERVICE_UNAVAILABLE, GENERIC).caused_by(error)
            }
            StoreError::CommitUnknown(_) => Self::unavailable(
                codes::OUTCOME_UNKNOWN,
                "The outcome is not known yet. Retry under the same Idempotency-Key to find out.",
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
