//! Serves one connection, from its first byte until it is closed.

use std::convert::Infallible;
use std::fmt::Write;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use instruments::http::Answer as Counted;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::admission::Share;
use crate::body::{TimedBody, request_timeout};
use crate::client_ip::Peer;
use crate::codes;
use crate::deadlines::{DeadlineExceeded, Deadlines, Progress, Watched};
use crate::error::ApiError;
use crate::framing::AmbiguousLength;
use crate::pages::HEALTH_PATHS;
use crate::request_layer;
use crate::service_info::ServiceInfo;
use crate::waiting::Waiting;

/// The largest head that is read, in bytes. A client needs no key to make the service buffer this
/// much for each of its connections.
const HEAD_LIMIT: usize = 16 * 1024;
/// The library's buffer for one connection, in bytes. It holds one head, or this much of a body.
const BUFFER_LIMIT: usize = HEAD_LIMIT;
/// Limits what is read from a client that still sends while it is refused, in time and bytes.
/// Closing at once would reset the connection and lose the response.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1024 * 1024;
/// The total time for the refusal of a connection that found no slot.
const TURN_AWAY: Duration = Duration::from_millis(500);

/// State that all connections of one listener share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) router: Router,
    pub(crate) site: ServiceInfo,
    pub(crate) deadlines: Deadlines,
    /// Every request that is being handled, also after its client has disconnected.
    pub(crate) requests: TaskTracker,
    /// The listener's name in metrics.
    pub(crate) name: &'static str,
}

type Http = http1::Connection<TokioIo<Watched>, Handler>;

enum End {
    Closed(Option<hyper::Error>),
    Late(DeadlineExceeded),
}

/// Serves one connection until it closes or misses a deadline. After the service begins to stop, the connection has a
/// short deadline for another request, and closes after its next response.
pub(crate) async fn drive(
    stream: TcpStream,
    peer: SocketAddr,
    share: Share,
    shared: Arc<Shared>,
    shutdown: CancellationToken,
) {
    let deadlines = match share {
        Share::Full => shared.deadlines,
        Share::Health => shared.deadlines.reserved(),
    };
    let progress = Progress::new(deadlines);
    let stopped = async {
        shutdown.cancelled().await;
        sleep(deadlines.stop_grace()).await;
    };
    // The connection has no buffer before its first byte arrives.
    tokio::select! {
        biased;
        arrived = timeout(deadlines.first_byte, stream.readable()) => {
            if arrived.is_err() {
                return;
            }
        }
        () = stopped => return,
    }
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&progress)));
    let handler = Handler {
        shared: Arc::clone(&shared),
        progress: Arc::clone(&progress),
        peer: Peer(peer),
        share,
        stopping: shutdown.clone(),
    };
    let mut http = protocol(share).serve_connection(io, handler);
    let end = run(&mut http, &progress, &shutdown).await;
    let stream = http.into_parts().io.into_inner().into_stream();
    let refusal = match end {
        End::Late(DeadlineExceeded::Idle | DeadlineExceeded::Write) => return,
        End::Late(DeadlineExceeded::Header) => Some(request_timeout(
            "The head of the request did not arrive in time.",
        )),
        End::Closed(error) => error
            .filter(|_| progress.is_between_requests())
            .and_then(|error| unreadable_head(&error)),
    };
    let rude = refusal.is_some() || progress.has_unread_body();
    let linger = rude && !progress.has_ended();
    let parting = part(stream, refusal, linger, &shared.site);
    // A client that does not read its refusal is disconnected after this time.
    let _ = timeout(deadlines.write, parting).await;
}

/// Refuses a connection that found no slot.
pub(crate) async fn turn_away(stream: TcpStream, site: ServiceInfo) {
    let parting = part(stream, Some(ApiError::connections_taken()), true, &site);
    let _ = timeout(TURN_AWAY, parting).await;
}

fn protocol(share: Share) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .keep_alive(share == Share::Full)
        .half_close(true)
        .header_read_timeout(None)
        .max_header_size(HEAD_LIMIT)
        .max_buf_size(BUFFER_LIMIT);
    builder
}

async fn run(http: &mut Http, progress: &Progress, shutdown: &CancellationToken) -> End {
    let mut cancelled = pin!(shutdown.cancelled());
    let mut stopping = false;
    let mut alarm = pin!(sleep_until(Instant::now()));
    poll_fn(|cx| {
        // The library's `graceful_shutdown` would close an idle connection at once.
        if !stopping && cancelled.as_mut().poll(cx).is_ready() {
            stopping = true;
            progress.stop();
        }
        if let Poll::Ready(done) = Pin::new(&mut *http).poll(cx) {
            return Poll::Ready(End::Closed(done.err()));
        }
        poll_deadline(cx, progress, alarm.as_mut()).map(End::Late)
    })
    .await
}

/// Waits for the connection's next deadline. Resets the timer only if it would fire too late or has
/// fired too early, so a busy connection does not reset it for each request.
fn poll_deadline(
    cx: &mut Context<'_>,
    progress: &Progress,
    mut alarm: Pin<&mut Sleep>,
) -> Poll<DeadlineExceeded> {
    loop {
        let Some(due) = progress.due() else {
            return Poll::Pending;
        };
        if due < alarm.deadline() || alarm.is_elapsed() {
            alarm.as_mut().reset(due);
        }
        if alarm.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if let Some(late) = progress.late(Instant::now()) {
            return Poll::Ready(late);
        }
    }
}

/// The error for a head that could not be read; `None` if the client has disconnected.
fn unreadable_head(error: &hyper::Error) -> Option<ApiError> {
    if error.is_parse_too_large() {
        Some(ApiError::new(
            codes::HEADERS_TOO_LARGE,
            "The head of the request is larger than 16 KiB or has more than 100 header fields.",
        ))
    } else if error.is_parse() {
        Some(ApiError::invalid_request(
            "The request is not well-formed HTTP/1.1.",
        ))
    } else {
        None
    }
}

/// Sends the refusal if there is one, then closes the connection without losing the response.
async fn part(mut stream: TcpStream, refusal: Option<ApiError>, linger: bool, site: &ServiceInfo) {
    if let Some(error) = refusal {
        let (head, body) = bare_answer(&error, site);
        if stream.write_all(head.as_bytes()).await.is_err()
            || stream.write_all(&body).await.is_err()
        {
            return;
        }
    }
    if stream.shutdown().await.is_err() || !linger {
        return;
    }
    let drained = async {
        let mut scratch = [0; 4096];
        let mut left = LINGER_BYTES;
        while left > 0 {
            match stream.read(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
    };
    let _ = timeout(LINGER, drained).await;
}

/// The response to a request that never reached the router.
fn bare_answer(error: &ApiError, site: &ServiceInfo) -> (String, Bytes) {
    let id = site.request_id().to_string();
    let body = error.envelope(&id, site);
    let status = error.status();
    let mut head = String::with_capacity(256);
    // Writing to a string cannot fail.
    let _ = write!(
        head,
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\nx-request-id: {id}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        body.len(),
    );
    if !error.is_fault() {
        tracing::info!(
            request.id = %id,
            http.status = status.as_u16(),
            error.code = error.code(),
            "Refused a connection's unreadable request"
        );
    }
    count(error);
    (head, body)
}

/// Counts a response that came from no route.
fn count(error: &ApiError) {
    instruments::http::answered(&Counted {
        route: None,
        method: None,
        status: error.status().as_u16(),
        code: Some(error.code()),
        took: None,
    });
}

/// The service that the HTTP library calls for each request of a connection.
#[derive(Debug)]
struct Handler {
    shared: Arc<Shared>,
    progress: Arc<Progress>,
    peer: Peer,
    share: Share,
    stopping: CancellationToken,
}

impl hyper::service::Service<Request<Incoming>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        let has_body = !request.body().is_end_stream();
        let (waiting, client) = Waiting::of_request(&self.stopping);
        let state = match self.progress.dispatch(request.headers(), has_body) {
            Ok(()) if !self.serves(request.uri().path()) => {
                let id = self.shared.site.request_id();
                // Counted but not logged, because a flood of them must not fill the log.
                Answer::Ready(sealed(
                    ApiError::connections_taken(),
                    &id.to_string(),
                    &self.shared.site,
                ))
            }
            Ok(()) => self.handle(request, has_body, waiting),
            Err(unclear) => Answer::Ready(failed(refusal(unclear).closing(), &self.shared.site)),
        };
        Answering {
            state,
            shared: Arc::clone(&self.shared),
            progress: Arc::clone(&self.progress),
            _client: client,
        }
    }
}

impl Handler {
    /// Whether the connection's share serves this path.
    fn serves(&self, path: &str) -> bool {
        self.share == Share::Full || HEALTH_PATHS.contains(&path)
    }

    /// Runs the router. Returns a response that is ready at once. Otherwise a separate task
    /// finishes the request, so that a client that disconnects does not cancel work that has begun.
    fn handle(&self, request: Request<Incoming>, has_body: bool, waiting: Waiting) -> Answer {
        let within = self.shared.deadlines.body;
        let mut request = request.map(|body| {
            if has_body {
                Body::new(TimedBody::new(body, within, Arc::clone(&self.progress)))
            } else {
                Body::empty()
            }
        });
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(waiting);
        let router = self.shared.router.clone();
        let mut work = Box::pin(respond(router, request));
        let mut cx = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut cx))) {
            Ok(Poll::Ready(response)) => Answer::Ready(response),
            Ok(Poll::Pending) => Answer::Task(self.shared.requests.spawn(work)),
            Err(_) => {
                let error = ApiError::internal("a handler panicked");
                Answer::Ready(failed(error, &self.shared.site))
            }
        }
    }
}

/// Runs one request through the router and collects its response into one buffer.
async fn respond(mut router: Router, request: Request<Body>) -> Response<Full<Bytes>> {
    let Ok(response) = router.call(request).await;
    let (parts, body) = response.into_parts();
    // Every response of our routes is one buffer already.
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(_) => Bytes::new(),
    };
    Response::from_parts(parts, Full::new(bytes))
}

/// The error for a request whose end two readers could place differently.
fn refusal(unclear: AmbiguousLength) -> ApiError {
    ApiError::invalid_request(match unclear {
        AmbiguousLength::Length => {
            "The request states its length twice: send one Content-Length, or Transfer-Encoding: chunked without any."
        }
        AmbiguousLength::Coding => {
            "The only transfer coding understood is `Transfer-Encoding: chunked`."
        }
    })
}

fn failed(error: ApiError, site: &ServiceInfo) -> Response<Full<Bytes>> {
    let id = site.request_id();
    if error.is_fault() {
        tracing::error!(
            request.id = %id,
            error.code = error.code(),
            error.chain = error.cause_chain(),
            "Failed to answer a request"
        );
    }
    sealed(error, &id.to_string(), site)
}

fn sealed(error: ApiError, id: &str, site: &ServiceInfo) -> Response<Full<Bytes>> {
    count(&error);
    let response = request_layer::seal(error.into_response(), id, site);
    let (parts, bytes) = response.into_parts();
    Response::from_parts(parts, Full::new(bytes))
}

enum Answer {
    Ready(Response<Full<Bytes>>),
    Task(JoinHandle<Response<Full<Bytes>>>),
    Taken,
}

/// The pending response to one request. Dropping it ends the waits of the task, and does not cancel the task.
struct Answering {
    state: Answer,
    _client: DropGuard,
    shared: Arc<Shared>,
    progress: Arc<Progress>,
}

impl Future for Answering {
    type Output = Result<Response<Full<Bytes>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = match std::mem::replace(&mut self.state, Answer::Taken) {
            Answer::Ready(response) => response,
            Answer::Task(mut task) => match Pin::new(&mut task).poll(cx) {
                Poll::Ready(Ok(response)) => response,
                Poll::Ready(Err(error)) => failed(ApiError::internal(error), &self.shared.site),
                Poll::Pending => {
                    self.state = Answer::Task(task);
                    return Poll::Pending;
                }
            },
            Answer::Taken => return Poll::Pending,
        };
        self.progress.answering();
        if self.progress.is_stopping() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Poll::Ready(Ok(response))
    }
}
