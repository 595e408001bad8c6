//! The router of the pools API: every operation within its class, under one limit per credential.

use axum::Router;
use http_kit::{Door, Limit};
use pools_core::profile::PoolsProfile;

use crate::api::POOLS;
use crate::app::App;

pub(crate) fn router(app: App, door: &Door<PoolsProfile>, limit: Option<&Limit>) -> Router {
    let routes = POOLS
        .operations
        .iter()
        .fold(Router::new(), |routes, operation| {
            let class = door.of(operation.admission, limit.cloned());
            routes.merge(class.around(operation.router()))
        });
    routes.with_state(app)
}
