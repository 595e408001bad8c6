//! The outcome of a run, and the errors that it causes.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use kernel::{StoreError, StoreResult};

/// The outcome of one run.
pub(super) enum Ran<R> {
    /// One result for each command; `None` if the partner's row was locked.
    Results(Vec<Option<R>>),
    /// Nothing was written.
    RolledBack(StoreError),
    /// The run panicked, before its commit or after it.
    Panicked(StoreError),
    /// The batch may have been committed.
    CommitUnknown(StoreError),
}

/// What the failure of a single command says about the commands after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The store stayed busy, for every partner.
    Busy,
    /// The store was unavailable, perhaps only for the partner.
    Unavailable,
    /// Nothing.
    Other,
}

impl Failure {
    pub(super) fn of(error: &StoreError) -> Self {
        if error.is_busy() {
            Self::Busy
        } else if matches!(error, StoreError::Unavailable(_)) {
            Self::Unavailable
        } else {
            Self::Other
        }
    }
}

/// The result of a single command.
pub(super) fn only<R>(ran: Ran<R>) -> StoreResult<Option<R>> {
    match ran {
        Ran::Results(results) => results
            .into_iter()
            .next()
            .ok_or_else(|| StoreError::unexpected("a command returned no result")),
        Ran::RolledBack(error) | Ran::Panicked(error) | Ran::CommitUnknown(error) => Err(error),
    }
}

/// One error, repeated for every command of the batch.
pub(super) fn commit_unknown_for_each(error: StoreError) -> impl Iterator<Item = StoreError> {
    let shared = Arc::new(error);
    std::iter::repeat_with(move || {
        StoreError::CommitUnknown(Box::new(SharedError(Arc::clone(&shared))))
    })
}

/// The same error, reported to several submitters.
#[derive(Debug)]
struct SharedError(Arc<StoreError>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the commit of the batch is unknown")
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// A run panicked. Its transaction was dropped: it was rolled back, unless the panic came after the commit.
#[derive(Debug, thiserror::Error)]
#[error("a batch panicked: {0}")]
pub(super) struct Panicked(String);

/// Runs a future and catches its panic. Dropping the panicked future drops its transaction.
pub(super) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))).map_or_else(
            |payload| std::task::Poll::Ready(Err(payload)),
            |polled| polled.map(Ok),
        )
    })
    .await
    .map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Panicked(text.unwrap_or_else(|| "no message".to_owned()))
    })
}
