//! Where a test may end the process, fail a step, hold it up, or set its clock apart.
//!
//! An adapter runs each step that must survive a crash through [`around`]: the point before it and
//! the point after it are reached whatever the step does. Every route's handler answers between two
//! points of its own ([`Handler`]). Unless the crate is built `armed`, that is the step or the
//! handler itself and nothing else. Cores know nothing of it.

#[cfg(all(feature = "armed", not(debug_assertions)))]
compile_error!(
    "failpoints are for tests: a profile without debug assertions is not built with them"
);

#[cfg(feature = "armed")]
mod armed;
mod broken;
#[cfg(not(feature = "armed"))]
mod idle;
mod step;

#[cfg(feature = "armed")]
pub use armed::{Handler, around, by_own_clock, torn};
pub use broken::{Broken, Fault, Torn};
#[cfg(not(feature = "armed"))]
pub use idle::{Handler, around, by_own_clock, torn};
pub use step::{Side, Step};
