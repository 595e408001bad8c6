//! Where a test may end the process, fail a step, delay it, or shift its clock.
//!
//! An adapter runs each step that must survive a crash through [`around`], which names it. The step lies between two points,
//! `trade.insert.before` and `trade.insert.after`; both are reached whatever the step returns. Every route's handler runs between two
//! points of its own ([`Handler`]). Without the feature `failpoints`, [`around`] is the step itself. Cores have no points.

#[cfg(all(feature = "failpoints", not(debug_assertions)))]
compile_error!(
    "failpoints are for tests: a profile without debug assertions is not built with them"
);

#[cfg(feature = "failpoints")]
mod armed;
mod fault;
#[cfg(not(feature = "failpoints"))]
mod idle;

use std::fmt;

#[cfg(feature = "failpoints")]
pub use armed::{Handler, around, around_commit, by_own_clock, torn};
pub use fault::{Fault, FromInjectedFault, TruncatedResponse};
#[cfg(not(feature = "failpoints"))]
pub use idle::{Handler, around, around_commit, by_own_clock, torn};

/// The step in which the listener writes a response.
pub const RESPONSE_WRITE: &str = "response.write";

/// A side of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// No part of the step has happened.
    Before,
    /// The whole step has happened.
    After,
}

impl Side {
    /// Both sides, in order.
    pub const BOTH: [Self; 2] = [Self::Before, Self::After];

    /// The name of the point on this side of a step or a route.
    #[must_use]
    pub fn of(self, step: &impl fmt::Display) -> String {
        let side = match self {
            Self::Before => "before",
            Self::After => "after",
        };
        format!("{step}.{side}")
    }
}
