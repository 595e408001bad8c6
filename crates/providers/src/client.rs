//! Calls to the operator's upstreams: one request, one response of limited length, one deadline.
//!
//! The client has no redirects, proxies, cookies or compression. It calls every address, because the operator chose it; most of
//! these addresses are private.
//!
//! A call is sent once, with one exception. If a reused connection ends before the first byte of the response, the upstream may
//! have closed it while the request was on its way. The request is then sent once more, over a new connection. The contracts of
//! the upstreams make every call repeatable.
//!
//! The concurrent calls for requests are divided evenly among partners, and so are the polls that ask for a permit. A partner whose
//! last calls all timed out has few of them. Polls do not count among the calls.

mod connection;
mod permits;

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::http::Extensions;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kernel::causes;
use partner_core::PartnerId;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

use connection::{ConnectionState, Tracked};
use permits::{Attempt, Permit, Permits};

const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("Penstock/", env!("CARGO_PKG_VERSION")));
/// Maximum length of a response's head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum header lines of a response. With more than 6,553 different names the library's header map could overflow, which panics.
const MAX_HEAD_LINES: usize = 6_500;
/// How long an idle connection is kept. Most servers close an idle connection after 5 seconds or later.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a connection attempt may last after its call has timed out or used another connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle connections per upstream.
const MAX_IDLE: usize = 64;
/// Concurrent calls for requests. Another call waits for one of these to end, within its own deadline.
const MAX_CONCURRENT_CALLS: usize = 256;
/// Concurrent polls of those that ask for a permit. The polls of a background task ask for none, because the task limits them.
const MAX_CONCURRENT_POLLS: usize = 64;

/// The use case that makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller<'a> {
    /// A request of a partner. The call waits for a permit of the client.
    Partner(&'a PartnerId),
    /// A poll about an object of a partner. The call waits for no permit.
    Poll(&'a PartnerId),
    /// The task that follows the rates, which belong to no partner.
    Rates,
}

/// An HTTP client for one upstream.
pub(crate) struct HttpClient {
    /// Reuses idle connections.
    reusing: HyperClient,
    /// Opens a new connection for each request.
    connecting: HyperClient,
    /// The permits for calls.
    calls: Permits,
    /// The permits for polls.
    polls: Permits,
    longest: usize,
}

type HyperClient = Client<ConnectorWithTimeout, Full<Bytes>>;

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

/// Why a call has no response. It is unknown whether the upstream acted on the request, unless [`CallError::is_unsent`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("too many calls are in flight; this one was not sent within {0:?}")]
    Unsent(Duration),
    #[error("no response within {0:?}")]
    Late(Duration),
    #[error("the call failed: {}", causes(.0))]
    Failed(#[source] legacy::Error),
    #[error("the response was cut off: {0}")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    #[error("the response is longer than {0} bytes")]
    TooLong(usize),
}

impl CallError {
    /// Whether nothing was sent, because no permit became free or no connection was opened.
    pub(crate) fn is_unsent(&self) -> bool {
        match self {
            Self::Unsent(_) => true,
            Self::Failed(error) => error.is_connect(),
            Self::Late(_) | Self::Broken(_) | Self::TooLong(_) => false,
        }
    }
}

impl HttpClient {
    /// A client for responses of at most `longest` bytes. Reads the machine's certificates only if `encrypted`.
    pub(crate) fn new(encrypted: bool, longest: usize) -> io::Result<Self> {
        let roots = if encrypted {
            machine_certificates()?
        } else {
            RootCertStore::empty()
        };
        Self::trusting(roots, longest)
    }

    fn trusting(roots: RootCertStore, longest: usize) -> io::Result<Self> {
        let connector = ConnectorWithTimeout::trusting(roots)?;
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http1_max_headers(MAX_HEAD_LINES);
        Ok(Self {
            reusing: builder.build(connector.clone()),
            connecting: builder.pool_max_idle_per_host(0).build(connector),
            calls: Permits::new(MAX_CONCURRENT_CALLS),
            polls: Permits::new(MAX_CONCURRENT_POLLS),
            longest,
        })
    }

    /// All permits for calls, so that no call gets one. Each is of another partner.
    #[cfg(test)]
    pub(crate) fn all_permits(&self) -> Vec<Permit> {
        let names = (0..MAX_CONCURRENT_CALLS).map(|number| format!("p{number}"));
        let partners = names.filter_map(|name| PartnerId::parse(&name));
        partners
            .filter_map(|partner| self.calls.try_acquire(&partner))
            .collect()
    }

    /// A permit for a poll of this partner, if the partner gets one now.
    pub(crate) fn admit_poll(&self, partner: &PartnerId) -> Option<Permit> {
        self.polls.try_acquire(partner)
    }

    /// Whether the last polls of this partner all timed out.
    pub(crate) fn polls_hang(&self, partner: &PartnerId) -> bool {
        self.polls.is_hanging(partner)
    }

    /// Sends a request and reads the whole response before the deadline. The caller decides what the call waits for.
    pub(crate) async fn send(
        &self,
        caller: Caller<'_>,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<HttpResponse, CallError> {
        let deadline = Instant::now() + within;
        let exchange = async {
            let answered = timeout_at(deadline, self.exchange(request)).await;
            answered.unwrap_or(Err(CallError::Late(within)))
        };
        match caller {
            Caller::Partner(partner) => {
                let permit = timeout_at(deadline, self.calls.acquire(partner)).await;
                let _permit = permit.map_err(|_| CallError::Unsent(within))?;
                recorded(Attempt::begin(&self.calls, partner, within), exchange).await
            }
            Caller::Poll(partner) => {
                recorded(Attempt::begin(&self.polls, partner, within), exchange).await
            }
            Caller::Rates => exchange.await,
        }
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<HttpResponse, CallError> {
        request.headers_mut().entry(USER_AGENT).or_insert(AGENT);
        let response = self.respond(request).await;
        let (mut head, body) = response.map_err(CallError::Failed)?.into_parts();
        let body = Limited::new(body, self.longest).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                CallError::TooLong(self.longest)
            } else {
                CallError::Broken(error)
            }
        })?;
        Ok(HttpResponse {
            status: head.status,
            content_type: head.headers.remove(CONTENT_TYPE),
            body: body.to_bytes(),
        })
    }

    /// Sends a request, and once more over a new connection if a reused one ended before the first byte of the response.
    async fn respond(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        let (again, began) = (request.clone(), Instant::now());
        let error = match self.reusing.request(request).await {
            Err(error) if ended_unanswered(&error, began) => error,
            result => return result,
        };
        match self.connecting.request(again).await {
            // The first request was sent, so the result is not the error that stands for an unsent request.
            Err(unconnected) if unconnected.is_connect() => Err(error),
            result => result,
        }
    }
}

/// Makes a call, and records whether it got a response. A response that is cut off or too long is one.
async fn recorded(
    attempt: Attempt<'_>,
    exchange: impl Future<Output = Result<HttpResponse, CallError>>,
) -> Result<HttpResponse, CallError> {
    let result = exchange.await;
    match &result {
        Ok(_) | Err(CallError::Broken(_) | CallError::TooLong(_)) => attempt.answered(),
        // The attempt counts as timed out if it lasted for long.
        Err(CallError::Unsent(_) | CallError::Late(_) | CallError::Failed(_)) => drop(attempt),
    }
    result
}

/// Whether a reused connection ended before the first byte of the response to a call that began at this instant.
fn ended_unanswered(error: &legacy::Error, began: Instant) -> bool {
    let mut found = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut found);
    }
    let state = found.get::<ConnectionState>();
    state.is_some_and(|state| state.was_idle_and_is_unanswered(began))
}

/// Connects and completes the TLS handshake within [`CONNECT_TIMEOUT`]. The pool continues a connection attempt in the background
/// if another connection became free first, so the attempt needs its own timeout.
#[derive(Clone)]
struct ConnectorWithTimeout(HttpsConnector<HttpConnector>);

impl ConnectorWithTimeout {
    fn trusting(roots: RootCertStore) -> io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        // The timeout is divided among the addresses of a name.
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(roots)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self(connector))
    }
}

/// A connection, encrypted or not.
type MaybeEncrypted = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;

impl Service<Uri> for ConnectorWithTimeout {
    type Response = TokioIo<Tracked<TokioIo<MaybeEncrypted>>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.0.call(to));
        let tracked = |stream| TokioIo::new(Tracked::new(TokioIo::new(stream)));
        Box::pin(async move { connected.await?.map(tracked) })
    }
}

fn machine_certificates() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // Unreadable certificates are skipped. The remaining ones may still verify the upstream.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::other(
            "the machine trusts no certificate: install CA certificates or name a file of them in SSL_CERT_FILE",
        ));
    }
    Ok(roots)
}

fn tls(roots: RootCertStore) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
pub(crate) mod tests;
