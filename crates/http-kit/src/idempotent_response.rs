//! Responses that are replayed unchanged to a repeated request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use instruments::faults::{Violation, violated};
use kernel::RequestId;
use partner_core::stored_response::{IdempotentResponse, RenderError, RenderedResponse};
use serde::Serialize;

use crate::error::ApiError;
use crate::request_layer::X_REQUEST_ID;
use crate::warning::Warning;

/// Builds responses that can be stored, with the id of their request.
#[derive(Debug, Clone)]
pub struct ResponseBuilder(Option<RequestId>);

impl ResponseBuilder {
    /// A response with this status and body.
    ///
    /// # Errors
    /// [`RenderError`] if the request has no id or the body cannot be serialized. Neither happens
    /// in practice.
    pub fn json(
        &self,
        status: StatusCode,
        body: &impl Serialize,
    ) -> Result<RenderedResponse, RenderError> {
        let id = self
            .0
            .ok_or_else(|| RenderError("the request has no id".into()))?;
        let body = serde_json::to_vec(body).map_err(|error| RenderError(error.into()))?;
        let response = StoredParts {
            status: status.as_u16(),
            request_id: &id.to_string(),
            body: &body,
        };
        Ok(response.pack())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ResponseBuilder {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get().copied()))
    }
}

/// A response, first or replayed. Its status, request id and body stay unchanged. A replay to another body has a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentReply(pub IdempotentResponse);

impl IntoResponse for IdempotentReply {
    fn into_response(self) -> Response {
        let warning = match &self.0 {
            IdempotentResponse::First(_) => None,
            IdempotentResponse::Replayed { same_request, .. } => {
                instruments::http::repeated(*same_request);
                (!same_request).then(Warning::body_ignored)
            }
        };
        let stored = self.0.into_rendered();
        let parts = StoredParts::unpack(&stored);
        let response = parts.and_then(StoredParts::response).unwrap_or_else(|| {
            violated(Violation::Undoable);
            ApiError::internal("a stored response is malformed").into_response()
        });
        (warning, response).into_response()
    }
}

/// Whether a stored response can be replayed.
#[must_use]
pub fn is_well_formed(stored: &RenderedResponse) -> bool {
    let parts = StoredParts::unpack(stored);
    parts.and_then(StoredParts::response).is_some()
}

/// The parts of a stored response. Its form is one line with status and request id, then the body.
/// The form never changes, because a replay reads what older versions stored.
#[derive(Debug, PartialEq, Eq)]
struct StoredParts<'r> {
    status: u16,
    request_id: &'r str,
    body: &'r [u8],
}

impl<'r> StoredParts<'r> {
    fn pack(&self) -> RenderedResponse {
        let mut bytes = format!("{} {}\n", self.status, self.request_id).into_bytes();
        bytes.extend_from_slice(self.body);
        RenderedResponse(bytes)
    }

    fn unpack(response: &'r RenderedResponse) -> Option<Self> {
        let end = response.0.iter().position(|byte| *byte == b'\n')?;
        let (head, body) = response.0.split_at_checked(end)?;
        let (status, request_id) = std::str::from_utf8(head).ok()?.split_once(' ')?;
        Some(Self {
            status: status.parse().ok()?,
            request_id,
            body: body.get(1..)?,
        })
    }

    fn response(self) -> Option<Response> {
        let status = StatusCode::from_u16(self.status).ok()?;
        let id = HeaderValue::from_str(self.request_id).ok()?;
        let json = HeaderValue::from_static("application/json");
        let headers = [(header::CONTENT_TYPE, json), (X_REQUEST_ID, id)];
        Some((status, headers, self.body.to_vec()).into_response())
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::extract::Request;
    use axum::routing::{MethodRouter, post};
    use partner_core::events::Service;
    use serde_json::json;

    use super::*;
    use crate::request_layer::finish;
    use crate::service_info::testing::{call, site};

    async fn send(routes: MethodRouter) -> (axum::http::response::Parts, String) {
        let request = Request::post("/v1/write").body(Body::empty()).unwrap();
        let app = finish(
            Router::new().route("/v1/write", routes),
            Service::Gate,
            site(),
        );
        call(&app, request).await
    }

    // rule: idempotency.gate-replay, warning.body-ignored
    #[tokio::test]
    async fn replay_equals_first_response_to_the_byte() {
        let write = async |builder: ResponseBuilder| {
            let response = builder
                .json(StatusCode::CREATED, &json!({"a": "1"}))
                .unwrap();
            IdempotentReply(IdempotentResponse::First(response))
        };
        let (first, body) = send(post(write)).await;
        let id = first.headers["x-request-id"].to_str().unwrap().to_owned();
        assert_eq!(
            (first.status.as_u16(), body.as_str()),
            (201, r#"{"a":"1"}"#)
        );
        let response = StoredParts {
            status: 201,
            request_id: &id,
            body: body.as_bytes(),
        };
        let response = response.pack();
        for same_request in [true, false] {
            let response = response.clone();
            let repeat = move || {
                std::future::ready(IdempotentReply(IdempotentResponse::Replayed {
                    response: response.clone(),
                    same_request,
                }))
            };
            let (mut again, repeated) = send(post(repeat)).await;
            let warning = again.headers.remove("penstock-warning");
            assert_eq!(warning.is_none(), same_request, "{warning:?}");
            assert_eq!(
                (again.status, &again.headers),
                (first.status, &first.headers)
            );
            assert_eq!(repeated, body);
        }
    }

    // rule: idempotency.gate-replay
    #[test]
    fn stored_form_reads_back_to_the_byte() {
        for body in [&b""[..], b"{}", b"{\"a\":\"1\\n\"}\n\n\x00\xff"] {
            let parts = StoredParts {
                status: 201,
                request_id: "req_01HF7YAT00408104G208104081",
                body,
            };
            let stored = parts.pack();
            let head = b"201 req_01HF7YAT00408104G208104081\n";
            assert_eq!(stored.0, [head, body].concat());
            assert_eq!(StoredParts::unpack(&stored), Some(parts));
            assert!(is_well_formed(&stored));
        }
        for malformed in [&b""[..], b"201 req", b"req_1\n{}", b"201\n", b"x y\n"] {
            let stored = RenderedResponse(malformed.to_vec());
            assert_eq!(StoredParts::unpack(&stored), None, "{malformed:?}");
            assert!(!is_well_formed(&stored), "{malformed:?}");
        }
        for malformed in [&b"99 req_1\n{}"[..], b"201 req\x7f\n{}"] {
            let stored = RenderedResponse(malformed.to_vec());
            assert!(!is_well_formed(&stored), "{malformed:?}");
        }
    }
}
