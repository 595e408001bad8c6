//! The complete router of the service: the routes within their classes, the contract, its page and
//! the probes.

use std::sync::{Arc, LazyLock};

use axum::Router;
use gate_core::limits::{Group, Limits};
use gate_core::usecases::wake_rail::WakeRail;
use http_kit::openapi::ContractError;
use http_kit::{
    CorsPolicy, Door, DoorConfig, ProductErrorCodes, ServiceInfo, TrustedProxies, documentation,
    finish, probes,
};
use partner_core::events::Service;
use partner_core::ports::{Readiness, Throttle};

use crate::api::documents;
use crate::app::Parts;
use crate::codes;
use crate::rail_notifications::{Notified, Signer};
use crate::routes::Browsers;
use crate::{errors, rail_notifications, routes};

/// The error codes of the gate: each mistake with a key has its own code.
const ERROR_CODES: ProductErrorCodes = ProductErrorCodes {
    test_key_on_live: codes::TEST_KEY_ON_LIVE,
    live_key_on_test: codes::LIVE_KEY_ON_SANDBOX,
    wrong_kind: codes::KEY_KIND_NOT_ALLOWED,
    not_in_live: codes::LIVE_KEYS_NOT_ALLOWED,
};

/// The page that `cargo xtask openapi` writes from the documents and the error codes.
const REFERENCE: &str = include_str!("reference.html");

/// The components of the service.
#[derive(Clone)]
pub struct Setup {
    pub parts: Parts,
    pub throttle: Arc<dyn Throttle>,
    /// The limits; `None` if throttles are off.
    pub limits: Option<Limits>,
    pub waking: WakeRail,
    /// The rails that send notifications.
    pub signers: Vec<Signer>,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub proxies: TrustedProxies,
    /// Creates request ids and knows the address of the documentation.
    pub site: ServiceInfo,
    pub readiness: Arc<dyn Readiness>,
}

/// Builds the complete router.
pub fn service(setup: Setup) -> Result<Router, ContractError> {
    let limits = setup.limits.as_ref();
    let door = Door::new(DoorConfig {
        mode: setup.parts.mode,
        directory: Arc::clone(&setup.parts.directory),
        throttle: Arc::clone(&setup.throttle),
        proxies: setup.proxies.clone(),
        error_codes: ERROR_CODES,
        failed_auth_limit: limits.map(|limits| routes::limit(Group::Global, limits)),
        clock: Arc::clone(setup.site.clock()),
        entitled: |profile| profile.entitled().map_err(errors::denied),
    });
    let (mode, waking) = (setup.parts.mode, setup.waking);
    let clock = Arc::clone(setup.site.clock());
    let signers: Arc<[Signer]> = setup.signers.into();
    let notifications = (!signers.is_empty()).then(|| {
        rail_notifications::route(Notified {
            mode,
            waking,
            signers,
            clock,
        })
    });
    let home = setup.parts.bootstrapping.widget.clone();
    let directory = Arc::clone(&setup.parts.directory);
    let browsers = CorsPolicy::new(
        setup.parts.mode,
        directory,
        |profile| &profile.allowed_domains,
        home.clone(),
    );
    let browsers = Browsers {
        pages: browsers,
        widget: CorsPolicy::home_alone(home, &routes::methods_of_widget()),
    };
    let app = Arc::new(setup.parts);
    let routes = routes::router(app, &door, &browsers, setup.proxies, limits);
    Ok(finish(
        routes
            .merge(notifications.unwrap_or_default())
            .merge(pages()?)
            .merge(probes(setup.readiness, setup.throttle)),
        Service::Gate,
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
