//! Answers that a repeat of their request is given again, to the byte.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kernel::RequestId;
use partner_core::stored_response::{IdempotentResponse, RenderError, RenderedResponse};
use serde::Serialize;

use crate::error::ApiError;
use crate::request_layer::X_REQUEST_ID;

/// Makes answers that can be kept: it knows the id of the request they answer.
#[derive(Debug, Clone)]
pub struct ResponseBuilder(Option<RequestId>);

impl ResponseBuilder {
    /// The answer with this status and body.
    ///
    /// # Errors
    /// [`RenderError`]: none in practice.
    pub fn json(
        &self,
        status: StatusCode,
        body: &impl Serialize,
    ) -> Result<RenderedResponse, RenderError> {
        let id = self
            .0
            .ok_or_else(|| RenderError("the request has no id".into()))?;
        let body = serde_json::to_vec(body).map_err(|fault| RenderError(fault.into()))?;
        Ok(RenderedResponse {
            status: status.as_u16(),
            request_id: id.to_string(),
            body,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ResponseBuilder {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get().copied()))
    }
}

/// An answer on its way out, given now or given again: status, request id and body are its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentReply(pub IdempotentResponse);

impl IntoResponse for IdempotentReply {
    fn into_response(self) -> Response {
        if let IdempotentResponse::Replayed { same_request, .. } = &self.0 {
            instruments::http::repeated(*same_request);
        }
        let answer = self.0.into_rendered();
        let status = StatusCode::from_u16(answer.status);
        let id = HeaderValue::try_from(answer.request_id);
        match (status, id) {
            (Ok(status), Ok(id)) => {
                let json = HeaderValue::from_static("application/json");
                let headers = [(header::CONTENT_TYPE, json), (X_REQUEST_ID, id)];
                (status, headers, answer.body).into_response()
            }
            _ => ApiError::internal("a kept answer has no status or request id").into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::extract::Request;
    use axum::routing::post;
    use http_body_util::BodyExt;
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;
    use crate::request_layer::finish;
    use crate::service_info::testing::site;

    async fn send(app: Router) -> (axum::http::response::Parts, Vec<u8>) {
        let request = Request::post("/v1/write").body(Body::empty()).unwrap();
        let (parts, body) = app.oneshot(request).await.unwrap().into_parts();
        (parts, body.collect().await.unwrap().to_bytes().to_vec())
    }

    // rule: idempotency.gate-replay
    #[tokio::test]
    async fn a_repeat_is_the_first_answer_to_the_byte() {
        let write = async |pen: ResponseBuilder| {
            let answer = pen.json(StatusCode::CREATED, &json!({"a": "1"})).unwrap();
            IdempotentReply(IdempotentResponse::First(answer))
        };
        let (first, body) = send(finish(
            Router::new().route("/v1/write", post(write)),
            site(),
        ))
        .await;
        let id = first.headers["x-request-id"].to_str().unwrap().to_owned();
        assert_eq!(
            (first.status.as_u16(), body.as_slice()),
            (201, &br#"{"a":"1"}"#[..])
        );
        let answer = RenderedResponse {
            status: 201,
            request_id: id,
            body: body.clone(),
        };
        let repeat = move || {
            std::future::ready(IdempotentReply(IdempotentResponse::Replayed {
                response: answer.clone(),
                same_request: false,
            }))
        };
        let (again, repeated) = send(finish(
            Router::new().route("/v1/write", post(repeat)),
            site(),
        ))
        .await;
        assert_eq!((again.status, again.headers), (first.status, first.headers));
        assert_eq!(repeated, body);
    }
}
