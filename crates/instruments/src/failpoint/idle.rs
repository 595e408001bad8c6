//! Not armed: every point is nothing.

use std::time::SystemTime;

use super::{FromInjectedFault, Step, TruncatedResponse};

/// Runs a step.
pub const fn around<F>(_: Step, work: F) -> F
where
    F: Future<Output: FromInjectedFault>,
{
    work
}

/// A handler's two points: none.
#[derive(Debug)]
pub struct Handler;

impl Handler {
    /// Of the handler behind this route, which nobody asks for.
    #[must_use]
    pub fn of(_: impl FnOnce() -> String) -> Self {
        Self
    }

    /// Answers.
    pub const fn answers<F: Future>(self, work: F) -> F {
        work
    }
}

/// Is an answer of so many bytes to be torn? Never.
#[must_use]
pub const fn torn(_: usize) -> Option<TruncatedResponse> {
    None
}

/// What the process takes an instant of the machine's clock for: that instant.
#[must_use]
pub const fn by_own_clock(now: SystemTime) -> SystemTime {
    now
}
