//! What browsers are told of the routes that are made for them: whose pages may read the answers.
//!
//! A preflight carries no key, so it is judged by all partners together; the answer itself by the
//! partner whose key was sent. Everything else is for servers, and says nothing to browsers.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::options;
use kernel::Mode;
use partner_core::Profile;
use partner_core::origin::Origin;
use partner_core::ports::Directory;
use tower::{Layer, Service};

use crate::class::BrowserCaller;
use crate::error::ApiError;

const METHODS: HeaderValue = HeaderValue::from_static("POST");
const SENT: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, x-embed-token, x-publishable-key, x-request-id",
);
const SEEN: HeaderValue = HeaderValue::from_static(
    "retry-after, retry-after-short, retry-after-medium, x-ratelimit-limit-short, x-ratelimit-remaining-short, \
     x-ratelimit-reset-short, x-ratelimit-limit-medium, x-ratelimit-remaining-medium, x-ratelimit-reset-medium, x-request-id",
);
/// Seconds for which a browser may remember a preflight: a domain that was taken away is let in no
/// longer than this, and its calls are refused at once.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// The origins that a partner's profile allows.
pub type OwnOrigins<P> = fn(&P) -> &BTreeSet<Origin>;

/// Whose pages may call.
#[derive(Clone)]
pub struct CorsPolicy<P>(Arc<Doorstep<P>>);

struct Doorstep<P> {
    mode: Mode,
    directory: Arc<dyn Directory<P>>,
    own: OwnOrigins<P>,
    home: Origin,
}

impl<P> fmt::Debug for CorsPolicy<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Browsers(home: {})", self.0.home)
    }
}

impl<P: Profile<Listing = BTreeSet<Origin>>> CorsPolicy<P> {
    /// Pages of the partners in the directory, and those at `home`, which serve every partner.
    #[must_use]
    pub fn new(
        mode: Mode,
        directory: Arc<dyn Directory<P>>,
        own: OwnOrigins<P>,
        home: Origin,
    ) -> Self {
        Self(Arc::new(Doorstep {
            mode,
            directory,
            own,
            home,
        }))
    }

    /// Answers the preflights of a path.
    pub fn preflight<S: Clone + Send + Sync + 'static>(&self, path: &str) -> Router<S> {
        let browsers = self.clone();
        let answer = move |headers: HeaderMap| async move { browsers.answer(&headers).await };
        Router::new().route(path, options(answer))
    }

    async fn answer(&self, asked: &HeaderMap) -> Result<Response, ApiError> {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        let Some((origin, named)) = origin(asked) else {
            return Ok(response);
        };
        let known = self.0.directory.listing(self.0.mode).await?;
        if origin == self.0.home || known.contains(&origin) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, named);
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, SENT);
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        }
        Ok(response)
    }

    /// Lets a page read the answer, where it is one of the caller's own.
    fn admit(&self, page: Option<(Origin, HeaderValue)>, response: &mut Response) {
        let caller = response.extensions().get::<BrowserCaller<P>>().cloned();
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        let Some((origin, named)) = page else {
            return;
        };
        let own = |caller: &BrowserCaller<P>| (self.0.own)(&caller.0.profile).contains(&origin);
        let admitted = origin == self.0.home || caller.as_ref().is_some_and(own);
        if admitted {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, named);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SEEN);
        }
    }
}

/// Where the page is from, and that as it was sent. Only one spelling of an origin is one.
fn origin(headers: &HeaderMap) -> Option<(Origin, HeaderValue)> {
    let mut values = headers.get_all(header::ORIGIN).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    let origin = Origin::stored(only.to_str().ok()?)?;
    Some((origin, only.clone()))
}

/// To be mounted around the class of the routes.
impl<S, P: Profile> Layer<S> for CorsPolicy<P> {
    type Service = CorsService<S, P>;

    fn layer(&self, inner: S) -> CorsService<S, P> {
        CorsService {
            inner,
            browsers: self.clone(),
        }
    }
}

/// A route whose answers browsers may read.
#[derive(Debug, Clone)]
pub struct CorsService<S, P> {
    inner: S,
    browsers: CorsPolicy<P>,
}

impl<S, P: Profile<Listing = BTreeSet<Origin>>> Service<Request> for CorsService<S, P>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let page = origin(request.headers());
        let browsers = self.browsers.clone();
        let answering = self.inner.call(request);
        Box::pin(async move {
            let mut response = answering.await?;
            browsers.admit(page, &mut response);
            Ok(response)
        })
    }
}
