//! Exports for the operator: time windows of what a partner has.

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};

/// A half-open span of time: it includes its start and excludes its end. Adjacent windows have no gap and no overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: Timestamp,
    to: Timestamp,
}

impl Window {
    /// The window from a start to an end; `None` if it would be empty.
    #[must_use]
    pub fn new(from: Timestamp, to: Timestamp) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    /// The start (inclusive).
    #[must_use]
    pub const fn from(&self) -> Timestamp {
        self.from
    }

    /// The end (exclusive).
    #[must_use]
    pub const fn to(&self) -> Timestamp {
        self.to
    }
}

/// Rows of one snapshot, read page by page.
#[async_trait]
pub trait Pages<T>: Send {
    /// The next rows, at most `limit`; empty at the end.
    async fn next(&mut self, limit: u32) -> StoreResult<Vec<T>>;
}
