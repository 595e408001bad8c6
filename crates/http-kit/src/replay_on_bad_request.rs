//! Replays the first response to a repeat with an invalid body.
//!
//! A used key returns its first response whatever the repeat contains.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use partner_core::idempotency::Scope;
use partner_core::stored_response::{ResponseStore, ResponseStoreError};

use crate::class;
use crate::error::ApiError;
use crate::idempotency::IdempotencyHeader;
use crate::idempotent_response::IdempotentReply;

/// Replaces a 400 with the stored first response of the key.
///
/// Mount it within a class, over routes whose idempotency keys are scoped by method and path. A path that cannot be an id has no
/// scope, so nothing is looked up for it.
pub async fn replay_first_response(
    State(responses): State<ResponseStore>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(header) = IdempotencyHeader::from_request_parts(&mut parts, &()).await;
    let key = header.optional().ok().flatten();
    let scope = key
        .zip(class::tenant(&parts.extensions))
        .map(|(key, tenant)| Scope::of_request(tenant.clone(), key));
    let response = next.run(Request::from_parts(parts, body)).await;
    match scope {
        Some(scope) if response.status() == StatusCode::BAD_REQUEST => {
            match responses.first(scope).await {
                Ok(Some(given)) => IdempotentReply(given).into_response(),
                Ok(None) => response,
                Err(ResponseStoreError::Store(error)) => ApiError::from(error).into_response(),
                Err(
                    error @ (ResponseStoreError::InProgress
                    | ResponseStoreError::Sealed(_)
                    | ResponseStoreError::Unwritable(_)),
                ) => ApiError::internal(error).into_response(),
            }
        }
        Some(_) | None => response,
    }
}
