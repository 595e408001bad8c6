//! The pools service: its API on top of a runtime.
//!
//! The program of the same name is a few lines around [`start`]; `penstock sandbox` and the tests
//! call it in their own process.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_kit::{Options, Site, TrustedProxies};
use kernel::Mode;
use partner_core::events::Service;
use pools_core::usecases::poll::Polling;
use pools_core::usecases::quoting::Quoting;
use pools_core::usecases::reading::Reading;
use pools_core::usecases::reject::Rejecting;
use pools_core::usecases::transact::Transacting;
use pools_http::{Parts, Setup};
use runtime::Runtime;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What is in flight has this long to finish; the store closes in what is left of 25 seconds.
const DRAIN: Duration = Duration::from_secs(20);

/// Who asks for metrics is one or two collectors.
const METRICS_CONNECTIONS: usize = 16;

/// Why the service does not listen.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The address cannot be listened on.
    #[error("{setting}: {address} cannot be listened on ({cause})")]
    Listen {
        /// The variable that names it.
        setting: &'static str,
        /// The address of the configuration.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// The published contract does not hold together.
    #[error("the published contract cannot be made ({0})")]
    Contract(String),
}

/// A service that is bound to its address and answers as soon as it is run.
pub struct Listening {
    address: SocketAddr,
    serving: Pin<Box<dyn Future<Output = io::Result<()>> + Send>>,
}

impl Listening {
    /// The address, with the real port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the runtime is told to stop, and finishes what is in flight.
    ///
    /// # Errors
    /// Only if the listener itself is unusable.
    pub async fn run(self) -> io::Result<()> {
        self.serving.await
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listening({})", self.address)
    }
}

/// Binds the service to the address of its configuration, and starts delivering its events.
///
/// # Errors
/// [`StartFault`]; nothing listens then.
pub async fn start(runtime: &Runtime) -> Result<Listening, StartFault> {
    let base = &runtime.base;
    let (listener, address) = bind("PENSTOCK_POOLS_LISTEN", base.config.pools_listen).await?;
    let metrics = match base.config.metrics_listen {
        Some(wanted) => Some(bind("PENSTOCK_METRICS_LISTEN", wanted).await?),
        None => None,
    };
    let site = Site::new(
        docs_base(base.config.mode, address),
        Arc::clone(&base.clock),
        Arc::clone(&base.entropy),
    );
    let router = pools_http::service(setup(runtime, site.clone()))
        .map_err(|fault| StartFault::Contract(fault.to_string()))?;
    let mut options = Options::new(site.clone());
    options.deadlines.shutdown = DRAIN;
    let shutdown = runtime.shutdown.clone();
    runtime.deliver(Service::Pools);
    let serving = http_kit::serve(listener, router, options, shutdown);
    Ok(Listening {
        address,
        serving: match metrics {
            None => Box::pin(serving),
            Some((listener, address)) => {
                tracing::info!(metrics.address = %address, "Serving metrics");
                Box::pin(beside_metrics(serving, listener, site))
            }
        },
    })
}

async fn bind(
    setting: &'static str,
    wanted: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartFault> {
    let unbound = |cause| StartFault::Listen {
        setting,
        address: wanted,
        cause,
    };
    let listener = TcpListener::bind(wanted).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    Ok((listener, address))
}

/// Serves metrics on a listener of their own, until the service has finished what was in flight: how it ends is
/// worth seeing too.
async fn beside_metrics(
    serving: impl Future<Output = io::Result<()>>,
    listener: TcpListener,
    site: Site,
) -> io::Result<()> {
    let mut options = Options::new(site);
    options.name = "metrics";
    options.max_connections = METRICS_CONNECTIONS;
    options.deadlines.shutdown = Duration::from_secs(1);
    let done = CancellationToken::new();
    let router = http_kit::metrics_router(instruments::render);
    let metrics = http_kit::serve(listener, router, options, done.clone());
    let serving = async {
        let served = serving.await;
        done.cancel();
        served
    };
    let (served, measured) = tokio::join!(serving, metrics);
    served.and(measured)
}

/// The published contract.
///
/// # Errors
/// [`StartFault::Contract`].
pub fn openapi_yaml() -> Result<String, StartFault> {
    pools_http::openapi_yaml().map_err(|fault| StartFault::Contract(fault.to_string()))
}

/// On the developer's own machine the documentation has a whole address. Anywhere else the public
/// origin is not known here, and a private one must not be shown: the path alone is right.
fn docs_base(mode: Mode, address: SocketAddr) -> String {
    match mode {
        Mode::Test if address.ip().is_loopback() => format!("http://{address}/docs"),
        Mode::Test | Mode::Live => "/docs".to_owned(),
    }
}

fn setup(runtime: &Runtime, site: Site) -> Setup {
    let base = &runtime.base;
    let config = &base.config;
    Setup {
        parts: parts(runtime),
        throttle: Arc::clone(&runtime.throttle),
        tiers: config.pools_throttle.clone(),
        proxies: TrustedProxies::new(config.trusted_proxies.iter().copied()),
        site,
        readiness: base.store.clone(),
    }
}

fn parts(runtime: &Runtime) -> Parts {
    let base = &runtime.base;
    Parts {
        mode: base.config.mode,
        directory: Arc::clone(&runtime.directory),
        quoting: Quoting {
            rates: Arc::clone(&runtime.rates),
            engine: Arc::clone(&runtime.engine),
            desk: runtime.quote_desk.clone(),
            clock: Arc::clone(&base.clock),
            entropy: Arc::clone(&base.entropy),
            ttl: base.config.quote_ttl,
        },
        transacting: Transacting {
            reads: base.store.clone(),
            desk: runtime.transact_desk.clone(),
            engine: Arc::clone(&runtime.engine),
            in_flight: Arc::clone(&runtime.in_flight),
            clock: Arc::clone(&base.clock),
            entropy: Arc::clone(&base.entropy),
            idempotency_ttl: base.config.idempotency_ttl,
        },
        polling: Polling {
            store: base.store.clone(),
            engine: Arc::clone(&runtime.engine),
            sealer: Arc::clone(&base.sealer),
            entropy: Arc::clone(&base.entropy),
        },
        rejecting: Rejecting::new(base.store.clone()),
        reading: Reading::new(base.store.clone()),
    }
}
