//! Without the feature `failpoints`: points do nothing.

use std::time::SystemTime;

use super::{FromInjectedFault, TruncatedResponse};

/// Runs a step.
pub const fn around<F>(_: &'static str, work: F) -> F
where
    F: Future<Output: FromInjectedFault>,
{
    work
}

/// Runs the commit of a transaction.
pub const fn around_commit<F>(_: &str, work: F) -> F
where
    F: Future<Output: FromInjectedFault>,
{
    work
}

/// The two points of a handler, which do nothing.
#[derive(Debug)]
pub struct Handler;

impl Handler {
    /// The points of a route. The name of the route is not built.
    #[must_use]
    pub fn of(_: impl FnOnce() -> String) -> Self {
        Self
    }

    /// Runs the handler.
    pub const fn answers<F: Future>(self, work: F) -> F {
        work
    }
}

/// Whether to truncate a response of this many bytes: never.
#[must_use]
pub const fn torn(_: usize) -> Option<TruncatedResponse> {
    None
}

/// The machine's instant, unchanged.
#[must_use]
pub const fn by_own_clock(now: SystemTime) -> SystemTime {
    now
}
