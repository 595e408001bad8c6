//! The pages of the sandbox's card and of its verification, which the widget's origin serves in mode test.

use std::sync::{Arc, OnceLock};

use gate_core::rail::PaymentId;
use partner_core::origin::Origin;

/// Where the sandbox's pages are. The rail and the verifier exist before the listener of the widget, whose address can be any free one.
#[derive(Clone, Default)]
pub struct SandboxPages(Arc<OnceLock<Origin>>);

impl SandboxPages {
    /// Says which origin serves the pages. A later call changes nothing.
    pub fn are_at(&self, widget: Origin) {
        let _ = self.0.set(widget);
    }

    /// The page that plays the card form of a payment; `None` if no widget is served.
    pub(crate) fn card(&self, payment: PaymentId) -> Option<String> {
        let origin = self.0.get()?;
        Some(format!("{origin}/sandbox/card?payment={payment}"))
    }

    /// The page that plays the check of an identity; `None` if no widget is served.
    pub(crate) fn identity(&self) -> Option<String> {
        let origin = self.0.get()?;
        Some(format!("{origin}/sandbox/identity"))
    }
}
