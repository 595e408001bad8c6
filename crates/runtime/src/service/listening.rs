//! A service on its address, with its metrics on a separate listener.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::{OpenError, OpenedBase, Runtime};
use http_kit::openapi::ContractError;
use http_kit::{Bounds, Options, Router, ServiceInfo, TrustedProxies};
use kernel::Mode;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Timeout for requests in flight at shutdown. The rest of the 25 seconds is for the store.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Concurrent connections of the metrics listener, for one or two collectors.
const METRICS_CONNECTIONS: usize = 16;

/// Why the service does not listen.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The service cannot listen on the address.
    #[error("{setting}: cannot listen on {address} ({cause})")]
    Listen {
        /// The variable that sets the address.
        setting: &'static str,
        address: SocketAddr,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The opened adapters cannot be served.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The published contract is inconsistent.
    #[error("the published contract cannot be built ({0})")]
    Contract(#[from] ContractError),
}

/// A service that is bound to its address and responds after it is run.
pub struct BoundService {
    address: SocketAddr,
    beside: Vec<(&'static str, SocketAddr)>,
    serving: Pin<Box<dyn Future<Output = io::Result<()>> + Send>>,
}

impl BoundService {
    /// The address with the actual port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the service serves on further addresses, such as `widget`, with the address.
    #[must_use]
    pub fn beside(&self) -> &[(&'static str, SocketAddr)] {
        &self.beside
    }

    /// The same service with another listener, which serves something else and stops with it.
    #[must_use]
    pub fn with(mut self, name: &'static str, other: Self) -> Self {
        self.beside.push((name, other.address));
        self.beside.extend(other.beside);
        let (first, second) = (self.serving, other.serving);
        self.serving = Box::pin(async move { tokio::try_join!(first, second).map(|_| ()) });
        self
    }

    /// Serves until shutdown, and finishes the requests in flight.
    ///
    /// # Errors
    /// Only if the listener itself is unusable.
    pub async fn run(self) -> io::Result<()> {
        self.serving.await
    }
}

impl fmt::Debug for BoundService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listening({})", self.address)
    }
}

/// A service whose addresses are bound. It does not respond yet: its router is built next, because the router needs the
/// address.
#[derive(Debug)]
pub struct Bound {
    name: Option<&'static str>,
    address: SocketAddr,
    listener: TcpListener,
    metrics: Option<(TcpListener, SocketAddr)>,
    site: ServiceInfo,
    bounds: Bounds,
    stop: CancellationToken,
}

impl Bound {
    /// Binds a service to the address of a setting, and its metrics to theirs.
    ///
    /// # Errors
    /// [`StartError::Listen`]; no address is bound.
    pub async fn bind(
        runtime: &Runtime,
        setting: &'static str,
        wanted: SocketAddr,
    ) -> Result<Self, StartError> {
        let mut bound = Self::bind_beside(runtime, setting, wanted).await?;
        if let Some(wanted) = runtime.base.config.metrics_listen {
            bound.metrics = Some(bind("PENSTOCK_METRICS_LISTEN", wanted).await?);
        }
        Ok(bound)
    }

    /// Binds a second service of this process without metrics: the first service's metrics include both.
    pub async fn bind_beside(
        runtime: &Runtime,
        setting: &'static str,
        wanted: SocketAddr,
    ) -> Result<Self, StartError> {
        let (listener, address) = bind(setting, wanted).await?;
        Ok(Self {
            name: None,
            address,
            listener,
            metrics: None,
            site: site(&runtime.base, address),
            bounds: bounds(&runtime.base.config),
            stop: runtime.shutdown.clone(),
        })
    }

    /// The same listener, with a name of its own in metrics.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        let name = Some(name);
        Self { name, ..self }
    }

    /// Request ids and the documentation's address.
    #[must_use]
    pub const fn site(&self) -> &ServiceInfo {
        &self.site
    }

    /// The address, with the real port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    #[must_use]
    pub fn serve(self, router: Router) -> BoundService {
        let mut options = Options::new(self.site.clone());
        options.deadlines.shutdown = DRAIN_TIMEOUT;
        options.bounds = self.bounds;
        options.name = self.name.unwrap_or(options.name);
        let serving = http_kit::serve(self.listener, router, options, self.stop);
        BoundService {
            address: self.address,
            beside: Vec::new(),
            serving: match self.metrics {
                None => Box::pin(serving),
                Some((listener, address)) => {
                    tracing::info!(metrics.address = %address, "Serving metrics");
                    Box::pin(beside_metrics(serving, listener, self.site))
                }
            },
        }
    }
}

async fn bind(
    setting: &'static str,
    wanted: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let unbound = |cause| StartError::Listen {
        setting,
        address: wanted,
        cause,
    };
    let listener = TcpListener::bind(wanted).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;
    Ok((listener, address))
}

/// Serves metrics on a separate listener until the service has finished the requests in flight, so that the shutdown is
/// measured too.
async fn beside_metrics(
    serving: impl Future<Output = io::Result<()>>,
    listener: TcpListener,
    site: ServiceInfo,
) -> io::Result<()> {
    let mut options = Options::new(site);
    options.name = "metrics";
    options.bounds = Bounds {
        connections: METRICS_CONNECTIONS,
        per_network: METRICS_CONNECTIONS,
        reserved: 0,
        ..Bounds::default()
    };
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

fn bounds(config: &Config) -> Bounds {
    Bounds {
        connections: config.connections,
        per_network: config.connections_per_address,
        proxies: TrustedProxies::new(config.trusted_proxies.iter().copied()),
        ..Bounds::default()
    }
}

fn site(base: &OpenedBase, address: SocketAddr) -> ServiceInfo {
    ServiceInfo::new(
        docs_base(base.config.mode, address),
        Arc::clone(&base.clock),
        Arc::clone(&base.entropy),
    )
}

/// The documentation's address. It is complete only on the developer's machine. On other machines it is only a path, because
/// the public origin is unknown here and a private one must not be shown.
fn docs_base(mode: Mode, address: SocketAddr) -> String {
    match mode {
        Mode::Test if address.ip().is_loopback() => format!("http://{address}/docs"),
        Mode::Test | Mode::Live => "/docs".to_owned(),
    }
}
