//! The limit on the bytes read of a response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of one response: status, headers, body, and interim responses.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// A response exceeded the limit.
#[derive(Debug, thiserror::Error)]
#[error("the response is longer than 64 KiB")]
pub(crate) struct TooLong;

/// The bytes that may still be read of the current response.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget(Arc<AtomicUsize>);

impl ReadBudget {
    /// Restores the whole budget for the next response.
    pub(crate) fn renew(&self) {
        self.0.store(MAX_RESPONSE_BYTES, Ordering::Relaxed);
    }
}

/// A stream whose reads fail once a response exceeds its budget.
pub(crate) struct Bounded<S> {
    stream: S,
    budget: ReadBudget,
}

impl<S> Bounded<S> {
    pub(crate) fn new(stream: S) -> (Self, ReadBudget) {
        let budget = ReadBudget(Arc::new(AtomicUsize::new(MAX_RESPONSE_BYTES)));
        let shared = budget.clone();
        (Self { stream, budget }, shared)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let left = this.budget.0.load(Ordering::Relaxed);
        let length = buffer.remaining().min(left);
        if length == 0 && buffer.remaining() > 0 {
            return Poll::Ready(Err(io::Error::other(TooLong)));
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(length));
        let polled = Pin::new(&mut this.stream).poll_read(cx, &mut part);
        let read = part.filled().len();
        buffer.advance(read);
        // Only this task subtracts; `renew` is called between two responses.
        this.budget.0.fetch_sub(read, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    // rule: webhook.answer-bound
    #[tokio::test]
    async fn stream_fails_when_response_exceeds_budget() {
        let endless = tokio::io::repeat(b'x');
        let (mut bounded, budget) = Bounded::new(tokio::io::join(endless, tokio::io::sink()));
        for _ in 0..2 {
            budget.renew();
            let mut read = Vec::new();
            let error = bounded.read_to_end(&mut read).await.unwrap_err();
            assert_eq!(read.len(), 65_536);
            assert!(error.get_ref().is_some_and(|it| it.is::<TooLong>()));
        }
    }

    #[tokio::test]
    async fn stream_passes_shorter_response_unchanged() {
        let (near, mut far) = tokio::io::duplex(1024);
        let (mut bounded, _) = Bounded::new(near);
        bounded.write_all(b"ping").await.unwrap();
        far.write_all(b"pong").await.unwrap();
        drop(far);
        let mut read = Vec::new();
        bounded.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"pong");
    }
}
