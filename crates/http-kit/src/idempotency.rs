//! The `Idempotency-Key` header, and the operation that scopes it.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey};

use crate::error::ApiError;
use crate::{codes, path};

/// The header as sent, with the request's operation. Extraction never fails, so that a handler can
/// validate the body before the key.
#[derive(Debug, Clone)]
pub struct IdempotencyHeader(Found);

#[derive(Debug, Clone)]
enum Found {
    Absent,
    Malformed,
    /// The path has a parameter that cannot be an id, so no operation exists.
    NoOperation,
    Key(OperationKey),
}

impl IdempotencyHeader {
    /// The key of a write that requires one.
    ///
    /// # Errors
    /// 400 `idempotency_key_required`, and the errors of [`Self::optional`].
    pub fn required(self) -> Result<OperationKey, ApiError> {
        self.optional()?.ok_or_else(|| {
            ApiError::new(
                codes::IDEMPOTENCY_KEY_REQUIRED,
                "The `Idempotency-Key` header is required here: a value of your own, the same for every retry of one operation.",
            )
        })
    }

    /// The key of a write that is safe without a key.
    ///
    /// # Errors
    /// 400 `idempotency_key_invalid`, or 404 `resource_not_found` for a path with a parameter that cannot be an id.
    pub fn optional(self) -> Result<Option<OperationKey>, ApiError> {
        match self.0 {
            Found::Absent => Ok(None),
            Found::Key(key) => Ok(Some(key)),
            Found::NoOperation => Err(ApiError::not_found("object")),
            Found::Malformed => Err(ApiError::new(
                codes::IDEMPOTENCY_KEY_INVALID,
                "The `Idempotency-Key` header must be sent once and hold 1 to 255 visible ASCII characters.",
            )),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyHeader {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let key = match (values.next(), values.next()) {
            (None, _) => return Ok(Self(Found::Absent)),
            (Some(only), None) => IdempotencyKey::parse(only.as_bytes()),
            (Some(_), Some(_)) => return Ok(Self(Found::Malformed)),
        };
        let Ok(key) = key else {
            return Ok(Self(Found::Malformed));
        };
        Ok(Self(match operation(parts, state).await {
            Some(operation) => Found::Key(OperationKey { operation, key }),
            None => Found::NoOperation,
        }))
    }
}

/// What the operation of a request belongs to beside its path, such as the session of a token. The same key for another owner is
/// another operation.
#[derive(Debug, Clone)]
pub struct OperationOf(pub String);

/// The operation of a request: its route with the decoded parameters, and its [`OperationOf`]. One operation has one text,
/// however its path is encoded. A path with a parameter that cannot be an id belongs to no operation.
async fn operation<S: Send + Sync>(parts: &mut Parts, state: &S) -> Option<Operation> {
    let Some(route) = parts.extensions.get::<MatchedPath>().cloned() else {
        let (method, path) = (parts.method.as_str(), parts.uri.path());
        return Some(Operation::new(method, path));
    };
    // The parameters are not available if one of them is not UTF-8.
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    if !params.iter().all(|(_, value)| path::may_be_id(value)) {
        return None;
    }
    let mut params = params.iter().map(|(_, value)| value);
    let segments = route.as_str().split('/').map(|segment| {
        let is_parameter = segment.starts_with('{');
        is_parameter
            .then(|| params.next())
            .flatten()
            .unwrap_or(segment)
    });
    let segments: Vec<&str> = segments.collect();
    let mut path = segments.join("/");
    if let Some(OperationOf(owner)) = parts.extensions.get() {
        path.push(' ');
        path.push_str(owner);
    }
    Some(Operation::new(parts.method.as_str(), &path))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use axum::routing::{patch, post};

    use super::*;
    use crate::service_info::testing::call;

    // rule: idempotency.scope
    #[tokio::test]
    async fn operation_is_route_with_decoded_parameters() {
        let read = async |header: IdempotencyHeader| {
            let key = header.required().unwrap();
            key.operation.as_str().to_owned()
        };
        let app = Router::new()
            .route("/v1/customers", post(read))
            .route("/v1/customers/{id}", patch(read).delete(read))
            .route("/v1/gate_sessions/{id}/cancel", post(read));
        for (method, path, operation) in [
            ("POST", "/v1/customers", "POST /v1/customers"),
            ("POST", "/v1/customers?x=1", "POST /v1/customers"),
            ("PATCH", "/v1/customers/cus_1", "PATCH /v1/customers/cus_1"),
            (
                "DELETE",
                "/v1/customers/cus%5F1",
                "DELETE /v1/customers/cus_1",
            ),
            (
                "POST",
                "/v1/gate_sessions/gs_1/cancel",
                "POST /v1/gate_sessions/gs_1/cancel",
            ),
        ] {
            let request = Request::builder().method(method).uri(path);
            let request = request.header("idempotency-key", "k");
            let (_, body) = call(&app, request.body(Body::empty()).unwrap()).await;
            assert_eq!(body, operation, "{method} {path}");
        }
    }

    // rule: idempotency.scope, id.malformed-path
    #[tokio::test]
    async fn path_that_cannot_be_an_id_has_no_operation() {
        let read = async |header: IdempotencyHeader| match header.optional() {
            Ok(key) => format!("{key:?}"),
            Err(error) => error.code().to_owned(),
        };
        let app = Router::new().route("/v1/things/{id}/fail", post(read));
        for id in ["%00", "a%00b", "%ff", "%c0%80", "%ed%a0%80"] {
            let path = format!("/v1/things/{id}/fail");
            let request = Request::post(&path).header("idempotency-key", "k");
            let (_, body) = call(&app, request.body(Body::empty()).unwrap()).await;
            assert_eq!(body, "resource_not_found", "{id}");
            let request = Request::post(path).body(Body::empty()).unwrap();
            assert_eq!(call(&app, request).await.1, "None", "{id}");
        }
    }

    // rule: idempotency.scope
    #[tokio::test]
    async fn operation_contains_its_owner() {
        let read = async |header: IdempotencyHeader| {
            let key = header.required().unwrap();
            key.operation.as_str().to_owned()
        };
        let app = Router::new().route("/v1/embed/payments", post(read));
        let request = Request::post("/v1/embed/payments").header("idempotency-key", "k");
        let request = request.extension(OperationOf("gs_1".to_owned()));
        let (_, body) = call(&app, request.body(Body::empty()).unwrap()).await;
        assert_eq!(body, "POST /v1/embed/payments gs_1");
    }
}
