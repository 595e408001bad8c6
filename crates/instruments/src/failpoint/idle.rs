//! The build without failpoints: every point does nothing.

use std::time::SystemTime;

use super::{FromInjectedFault, Step, TruncatedResponse};

/// Runs a step.
pub const fn around<F>(_: Step, work: F) -> F
where
    F: Future<Output: FromInjectedFault>,
{
    work
}

/// The points of a handler: none.
#[derive(Debug)]
pub struct Handler;

impl Handler {
    /// Ignores the route.
    #[must_use]
    pub fn of(_: impl FnOnce() -> String) -> Self {
        Self
    }

    /// Runs the handler.
    pub const fn answers<F: Future>(self, work: F) -> F {
        work
    }
}

/// Returns `None`: no response is truncated.
#[must_use]
pub const fn torn(_: usize) -> Option<TruncatedResponse> {
    None
}

/// Returns the instant unchanged.
#[must_use]
pub const fn by_own_clock(now: SystemTime) -> SystemTime {
    now
}
