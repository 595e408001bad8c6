//! Failpoints: where a test may end the process, fail a step, delay it, or skew its clock.
//!
//! An adapter runs each step that must survive a crash through [`around`], which reaches one point before the step and one after
//! it, whatever the outcome of the step. Each route's handler runs between two points of its own ([`Handler`]). Without the
//! feature `failpoints` these functions only run the step or the handler. Cores do not know failpoints.

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
