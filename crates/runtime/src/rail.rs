//! What moves fiat.

use std::sync::Arc;

use gate_core::ports::Rail;
use kernel::Mode;
use providers::SandboxRail;

/// The sandbox's rail, in mode test alone: there is no other so far.
pub(crate) fn rail(mode: Mode) -> Option<Arc<dyn Rail>> {
    match mode {
        Mode::Test => Some(Arc::new(SandboxRail)),
        Mode::Live => None,
    }
}
