//! The errors and outcomes of a store, without naming its database.

use std::error::Error;

use crate::Timestamp;

type Source = Box<dyn Error + Send + Sync>;

/// What a store returns.
pub type StoreResult<T> = Result<T, StoreError>;

/// An error of a store. It has no driver type; the driver's error is its source.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The transaction lost a race and was rolled back. A retry may succeed.
    #[error("the transaction lost a race and was rolled back")]
    Retry,
    /// The store is unreachable or did not respond in time. Nothing was written.
    #[error("the store is unavailable")]
    Unavailable(#[source] Source),
    /// Too many writes are waiting. Nothing was tried.
    #[error("too many writes are waiting")]
    Overloaded,
    /// The commit was sent, and its outcome is unknown.
    #[error("the outcome of a commit is unknown")]
    CommitUnknown(#[source] Source),
    /// A row has a combination of values that no rule writes.
    #[error("inconsistent row in {table}, column {column}: {row}")]
    Inconsistent {
        table: &'static str,
        /// The column that cannot be read.
        column: &'static str,
        /// The row's key, for the operator.
        row: String,
    },
    /// A constraint of the schema refused a write that the rules allowed.
    #[error("a database constraint rejected the write: {0}")]
    Guard(String),
    /// Any other error.
    #[error("unexpected fault of the store")]
    Unexpected(#[source] Source),
}

impl StoreError {
    /// Wraps any error as [`StoreError::Unexpected`].
    pub fn unexpected(source: impl Into<Source>) -> Self {
        Self::Unexpected(source.into())
    }

    /// Wraps any error as [`StoreError::Unavailable`].
    pub fn unavailable(source: impl Into<Source>) -> Self {
        Self::Unavailable(source.into())
    }

    /// A [`StoreError::Unavailable`] whose cause concerns every partner: no connection was free, or another program held the lock of
    /// the whole database.
    pub fn busy(source: impl Into<Source>) -> Self {
        Self::unavailable(Busy(source.into()))
    }

    /// Whether [`StoreError::busy`] made this error. A transaction of another partner would have failed too, even if the store is
    /// ready.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Unavailable(cause) if cause.is::<Busy>())
    }

    /// A [`StoreError::Unavailable`] with the reason why no write can be committed.
    pub fn no_writes(reason: NoWritesReason, cause: impl Into<String>) -> Self {
        let cause = cause.into();
        Self::unavailable(NoWrites { reason, cause })
    }

    /// Why no write can be committed.
    #[must_use]
    pub fn no_writes_reason(&self) -> NoWritesReason {
        let stated = match self {
            Self::Unavailable(cause) => cause.downcast_ref::<NoWrites>(),
            _ => None,
        };
        stated.map_or(NoWritesReason::Failing, |stated| stated.reason)
    }
}

/// Marks the cause of a [`StoreError::Unavailable`] that concerns every partner.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Busy(Source);

/// Why no write can be committed, as the cause of a [`StoreError::Unavailable`]. A probe without a key shows the reason to any caller;
/// the cause, which may name hosts and files, is for the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{cause}")]
pub struct NoWrites {
    pub reason: NoWritesReason,
    pub cause: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoWritesReason {
    /// The disk of the database is full.
    DiskFull,
    /// The database is a standby, or was made read-only.
    ReadOnly,
    /// The database does not confirm commits.
    Unconfirmed,
    /// The clock jumped ahead, and the jump was not accepted.
    ClockJump,
    /// The database cannot be reached, does not respond, or fails in another way.
    Failing,
}

impl NoWritesReason {
    /// The reason as the end of a sentence about the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DiskFull => "its disk is full",
            Self::ReadOnly => "it is read-only or a standby",
            Self::Unconfirmed => "it does not confirm commits",
            Self::ClockJump => {
                "the clock jumped ahead, and writes are refused until it is corrected or the jump is accepted"
            }
            Self::Failing => "it cannot be reached or fails",
        }
    }
}

/// An error and its causes in one line, outermost first, each once. `Display` does not print the source, but some libraries
/// repeat the source in their own text.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        next = cause.source();
    }
    line
}

/// The outcome of a guarded write.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cas {
    /// The precondition held, and the row was changed.
    Won,
    /// Another transaction changed the row first. Nothing was written.
    Lost,
}

impl Cas {
    /// Turns a lost race into [`StoreError::Retry`].
    ///
    /// # Errors
    /// [`StoreError::Retry`] if the race was lost.
    pub fn won(self) -> Result<(), StoreError> {
        match self {
            Self::Won => Ok(()),
            Self::Lost => Err(StoreError::Retry),
        }
    }

    /// Converts the number of rows that a guarded write has changed: one row is won, zero rows are lost.
    ///
    /// # Errors
    /// [`StoreError::Guard`] if the write changed several rows, which a key makes impossible.
    pub fn from_rows(rows: u64) -> Result<Self, StoreError> {
        match rows {
            0 => Ok(Self::Lost),
            1 => Ok(Self::Won),
            many => Err(StoreError::Guard(format!(
                "one row expected, {many} changed"
            ))),
        }
    }
}

/// A value together with the store's instant of the read, so that facts derived from time
/// use one clock.
#[derive(Debug, Clone)]
pub struct Seen<T> {
    /// The value that was read.
    pub value: T,
    /// The store's instant, taken after the read.
    pub at: Timestamp,
}

/// The rows of a read in which an unreadable row hides no other row.
#[derive(Debug)]
pub struct Readable<T> {
    /// The rows that could be read.
    pub rows: Vec<T>,
    /// The error of each row that could not be read.
    pub unreadable: Vec<StoreError>,
}

impl<T> FromIterator<Result<T, StoreError>> for Readable<T> {
    fn from_iter<I: IntoIterator<Item = Result<T, StoreError>>>(read: I) -> Self {
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        for row in read {
            match row {
                Ok(row) => rows.push(row),
                Err(error) => unreadable.push(error),
            }
        }
        Self { rows, unreadable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_row_hides_no_other_row() {
        let read = [Ok(1), Err(StoreError::Retry), Ok(2)];
        let Readable { rows, unreadable } = read.into_iter().collect();
        assert_eq!(rows, [1, 2]);
        assert!(matches!(unreadable[..], [StoreError::Retry]));
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the statement failed: {0}")]
    struct Repeating(#[source] std::io::Error);

    #[test]
    fn busy_store_is_unavailable_with_the_same_text() {
        let busy = StoreError::busy("every connection is in use");
        assert!(matches!(busy, StoreError::Unavailable(_)), "{busy:?}");
        assert!(busy.is_busy());
        assert_eq!(
            causes(&busy),
            "the store is unavailable: every connection is in use"
        );
        assert!(!StoreError::unavailable("the row is locked").is_busy());
        assert!(!StoreError::Overloaded.is_busy());
    }

    #[test]
    fn causes_prints_each_cause_once() {
        let cause = std::io::Error::other("disk on fire");
        let line = causes(&StoreError::unavailable(Repeating(cause)));
        assert_eq!(
            line,
            "the store is unavailable: the statement failed: disk on fire"
        );
    }
}
