//! Discovery and capabilities.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_kit::{ApiError, Class, PathId};
use partner_core::Access;
use pools_core::profile::{Network, Pool, PoolsProfile};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{AnyKey, App, Entitled, Operation};
use crate::codes;
use crate::wire::JsonNumber;

/// The pools a partner is entitled to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PoolList {
    /// One item per pool; empty if no pool is provisioned.
    pools: Vec<PoolItem>,
}

/// A pool in the list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Pool)]
pub(crate) struct PoolItem {
    /// Pool id, `<FIAT>-<CRYPTO>`; used as `{id}` in pool paths.
    #[schema(example = "EUR-USDT")]
    id: String,
    /// Display label; do not parse it.
    #[schema(example = "EUR/USDT")]
    pair: String,
    /// Fiat side.
    #[schema(example = "EUR")]
    fiat_currency: String,
    /// Crypto side.
    #[schema(example = "USDT")]
    crypto_currency: String,
    /// Current availability. It does not promise that a quote will succeed.
    available: bool,
}

/// What a partner can do in one pool, and the terms.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Capabilities {
    /// Pool id.
    #[schema(example = "EUR-USDT")]
    pool_id: String,
    /// Display label.
    #[schema(example = "EUR/USDT")]
    pair: String,
    /// Fiat leg.
    #[schema(example = "EUR")]
    fiat_currency: String,
    /// Crypto leg.
    #[schema(example = "USDT")]
    crypto_currency: String,
    /// Networks the pool supports.
    #[schema(example = json!(["tron", "ethereum"]))]
    supported_networks: Vec<&'static str>,
    /// Enabled sides.
    #[schema(example = json!(["on_ramp"]))]
    sides: Vec<&'static str>,
    /// Partner tier.
    #[schema(example = "standard")]
    tier: String,
    /// Draw fee in basis points. The exact fee, not a maximum.
    #[schema(example = 30)]
    draw_fee_bps: u16,
    /// Maximum spread that can be quoted, in basis points.
    #[schema(example = 50)]
    spread_cap_bps: u16,
    /// Minimum order size, in USDT.
    #[schema(value_type = f64, example = 10)]
    min_order_usdt: JsonNumber,
    /// Maximum order size, in USDT; null means no maximum.
    #[schema(value_type = Option<f64>, required = true, example = 100_000)]
    max_order_usdt: Option<JsonNumber>,
    /// The partner's dedicated deposit address; null until provisioned.
    #[schema(required = true)]
    crypto_deposit_address: Option<String>,
    /// True if crypto is delivered only to addresses that are native to the delivery network; absent otherwise. A quote that names
    /// neither `destNetwork` nor `cryptoNetwork` is delivered on `tron`, so it needs a TRON address here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, example = true)]
    native_addresses: bool,
}

pub(crate) const LIST_POOLS: Operation = Operation {
    route: || routes!(list_pools),
    admission: Class::AnyKey,
    errors: &[],
};

/// List the pools you are entitled to
///
/// Takes a publishable or a secret key. The list contains only pools that you are entitled to; an
/// empty list is not an error.
#[utoipa::path(get, path = "/v1/pools", operation_id = "listPools", tag = "Discovery",
    responses((status = 200, description = "The pools you are entitled to", body = PoolList)))]
pub(crate) async fn list_pools(who: AnyKey, State(app): State<App>) -> Result<Response, ApiError> {
    let body = app.discovery(who.access(), render).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

pub(crate) const GET_CAPABILITIES: Operation = Operation {
    route: || routes!(get_capabilities),
    admission: Class::Entitled,
    errors: &[codes::ENTITLED, &[codes::RESOURCE_NOT_FOUND]],
};

/// Read what you can do in a pool
///
/// The values are configured per partner and pool and can change, so read them rather than
/// hard-coding them.
#[utoipa::path(get, path = "/v1/pools/{id}/capabilities", operation_id = "getCapabilities", tag = "Discovery",
    params(("id" = String, Path, description = "Pool id", example = "EUR-USDT")),
    responses((status = 200, description = "The pool's capabilities for you", body = Capabilities)))]
pub(crate) async fn get_capabilities(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<Capabilities>, ApiError> {
    let pool = app.allowed_pool(who.access(), &id).await?;
    Ok(Json(capabilities(who.access(), &pool)))
}

fn render(access: &Access<PoolsProfile>, pools: &[Pool]) -> Result<Bytes, ApiError> {
    let list = PoolList {
        pools: access.profile.visible(pools).map(item).collect(),
    };
    serde_json::to_vec(&list)
        .map(Bytes::from)
        .map_err(ApiError::internal)
}

fn item(pool: &Pool) -> PoolItem {
    PoolItem {
        id: pool.id.to_string(),
        pair: pool.id.pair(),
        fiat_currency: pool.id.fiat().to_string(),
        crypto_currency: pool.id.crypto().to_string(),
        available: pool.available,
    }
}

fn capabilities(access: &Access<PoolsProfile>, pool: &Pool) -> Capabilities {
    let terms = access.profile.terms_in(&pool.id);
    let sides = if terms.off_ramp {
        vec!["on_ramp", "off_ramp"]
    } else {
        vec!["on_ramp"]
    };
    Capabilities {
        pool_id: pool.id.to_string(),
        pair: pool.id.pair(),
        fiat_currency: pool.id.fiat().to_string(),
        crypto_currency: pool.id.crypto().to_string(),
        supported_networks: pool.networks.iter().copied().map(Network::as_str).collect(),
        sides,
        tier: access.profile.tier.clone(),
        draw_fee_bps: terms.draw_fee_bps,
        spread_cap_bps: terms.spread_cap_bps,
        min_order_usdt: JsonNumber(terms.min_order_usdt),
        max_order_usdt: terms.max_order_usdt.map(JsonNumber),
        crypto_deposit_address: terms.crypto_deposit_address,
        native_addresses: pool.native_addresses,
    }
}
