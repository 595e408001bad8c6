//! The whole HTTP face of the service: the routes behind their door, the published contract, its
//! page and the probes.

use std::fmt;
use std::sync::{Arc, LazyLock};

use axum::Router;
use http_kit::openapi::ContractError;
use http_kit::{
    Document, Door, DoorConfig, Limit, LimitBy, ProductErrorCodes, ServiceInfo, TrustedProxies,
    documentation, finish, probes,
};
use partner_core::ports::{Readiness, Throttle};
use partner_core::throttle::Tier;

use crate::app::{App, Parts};
use crate::contract::{every_error, openapi};
use crate::{errors, routes};

/// The contract's name under `/openapi/`.
const DOCUMENT: &str = "pools-v1";

/// In pools, a key of the wrong mode or kind always reads the same.
const WORDING: ProductErrorCodes = ProductErrorCodes {
    test_key_on_live: "key_mode_mismatch",
    live_key_on_test: "key_mode_mismatch",
    wrong_kind: "key_mode_mismatch",
    not_in_live: "key_mode_mismatch",
};

/// What the service is made of.
#[derive(Clone)]
pub struct Setup {
    /// The use cases.
    pub parts: Parts,
    /// Counts requests.
    pub throttle: Arc<dyn Throttle>,
    /// The limit of every route, per credential; unknown keys count against the client's address
    /// under the same numbers. `None` where throttles are off.
    pub tiers: Option<Vec<Tier>>,
    /// Whose `X-Forwarded-For` is believed.
    pub proxies: TrustedProxies,
    /// Request ids and the documentation's address.
    pub site: ServiceInfo,
    /// Whether the store is there.
    pub readiness: Arc<dyn Readiness>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

/// Builds the router, complete and finished.
///
/// # Errors
/// [`ContractError`] where the published contract does not hold together; the tests would have
/// found it.
pub fn service(setup: Setup) -> Result<Router, ContractError> {
    let limit = setup
        .tiers
        .map(|tiers| Limit::new("pools", LimitBy::Credential, tiers));
    let door = Door::new(DoorConfig {
        mode: setup.parts.mode,
        directory: Arc::clone(&setup.parts.directory),
        throttle: Arc::clone(&setup.throttle),
        proxies: setup.proxies,
        wording: WORDING,
        guesses: limit.as_ref().map(|limit| limit.counting(LimitBy::Client)),
        clock: Arc::clone(setup.site.clock()),
        entitled: |profile| profile.entitled().map_err(errors::denied),
    });
    let routes = routes::router(App::new(setup.parts), &door, limit.as_ref());
    Ok(finish(
        routes
            .merge(pages()?)
            .merge(probes(setup.readiness, setup.throttle)),
        setup.site,
    ))
}

/// What documents the service: written once a process, for that takes longer than the rest of a service's making.
fn pages() -> Result<Router, ContractError> {
    static PAGES: LazyLock<Result<Router, ContractError>> = LazyLock::new(write_pages);
    PAGES.clone()
}

fn write_pages() -> Result<Router, ContractError> {
    let errors: Vec<_> = every_error().collect();
    let contract = Document {
        name: DOCUMENT,
        api: openapi()?,
    };
    documentation(&contract, &[], &errors)
}
