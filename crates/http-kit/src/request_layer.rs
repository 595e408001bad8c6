//! The outermost layer: request id, envelope, security headers, panics, and one log line per
//! request.

use std::any::Any;
use std::borrow::Cow;
use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use instruments::http::{self, Answer};
use instruments::trace;
use kernel::{RequestId, TraceParent};
use partner_core::events::Service;
use tokio::time::Instant;
use tower_http::compression::CompressionLayer;
use tracing::{Instrument, Span};

use crate::class::Caller;
use crate::codes;
use crate::error::ApiError;
use crate::logged_ids::{self, LoggedIds};
use crate::service_info::ServiceInfo;
use crate::service_paths;
use crate::warning::Warnings;

/// The header with the request id, on every response.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Completes a service's router with the fallbacks and the outermost layer. Call it once, after all
/// routes have been merged.
pub fn finish(router: Router, service: Service, site: ServiceInfo) -> Router {
    router
        .fallback(move |uri: Uri| ready(route_not_found(service, uri.path())))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(site, answer))
}

/// Completes a router of pages, which has its own fallbacks. Browsers that accept it get compressed responses.
pub fn finish_pages(router: Router, site: ServiceInfo) -> Router {
    router
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(site, answer))
}

/// 404 `route_not_found`. The message names the service of the path if it is another one.
fn route_not_found(service: Service, path: &str) -> ApiError {
    let message: Cow<'static, str> = match service_paths::of_other(service, path) {
        Some((other, segment)) => format!(
            "There is no such route in the {} service. `/v1/{segment}` belongs to the {} service, which has its own address: \
             check the host and the port.",
            service.as_str(),
            other.as_str()
        )
        .into(),
        None => "There is no such route. Check the path against the API reference.".into(),
    };
    ApiError::new(codes::ROUTE_NOT_FOUND, message)
}

/// 405 `method_not_allowed`; the router adds the `Allow` header.
async fn method_not_allowed() -> ApiError {
    ApiError::new(
        codes::METHOD_NOT_ALLOWED,
        "This route exists, but not for this method. The `Allow` header lists its methods.",
    )
}

/// The outermost layer: completes the response of the other layers.
async fn answer(State(site): State<ServiceInfo>, mut request: Request, next: Next) -> Response {
    let seen = Seen::new(&request, &site);
    request.extensions_mut().insert(seen.id);
    // All log lines of the request carry its id, at every level.
    let span =
        tracing::error_span!(target: trace::REQUEST_TARGET, "request", request.id = %seen.id);
    let trace = seen.trace.clone();
    let cause = seen.cause;
    let ids = answers_are_logged().then(|| LoggedIds::of_path(request.uri().path()));
    let answering = async move {
        let response = caught(next.run(request)).await;
        seen.finish(response, &site)
    };
    let answering = logged_ids::collect(ids, answering);
    let answering = trace::caused_by(Some(cause), answering);
    answering.instrument(trace).instrument(span).await
}

/// Data of a request that its log line needs.
struct Seen {
    id: RequestId,
    method: Method,
    route: Option<MatchedPath>,
    client_id: Option<HeaderValue>,
    is_api: bool,
    begun: Instant,
    /// Disabled if traces are not exported.
    trace: Span,
    /// What calls to upstreams carry.
    cause: TraceParent,
}

impl Seen {
    fn new(request: &Request, site: &ServiceInfo) -> Self {
        let id = site.request_id();
        let route = request.extensions().get::<MatchedPath>().cloned();
        let client = client_trace(request.headers());
        let trace = trace::request(
            request.method().as_str(),
            route.as_ref().map(MatchedPath::as_str),
            client,
        );
        Self {
            id,
            method: request.method().clone(),
            route,
            cause: cause_of(&trace, client, id),
            trace,
            client_id: request.headers().get(X_REQUEST_ID).cloned(),
            is_api: request.uri().path().starts_with("/v1/"),
            begun: Instant::now(),
        }
    }

    fn finish(self, mut response: Response, site: &ServiceInfo) -> Response {
        let error = response.extensions_mut().remove::<ApiError>();
        if let Some(error) = &error {
            let id = self.id.to_string();
            *response.body_mut() = Body::from(error.envelope(&id, site));
            fill(response.headers_mut(), error, id);
        } else if !response.headers().contains_key(X_REQUEST_ID) {
            // A replayed response keeps the id of its first request.
            name(response.headers_mut(), self.id.to_string());
        }
        if self.is_api {
            let headers = response.headers_mut();
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            headers.insert(
                header::X_CONTENT_TYPE_OPTIONS,
                HeaderValue::from_static("nosniff"),
            );
        }
        self.measure(&response, error.as_ref());
        self.log(&response, error.as_ref());
        if error.is_none() {
            self.warn(&mut response);
        }
        response
    }

    fn warn(&self, response: &mut Response) {
        let Some(warnings) = response.extensions_mut().remove::<Warnings>() else {
            return;
        };
        let caller = response.extensions().get::<Caller>().cloned();
        let route = self.route.as_ref().map(MatchedPath::as_str);
        warnings.write(response.headers_mut(), caller.as_ref(), route);
    }

    fn measure(&self, response: &Response, error: Option<&ApiError>) {
        let (status, code) = (response.status().as_u16(), error.map(ApiError::code));
        http::answered(&Answer {
            route: self.route.as_ref().map(MatchedPath::as_str),
            method: Some(self.method.as_str()),
            status,
            code,
            took: Some(self.begun.elapsed()),
        });
        trace::answered(&self.trace, &self.id, status, code);
    }

    /// Logs the request. The query string is never logged, and of the headers only the client's
    /// validated request id. Of the path and the body, only well-formed ids are logged.
    fn log(&self, response: &Response, error: Option<&ApiError>) {
        let code = error.map(ApiError::code);
        if let Some(error) = error.filter(|error| error.is_fault()) {
            tracing::error!(
                error.code = code,
                error.chain = error.cause_chain(),
                "Failed to answer a request"
            );
        }
        if !answers_are_logged() {
            return;
        }
        let caller = response.extensions().get::<Caller>();
        let ids = logged_ids::take();
        tracing::info!(
            client_request_id = self.client_id.as_ref().and_then(loggable),
            partner.id = caller.map(|caller| caller.tenant.partner.as_str()),
            key.id = caller.map(|caller| tracing::field::display(caller.key)),
            session.id = ids.session.as_deref(),
            quote.id = ids.quote.as_deref(),
            trade.id = ids.trade.as_deref(),
            payment.id = ids.payment.as_deref(),
            rail.id = ids.rail.as_deref(),
            transaction.refid = ids.transaction.as_deref(),
            customer.id = ids.customer.as_deref(),
            delivery.id = ids.delivery.as_deref(),
            http.method = http::method(Some(self.method.as_str())),
            http.route = self.route.as_ref().map(MatchedPath::as_str),
            http.status = response.status().as_u16(),
            error.code = code,
            duration_us = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX),
            "Answered a request"
        );
    }
}

/// Whether request lines are logged. If not, they are not prepared.
pub(crate) fn answers_are_logged() -> bool {
    tracing::enabled!(tracing::Level::INFO)
}

/// Renders a response that carries an [`ApiError`], for the one place that responds without a
/// router.
pub(crate) fn seal(mut response: Response, id: &str, site: &ServiceInfo) -> Response<Bytes> {
    let mut body = Bytes::new();
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        fill(response.headers_mut(), &error, id.to_owned());
        body = error.envelope(id, site);
    }
    response.map(|_| body)
}

fn fill(headers: &mut HeaderMap, error: &ApiError, id: String) {
    name(headers, id);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if error.status() == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
}

fn name(headers: &mut HeaderMap, id: String) {
    headers.reserve(3);
    // A request id is letters, digits and an underscore.
    if let Ok(value) = HeaderValue::try_from(id) {
        headers.insert(X_REQUEST_ID, value);
    }
}

/// The client's trace, unless the header is repeated, because the intended trace is then unknown.
fn client_trace(headers: &HeaderMap) -> Option<TraceParent> {
    let mut given = headers.get_all("traceparent").iter();
    let only = given.next().filter(|_| given.next().is_none())?;
    TraceParent::parse(only.as_bytes())
}

/// The position of the request's span, if traces are exported. Otherwise the client's, because a service that records nothing passes it
/// on, and without one what the request id makes.
fn cause_of(span: &Span, client: Option<TraceParent>, id: RequestId) -> TraceParent {
    let known = trace::position(span).or(client);
    known.unwrap_or_else(|| id.trace_parent())
}

/// The client's request id if it is safe to log and is not a key sent by mistake.
fn loggable(value: &HeaderValue) -> Option<&str> {
    const KEYS: [&str; 5] = ["sk_test_", "sk_live_", "pk_test_", "pk_live_", "whsec_"];
    let text = value.to_str().ok()?;
    let harmless = (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        && !KEYS.iter().any(|key| text.contains(key));
    harmless.then_some(text)
}

/// The response of a handler, or 500 if the handler panics.
pub(crate) async fn caught(answering: impl Future<Output = Response>) -> Response {
    let mut answering = pin!(answering);
    poll_fn(
        move |cx| match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx))) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(ApiError::internal(Panicked::from(panic)).into_response()),
        },
    )
    .await
}

#[derive(Debug, thiserror::Error)]
#[error("a handler panicked: {0}")]
struct Panicked(String);

impl From<Box<dyn Any + Send>> for Panicked {
    fn from(panic: Box<dyn Any + Send>) -> Self {
        let text = match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => panic
                .downcast_ref::<&str>()
                .map_or_else(|| "without a message".to_owned(), |text| (*text).to_owned()),
        };
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_request_id_is_logged_only_if_harmless() {
        let read = |text: &'static str| loggable(&HeaderValue::from_static(text)).is_some();
        assert!(read("abc-1.2_3"));
        assert!(!read(""));
        assert!(!read("a b"));
        assert!(!read("\"}"));
        assert!(!read("sk_test_0123456789abcdefABCDEF0123456789"));
        assert!(loggable(&HeaderValue::from_bytes(&[0xff]).unwrap()).is_none());
        assert!(loggable(&HeaderValue::from_str(&"x".repeat(65)).unwrap()).is_none());
    }
}
