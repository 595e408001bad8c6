//! Where a test may end the process, fail a step, hold it up, or set its clock apart.
//!
//! An adapter runs each step that must survive a crash through [`around`]: the point before it and
//! the point after it are reached whatever the step does. Every route's handler answers between two
//! points of its own ([`Handler`]). Unless the feature `failpoints` is on, that is the step or the
//! handler itself and nothing else. Cores know nothing of it.

#[cfg(all(feature = "failpoints", not(debug_assertions)))]
compile_error!(
    "failpoints are for tests: a profile without debug assertions is not built with them"
);

#[cfg(feature = "failpoints")]
mod armed;
mod fault;
#[cfg(not(feature = "failpoints"))]
mod idle;
mod step;

#[cfg(feature = "failpoints")]
pub use armed::{Handler, around, by_own_clock, torn};
pub use fault::{Fault, FromInjectedFault, TruncatedResponse};
#[cfg(not(feature = "failpoints"))]
pub use idle::{Handler, around, by_own_clock, torn};
pub use step::{Side, Step};
