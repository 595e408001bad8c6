//! Not armed: every point is nothing.

use crate::{Broken, Step, Torn};

/// Runs a step.
pub const fn around<F>(_: Step, work: F) -> F
where
    F: Future<Output: Broken>,
{
    work
}

/// Is an answer of so many bytes to be torn? Never.
#[must_use]
pub const fn torn(_: usize) -> Option<Torn> {
    None
}
