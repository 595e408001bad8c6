//! The gate service: its API on top of a runtime.
//!
//! The program of the same name is a few lines around [`start`]. `penstock sandbox` and the tests call [`start`] in their own
//! process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use gate_core::idempotent::Idempotent;
use gate_core::ports::Rail;
use gate_core::usecases::act_on_session::ActOnSession;
use gate_core::usecases::bootstrap_embed::BootstrapEmbed;
use gate_core::usecases::cancel_payment::CancelPayment;
use gate_core::usecases::context::GateContext;
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
use gate_core::usecases::wake_rail::WakeRail;
use gate_http::{EdgeHeader, Parts, Setup, Signer, WidgetSetup};
use http_kit::{Document, TrustedProxies};
use partner_core::events::Service;
use partner_core::origin::Origin;
use partner_core::stored_response::ResponseStore;
use partner_core::usecases::deliveries::Delivered;
use runtime::config::UpstreamConfig;
use runtime::service::Bound;
use runtime::{OpenError, Runtime};

pub use gate_http::{DemoFile, DemoPlaces, demo_file, demo_page, demo_policy};
pub use runtime::service::{BoundService, StartError};

const LISTEN: &str = "PENSTOCK_GATE_LISTEN";
const WIDGET_LISTEN: &str = "PENSTOCK_WIDGET_LISTEN";

/// The name of the widget's listener in metrics and in [`BoundService::beside`].
pub const WIDGET: &str = "widget";

/// Binds the service to the configured address and starts its background tasks: they deliver events, expire sessions, delete
/// unused quotes, advance rail records and verifications, and fill in the forms of comparison of customers of earlier versions. After an
/// error it does not listen.
pub async fn start(runtime: &Runtime) -> Result<BoundService, StartError> {
    let wanted = runtime.base.config.gate_listen;
    serving(runtime, Bound::bind(runtime, LISTEN, wanted).await?).await
}

/// Starts the service in a process with another service. Both share one set of metrics.
pub async fn start_beside(runtime: &Runtime) -> Result<BoundService, StartError> {
    let wanted = runtime.base.config.gate_listen;
    serving(runtime, Bound::bind_beside(runtime, LISTEN, wanted).await?).await
}

/// The origins by which browsers reach the service: those of the configuration, or else the addresses that are bound.
#[derive(Debug, Clone)]
pub struct PublicOrigins {
    pub gate: Origin,
    pub widget: Origin,
}

impl PublicOrigins {
    /// The origins of a service that is bound. An address of all interfaces is reached on this machine.
    #[must_use]
    pub fn new(runtime: &Runtime, gate: SocketAddr, widget: SocketAddr) -> Self {
        let config = &runtime.base.config;
        let or_bound =
            |given: &Option<Origin>, bound| given.clone().unwrap_or_else(|| of_bound(bound));
        Self {
            gate: or_bound(&config.gate_origin, gate),
            widget: or_bound(&config.widget_origin, widget),
        }
    }
}

fn of_bound(mut address: SocketAddr) -> Origin {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    Origin::of_address(address)
}

async fn serving(runtime: &Runtime, bound: Bound) -> Result<BoundService, StartError> {
    let config = &runtime.base.config;
    config.check_gate().map_err(OpenError::Config)?;
    let beside = bind_widget(runtime).await?;
    let origins = beside
        .as_ref()
        .map(|beside| PublicOrigins::new(runtime, bound.address(), beside.address()));
    if let Some(origins) = &origins {
        runtime.sandbox_pages.are_at(origins.widget.clone());
    }
    let home = origins.as_ref().map(|origins| origins.widget.clone());
    let context = runtime.gate_context(gate_http::render_resource);
    let router = gate_http::service(setup(runtime, &bound, home, context.clone()))?;
    runtime.deliver(Service::Gate);
    runtime.sweep_keys(Service::Gate);
    runtime.compare_customers();
    runtime.delete_unused_quotes();
    runtime.sweep_sessions(context.clone());
    runtime.settle_rails(&context);
    runtime.settle_verifications(&context);
    let serving = bound.serve(router);
    Ok(match beside.zip(origins) {
        Some((beside, origins)) => {
            let widget = gate_http::widget(widget(runtime, &beside, origins));
            serving.with(WIDGET, beside.serve(widget))
        }
        None => serving,
    })
}

/// Binds the widget's listener. `None` in mode live without an origin of the widget.
async fn bind_widget(runtime: &Runtime) -> Result<Option<Bound>, StartError> {
    let config = &runtime.base.config;
    if !config.serves_widget() {
        return Ok(None);
    }
    let bound = Bound::bind_beside(runtime, WIDGET_LISTEN, config.widget_listen).await?;
    Ok(Some(bound.named(WIDGET)))
}

/// The published documents, the contract first: those of the API, and those that an operator's rail implements for
/// `PENSTOCK_RAIL=http:<url>` and an operator's verifier for `PENSTOCK_VERIFIER=http:<url>`.
pub fn documents() -> Result<Vec<Document>, StartError> {
    let mut documents = gate_http::documents()?;
    documents.push(Document {
        name: "rail-v1",
        api: runtime::rail_openapi(),
    });
    documents.push(Document {
        name: "verifier-v1",
        api: runtime::verifier_openapi(),
    });
    Ok(documents)
}

fn widget(runtime: &Runtime, bound: &Bound, origins: PublicOrigins) -> WidgetSetup {
    WidgetSetup {
        mode: runtime.base.config.mode,
        gate: origins.gate,
        widget: origins.widget,
        directory: Arc::clone(&runtime.gate_directory),
        throttle: Arc::clone(&runtime.throttle),
        readiness: runtime.readiness(),
        site: bound.site().clone(),
    }
}

fn setup(runtime: &Runtime, bound: &Bound, home: Option<Origin>, context: GateContext) -> Setup {
    let base = &runtime.base;
    let config = &base.config;
    Setup {
        waking: WakeRail {
            context: context.clone(),
        },
        signers: signers(runtime),
        parts: parts(runtime, home, context),
        throttle: Arc::clone(&runtime.throttle),
        limits: config.gate_limits.clone(),
        proxies: TrustedProxies::new(config.trusted_proxies.iter().copied()),
        site: bound.site().clone(),
        readiness: runtime.readiness(),
    }
}

/// The rails over HTTP with the secrets that they sign notifications with.
fn signers(runtime: &Runtime) -> Vec<Signer> {
    let config = &runtime.base.config;
    let configured = [
        (&runtime.rails.present, &config.rail),
        (&runtime.rails.former, &config.rail_former),
    ];
    let signer = |(rail, configured): (&Option<Arc<dyn Rail>>, &UpstreamConfig)| {
        Some(Signer {
            rail: rail.as_ref()?.name(),
            secret: Arc::new(configured.secret.as_ref()?.notifications()),
        })
    };
    configured.into_iter().filter_map(signer).collect()
}

fn parts(runtime: &Runtime, widget: Option<Origin>, context: GateContext) -> Parts {
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
    let verifying = VerifyUser {
        context: context.clone(),
        catalogue: Arc::clone(&runtime.catalogue),
        verifiers: runtime.verifiers.clone(),
    };
    let bootstrapping = BootstrapEmbed {
        context: context.clone(),
        tokens: base.embed_tokens.clone(),
        ttl: base.config.embed_token_ttl,
        widget,
        catalogue: Arc::clone(&runtime.catalogue),
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
            idempotent: idempotent.clone(),
            catalogue: Arc::clone(&runtime.catalogue),
            rails: runtime.rails.clone(),
        },
        quoting: QuoteSession {
            context: context.clone(),
            catalogue: Arc::clone(&runtime.catalogue),
            rates: Arc::clone(&runtime.rates),
            ttl: base.config.signed_quote_ttl,
        },
        paying: PaySession {
            context: context.clone(),
            idempotent,
            catalogue: Arc::clone(&runtime.catalogue),
            rails: runtime.rails.clone(),
            verifying: verifying.clone(),
        },
        cancelling: CancelPayment {
            context: context.clone(),
            rails: runtime.rails.clone(),
        },
        pretending: Pretend {
            context: context.clone(),
            rails: runtime.rails.clone(),
            verifiers: runtime.verifiers.clone(),
        },
        reading: GateQueries {
            context: context.clone(),
        },
        outcomes: ShowOutcome {
            bootstrapping: bootstrapping.clone(),
        },
        bootstrapping,
        showing: ShowSession {
            context: context.clone(),
            verifying: verifying.clone(),
            directory: Arc::clone(&runtime.gate_directory),
        },
        verifying,
        options: ListOptions {
            catalogue: Arc::clone(&runtime.catalogue),
            rates: Arc::clone(&runtime.rates),
        },
        delivered: Delivered {
            deliveries: base.store.clone(),
            service: Service::Gate,
        },
        test_sending: SendTestEvent {
            context,
            deliveries: base.store.clone(),
        },
    }
}
