//! What one connection is doing, and until when it may go on doing it.
//!
//! The HTTP library knows one deadline for a head and counts idling into it, and answers a
//! broken head with a bare status. This wrapper of the socket tells idling from a head that
//! drips in, watches stalled writes, and holds back what the library would write before any
//! request has been dispatched, so that the connection's owner can send the envelope instead.

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

/// How long a connection may take over each thing it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the connection to the first byte of its first request.
    pub first_byte: Duration,
    /// From the first byte of a request until its head is complete.
    pub header: Duration,
    /// From then until its body is complete.
    pub body: Duration,
    /// Without any request, after the first.
    pub idle: Duration,
    /// From the moment an answer cannot be written on until all of it has been.
    pub write: Duration,
    /// For what is in flight when the service is told to stop.
    pub shutdown: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(5),
            header: Duration::from_secs(10),
            body: Duration::from_secs(15),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(15),
            shutdown: Duration::from_secs(25),
        }
    }
}

/// How long a connection of the reserved share may take over its head.
const RESERVED_HEAD: Duration = Duration::from_secs(1);
/// How long a connection of the reserved share may take to read its answer.
const RESERVED_WRITE: Duration = Duration::from_secs(2);

impl Deadlines {
    /// The deadlines of the reserved share, whose places have to be free again soon.
    pub(crate) fn reserved(self) -> Self {
        Self {
            first_byte: self.first_byte.min(RESERVED_HEAD),
            header: self.header.min(RESERVED_HEAD),
            write: self.write.min(RESERVED_WRITE),
            ..self
        }
    }
}

/// Which deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineExceeded {
    /// Nothing was asked for.
    Idle,
    /// A head was begun and not finished.
    Header,
    /// An answer is not being read.
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
    /// Its answer is being written.
    Answering,
}

/// The connection's state, shared by the socket's wrapper, the service and the owner, all of
/// which run in one task: the lock is never contended.
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
            }),
        })
    }

    /// A head has been parsed and is handed to the service.
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

    /// The request's body has been read to its end.
    pub(crate) fn body_ended(&self) {
        self.inner.lock().body_open = false;
    }

    /// The answer is ready to be written.
    pub(crate) fn answering(&self) {
        self.inner.lock().phase = Phase::Answering;
    }

    /// Whether the last request was not read to its end, so that its rest is still on the wire.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.inner.lock().body_open
    }

    /// Whether no request is being served, so that whatever the library writes is its own error.
    pub(crate) fn is_between_requests(&self) -> bool {
        matches!(self.inner.lock().phase, Phase::Idle | Phase::Head)
    }

    /// Whether the client has closed its side.
    pub(crate) fn has_ended(&self) -> bool {
        self.inner.lock().ended
    }

    /// The next deadline, if any is running.
    pub(crate) fn due(&self) -> Option<Instant> {
        let inner = self.inner.lock();
        match (inner.phase_due, inner.write_due) {
            (Some(phase), Some(write)) => Some(phase.min(write)),
            (phase, write) => phase.or(write),
        }
    }

    /// The deadline that has passed, if one has.
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
            inner.phase = Phase::Idle;
            inner.phase_due = Some(Instant::now() + self.deadlines.idle);
        }
    }
}

/// What a head says of its body, as the library has left it.
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

/// A socket that keeps its [`Progress`].
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    progress: Arc<Progress>,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, progress: Arc<Progress>) -> Self {
        Self { stream, progress }
    }

    /// Where a crash test asks for it, part of an answer goes out, and the connection or the
    /// process ends there.
    fn torn(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Option<io::Error> {
        let torn = instruments::failpoint::torn(slices.iter().map(|slice| slice.len()).sum())?;
        let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
        let part: Vec<u8> = bytes.take(torn.bytes).collect();
        let _ = Pin::new(&mut self.stream).poll_write(cx, &part);
        Some((torn.end)())
    }

    /// The bare socket, once the library is done with it.
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
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.progress.is_between_requests() {
            return Poll::Ready(Ok(bytes.len()));
        }
        if let Some(end) = self.torn(cx, &[IoSlice::new(bytes)]) {
            return Poll::Ready(Err(end));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if written.is_pending() {
            self.progress.write_blocked();
        }
        written
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

    /// The owner closes the socket itself: it may still have an envelope to send.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
