//! The route table of the gate API, with authority and limits. The class of a route shows which key
//! it takes. Every class requires entitlement to the gate; rails require their own entitlement too.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use gate_core::profile::GateProfile;
use http_kit::{CorsPolicy, Door, Limit, OwnPage, TrustedProxies, replay_first_response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::proven_country::{ProvingEdge, prove_country};
use crate::service::Limits;
use crate::{
    branding, capabilities, customers, embed, embed_caller, embed_options, embed_session,
    embed_verification, errors, payments, previews, rails, sessions, signed_quotes, test_helpers,
    transactions, webhooks,
};

/// Secret key, under the limit of creates.
pub(crate) fn create_session() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(sessions::create_session))
}

/// Secret key, under the limit of cancels.
pub(crate) fn cancel_session() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(sessions::cancel_session))
}

/// Secret key, under the limit of the list of sessions.
pub(crate) fn list_sessions() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(sessions::list_sessions))
}

/// Secret key, under the limit of the list of transactions.
pub(crate) fn list_transactions() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(transactions::list_transactions))
}

/// Secret key, under the limit of previews.
pub(crate) fn previews() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(previews::preview_quotes))
}

/// Secret key, under the limit that all capabilities share.
pub(crate) fn capabilities() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(capabilities::list_countries))
        .routes(routes!(capabilities::list_currencies))
        .routes(routes!(capabilities::list_assets))
        .routes(routes!(capabilities::get_asset))
        .routes(routes!(capabilities::list_payment_methods))
        .routes(routes!(capabilities::list_payout_methods))
        .routes(routes!(capabilities::check_eligibility))
}

/// Secret key, under the global tiers.
pub(crate) fn secret() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(sessions::retrieve_session))
        .routes(routes!(transactions::retrieve_transaction))
        .routes(routes!(branding::get_branding, branding::update_branding))
        .routes(routes!(
            customers::list_customers,
            customers::create_customer
        ))
        .routes(routes!(
            customers::get_customer,
            customers::update_customer,
            customers::delete_customer
        ))
        .routes(routes!(webhooks::list_deliveries))
        .routes(routes!(webhooks::replay_delivery))
        .routes(routes!(webhooks::send_test))
}

/// Secret key of a partner entitled to rails, under the global tiers.
pub(crate) fn rails() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(signed_quotes::lock_quote))
        .routes(routes!(signed_quotes::retrieve_signed_quote))
        .routes(routes!(rails::create_pay_in))
        .routes(routes!(rails::retrieve_pay_in))
        .routes(routes!(rails::create_pay_out))
        .routes(routes!(rails::retrieve_pay_out))
}

/// Publishable key, for browsers, under the limit of bootstraps.
pub(crate) fn browsers() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(embed::create_embed_token))
}

/// Token of a widget, under the limit that these calls share.
pub(crate) fn widget() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(embed_session::retrieve_embed_session))
        .routes(routes!(embed_options::list_embed_options))
        .routes(routes!(embed_session::cancel_embed_session))
        .routes(routes!(embed_verification::create_embed_verification))
        .routes(routes!(payments::cancel_embed_payment))
}

/// Token of a widget, under the limit of quotes.
pub(crate) fn widget_quotes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(payments::create_embed_quote))
}

/// Token of a widget, under the limit of payments.
pub(crate) fn widget_payments() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(payments::create_embed_payment))
}

/// Secret key of the sandbox, under the global tiers.
pub(crate) fn sandbox() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(test_helpers::complete_session))
        .routes(routes!(test_helpers::fail_session))
}

/// Which pages may read responses.
#[derive(Debug)]
pub(crate) struct Browsers {
    /// The pages of partners, for bootstraps.
    pub(crate) pages: CorsPolicy<GateProfile>,
    /// The widget's own page, for its calls.
    pub(crate) widget: CorsPolicy<GateProfile>,
}

/// All routes within their classes and limits.
pub(crate) fn router(
    app: App,
    door: &Door<GateProfile>,
    browsers: &Browsers,
    proxies: TrustedProxies,
    limits: Option<&Limits>,
) -> Router {
    let limit = |of: fn(&Limits) -> &Limit| limits.map(of).cloned();
    let responses = app.parts().creating.idempotent.responses.clone();
    let repeats = from_fn_with_state(responses, replay_first_response);
    let entitled = |routes: OpenApiRouter<App>, of: fn(&Limits) -> &Limit| {
        Router::from(routes)
            .route_layer(repeats.clone())
            .route_layer(door.entitled(limit(of)))
    };
    let creating = door
        .entitled(limit(|it| &it.create_session))
        .with_own_tier(|profile| profile.create_session_limit.clone());
    let created = Router::from(create_session())
        .route_layer(repeats.clone())
        .route_layer(creating);
    let of_rails = door.asking(|profile| profile.rails_entitled().map_err(errors::denied));
    let railed = Router::from(self::rails())
        .route_layer(repeats.clone())
        .route_layer(of_rails.entitled(limit(|it| &it.global)));
    let bootstrapping = app.parts().bootstrapping.clone();
    let own_page: OwnPage<GateProfile> =
        Arc::new(move |access, headers| bootstrapping.admits_page(access, embed::stands(headers)));
    let embedded = Router::from(self::browsers())
        .route_layer(door.publishable(limit(|it| &it.bootstrap), own_page))
        .route_layer(browsers.pages.clone());
    let read_token =
        embed_caller::reader(app.parts().bootstrapping.tokens.clone(), app.parts().mode);
    let header = app.parts().edge.clone();
    let edge = ProvingEdge { header, proxies };
    let proving = from_fn_with_state(edge, prove_country);
    let of_widget = |routes: OpenApiRouter<App>, of: fn(&Limits) -> &Limit| {
        let paths: Vec<String> = routes.get_openapi().paths.paths.keys().cloned().collect();
        let routes = Router::from(routes)
            .route_layer(repeats.clone())
            .route_layer(proving.clone())
            .route_layer(door.embedded(limit(of), Arc::clone(&read_token)))
            .route_layer(browsers.widget.clone());
        let preflights = paths.iter().map(|path| browsers.widget.preflight(path));
        preflights.fold(routes, Router::merge)
    };
    let helpers = Router::from(sandbox())
        .route_layer(repeats.clone())
        .route_layer(door.sandbox(limit(|it| &it.global)));
    Router::new()
        .merge(created)
        .merge(entitled(cancel_session(), |it| &it.cancel_session))
        .merge(entitled(list_sessions(), |it| &it.list_sessions))
        .merge(entitled(list_transactions(), |it| &it.list_transactions))
        .merge(entitled(self::capabilities(), |it| &it.capabilities))
        .merge(entitled(self::previews(), |it| &it.preview))
        .merge(entitled(secret(), |it| &it.global))
        .merge(railed)
        .merge(embedded)
        .merge(browsers.pages.preflight(embed::PATH))
        .merge(of_widget(widget(), |it| &it.embed))
        .merge(of_widget(widget_quotes(), |it| &it.embed_quotes))
        .merge(of_widget(widget_payments(), |it| &it.embed_payments))
        .merge(helpers)
        .with_state(app)
}
