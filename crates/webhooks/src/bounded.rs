//! The limit on the bytes read of a response, and the heads that the client reads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::heads::HeadFilter;

/// Bytes of one response: status, headers, body, and interim responses.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Bytes of a head that one read takes at most.
const HEAD_READ_BYTES: usize = 4 * 1024;

/// A response exceeded the limit.
#[derive(Debug, thiserror::Error)]
#[error("the response is longer than 64 KiB")]
pub(crate) struct TooLong;

/// The bytes that may still be read of the current response.
#[derive(Debug, Clone)]
pub(crate) struct ReadBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    left: AtomicUsize,
    /// Was the budget renewed, and nothing read since?
    is_renewed: AtomicBool,
}

impl ReadBudget {
    /// Restores the whole budget for the next response.
    pub(crate) fn renew(&self) {
        self.0.left.store(MAX_RESPONSE_BYTES, Ordering::Relaxed);
        self.0.is_renewed.store(true, Ordering::Relaxed);
    }

    /// Whether the next byte begins a response. Returns `true` once for each response.
    fn begins_response(&self) -> bool {
        self.0.is_renewed.swap(false, Ordering::Relaxed)
    }
}

/// A reader that fails once a response exceeds its budget. It shortens the heads of responses.
pub(crate) struct Bounded<S> {
    stream: S,
    budget: ReadBudget,
    heads: HeadFilter,
}

impl<S> Bounded<S> {
    pub(crate) fn new(stream: S) -> (Self, ReadBudget) {
        let budget = ReadBudget(Arc::new(Shared {
            left: AtomicUsize::new(MAX_RESPONSE_BYTES),
            is_renewed: AtomicBool::new(false),
        }));
        let bounded = Self {
            stream,
            budget: budget.clone(),
            heads: HeadFilter::default(),
        };
        (bounded, budget)
    }
}

impl<S: AsyncRead + Unpin> Bounded<S> {
    fn poll_within_budget(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.budget.0.left.load(Ordering::Relaxed);
        let length = buffer.remaining().min(left);
        if length == 0 && buffer.remaining() > 0 {
            return Poll::Ready(Err(io::Error::other(TooLong)));
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(length));
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut part);
        let read = part.filled().len();
        buffer.advance(read);
        // Only this task subtracts; `renew` is called between two responses.
        self.budget.0.left.fetch_sub(read, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.budget.begins_response() {
            this.heads.begin();
        }
        while this.heads.is_waiting() {
            let mut space = [0; HEAD_READ_BYTES];
            let mut part = ReadBuf::new(&mut space);
            ready!(this.poll_within_budget(cx, &mut part))?;
            this.heads.take(part.filled());
        }
        if this.heads.move_to(buffer) {
            return Poll::Ready(Ok(()));
        }
        this.poll_within_budget(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    // rule: webhook.answer-bound
    #[tokio::test]
    async fn stream_fails_when_response_exceeds_budget() {
        let (mut bounded, budget) = Bounded::new(tokio::io::repeat(b'x'));
        for _ in 0..2 {
            budget.renew();
            let mut read = Vec::new();
            let error = bounded.read_to_end(&mut read).await.unwrap_err();
            assert_eq!(read.len(), 65_536);
            assert!(error.get_ref().is_some_and(|it| it.is::<TooLong>()));
        }
    }
}
