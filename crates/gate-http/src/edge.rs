//! The country of a request: what the edge says, and what it proves.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::Response;
use gate_core::catalogue::CountryCode;
use http_kit::{Peer, TrustedProxies};

use crate::wire;

/// The header in which the edge names the country of a request.
#[derive(Debug, Clone)]
pub struct EdgeHeader(Option<HeaderName>);

impl EdgeHeader {
    /// A header with this name; `None` if no edge is trusted.
    #[must_use]
    pub fn new(name: Option<&str>) -> Self {
        Self(name.and_then(|name| name.parse().ok()))
    }

    pub(crate) fn said<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        wire::only_header(headers, self.0.as_ref()?)
    }

    /// The country that the edge names, if it is one.
    pub(crate) fn country(&self, headers: &HeaderMap) -> Option<CountryCode> {
        self.said(headers).and_then(CountryCode::parse)
    }
}

/// The country that decides whether a user must be verified: that of the edge if a trusted proxy sent the request. Any other client
/// could write the edge's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProvenCountry(pub(crate) Option<CountryCode>);

/// The edge's header, with the proxies that may prove a country by it.
#[derive(Debug, Clone)]
pub(crate) struct ProvingEdge {
    pub(crate) header: EdgeHeader,
    pub(crate) proxies: TrustedProxies,
}

/// Adds the [`ProvenCountry`] to the request's extensions.
pub(crate) async fn prove_country(
    State(edge): State<ProvingEdge>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>();
    let is_proven = peer.is_some_and(|peer| edge.proxies.trusts(peer.0.ip()));
    let country = is_proven.then(|| edge.header.country(request.headers()));
    request
        .extensions_mut()
        .insert(ProvenCountry(country.flatten()));
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::extract::Extension;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    async fn country(header: Option<&str>, peer: &str) -> String {
        let edge = ProvingEdge {
            header: EdgeHeader::new(header),
            proxies: TrustedProxies::new(["10.0.0.0/8".parse().unwrap()]),
        };
        let said = async |Extension(ProvenCountry(country)): Extension<ProvenCountry>| {
            country.map_or_else(|| "unknown".to_owned(), |code| code.to_string())
        };
        let router = Router::new()
            .route("/", get(said))
            .route_layer(from_fn_with_state(edge, prove_country));
        let request = Request::get("/").header("cf-ipcountry", "FR");
        let request = request.extension(Peer(peer.parse().unwrap()));
        let answer = router.oneshot(request.body(Body::empty()).unwrap()).await;
        let body = answer.unwrap().into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    // rule: gate.verification.needed
    #[tokio::test]
    async fn country_is_proven_only_by_header_of_trusted_proxy() {
        let header = Some("CF-IPCountry");
        assert_eq!(country(header, "10.0.0.1:99").await, "FR");
        assert_eq!(country(header, "127.0.0.1:99").await, "unknown");
        assert_eq!(country(header, "203.0.113.9:99").await, "unknown");
        assert_eq!(country(None, "10.0.0.1:99").await, "unknown");
        assert_eq!(country(Some("X-Other"), "10.0.0.1:99").await, "unknown");
    }
}
