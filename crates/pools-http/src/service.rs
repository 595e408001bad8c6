//! The complete router of the service: the routes within their classes, the contract, its page and
//! the probes.

use std::sync::{Arc, LazyLock};

use axum::Router;
use http_kit::openapi::ContractError;
use http_kit::{
    Door, DoorConfig, Limit, LimitBy, ProductErrorCodes, ServiceInfo, TrustedProxies,
    documentation, finish, probes,
};
use partner_core::events::Service;
use partner_core::ports::{Readiness, Throttle};
use partner_core::throttle::Tier;

use crate::api::documents;
use crate::app::{App, Parts};
use crate::{codes, errors, routes};

/// The error codes of pools: the same code for every key of the wrong mode or kind.
const ERROR_CODES: ProductErrorCodes = ProductErrorCodes {
    test_key_on_live: codes::KEY_MODE_MISMATCH,
    live_key_on_test: codes::KEY_MODE_MISMATCH,
    wrong_kind: codes::KEY_MODE_MISMATCH,
    not_in_live: codes::KEY_MODE_MISMATCH,
};

/// The page that `cargo xtask openapi` writes from the documents and the error codes.
const REFERENCE: &str = include_str!("reference.html");

/// The components of the service.
#[derive(Clone)]
pub struct Setup {
    pub parts: Parts,
    pub throttle: Arc<dyn Throttle>,
    /// The limit of all routes, per credential. Unknown keys count against the client's address
    /// with the same tiers. `None` if throttles are off.
    pub tiers: Option<Vec<Tier>>,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub proxies: TrustedProxies,
    /// Creates request ids and knows the address of the documentation.
    pub site: ServiceInfo,
    pub readiness: Arc<dyn Readiness>,
}

/// Builds the complete router.
pub fn service(setup: Setup) -> Result<Router, ContractError> {
    let limit = setup
        .tiers
        .map(|tiers| Limit::new("pools", LimitBy::Credential, tiers));
    let door = Door::new(DoorConfig {
        mode: setup.parts.mode,
        directory: Arc::clone(&setup.parts.directory),
        throttle: Arc::clone(&setup.throttle),
        proxies: setup.proxies,
        error_codes: ERROR_CODES,
        failed_auth_limit: limit
            .as_ref()
            .map(|limit| limit.with_scope(LimitBy::Client)),
        clock: Arc::clone(setup.site.clock()),
        entitled: |profile| profile.entitled().map_err(errors::denied),
    });
    let routes = routes::router(App::new(setup.parts), &door, limit.as_ref());
    Ok(finish(
        routes
            .merge(pages()?)
            .merge(probes(setup.readiness, setup.throttle)),
        Service::Pools,
        setup.site,
    ))
}

/// The documentation routes, made once per process because writing the documents is slower than
/// building the rest of the service.
fn pages() -> Result<Router, ContractError> {
    static PAGES: LazyLock<Result<Router, ContractError>> =
        LazyLock::new(|| documentation(&documents()?, REFERENCE));
    PAGES.clone()
}
