//! What both service programs share: their commands, their listeners and their end.
//!
//! A service brings its router and its background work; the rest of the program is here.

mod listening;
mod program;

pub use listening::{Bound, BoundService, StartError};
pub use program::{Document, Program, Starting, run};
