//! The gate service: its API on top of a runtime.
//!
//! The program of the same name is a few lines around [`start`]. `penstock sandbox` and the tests call [`start`] in their own
//! process.

use std::sync::Arc;

use gate_core::idempotent::Idempotent;
use gate_core::usecases::act_on_session::ActOnSession;
use gate_core::usecases::bootstrap_embed::BootstrapEmbed;
use gate_core::usecases::create_session::CreateSession;
use gate_core::usecases::customers::Customers;
use gate_core::usecases::expiry::GateContext;
use gate_core::usecases::lock_quote::LockQuote;
use gate_core::usecases::preview_quotes::PreviewQuotes;
use gate_core::usecases::queries::GateQueries;
use gate_core::usecases::redeem_quote::RedeemQuote;
use gate_core::usecases::send_test_event::SendTestEvent;
use gate_core::usecases::update_branding::UpdateBranding;
use gate_http::{EdgeHeader, Parts, Setup, Tiers};
use http_kit::TrustedProxies;
use partner_core::events::Service;
use partner_core::origin::Origin;
use partner_core::stored_response::ResponseStore;
use partner_core::usecases::deliveries::Delivered;
use runtime::Runtime;
use runtime::config::GateThrottle;
use runtime::service::Bound;

pub use runtime::service::{BoundService, StartError};

const LISTEN: &str = "PENSTOCK_GATE_LISTEN";

/// Binds the service to the configured address and starts its background tasks: they deliver events, expire sessions and advance
/// rail records.
///
/// # Errors
/// [`StartError`]; the service does not listen.
pub async fn start(runtime: &Runtime) -> Result<BoundService, StartError> {
    let wanted = runtime.base.config.gate_listen;
    serving(runtime, Bound::bind(runtime, LISTEN, wanted).await?)
}

/// Starts the service in a process with another service. Both share one set of metrics.
///
/// # Errors
/// The same as of [`start`].
pub async fn start_beside(runtime: &Runtime) -> Result<BoundService, StartError> {
    let wanted = runtime.base.config.gate_listen;
    serving(runtime, Bound::bind_beside(runtime, LISTEN, wanted).await?)
}

fn serving(runtime: &Runtime, bound: Bound) -> Result<BoundService, StartError> {
    let context = runtime.gate_context(gate_http::render_resource);
    let router = gate_http::service(setup(runtime, &bound, context.clone()))?;
    runtime.deliver(Service::Gate);
    runtime.sweep_keys(Service::Gate);
    runtime.sweep_sessions(context.clone());
    runtime.settle_rails(context);
    Ok(bound.serve(router))
}

/// The published contract.
///
/// # Errors
/// [`StartError::Contract`].
pub fn openapi_yaml() -> Result<String, StartError> {
    Ok(gate_http::openapi_yaml()?)
}

/// The contract of the sandbox's test helpers, published separately.
///
/// # Errors
/// [`StartError::Contract`].
pub fn test_helpers_yaml() -> Result<String, StartError> {
    Ok(gate_http::test_helpers_yaml()?)
}

/// The contract of the API that the embedded widget calls, published separately.
///
/// # Errors
/// [`StartError::Contract`].
pub fn embed_yaml() -> Result<String, StartError> {
    Ok(gate_http::embed_yaml()?)
}

fn setup(runtime: &Runtime, bound: &Bound, context: GateContext) -> Setup {
    let base = &runtime.base;
    let config = &base.config;
    let own = Origin::of_address(bound.address());
    let widget = config.widget_origin.clone().unwrap_or(own);
    Setup {
        parts: parts(runtime, widget, context),
        throttle: Arc::clone(&runtime.throttle),
        tiers: config.gate_throttle.clone().map(tiers),
        proxies: TrustedProxies::new(config.trusted_proxies.iter().copied()),
        site: bound.site().clone(),
        readiness: runtime.readiness(),
    }
}

fn tiers(throttle: GateThrottle) -> Tiers {
    Tiers {
        create_session: throttle.create_session,
        cancel_session: throttle.cancel_session,
        list_sessions: throttle.list_sessions,
        list_transactions: throttle.list_transactions,
        preview: throttle.preview,
        capabilities: throttle.capabilities,
        bootstrap: throttle.bootstrap,
        bootstrap_ceiling: throttle.bootstrap_ceiling,
        global: throttle.global,
    }
}

fn parts(runtime: &Runtime, widget: Origin, context: GateContext) -> Parts {
    let base = &runtime.base;
    let idempotent = Idempotent {
        store: base.store.clone(),
        responses: ResponseStore {
            in_flight: Arc::clone(&runtime.in_flight),
            reads: base.store.clone(),
            sealer: Arc::clone(&base.sealer),
            entropy: Arc::clone(&base.entropy),
            ttl: base.config.idempotency_ttl,
        },
    };
    Parts {
        mode: base.config.mode,
        directory: Arc::clone(&runtime.gate_directory),
        catalogue: Arc::clone(&runtime.catalogue),
        edge: EdgeHeader::new(base.config.edge_country_header.as_deref()),
        previewing: PreviewQuotes {
            store: base.store.clone(),
            entropy: Arc::clone(&base.entropy),
            catalogue: Arc::clone(&runtime.catalogue),
            rates: Arc::clone(&runtime.rates),
            ttl: base.config.preview_ttl,
        },
        creating: CreateSession {
            context: context.clone(),
            idempotent: idempotent.clone(),
            ttl: base.config.session_ttl,
        },
        acting: ActOnSession {
            context: context.clone(),
            idempotent: idempotent.clone(),
        },
        rebranding: UpdateBranding {
            idempotent: idempotent.clone(),
        },
        customers: Customers {
            context: context.clone(),
            idempotent: idempotent.clone(),
        },
        locking: LockQuote {
            context: context.clone(),
            idempotent: idempotent.clone(),
            catalogue: Arc::clone(&runtime.catalogue),
            rates: Arc::clone(&runtime.rates),
            ttl: base.config.signed_quote_ttl,
        },
        redeeming: RedeemQuote {
            context: context.clone(),
            idempotent,
            rail: runtime.rail.clone(),
        },
        reading: GateQueries {
            context: context.clone(),
        },
        bootstrapping: BootstrapEmbed {
            context: context.clone(),
            tokens: base.embed_tokens.clone(),
            ttl: base.config.embed_token_ttl,
            widget,
            catalogue: Arc::clone(&runtime.catalogue),
        },
        delivered: Delivered {
            desk: base.store.clone(),
            service: Service::Gate,
        },
        test_sending: SendTestEvent {
            context,
            desk: base.store.clone(),
        },
    }
}
