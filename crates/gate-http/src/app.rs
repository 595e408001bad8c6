//! State that all handlers of the gate API share.

use std::sync::Arc;

use gate_core::catalogue::Catalogue;
use gate_core::profile::GateProfile;
use gate_core::usecases::act_on_session::ActOnSession;
use gate_core::usecases::bootstrap_embed::BootstrapEmbed;
use gate_core::usecases::cancel_payment::CancelPayment;
use gate_core::usecases::create_session::CreateSession;
use gate_core::usecases::customers::Customers;
use gate_core::usecases::list_options::ListOptions;
use gate_core::usecases::lock_quote::LockQuote;
use gate_core::usecases::pay_session::PaySession;
use gate_core::usecases::pretend::Pretend;
use gate_core::usecases::preview_quotes::PreviewQuotes;
use gate_core::usecases::queries::GateQueries;
use gate_core::usecases::quote_session::QuoteSession;
use gate_core::usecases::redeem_quote::RedeemQuote;
use gate_core::usecases::send_test_event::SendTestEvent;
use gate_core::usecases::show_outcome::ShowOutcome;
use gate_core::usecases::show_session::ShowSession;
use gate_core::usecases::update_branding::UpdateBranding;
use gate_core::usecases::verify_user::VerifyUser;
use kernel::Mode;
use partner_core::ports::Directory;
use partner_core::usecases::deliveries::Delivered;

use crate::edge::EdgeHeader;

/// The use cases of the routes.
#[derive(Clone)]
pub struct Parts {
    pub mode: Mode,
    /// The partners and their access.
    pub directory: Arc<dyn Directory<GateProfile>>,
    /// The countries, currencies, assets and methods on offer.
    pub catalogue: Arc<Catalogue>,
    /// The request header in which the edge names the client's country.
    pub edge: EdgeHeader,
    pub previewing: PreviewQuotes,
    pub creating: CreateSession,
    /// Cancels, completes and fails sessions.
    pub acting: ActOnSession,
    pub rebranding: UpdateBranding,
    pub customers: Customers,
    pub locking: LockQuote,
    pub redeeming: RedeemQuote,
    /// Reads sessions, transactions, quotes and rail records.
    pub reading: GateQueries,
    pub bootstrapping: BootstrapEmbed,
    pub quoting: QuoteSession,
    pub paying: PaySession,
    pub cancelling: CancelPayment,
    pub verifying: VerifyUser,
    /// Ends payments and verifications of the sandbox.
    pub pretending: Pretend,
    pub showing: ShowSession,
    pub outcomes: ShowOutcome,
    pub options: ListOptions,
    /// Lists and replays deliveries.
    pub delivered: Delivered,
    pub test_sending: SendTestEvent,
}

/// The state of the router. It is cheap to clone.
pub(crate) type App = Arc<Parts>;

/// Proof of a good secret key whose partner is entitled to the gate.
pub(crate) type Entitled = http_kit::Entitled<GateProfile>;
/// Proof of a good publishable key whose partner is entitled to the gate.
pub(crate) type Publishable = http_kit::Publishable<GateProfile>;
/// Proof of a good secret key of the sandbox whose partner is entitled to the gate.
pub(crate) type Sandbox = http_kit::Sandbox<GateProfile>;
