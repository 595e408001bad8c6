//! The router of the gate API: every operation within its class and its limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use gate_core::limits::{Group, Limits};
use gate_core::profile::GateProfile;
use http_kit::{
    Class, CorsPolicy, Door, Limit, LimitBy, OwnPage, ReadToken, TrustedProxies,
    replay_first_response,
};
use partner_core::stored_response::ResponseStore;

use crate::api::APIS;
use crate::app::App;
use crate::edge::{ProvingEdge, prove_country};
use crate::operation::{Admission, Operation};
use crate::{embed, embed_caller, errors};

/// Which pages may read responses.
pub(crate) struct Browsers {
    /// The pages of partners, for bootstraps.
    pub(crate) pages: CorsPolicy<GateProfile>,
    /// The widget's own page, for its calls.
    pub(crate) widget: CorsPolicy<GateProfile>,
}

/// The checks around every operation.
struct Checks<'a> {
    door: &'a Door<GateProfile>,
    /// The same door, which asks for the entitlement to rails too.
    rails_door: Door<GateProfile>,
    limits: Option<&'a Limits>,
    browsers: &'a Browsers,
    own_page: OwnPage<GateProfile>,
    read_token: ReadToken,
    responses: ResponseStore,
    edge: ProvingEdge,
}

/// All operations within their classes and limits.
pub(crate) fn router(
    app: App,
    door: &Door<GateProfile>,
    browsers: &Browsers,
    proxies: TrustedProxies,
    limits: Option<&Limits>,
) -> Router {
    let bootstrapping = app.bootstrapping.clone();
    let checks = Checks {
        door,
        rails_door: door.asking(|profile| profile.rails_entitled().map_err(errors::denied)),
        limits,
        browsers,
        read_token: embed_caller::reader(bootstrapping.tokens.clone(), app.mode),
        own_page: Arc::new(move |access, headers| {
            bootstrapping.admits_page(access, embed::page_headers(headers))
        }),
        responses: app.creating.idempotent.responses.clone(),
        edge: ProvingEdge {
            header: app.edge.clone(),
            proxies,
        },
    };
    let routes = operations().fold(Router::new(), |routes, operation| {
        routes.merge(checks.around(operation))
    });
    checks
        .preflights()
        .into_iter()
        .fold(routes, |routes, (path, policy)| {
            routes.merge(policy.preflight(&path))
        })
        .with_state(app)
}

/// The operations of every API.
pub(crate) fn operations() -> impl Iterator<Item = &'static Operation> {
    APIS.iter().flat_map(|api| api.operations).copied()
}

impl Checks<'_> {
    /// An operation within its class and its limit.
    fn around(&self, operation: &Operation) -> Router<App> {
        let Admission {
            class,
            group,
            rails,
        } = operation.admission;
        let limit = self.limits.map(|limits| limit(group, limits));
        let mut routes = operation.router();
        if operation.takes_key() {
            let repeats = from_fn_with_state(self.responses.clone(), replay_first_response);
            routes = routes.route_layer(repeats);
        }
        match class {
            Class::Publishable => {
                let layer = self.door.publishable(limit, Arc::clone(&self.own_page));
                self.browsers.pages.around(layer.around(routes))
            }
            Class::Embedded => {
                let proving = from_fn_with_state(self.edge.clone(), prove_country);
                let layer = self.door.embedded(limit, Arc::clone(&self.read_token));
                let routes = layer.around(routes.route_layer(proving));
                self.browsers.widget.around(routes)
            }
            Class::AnyKey | Class::Secret | Class::Entitled | Class::Sandbox => {
                let door = if rails { &self.rails_door } else { self.door };
                let layer = door.of(class, limit);
                let layer = match group {
                    Group::CreateSession => {
                        layer.with_own_tier(|profile| profile.create_session_limit.clone())
                    }
                    _ => layer,
                };
                layer.around(routes)
            }
        }
    }

    /// The paths that browsers ask about before they call them.
    fn preflights(&self) -> BTreeMap<String, &CorsPolicy<GateProfile>> {
        operations()
            .filter_map(|operation| match operation.admission.class {
                Class::Publishable => Some((operation, &self.browsers.pages)),
                Class::Embedded => Some((operation, &self.browsers.widget)),
                _ => None,
            })
            .flat_map(|(operation, policy)| {
                let endpoints = operation.endpoints().into_iter();
                endpoints.map(move |(_, path)| (path, policy))
            })
            .collect()
    }
}

pub(crate) fn limit(group: Group, limits: &Limits) -> Limit {
    let by = match group {
        Group::Bootstrap | Group::Embed | Group::EmbedQuotes | Group::EmbedPayments => {
            LimitBy::CredentialFromClient
        }
        Group::Global => LimitBy::Client,
        Group::CreateSession
        | Group::CancelSession
        | Group::ListSessions
        | Group::ListTransactions
        | Group::Preview
        | Group::Capabilities
        | Group::BootstrapCeiling => LimitBy::Credential,
    };
    let own = Limit::new(group.as_str(), by, limits.of(group));
    match group {
        Group::Bootstrap => {
            own.under_ceiling(LimitBy::Credential, limits.of(Group::BootstrapCeiling))
        }
        Group::Embed | Group::EmbedQuotes | Group::EmbedPayments => {
            own.under_ceiling(LimitBy::SessionFromClient, limits.of_session(group))
        }
        _ => own,
    }
}

/// The methods of the calls of the widget's own page.
pub(crate) fn methods_of_widget() -> BTreeSet<&'static str> {
    operations()
        .filter(|operation| operation.admission.class == Class::Embedded)
        .flat_map(Operation::endpoints)
        .map(|(method, _)| method)
        .collect()
}
