//! Ids in paths.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::error::ApiError;

/// The one parameter of a route's path, percent-decoded.
///
/// What cannot be an id (invalid UTF-8, a NUL) is simply not found, as is whatever the caller
/// cannot parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathId(pub String);

impl PathId {
    /// Parses the id; a wrong shape is 404 `resource_not_found`.
    ///
    /// # Errors
    /// 404 where `parse` finds nothing.
    pub fn parse<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, ApiError> {
        parse(&self.0).ok_or_else(ApiError::not_found)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::not_found())?;
        match params.iter().next() {
            Some((_, value)) if !value.contains('\0') => Ok(Self(value.to_owned())),
            _ => Err(ApiError::not_found()),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn an_impossible_id_is_not_found() {
        let app = Router::new().route("/things/{id}/parts", get(async |id: PathId| id.0));
        for (path, status) in [
            ("/things/abc/parts", 200),
            ("/things/a%20b/parts", 200),
            ("/things/%00/parts", 404),
            ("/things/a%00b/parts", 404),
            ("/things/%ff/parts", 404),
            ("/things/%c0%80/parts", 404),
        ] {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
        }
    }
}
