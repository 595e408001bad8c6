//! The upstreams that the configuration chooses: rates, engine, rail and verifier.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gate_core::catalogue::Catalogue;
use gate_core::ports::{Rail, Verifier};
use kernel::{Clock, Upstreams};
use partner_core::ports::RateSource;
use pools_core::ports::Engine;
use providers::{
    HttpEngine, HttpRail, HttpRates, HttpVerifier, MeasuredEngine, MeasuredRail, MeasuredVerifier,
    NoEngine, NoRates, RatesError, RatesUnopened, SandboxEngine, SandboxPages, SandboxRail,
    SandboxRates, SandboxVerifier, StaticRates, http_engine, http_rail, http_verifier,
};

use crate::catalogue;
use crate::config::{Config, ConfigError, RatesChoice, UpstreamChoice, UpstreamConfig};
use crate::open::OpenError;
use crate::process::SystemClock;

/// How long the sandbox's rail leaves a payment in the widget in progress in a service, so that calls by hand and suites end.
const SETTLES_AFTER: Duration = Duration::from_secs(3);

/// The source of rates, and the upstream source that must be polled for it.
pub(crate) type Rates = (Arc<dyn RateSource>, Option<Arc<HttpRates>>);

pub(crate) fn rates(config: &Config, clock: &Arc<dyn Clock>) -> Result<Rates, OpenError> {
    match &config.rates {
        RatesChoice::None => Ok((Arc::new(NoRates), None)),
        RatesChoice::Sandbox => Ok((Arc::new(SandboxRates::new(Arc::clone(clock))), None)),
        RatesChoice::Static(file) => {
            let rates = StaticRates::read(file, config.mode, Arc::clone(clock));
            let rates = rates.map_err(of_rates)?;
            Ok((Arc::new(rates), None))
        }
        RatesChoice::Http(file) => {
            let environment = |name: &str| std::env::var(name).ok();
            let rates = HttpRates::read(file, &environment, Arc::clone(clock));
            let rates = Arc::new(rates.map_err(|unopened| match unopened {
                RatesUnopened::File(faults) => of_rates(faults),
                RatesUnopened::Trust(error) => {
                    OpenError::from(refusal_of("PENSTOCK_RATES", &error))
                }
            })?);
            Ok((rates.clone(), Some(rates)))
        }
    }
}

/// Reads the files that serving needs: the rates, the trusted certificates of the engine, the rail and the verifier, and the
/// catalogue, which it returns.
///
/// # Errors
/// Every error of the files.
pub fn check_files(config: &Config) -> Result<Catalogue, Vec<ConfigError>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let pages = SandboxPages::default();
    let mut faults = Vec::new();
    let opened = [
        rates(config, &clock).map(|_| ()),
        engines(config).map(|_| ()),
        rails(config, &clock, &pages).map(|_| ()),
        verifiers(config, &clock, &pages).map(|_| ()),
    ];
    for opened in opened {
        match opened {
            Err(OpenError::Config(found)) => faults.extend(found),
            Ok(()) | Err(OpenError::Store(_)) => {}
        }
    }
    match catalogue::read(config.catalogue.as_deref()) {
        Ok(catalogue) if faults.is_empty() => Ok(catalogue),
        Ok(_) => Err(faults),
        Err(found) => {
            faults.extend(found);
            Err(faults)
        }
    }
}

fn of_rates(faults: Vec<RatesError>) -> OpenError {
    let named = faults
        .iter()
        .map(|error| refusal_of("PENSTOCK_RATES", error));
    OpenError::Config(named.collect())
}

fn refusal_of(setting: &str, error: &dyn fmt::Display) -> ConfigError {
    ConfigError::new(setting, error.to_string())
}

/// The engines with metrics.
pub(crate) struct Engines {
    /// The engine of new trades, which is `NoEngine` without one.
    pub(crate) of_new_trades: Arc<dyn Engine>,
    pub(crate) all: Upstreams<dyn Engine>,
}

pub(crate) fn engines(config: &Config) -> Result<Engines, OpenError> {
    let open =
        |configured: &UpstreamConfig, setting| -> Result<Option<Arc<dyn Engine>>, OpenError> {
            Ok(Some(match &configured.choice {
                UpstreamChoice::None => return Ok(None),
                UpstreamChoice::Sandbox => measured(SandboxEngine),
                UpstreamChoice::Http(url) => {
                    let secret = configured.secret.as_ref();
                    let engine = HttpEngine::new(url.clone(), secret, http_engine::TIMEOUT);
                    let engine = engine.map_err(|error| refusal_of(setting, &error))?;
                    match &configured.name {
                        Some(name) => measured(engine.named(name.clone())),
                        None => measured(engine),
                    }
                }
            }))
        };
    let present = open(&config.engine, "PENSTOCK_ENGINE")?;
    let present = present.unwrap_or_else(|| measured(NoEngine));
    Ok(Engines {
        all: Upstreams {
            present: Some(Arc::clone(&present)),
            former: open(&config.engine_former, "PENSTOCK_ENGINE_FORMER")?,
        },
        of_new_trades: present,
    })
}

fn measured(engine: impl Engine + 'static) -> Arc<dyn Engine> {
    Arc::new(MeasuredEngine::new(Arc::new(engine)))
}

/// The rails with metrics.
pub(crate) fn rails(
    config: &Config,
    clock: &Arc<dyn Clock>,
    pages: &SandboxPages,
) -> Result<Upstreams<dyn Rail>, OpenError> {
    let open = |configured: &UpstreamConfig, setting| -> Result<Option<Arc<dyn Rail>>, OpenError> {
        let rail: Arc<dyn Rail> = match &configured.choice {
            UpstreamChoice::None => return Ok(None),
            UpstreamChoice::Sandbox => Arc::new(SandboxRail::new(
                Arc::clone(clock),
                config.sandbox_settles_after.unwrap_or(SETTLES_AFTER),
                pages.clone(),
            )),
            UpstreamChoice::Http(url) => {
                let secret = configured.secret.as_ref();
                let rail = HttpRail::new(url.clone(), secret, http_rail::TIMEOUT);
                let rail = rail.map_err(|error| refusal_of(setting, &error))?;
                match &configured.name {
                    Some(name) => Arc::new(rail.named(name.clone())),
                    None => Arc::new(rail),
                }
            }
        };
        Ok(Some(Arc::new(MeasuredRail::new(rail))))
    };
    Ok(Upstreams {
        present: open(&config.rail, "PENSTOCK_RAIL")?,
        former: open(&config.rail_former, "PENSTOCK_RAIL_FORMER")?,
    })
}

/// The verifiers with metrics.
pub(crate) fn verifiers(
    config: &Config,
    clock: &Arc<dyn Clock>,
    pages: &SandboxPages,
) -> Result<Upstreams<dyn Verifier>, OpenError> {
    let open =
        |configured: &UpstreamConfig, setting| -> Result<Option<Arc<dyn Verifier>>, OpenError> {
            let verifier: Arc<dyn Verifier> = match &configured.choice {
                UpstreamChoice::None => return Ok(None),
                UpstreamChoice::Sandbox => {
                    Arc::new(SandboxVerifier::new(Arc::clone(clock), pages.clone()))
                }
                UpstreamChoice::Http(url) => {
                    let secret = configured.secret.as_ref();
                    let verifier = HttpVerifier::new(url.clone(), secret, http_verifier::TIMEOUT);
                    let verifier = verifier.map_err(|error| refusal_of(setting, &error))?;
                    match &configured.name {
                        Some(name) => Arc::new(verifier.named(name.clone())),
                        None => Arc::new(verifier),
                    }
                }
            };
            Ok(Some(Arc::new(MeasuredVerifier::new(verifier))))
        };
    Ok(Upstreams {
        present: open(&config.verifier, "PENSTOCK_VERIFIER")?,
        former: open(&config.verifier_former, "PENSTOCK_VERIFIER_FORMER")?,
    })
}
