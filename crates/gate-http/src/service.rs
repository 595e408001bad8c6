//! The complete router of the service: the routes within their classes, the contract, its page and
//! the probes.

use std::fmt;
use std::sync::{Arc, LazyLock};

use axum::Router;
use gate_core::usecases::wake_rail::WakeRail;
use http_kit::openapi::ContractError;
use http_kit::{
    CorsPolicy, Document, Door, DoorConfig, Limit, LimitBy, ProductErrorCodes, ServiceInfo,
    TrustedProxies, documentation, finish, probes,
};
use partner_core::ports::{Readiness, Throttle};
use partner_core::throttle::Tier;
use partner_core::webhooks::notification::NotificationSecret;

use crate::app::{App, Parts};
use crate::contract::{embed, every_error, openapi, test_helpers};
use crate::rail_notifications::Notified;
use crate::routes::Browsers;
use crate::{errors, rail_notifications, routes};

/// The names of the contract and of the other documents under `/openapi/`.
const DOCUMENT: &str = "gate-v1";
const HELPERS: &str = "gate-test-helpers-v1";
const EMBED: &str = "gate-embed-v1";

/// The error codes of the gate: each mistake with a key has its own code.
const ERROR_CODES: ProductErrorCodes = ProductErrorCodes {
    test_key_on_live: "test_key_on_live",
    live_key_on_test: "live_key_on_sandbox",
    wrong_kind: "key_kind_not_allowed",
    not_in_live: "live_keys_not_allowed",
};

/// The tiers of the limits. Each limit has one tier, except the last.
#[derive(Debug, Clone)]
pub struct Tiers {
    /// `POST /gate_sessions`, per key.
    pub create_session: Vec<Tier>,
    /// `POST /gate_sessions/{id}/cancel`, per key.
    pub cancel_session: Vec<Tier>,
    /// `GET /gate_sessions`, per key.
    pub list_sessions: Vec<Tier>,
    /// `GET /transactions`, per key.
    pub list_transactions: Vec<Tier>,
    /// `POST /quotes/preview`, per key.
    pub preview: Vec<Tier>,
    /// `GET /capabilities/*`, per key, all of them together.
    pub capabilities: Vec<Tier>,
    /// `POST /embed/bootstrap`, per key and client network.
    pub bootstrap: Vec<Tier>,
    /// `POST /embed/bootstrap`, per key from all client networks together.
    pub bootstrap_ceiling: Vec<Tier>,
    /// Every call of a widget without its own limit, per token and client network.
    pub embed: Vec<Tier>,
    /// Quotes of a widget, per token and client network.
    pub embed_quotes: Vec<Tier>,
    /// Payments of a widget, per token and client network.
    pub embed_payments: Vec<Tier>,
    /// Every other route, and every response with 401 to a key, per client address.
    pub global: Vec<Tier>,
}

/// The components of the service.
#[derive(Clone)]
pub struct Setup {
    /// The use cases.
    pub parts: Parts,
    /// Counts requests.
    pub throttle: Arc<dyn Throttle>,
    /// The limits; `None` if throttles are off.
    pub tiers: Option<Tiers>,
    /// Wakes rail records.
    pub waking: WakeRail,
    /// The secret of the rail's notifications; `None` if the rail sends none.
    pub rail_secret: Option<Arc<NotificationSecret>>,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub proxies: TrustedProxies,
    /// Creates request ids and knows the address of the documentation.
    pub site: ServiceInfo,
    /// Checks whether the store is available.
    pub readiness: Arc<dyn Readiness>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

/// The limits of the routes.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) create_session: Limit,
    pub(crate) cancel_session: Limit,
    pub(crate) list_sessions: Limit,
    pub(crate) list_transactions: Limit,
    pub(crate) preview: Limit,
    pub(crate) capabilities: Limit,
    pub(crate) bootstrap: Limit,
    pub(crate) embed: Limit,
    pub(crate) embed_quotes: Limit,
    pub(crate) embed_payments: Limit,
    pub(crate) global: Limit,
}

impl Limits {
    fn new(tiers: Tiers) -> Self {
        let per_widget =
            |group, tiers: Vec<Tier>| Limit::new(group, LimitBy::CredentialFromClient, tiers);
        let per_key = |group, tiers: Vec<Tier>| Limit::new(group, LimitBy::Credential, tiers);
        Self {
            create_session: per_key("create_session", tiers.create_session),
            cancel_session: per_key("cancel_session", tiers.cancel_session),
            list_sessions: per_key("list_sessions", tiers.list_sessions),
            list_transactions: per_key("list_transactions", tiers.list_transactions),
            preview: per_key("preview", tiers.preview),
            capabilities: per_key("capabilities", tiers.capabilities),
            bootstrap: Limit::new("bootstrap", LimitBy::CredentialFromClient, tiers.bootstrap)
                .under_ceiling(tiers.bootstrap_ceiling),
            embed: per_widget("embed", tiers.embed),
            embed_quotes: per_widget("embed_quotes", tiers.embed_quotes),
            embed_payments: per_widget("embed_payments", tiers.embed_payments),
            global: Limit::new("gate", LimitBy::Client, tiers.global),
        }
    }
}

/// Builds the complete router.
///
/// # Errors
/// [`ContractError`] if the published contract is inconsistent, which the tests rule out.
pub fn service(setup: Setup) -> Result<Router, ContractError> {
    let limits = setup.tiers.map(Limits::new);
    let door = Door::new(DoorConfig {
        mode: setup.parts.mode,
        directory: Arc::clone(&setup.parts.directory),
        throttle: Arc::clone(&setup.throttle),
        proxies: setup.proxies.clone(),
        error_codes: ERROR_CODES,
        failed_auth_limit: limits.as_ref().map(|limits| limits.global.clone()),
        clock: Arc::clone(setup.site.clock()),
        entitled: |profile| profile.entitled().map_err(errors::denied),
    });
    let (mode, waking) = (setup.parts.mode, setup.waking);
    let clock = Arc::clone(setup.site.clock());
    let notifications = setup.rail_secret.map(|secret| {
        rail_notifications::route(Notified {
            mode,
            waking,
            secret,
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
        widget: CorsPolicy::home_alone(home),
    };
    let app = App::new(setup.parts);
    let routes = routes::router(app, &door, &browsers, setup.proxies, limits.as_ref());
    Ok(finish(
        routes
            .merge(notifications.unwrap_or_default())
            .merge(pages()?)
            .merge(probes(setup.readiness, setup.throttle)),
        setup.site,
    ))
}

/// The documentation pages, rendered once per process because rendering is slower than building the
/// rest of the service.
fn pages() -> Result<Router, ContractError> {
    static PAGES: LazyLock<Result<Router, ContractError>> = LazyLock::new(write_pages);
    PAGES.clone()
}

fn write_pages() -> Result<Router, ContractError> {
    let errors: Vec<_> = every_error().collect();
    let document = |name, api| Document { name, api };
    let beside = [
        document(HELPERS, test_helpers()?),
        document(EMBED, embed()?),
    ];
    documentation(&document(DOCUMENT, openapi()?), &beside, &errors)
}
