//! The use cases of the gate that pay a session, over any store.

use std::sync::Arc;

use gate_core::catalogue::Catalogue;
use gate_core::idempotent::Idempotent;
use gate_core::ports::{GateStore, Rail, Verifier};
use gate_core::usecases::act_on_session::ActOnSession;
use gate_core::usecases::advance_rails::AdvanceRails;
use gate_core::usecases::cancel_payment::CancelPayment;
use gate_core::usecases::context::GateContext;
use gate_core::usecases::pay_session::PaySession;
use gate_core::usecases::pretend::Pretend;
use gate_core::usecases::quote_session::QuoteSession;
use gate_core::usecases::redeem_quote::RedeemQuote;
use gate_core::usecases::show_session::ShowSession;
use gate_core::usecases::verify_user::VerifyUser;
use gate_core::usecases::watch_rails::WatchRails;
use kernel::{Entropy, Mode, Upstreams};
use partner_core::ports::InFlight;
use partner_core::stored_response::ResponseStore;

use crate::world::World;

/// The rails and the verifiers of a gate.
pub(crate) struct GateUpstreams {
    pub(crate) rails: Upstreams<dyn Rail>,
    pub(crate) verifiers: Upstreams<dyn Verifier>,
}

impl GateUpstreams {
    /// The rail and the verifier that tests script. As in the service, only mode test uses them.
    pub(crate) fn of_tests(
        world: &World,
        rail: Arc<dyn Rail>,
        verifier: Arc<dyn Verifier>,
    ) -> Self {
        let is_test = world.setup().mode == Mode::Test;
        Self {
            rails: Upstreams {
                present: is_test.then_some(rail),
                former: None,
            },
            verifiers: Upstreams {
                present: is_test.then_some(verifier),
                former: None,
            },
        }
    }
}

/// The use cases that pay a session, and those that end it or a payment of it.
#[derive(Clone)]
pub struct GateUseCases {
    /// Expires sessions. All use cases share it.
    pub context: GateContext,
    /// Cancels, completes and fails sessions.
    pub acting: ActOnSession,
    /// Quotes sessions for their widgets.
    pub quoting: QuoteSession,
    /// Pays sessions.
    pub paying: PaySession,
    /// Cancels payments of widgets.
    pub cancelling: CancelPayment,
    /// Ends payments and verifications of the sandbox.
    pub pretending: Pretend,
    /// Redeems quotes.
    pub redeeming: RedeemQuote,
    /// Shows sessions to their widgets.
    pub showing: ShowSession,
    /// Polls each rail.
    pub settling: Vec<AdvanceRails>,
    /// Asks each rail about payments that have ended.
    pub watching: Vec<WatchRails>,
}

impl GateUseCases {
    /// The use cases of a world's service.
    pub(crate) fn new(
        world: &World,
        store: Arc<dyn GateStore>,
        in_flight: Arc<dyn InFlight>,
        upstreams: GateUpstreams,
    ) -> Self {
        let (operator, _, sealer) = world.parts();
        let setup = world.setup();
        let entropy: Arc<dyn Entropy> = operator.entropy.clone();
        let GateUpstreams { rails, verifiers } = upstreams;
        let catalogue = Arc::new(Catalogue::parse(&setup.catalogue).expect("a catalogue"));
        let context = GateContext {
            store: store.clone(),
            sealer: Arc::clone(&sealer),
            entropy: Arc::clone(&entropy),
            render: gate_http::render_resource,
        };
        let idempotent = Idempotent {
            store: store.clone(),
            responses: ResponseStore {
                in_flight,
                reads: store,
                sealer,
                entropy,
                ttl: setup.idempotency_ttl,
            },
        };
        let verifying = VerifyUser {
            context: context.clone(),
            catalogue: Arc::clone(&catalogue),
            verifiers: verifiers.clone(),
        };
        Self {
            acting: ActOnSession {
                context: context.clone(),
                idempotent: idempotent.clone(),
            },
            quoting: QuoteSession {
                context: context.clone(),
                catalogue: Arc::clone(&catalogue),
                rates: world.rates().clone(),
                ttl: setup.signed_quote_ttl,
            },
            cancelling: CancelPayment {
                context: context.clone(),
                rails: rails.clone(),
            },
            pretending: Pretend {
                context: context.clone(),
                rails: rails.clone(),
                verifiers: verifiers.clone(),
            },
            redeeming: RedeemQuote {
                context: context.clone(),
                idempotent: idempotent.clone(),
                catalogue: Arc::clone(&catalogue),
                rails: rails.clone(),
            },
            settling: rails
                .iter()
                .map(|rail| AdvanceRails {
                    context: context.clone(),
                    rail: Arc::clone(rail),
                })
                .collect(),
            watching: rails
                .iter()
                .map(|rail| WatchRails {
                    context: context.clone(),
                    rail: Arc::clone(rail),
                })
                .collect(),
            paying: PaySession {
                context: context.clone(),
                idempotent,
                catalogue,
                rails,
                verifying: verifying.clone(),
            },
            showing: ShowSession {
                context: context.clone(),
                verifying,
                directory: operator.gate_directory.clone(),
            },
            context,
        }
    }
}
