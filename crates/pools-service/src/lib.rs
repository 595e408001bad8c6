//! The pools service: its API on top of a runtime.
//!
//! The program of the same name is a few lines around [`start`]. `penstock sandbox` and the tests call [`start`] in their own
//! process.

use std::sync::Arc;

use http_kit::{Document, ServiceInfo, TrustedProxies};
use partner_core::events::Service;
use pools_core::usecases::create_quote::CreateQuote;
use pools_core::usecases::poll_trade::PollTrade;
use pools_core::usecases::queries::PoolsQueries;
use pools_core::usecases::reject_quote::RejectQuote;
use pools_core::usecases::transact_quote::TransactQuote;
use pools_http::{Parts, Setup};
use runtime::Runtime;
use runtime::service::Bound;

pub use runtime::service::{BoundService, StartError};

/// Binds the service to the configured address and starts delivering its events. After an error it does not listen.
pub async fn start(runtime: &Runtime) -> Result<BoundService, StartError> {
    runtime.check_engine().await?;
    let wanted = runtime.base.config.pools_listen;
    let bound = Bound::bind(runtime, "PENSTOCK_POOLS_LISTEN", wanted).await?;
    let router = pools_http::service(setup(runtime, bound.site().clone()))?;
    runtime.deliver(Service::Pools);
    runtime.sweep_keys(Service::Pools);
    runtime.delete_old_quotes();
    runtime.count_returnable_trades();
    Ok(bound.serve(router))
}

/// The published documents, the contract first: that of the API, and that which an operator's engine implements for
/// `PENSTOCK_ENGINE=http:<url>`.
pub fn documents() -> Result<Vec<Document>, StartError> {
    let mut documents = pools_http::documents()?;
    documents.push(Document {
        name: "engine-v1",
        api: runtime::engine_openapi(),
    });
    Ok(documents)
}

fn setup(runtime: &Runtime, site: ServiceInfo) -> Setup {
    let base = &runtime.base;
    let config = &base.config;
    Setup {
        parts: parts(runtime),
        throttle: Arc::clone(&runtime.throttle),
        tiers: config.pools_throttle.clone(),
        proxies: TrustedProxies::new(config.trusted_proxies.iter().copied()),
        site,
        readiness: runtime.readiness(),
    }
}

fn parts(runtime: &Runtime) -> Parts {
    let base = &runtime.base;
    Parts {
        mode: base.config.mode,
        directory: Arc::clone(&runtime.pools_directory),
        quoting: CreateQuote {
            rates: Arc::clone(&runtime.rates),
            engine: Arc::clone(&runtime.engine),
            queue: runtime.quote_queues.clone(),
            clock: Arc::clone(&base.clock),
            entropy: Arc::clone(&base.entropy),
            ttl: base.config.quote_ttl,
        },
        transacting: TransactQuote {
            preflight: runtime.preflight.clone(),
            queue: runtime.transact_queues.clone(),
            catch_up: runtime.catch_up(),
            engine: Arc::clone(&runtime.engine),
            in_flight: Arc::clone(&runtime.in_flight),
            clock: Arc::clone(&base.clock),
            entropy: Arc::clone(&base.entropy),
        },
        polling: PollTrade::new(
            base.store.clone(),
            runtime.engines.clone(),
            Arc::clone(&base.sealer),
            Arc::clone(&base.entropy),
            pools_http::render_event,
        ),
        rejecting: RejectQuote::new(base.store.clone()),
        reading: PoolsQueries::new(base.store.clone()),
    }
}
