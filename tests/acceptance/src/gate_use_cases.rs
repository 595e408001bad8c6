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
use gate_core::usecases::quote_session::QuoteSession;
use gate_core::usecases::redeem_quote::RedeemQuote;
use gate_core::usecases::verify_user::VerifyUser;
use kernel::{Entropy, Mode};
use partner_core::ports::InFlight;
use partner_core::stored_response::ResponseStore;

use crate::world::World;

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
    /// Redeems quotes.
    pub redeeming: RedeemQuote,
    /// Polls the rail; `None` in mode live.
    pub settling: Option<AdvanceRails>,
}

impl GateUseCases {
    /// The use cases of a world's service. As in the service, only mode test uses the rail and the verifier.
    pub(crate) fn new(
        world: &World,
        store: Arc<dyn GateStore>,
        in_flight: Arc<dyn InFlight>,
        rail: Arc<dyn Rail>,
        verifier: Arc<dyn Verifier>,
    ) -> Self {
        let (operator, _, sealer) = world.parts();
        let setup = world.setup();
        let entropy: Arc<dyn Entropy> = operator.entropy.clone();
        let is_test = setup.mode == Mode::Test;
        let rail = is_test.then_some(rail);
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
                rail: rail.clone(),
            },
            redeeming: RedeemQuote {
                context: context.clone(),
                idempotent: idempotent.clone(),
                rail: rail.clone(),
            },
            settling: rail.clone().map(|rail| AdvanceRails {
                context: context.clone(),
                rail,
            }),
            paying: PaySession {
                context: context.clone(),
                idempotent,
                catalogue: Arc::clone(&catalogue),
                rail,
                verifying: VerifyUser {
                    context: context.clone(),
                    catalogue,
                    verifier: is_test.then_some(verifier),
                },
            },
            context,
        }
    }
}
