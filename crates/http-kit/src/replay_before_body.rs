//! Repeats whose body is at fault: under a key that was used, the first answer is given whatever is
//! asked, so a body that no handler would take is no exception.

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

/// Gives the first answer in place of a 400. Mounted within a class, over routes whose keys are of
/// their method and path.
pub async fn first_answer(
    State(answers): State<ResponseStore>,
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
            match answers.first(scope).await {
                Ok(Some(given)) => IdempotentReply(given).into_response(),
                Ok(None) => response,
                Err(ResponseStoreError::Store(fault)) => ApiError::from(fault).into_response(),
                Err(fault) => ApiError::internal(fault).into_response(),
            }
        }
        Some(_) | None => response,
    }
}
