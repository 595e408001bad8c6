//! One post: opens or reuses a connection, writes the request, reads the status.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use partner_core::webhooks::signing::Header;
use partner_core::webhooks::target::Target;
use tokio::sync::Semaphore;

use crate::bounded::Bounded;
use crate::connect::Connector;
use crate::idle::{Connection, Idle, Origin};
use crate::post_error::PostError;

const AGENT: &str = concat!("Penstock/", env!("CARGO_PKG_VERSION"));
/// The client's buffer. `heads.rs` shortens every head that does not fit.
const MAX_BUFFER_BYTES: usize = 16 * 1024;
/// How long a body is read, so that the connection can be reused.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// Bodies that are read concurrently. Further connections are closed instead of reused.
const MAX_BODY_READS: usize = 128;

/// What a post learns from the head of the response.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The header `Retry-After`.
    pub(crate) retry_after: Option<String>,
}

impl Response {
    fn of<B>(response: &hyper::Response<B>) -> Self {
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok());
        Self {
            status: response.status().as_u16(),
            retry_after: retry_after.map(str::to_owned),
        }
    }
}

/// Posts to targets.
pub(crate) struct Poster {
    connector: Connector,
    idle: Arc<Idle>,
    reading: Arc<Semaphore>,
}

impl Poster {
    pub(crate) fn new(connector: Connector) -> Self {
        Self {
            connector,
            idle: Arc::default(),
            reading: Arc::new(Semaphore::new(MAX_BODY_READS)),
        }
    }

    /// Returns the head of the response. The caller sets the timeout; drop closes the connection.
    ///
    /// The endpoint may have closed an idle connection. The post is then repeated over a new one.
    pub(crate) async fn post(
        &self,
        target: &Target,
        origin: &Origin,
        headers: &[Header],
        body: &Bytes,
    ) -> Result<Response, PostError> {
        if let Some(connection) = self.idle.take(origin) {
            let request = request(target, headers, body)?;
            if let Ok(response) = self.post_over(connection, origin, request).await {
                return Ok(response);
            }
        }
        let request = request(target, headers, body)?;
        let connection = self.open(target).await?;
        let posted = self.post_over(connection, origin, request).await;
        posted.map_err(PostError::Broken)
    }

    /// Closes connections that were idle for too long.
    pub(crate) fn close_idle(&self) {
        self.idle.close_idle();
    }

    async fn open(&self, target: &Target) -> Result<Connection, PostError> {
        let (reader, writer) = tokio::io::split(self.connector.connect(target).await?);
        let (reader, budget) = Bounded::new(reader);
        let stream = tokio::io::join(reader, writer);
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(MAX_BUFFER_BYTES)
            .title_case_headers(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(PostError::Broken)?;
        let driver = tokio::spawn(async move {
            // The sender of the request gets the same error.
            let _ = driver.await;
        });
        Ok(Connection::new(sender, budget, driver.abort_handle()))
    }

    async fn post_over(
        &self,
        mut connection: Connection,
        origin: &Origin,
        request: Request<Full<Bytes>>,
    ) -> Result<Response, hyper::Error> {
        let response = connection.send(request).await?;
        let head = Response::of(&response);
        self.keep(connection, origin.clone(), response.into_body())
            .await;
        Ok(head)
    }

    /// Reads the body, so that the connection can be reused. The status is already known, so errors
    /// here have no effect, and a body that has not arrived yet is read in the background.
    async fn keep(&self, mut connection: Connection, origin: Origin, body: Incoming) {
        let Ok(reading) = Arc::clone(&self.reading).try_acquire_owned() else {
            return;
        };
        let idle = Arc::clone(&self.idle);
        let mut kept = Box::pin(async move {
            if read_to_end(body).await && connection.ready().await {
                idle.put(origin, connection);
            }
            drop(reading);
        });
        let first_poll = poll_fn(|cx| Poll::Ready(kept.as_mut().poll(cx))).await;
        if first_poll.is_pending() {
            tokio::spawn(tokio::time::timeout(BODY_TIMEOUT, kept));
        }
    }
}

fn request(
    target: &Target,
    headers: &[Header],
    body: &Bytes,
) -> Result<Request<Full<Bytes>>, PostError> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(target.path_and_query())
        .header(header::HOST, target.authority())
        .header(header::USER_AGENT, AGENT)
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request
        .body(Full::new(body.clone()))
        .map_err(PostError::InvalidRequest)
}

/// Reads a body. Returns `false` if it broke or exceeded the limit.
async fn read_to_end(mut body: Incoming) -> bool {
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    true
}
