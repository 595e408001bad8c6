//! The route table of the pools API. The class of a route shows which key it takes and whether it
//! requires entitlement to the product.

use axum::Router;
use http_kit::{Door, Limit};
use pools_core::profile::PoolsProfile;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::{accounts, discovery, quotes, trades};

/// Routes that take either kind of key.
pub(crate) fn any_key() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(discovery::list_pools))
}

/// Routes that take a secret key and check no entitlement.
pub(crate) fn secret() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(quotes::get_quote))
        .routes(routes!(quotes::reject_quote))
        .routes(routes!(trades::get_transaction_by_quote))
        .routes(routes!(trades::list_trades))
        .routes(routes!(trades::get_trade))
        .routes(routes!(accounts::get_funding_instructions))
        .routes(routes!(accounts::list_ledger_entries))
}

/// Routes that take a secret key of a partner entitled to pools.
pub(crate) fn entitled() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(discovery::get_capabilities))
        .routes(routes!(quotes::create_quote))
        .routes(routes!(trades::transact))
        .routes(routes!(accounts::get_balance))
}

/// Every route behind its class, under one limit per credential.
pub(crate) fn router(app: App, door: &Door<PoolsProfile>, limit: Option<&Limit>) -> Router {
    let plain = |routes: OpenApiRouter<App>| Router::from(routes);
    Router::new()
        .merge(plain(any_key()).route_layer(door.any_key(limit.cloned())))
        .merge(plain(secret()).route_layer(door.secret(limit.cloned())))
        .merge(plain(entitled()).route_layer(door.entitled(limit.cloned())))
        .with_state(app)
}
