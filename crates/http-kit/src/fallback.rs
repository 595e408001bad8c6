//! Responses to unknown routes and methods. They do not depend on a key.

use axum::http::StatusCode;

use crate::error::{ApiError, Kind};

/// 404 `route_not_found`: the path is wrong, so its `type` is `invalid_request`.
pub(crate) async fn route_not_found() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "route_not_found",
        "There is no such route. Check the path against the API reference.",
    )
    .with_kind(Kind::InvalidRequest)
}

/// 405 `method_not_allowed`; the router adds the `Allow` header.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "This route exists, but not for this method. The `Allow` header lists its methods.",
    )
}
