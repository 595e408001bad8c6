//! Ids in paths.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::error::ApiError;

/// The one parameter of a route's path, percent-decoded.
///
/// A text that cannot be an id (invalid UTF-8, a NUL, a wrong shape) is not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathId(Option<String>);

impl PathId {
    /// Parses the id of a `kind` of object, such as `pool`.
    ///
    /// # Errors
    /// 404 `resource_not_found` if `parse` returns `None`.
    pub fn parse<T>(
        &self,
        kind: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ApiError> {
        let text = self.0.as_deref();
        text.and_then(parse)
            .ok_or_else(|| ApiError::not_found(kind))
    }
}

/// Whether a decoded parameter may be an id. No database stores a NUL.
pub(crate) fn may_be_id(text: &str) -> bool {
    !text.contains('\0')
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.ok();
        let first = params.as_ref().and_then(|params| params.iter().next());
        let text = first.map(|(_, value)| value);
        let possible = text.filter(|value| may_be_id(value));
        Ok(Self(possible.map(str::to_owned)))
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use axum::routing::get;

    use super::*;
    use crate::service_info::testing::call;

    #[tokio::test]
    async fn malformed_id_is_not_found() {
        let read = async |id: PathId| id.parse("thing", |text| Some(text.to_owned()));
        let app = Router::new().route("/things/{id}/parts", get(read));
        for (path, status) in [
            ("/things/abc/parts", 200),
            ("/things/a%20b/parts", 200),
            ("/things/%00/parts", 404),
            ("/things/a%00b/parts", 404),
            ("/things/%ff/parts", 404),
            ("/things/%c0%80/parts", 404),
        ] {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let (response, _) = call(&app, request).await;
            assert_eq!(response.status, status, "{path}");
        }
    }
}
