//! What every handler of the gate API shares.

use std::fmt;
use std::sync::Arc;

use gate_core::catalogue::Catalogue;
use gate_core::usecases::acting::Acting;
use gate_core::usecases::bootstrap::Bootstrapping;
use gate_core::usecases::branding::Rebranding;
use gate_core::usecases::create::Creating;
use gate_core::usecases::customers::Customers;
use gate_core::usecases::locking::Locking;
use gate_core::usecases::previewing::Previewing;
use gate_core::usecases::reading::Reading;
use gate_core::usecases::redeeming::Redeeming;
use gate_core::usecases::webhook_test::TestSending;
use kernel::Mode;
use partner_core::ports::Directory;
use partner_core::usecases::deliveries::Delivered;

use crate::capabilities::EdgeHeader;

/// The use cases behind the routes.
#[derive(Clone)]
pub struct Parts {
    /// The process's mode.
    pub mode: Mode,
    /// Who may do what.
    pub directory: Arc<dyn Directory>,
    /// What is offered where.
    pub catalogue: Arc<Catalogue>,
    /// Where the edge says which country a request comes from.
    pub edge: EdgeHeader,
    /// Previews orders.
    pub previewing: Previewing,
    /// Creates sessions.
    pub creating: Creating,
    /// Cancels, completes and fails sessions.
    pub acting: Acting,
    /// Changes branding.
    pub rebranding: Rebranding,
    /// Keeps customers.
    pub customers: Customers,
    /// Locks quotes.
    pub locking: Locking,
    /// Redeems them.
    pub redeeming: Redeeming,
    /// Reads.
    pub reading: Reading,
    /// Starts widgets.
    pub bootstrapping: Bootstrapping,
    /// Lists and replays deliveries.
    pub delivered: Delivered,
    /// Sends test events.
    pub test_sending: TestSending,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// The state of the router; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Parts>);

impl App {
    /// The state over the given use cases.
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }
}
