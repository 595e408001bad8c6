//! What one connection is doing, and its deadline for that.
//!
//! The HTTP library has one deadline for a head, includes idle time in it, and responds to a
//! malformed head with a bare status. [`Watched`] wraps the socket: it separates idle time from a
//! slow head, detects stalled writes, and holds back what the library would write before it has
//! dispatched a request. The owner of the connection can then send the error envelope.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::framing::{AmbiguousLength, DeclaredLength, Framing};

/// The longest time for each step of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the connection to the first byte of its first request.
    pub first_byte: Duration,
    /// From the first byte of a request until its head is complete.
    pub header: Duration,
    /// From the end of the head until the body is complete.
    pub body: Duration,
    /// Idle time between two requests. Longer than that of a usual balancer (60 s), which must be the
    /// side that closes a connection it keeps (R19).
    pub idle: Duration,
    /// From the first write that blocks until the response is completely written.
    pub write: Duration,
    /// For requests in flight after shutdown begins. A tenth of it, but at most 1 s, is for requests on
    /// connections that are silent or idle then.
    pub shutdown: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(5),
            header: Duration::from_secs(10),
            body: Duration::from_secs(15),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(15),
            shutdown: Duration::from_secs(25),
        }
    }
}

/// Time for one more request on a silent or idle connection after shutdown begins. A proxy may be
/// sending a request on such a connection. If it is closed at once, the proxy cannot know whether the
/// request was processed, so it may not repeat a POST and returns 502.
const STOP_GRACE: Duration = Duration::from_secs(1);
/// Time for the head of a connection in the reserved share.
const RESERVED_HEAD: Duration = Duration::from_secs(1);
/// Time for a connection in the reserved share to read its response.
const RESERVED_WRITE: Duration = Duration::from_secs(2);

impl Deadlines {
    /// The deadlines of the reserved share, whose slots must become free soon.
    pub(crate) fn reserved(self) -> Self {
        Self {
            first_byte: self.first_byte.min(RESERVED_HEAD),
            header: self.header.min(RESERVED_HEAD),
            write: self.write.min(RESERVED_WRITE),
            ..self
        }
    }

    /// [`STOP_GRACE`], or less if the listener has little time to shut down.
    pub(crate) fn stop_grace(self) -> Duration {
        STOP_GRACE.min(self.shutdown / 10)
    }
}

/// The deadline that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineExceeded {
    /// No request arrived.
    Idle,
    /// The head is incomplete.
    Header,
    /// The client does not read the response.
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waiting for the first byte of a request.
    Idle,
    /// Part of a head has arrived.
    Head,
    /// A request is being served.
    Busy,
    /// The response is being written.
    Answering,
}

/// The state of a connection. The socket wrapper, the service and the owner share it and run in one
/// task, so the lock is never contended.
#[derive(Debug)]
pub(crate) struct Progress {
    deadlines: Deadlines,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    phase_due: Option<Instant>,
    write_due: Option<Instant>,
    framing: Framing,
    body_open: bool,
    ended: bool,
    stopping: bool,
}

impl Progress {
    pub(crate) fn new(deadlines: Deadlines) -> Arc<Self> {
        Arc::new(Self {
            deadlines,
            inner: Mutex::new(Inner {
                phase: Phase::Idle,
                phase_due: Some(Instant::now() + deadlines.first_byte),
                write_due: None,
                framing: Framing::default(),
                body_open: false,
                ended: false,
                stopping: false,
            }),
        })
    }

    /// Records that a head was parsed and passed to the service.
    pub(crate) fn dispatch(
        &self,
        headers: &HeaderMap,
        has_body: bool,
    ) -> Result<(), AmbiguousLength> {
        let mut inner = self.inner.lock();
        inner.phase = Phase::Busy;
        inner.phase_due = None;
        inner.body_open = has_body;
        inner.framing.parsed(stated(headers))
    }

    /// Records that the body was read to its end.
    pub(crate) fn body_ended(&self) {
        self.inner.lock().body_open = false;
    }

    /// Records that the response is ready to be written.
    pub(crate) fn answering(&self) {
        self.inner.lock().phase = Phase::Answering;
    }

    /// Records that the service stops. If the connection is idle, its time for another request becomes short.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.stopping = true;
        if inner.phase == Phase::Idle {
            let due = Instant::now() + self.deadlines.stop_grace();
            inner.phase_due = inner.phase_due.map(|idle| idle.min(due));
        }
    }

    /// Whether the service stops. Each response is then the last of its connection.
    pub(crate) fn is_stopping(&self) -> bool {
        self.inner.lock().stopping
    }

    /// Whether part of the last request is still unread on the connection.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.inner.lock().body_open
    }

    /// Whether no request is being served. What the library writes then is its own error response.
    pub(crate) fn is_between_requests(&self) -> bool {
        matches!(self.inner.lock().phase, Phase::Idle | Phase::Head)
    }

    /// Whether the client has closed its side.
    pub(crate) fn has_ended(&self) -> bool {
        self.inner.lock().ended
    }

    /// The next deadline, if there is one.
    pub(crate) fn due(&self) -> Option<Instant> {
        let inner = self.inner.lock();
        match (inner.phase_due, inner.write_due) {
            (Some(phase), Some(write)) => Some(phase.min(write)),
            (phase, write) => phase.or(write),
        }
    }

    /// The deadline that has passed, if any.
    pub(crate) fn late(&self, now: Instant) -> Option<DeadlineExceeded> {
        let inner = self.inner.lock();
        if inner.write_due.is_some_and(|due| due <= now) {
            return Some(DeadlineExceeded::Write);
        }
        inner.phase_due.filter(|due| *due <= now)?;
        match inner.phase {
            Phase::Idle => Some(DeadlineExceeded::Idle),
            Phase::Head => Some(DeadlineExceeded::Header),
            Phase::Busy | Phase::Answering => None,
        }
    }

    fn received(&self, bytes: &[u8]) {
        let mut inner = self.inner.lock();
        if bytes.is_empty() {
            inner.ended = true;
            return;
        }
        let idle = inner.phase == Phase::Idle;
        inner.framing.received(bytes);
        if idle {
            inner.phase = Phase::Head;
            inner.phase_due = Some(Instant::now() + self.deadlines.header);
        }
    }

    fn write_blocked(&self) {
        let mut inner = self.inner.lock();
        if inner.write_due.is_none() {
            inner.write_due = Some(Instant::now() + self.deadlines.write);
        }
    }

    fn flushed(&self) {
        let mut inner = self.inner.lock();
        inner.write_due = None;
        if inner.phase == Phase::Answering {
            let idle = if inner.stopping {
                self.deadlines.stop_grace()
            } else {
                self.deadlines.idle
            };
            inner.phase = Phase::Idle;
            inner.phase_due = Some(Instant::now() + idle);
        }
    }
}

/// The body length that a parsed head declares.
fn stated(headers: &HeaderMap) -> DeclaredLength {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            DeclaredLength::Chunked
        }
        (Some(_), _) => DeclaredLength::Coded,
        (None, _) => headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map_or(DeclaredLength::Nothing, DeclaredLength::Length),
    }
}

/// A socket that updates its [`Progress`].
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    progress: Arc<Progress>,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, progress: Arc<Progress>) -> Self {
        Self { stream, progress }
    }

    /// For crash tests: sends part of a response, then ends the connection or the process.
    fn torn(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Option<io::Error> {
        let torn = instruments::failpoint::torn(slices.iter().map(|slice| slice.len()).sum())?;
        let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
        let part: Vec<u8> = bytes.take(torn.bytes).collect();
        let _ = Pin::new(&mut self.stream).poll_write(cx, &part);
        Some((torn.end)())
    }

    /// The socket itself, after the library is done with it.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.progress
            .received(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.progress.is_between_requests() {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        if let Some(end) = self.torn(cx, slices) {
            return Poll::Ready(Err(end));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        if written.is_pending() {
            self.progress.write_blocked();
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.progress.flushed();
        Poll::Ready(Ok(()))
    }

    /// The owner closes the socket, because it may still have to send an error envelope.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
