//! Files that browsers cache: a fixed content with a validator.

use std::future::ready;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::files;

/// How long a browser may use a file without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Forever: the name contains a hash of the content.
    Immutable,
    /// Some minutes, for the scripts that partners' pages load by a fixed name.
    Short,
}

/// A file as it is served.
#[derive(Debug, Clone)]
pub(super) struct Cached {
    content: Bytes,
    headers: HeaderMap,
}

impl Cached {
    pub(super) fn new(name: &str, content: Vec<u8>, lifetime: Lifetime) -> Self {
        let digest = Sha256::digest(&content);
        let tag: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (caching, policy) = match lifetime {
            Lifetime::Immutable => ("public, max-age=31536000, immutable", "same-origin"),
            Lifetime::Short => ("public, max-age=300", "cross-origin"),
        };
        let mut headers = HeaderMap::new();
        let fixed = HeaderValue::from_static;
        headers.insert(header::CONTENT_TYPE, fixed(files::kind(name)));
        headers.insert(header::CACHE_CONTROL, fixed(caching));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
        headers.insert("cross-origin-resource-policy", fixed(policy));
        if lifetime == Lifetime::Short {
            // Pages of partners load the scripts, also as modules and with `crossorigin`.
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, fixed("*"));
        }
        // Weak, because a compressed response has the same tag.
        if let Ok(tag) = HeaderValue::from_str(&format!("W/\"{tag}\"")) {
            headers.insert(header::ETAG, tag);
        }
        Self {
            content: Bytes::from(content),
            headers,
        }
    }

    fn answer(self, asked: &HeaderMap) -> Response {
        if self.is_known(asked) {
            let mut response = (StatusCode::NOT_MODIFIED, self.headers).into_response();
            response.headers_mut().remove(header::CONTENT_TYPE);
            return response;
        }
        (self.headers, self.content).into_response()
    }

    /// Whether the browser has this content, by `If-None-Match`.
    fn is_known(&self, asked: &HeaderMap) -> bool {
        let tag = self.headers.get(header::ETAG);
        let tag = tag.and_then(|it| it.to_str().ok());
        let asked = asked.get_all(header::IF_NONE_MATCH).iter();
        asked
            .filter_map(|it| it.to_str().ok())
            .flat_map(|list| list.split(','))
            .map(|it| it.trim())
            .any(|it| it == "*" || Some(it) == tag)
    }
}

pub(super) fn route(file: Cached) -> MethodRouter {
    get(move |asked: HeaderMap| ready(file.clone().answer(&asked)))
}
