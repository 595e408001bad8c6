//! A connection that records whether it has carried any byte of the response to its last request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The connection has carried no response yet.
const NEW: u8 = 0;
/// The last bytes on the connection were those of a response.
const ANSWERED: u8 = 1;
/// The connection has carried a response, and after it a request without any byte of a response.
const REUSED: u8 = 2;

/// The state of a connection, shared with the errors of its calls.
#[derive(Debug, Clone)]
pub(super) struct ConnectionState(Arc<State>);

#[derive(Debug)]
struct State {
    opened: Instant,
    phase: AtomicU8,
}

impl ConnectionState {
    fn new() -> Self {
        Self(Arc::new(State {
            opened: Instant::now(),
            phase: AtomicU8::new(NEW),
        }))
    }

    /// Whether a call that began at this instant took the connection from the idle ones, and has no byte of a response.
    ///
    /// A connection may become idle without any call: the pool keeps one that was opened for a call which then used another.
    pub(super) fn was_idle_and_is_unanswered(&self, call_began: Instant) -> bool {
        match self.0.phase.load(Ordering::Relaxed) {
            REUSED => true,
            NEW => self.0.opened < call_began,
            _ => false,
        }
    }

    fn note_write(&self) {
        let (from, to, order) = (ANSWERED, REUSED, Ordering::Relaxed);
        // Any other phase stays unchanged.
        let _ = self.0.phase.compare_exchange(from, to, order, order);
    }

    fn note_read(&self) {
        self.0.phase.store(ANSWERED, Ordering::Relaxed);
    }
}

/// A stream with its state.
#[derive(Debug)]
pub(super) struct Tracked<S> {
    stream: S,
    state: ConnectionState,
}

impl<S> Tracked<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            state: ConnectionState::new(),
        }
    }
}

impl<S: Connection> Connection for Tracked<S> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.state.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tracked<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.state.note_read();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tracked<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.state.note_write();
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.state.note_write();
        Pin::new(&mut this.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    // rule: upstream.http.kept-connection
    #[tokio::test]
    async fn connection_is_unanswered_until_first_byte_of_each_response() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut stream = Tracked::new(near);
        let state = stream.state.clone();
        let own_call = state.0.opened;
        let later_call = own_call + Duration::from_secs(1);
        let unanswered = || [own_call, later_call].map(|at| state.was_idle_and_is_unanswered(at));
        // The call that opened the connection has not reused it. For a later call it was idle.
        assert_eq!(unanswered(), [false, true]);
        stream.write_all(b"request").await.unwrap();
        assert_eq!(unanswered(), [false, true]);
        far.write_all(b"response").await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        assert_eq!(unanswered(), [false, false]);
        stream.write_all(b"request").await.unwrap();
        assert_eq!(unanswered(), [true, true]);
        stream.read_exact(&mut [0]).await.unwrap();
        assert_eq!(unanswered(), [false, false]);
    }
}
