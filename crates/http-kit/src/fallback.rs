//! Responses to unknown routes and methods. They do not depend on a key.

use crate::codes;
use crate::error::ApiError;

/// 404 `route_not_found`: the path is wrong, so its `type` is `invalid_request`.
pub(crate) async fn route_not_found() -> ApiError {
    ApiError::new(
        codes::ROUTE_NOT_FOUND,
        "There is no such route. Check the path against the API reference.",
    )
}

/// 405 `method_not_allowed`; the router adds the `Allow` header.
pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(
        codes::METHOD_NOT_ALLOWED,
        "This route exists, but not for this method. The `Allow` header lists its methods.",
    )
}
