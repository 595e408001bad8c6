//! CORS headers of the routes for browsers: which pages may read a response.
//!
//! A preflight carries no key, so the domains of all partners together decide. The response to the
//! call itself is decided by the partner whose key was sent. The calls of the hosted widget are for
//! the widget's own origin alone. All other routes are for servers and have no CORS headers.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::options;
use kernel::Mode;
use partner_core::Profile;
use partner_core::origin::{AllowedDomain, Origin};
use partner_core::ports::Directory;

use crate::class::BrowserCaller;
use crate::error::ApiError;

/// What pages may send.
struct Allowed {
    methods: HeaderValue,
    headers: HeaderValue,
}

/// What pages of partners may send.
const OF_PARTNERS: Allowed = Allowed {
    methods: HeaderValue::from_static("POST"),
    headers: HeaderValue::from_static(
        "authorization, content-type, idempotency-key, x-embed-token, x-publishable-key, x-request-id",
    ),
};
/// The headers that the hosted widget may send.
const HEADERS_OF_HOME: HeaderValue =
    HeaderValue::from_static("content-type, idempotency-key, x-embed-token");
const NO_METHOD: HeaderValue = HeaderValue::from_static("");
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "penstock-warning, retry-after, retry-after-short, retry-after-medium, retry-after-long, x-ratelimit-limit-short, \
     x-ratelimit-remaining-short, x-ratelimit-reset-short, x-ratelimit-limit-medium, x-ratelimit-remaining-medium, \
     x-ratelimit-reset-medium, x-ratelimit-limit-long, x-ratelimit-remaining-long, x-ratelimit-reset-long, x-request-id",
);
/// Seconds for which a browser may cache a preflight. A removed domain passes preflights for at
/// most this long; its calls are refused at once.
const PREFLIGHT_MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The domains that a partner's profile allows.
pub type OwnDomains<P> = fn(&P) -> &BTreeSet<AllowedDomain>;

/// The pages that may call the routes for browsers.
#[derive(Clone)]
pub struct CorsPolicy<P>(Arc<CorsInner<P>>);

struct CorsInner<P> {
    /// `None`: no page serves every partner.
    home: Option<Origin>,
    /// The partners whose pages are admitted; `None`: only pages at `home` are.
    partners: Option<Partners<P>>,
    allowed: Allowed,
}

struct Partners<P> {
    mode: Mode,
    directory: Arc<dyn Directory<P>>,
    own: OwnDomains<P>,
}

impl<P: Profile<Listing = BTreeSet<AllowedDomain>>> CorsPolicy<P> {
    /// Admits pages of the partners in the directory, and pages at `home`, which serve every partner.
    #[must_use]
    pub fn new(
        mode: Mode,
        directory: Arc<dyn Directory<P>>,
        own: OwnDomains<P>,
        home: Option<Origin>,
    ) -> Self {
        let partners = Partners {
            mode,
            directory,
            own,
        };
        Self(Arc::new(CorsInner {
            home,
            partners: Some(partners),
            allowed: OF_PARTNERS,
        }))
    }

    /// Admits pages at `home` alone, for these methods.
    #[must_use]
    pub fn home_alone(home: Option<Origin>, methods: &BTreeSet<&'static str>) -> Self {
        let methods: Vec<&str> = methods.iter().copied().collect();
        Self(Arc::new(CorsInner {
            home,
            partners: None,
            allowed: Allowed {
                // The names of methods are valid in a header.
                methods: HeaderValue::try_from(methods.join(", ")).unwrap_or(NO_METHOD),
                headers: HEADERS_OF_HOME,
            },
        }))
    }

    /// Responds to the preflights of a path.
    pub fn preflight<S: Clone + Send + Sync + 'static>(&self, path: &str) -> Router<S> {
        let policy = self.clone();
        let respond = move |headers: HeaderMap| async move { policy.respond(&headers).await };
        Router::new().route(path, options(respond))
    }

    /// Lets browsers read the responses of routes, which are within the layer of their class.
    pub fn around<S: Clone + Send + Sync + 'static>(&self, routes: Router<S>) -> Router<S> {
        routes.route_layer(from_fn_with_state(self.clone(), answer::<P>))
    }

    fn is_home(&self, origin: &Origin) -> bool {
        self.0.home.as_ref() == Some(origin)
    }

    async fn respond(&self, request: &HeaderMap) -> Result<Response, ApiError> {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        let Some((origin, named)) = origin(request) else {
            return Ok(response);
        };
        let known = match &self.0.partners {
            Some(partners) => {
                let listing = partners.directory.listing(partners.mode).await?;
                origin.is_among(&listing)
            }
            None => false,
        };
        if self.is_home(&origin) || known {
            let Allowed {
                methods,
                headers: sent,
            } = &self.0.allowed;
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, named);
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods.clone());
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, sent.clone());
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE);
        }
        Ok(response)
    }

    /// Lets a page read the response if the page belongs to the caller.
    fn admit(&self, page: Option<(Origin, HeaderValue)>, response: &mut Response) {
        let caller = response.extensions().get::<BrowserCaller<P>>().cloned();
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        let Some((origin, named)) = page else {
            return;
        };
        let own = |caller: &BrowserCaller<P>| {
            let partners = self.0.partners.as_ref();
            partners.is_some_and(|it| origin.is_among((it.own)(&caller.0.profile)))
        };
        let admitted = self.is_home(&origin) || caller.as_ref().is_some_and(own);
        if admitted {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, named);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        }
    }
}

/// The page's origin, parsed and unchanged. An origin has only one valid spelling.
fn origin(headers: &HeaderMap) -> Option<(Origin, HeaderValue)> {
    let mut values = headers.get_all(header::ORIGIN).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    let origin = Origin::stored(only.to_str().ok()?)?;
    Some((origin, only.clone()))
}

/// Adds the CORS headers to the response to a call.
async fn answer<P: Profile<Listing = BTreeSet<AllowedDomain>>>(
    State(policy): State<CorsPolicy<P>>,
    request: Request,
    next: Next,
) -> Response {
    let page = origin(request.headers());
    let mut response = next.run(request).await;
    policy.admit(page, &mut response);
    response
}
