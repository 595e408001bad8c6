//! The shared part of both service programs: commands, listeners and shutdown. A service adds its router and its background
//! tasks.

mod listening;
mod program;

pub use listening::{Bound, BoundService, StartError};
pub use program::{Program, Starting, run};
