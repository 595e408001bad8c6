//! The upstreams that the configuration chooses: rates, engine and rail.

use std::fmt;
use std::sync::Arc;

use gate_core::ports::Rail;
use kernel::{Clock, Mode};
use partner_core::ports::RateSource;
use pools_core::ports::Engine;
use providers::{
    HttpEngine, HttpRates, NoEngine, NoRates, RatesError, RatesUnopened, SandboxEngine,
    SandboxRail, SandboxRates, StaticRates, http_engine,
};

use crate::catalogue;
use crate::config::{Config, ConfigError, EngineChoice, RatesChoice};
use crate::open::OpenError;
use crate::process::SystemClock;

/// The source of rates, and the upstream source that must be polled for it.
pub(crate) type Rates = (Arc<dyn RateSource>, Option<Arc<HttpRates>>);

pub(crate) fn rates(config: &Config, clock: &Arc<dyn Clock>) -> Result<Rates, OpenError> {
    match &config.rates {
        RatesChoice::None => Ok((Arc::new(NoRates), None)),
        RatesChoice::Sandbox => Ok((Arc::new(SandboxRates), None)),
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

/// Reads the files that serving needs: the rates, the engine's trusted certificates and the catalogue.
///
/// # Errors
/// Every error of the files.
pub fn check_files(config: &Config) -> Result<(), Vec<ConfigError>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut faults = Vec::new();
    let opened = [
        rates(config, &clock).map(|_| ()),
        engine(config).map(|_| ()),
        catalogue::read(config.catalogue.as_deref())
            .map(|_| ())
            .map_err(OpenError::Config),
    ];
    for opened in opened {
        match opened {
            Err(OpenError::Config(found)) => faults.extend(found),
            Ok(()) | Err(OpenError::Store(_)) => {}
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

fn of_rates(faults: Vec<RatesError>) -> OpenError {
    let named = faults
        .iter()
        .map(|error| refusal_of("PENSTOCK_RATES", error));
    OpenError::Config(named.collect())
}

fn refusal_of(setting: &str, error: &dyn fmt::Display) -> ConfigError {
    ConfigError {
        setting: setting.to_owned(),
        expected: error.to_string(),
    }
}

pub(crate) fn engine(config: &Config) -> Result<Arc<dyn Engine>, OpenError> {
    match &config.engine {
        EngineChoice::None => Ok(Arc::new(NoEngine)),
        EngineChoice::Sandbox => Ok(Arc::new(SandboxEngine)),
        EngineChoice::Http(url) => {
            let secret = config.engine_secret.as_ref();
            let engine = HttpEngine::new(url.clone(), secret, http_engine::TIMEOUT);
            let engine = engine.map_err(|error| refusal_of("PENSTOCK_ENGINE", &error))?;
            Ok(match &config.engine_name {
                Some(name) => Arc::new(engine.named(name.clone())),
                None => Arc::new(engine),
            })
        }
    }
}

/// The sandbox's rail, only in mode test. No other rail exists.
pub(crate) fn rail(mode: Mode) -> Option<Arc<dyn Rail>> {
    match mode {
        Mode::Test => Some(Arc::new(SandboxRail)),
        Mode::Live => None,
    }
}
