//! Capabilities: what is available to which user. These planning reads use only the catalogue.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use gate_core::catalogue::{
    Country, Currency, EligibilityQuery, Limits, Listing, Method, Network, Region,
};
use gate_core::limits::Group;
use http_kit::{ApiError, PathId, Query};
use kernel::rates::Side;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::operation::{Admission, Operation};
use crate::whole_list::WholeList;
use crate::words;

/// A country.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Country)]
pub(crate) struct CountryRecord {
    /// `country`
    #[schema(example = "country")]
    object: &'static str,
    /// ISO 3166 code of two letters.
    #[schema(example = "DE")]
    country_code: String,
    /// English name.
    #[schema(example = "Germany")]
    name: String,
    /// ISO 4217 code of the country's currency.
    #[schema(example = "EUR")]
    default_currency: String,
    /// Whether the country is served.
    supported: bool,
}

/// A currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Currency)]
pub(crate) struct CurrencyRecord {
    /// `currency`
    #[schema(example = "currency")]
    object: &'static str,
    /// ISO 4217 code.
    #[schema(example = "EUR")]
    code: String,
    /// The symbol shown with amounts.
    #[schema(example = "€")]
    symbol: String,
    /// English name.
    #[schema(example = "Euro")]
    name: String,
    /// Number of fractional digits.
    #[schema(example = 2)]
    minor_units: u8,
}

/// A crypto asset.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Asset)]
pub(crate) struct AssetRecord {
    /// `asset`
    #[schema(example = "asset")]
    object: &'static str,
    /// Symbol of the asset.
    #[schema(example = "USDT")]
    symbol: String,
    /// Name of the asset.
    #[schema(example = "Tether USD")]
    name: String,
    /// Whether the asset is offered now.
    active: bool,
    /// Maximum number of fractional digits.
    #[schema(example = 6)]
    decimals: u8,
    /// The chains that carry the asset.
    networks: Vec<NetworkRecord>,
    /// Suggested order amounts, in the requested currency if there is one.
    limits: LimitsRecord,
}

/// A chain that carries an asset.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AssetNetwork)]
pub(crate) struct NetworkRecord {
    /// The chain's name. It is case-sensitive.
    #[schema(example = "tron")]
    chain: String,
    /// The asset's contract; null for the chain's native asset.
    #[schema(required = true, example = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t")]
    contract_address: Option<String>,
    /// Whether it is an EVM chain.
    evm: bool,
}

/// Suggested order amounts. They are advice, and no order is refused because of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AssetLimits)]
pub(crate) struct LimitsRecord {
    /// The currency of both amounts.
    #[schema(example = "EUR")]
    currency: String,
    /// The smallest amount.
    #[schema(example = "10.00")]
    min_amount: String,
    /// The largest amount.
    #[schema(example = "50000.00")]
    max_amount: String,
}

/// A way to pay in or to be paid out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Method)]
pub(crate) struct MethodRecord {
    /// `payment_method` or `payout_method`
    #[schema(example = "payment_method")]
    object: &'static str,
    /// Method id. Methods for several currencies can share one id.
    #[schema(example = "sepa")]
    id: String,
    /// Name of the method.
    #[schema(example = "SEPA transfer")]
    name: String,
    /// The currency of the payment.
    #[schema(example = "EUR")]
    currency: String,
    /// `on_ramp` for a payment method, `off_ramp` for a payout method.
    side: words::Side,
}

/// Names for the list types, because the macros would generate other names.
type CountryList = WholeList<CountryRecord>;
type CurrencyList = WholeList<CurrencyRecord>;
type AssetList = WholeList<AssetRecord>;
type MethodList = WholeList<MethodRecord>;

/// Whether a user can be served.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Eligibility)]
pub(crate) struct EligibilityRecord {
    /// `eligibility`
    #[schema(example = "eligibility")]
    object: &'static str,
    /// Whether the user can be served. Branch on this.
    eligible: bool,
    /// Why the user cannot be served, or null.
    #[schema(required = true)]
    unavailable_reason: Option<words::Ineligible>,
    /// The country that was checked, as in the request, or null.
    #[schema(required = true, example = "DE")]
    country_code: Option<String>,
    /// The currency that was checked, or null.
    #[schema(required = true, example = "EUR")]
    currency: Option<String>,
    /// The asset that was checked, or null.
    #[schema(required = true, example = "USDT")]
    asset: Option<String>,
    /// The source of the country.
    geo_source: words::GeoSource,
}

pub(crate) const LIST_COUNTRIES: Operation = Operation {
    route: || routes!(list_countries),
    admission: Admission::secret(Group::Capabilities),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List countries
///
/// Lists the countries that are served, and some that are not.
#[utoipa::path(get, path = "/v1/capabilities/countries", operation_id = "listCountries", tag = "Capabilities",
    params(
        ("country_code" = Option<String>, Query, description = "Only the country with this ISO 3166 code", example = "DE"),
        ("supported" = Option<bool>, Query, description = "Only countries that are served (`true`), or only countries that are not (`false`)"),
    ),
    responses((status = 200, description = "The countries", body = CountryList)))]
pub(crate) async fn list_countries(
    _: Entitled,
    State(app): State<App>,
    query: Query,
) -> Result<Json<CountryList>, ApiError> {
    let code = query.text("country_code")?;
    let supported = query.one_of("supported", &[("true", true), ("false", false)])?;
    let found = app.catalogue.countries_of(code, supported);
    let found = found.map(country);
    Ok(WholeList::of("/v1/capabilities/countries", found))
}

pub(crate) const LIST_CURRENCIES: Operation = Operation {
    route: || routes!(list_currencies),
    admission: Admission::secret(Group::Capabilities),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List currencies
///
/// Lists the currencies of the country in the query, or of the country that the edge reports, or
/// all.
#[utoipa::path(get, path = "/v1/capabilities/currencies", operation_id = "listCurrencies", tag = "Capabilities",
    params(("country_code" = Option<String>, Query, description = "Only currencies of this country", example = "DE")),
    responses((status = 200, description = "The currencies", body = CurrencyList)))]
pub(crate) async fn list_currencies(
    _: Entitled,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<CurrencyList>, ApiError> {
    let region = region(&app, &headers, &query)?;
    let found = app.catalogue.currencies_in(&region);
    let found = found.map(currency);
    Ok(WholeList::of("/v1/capabilities/currencies", found))
}

pub(crate) const LIST_ASSETS: Operation = Operation {
    route: || routes!(list_assets),
    admission: Admission::secret(Group::Capabilities),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List assets
///
/// Lists the assets for a side, a currency and a country. The edge may supply the country. Without
/// these filters the list contains all assets.
#[utoipa::path(get, path = "/v1/capabilities/assets", operation_id = "listAssets", tag = "Capabilities",
    params(
        ("side" = Option<words::Side>, Query, description = "Only assets that can be bought (`on_ramp`) or sold (`off_ramp`)"),
        ("country_code" = Option<String>, Query, description = "Only assets for users in this country", example = "DE"),
        ("currency" = Option<String>, Query, description = "Only assets for this currency", example = "EUR"),
    ),
    responses((status = 200, description = "The assets", body = AssetList)))]
pub(crate) async fn list_assets(
    _: Entitled,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<AssetList>, ApiError> {
    let side = side(&query)?;
    let currency = query.text("currency")?;
    let region = region(&app, &headers, &query)?;
    let found = app.catalogue.assets_in(side, currency, &region);
    let found = found.map(|(listing, currency)| asset(listing, currency));
    Ok(WholeList::of("/v1/capabilities/assets", found))
}

pub(crate) const GET_ASSET: Operation = Operation {
    route: || routes!(get_asset),
    admission: Admission::secret(Group::Capabilities),
    errors: &[&[codes::RESOURCE_NOT_FOUND]],
};

/// Read an asset
///
/// Finds the asset by its symbol, in upper or lower case.
#[utoipa::path(get, path = "/v1/capabilities/assets/{symbol}", operation_id = "getAsset", tag = "Capabilities",
    params(("symbol" = String, Path, description = "The asset's symbol, in upper or lower case", example = "USDT")),
    responses((status = 200, description = "The asset", body = AssetRecord)))]
pub(crate) async fn get_asset(
    _: Entitled,
    State(app): State<App>,
    symbol: PathId,
) -> Result<Json<AssetRecord>, ApiError> {
    let found = symbol.parse("asset", |symbol| app.catalogue.asset(symbol))?;
    Ok(Json(asset(found, None)))
}

pub(crate) const LIST_PAYMENT_METHODS: Operation = Operation {
    route: || routes!(list_payment_methods),
    admission: Admission::secret(Group::Capabilities),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List payment methods
///
/// Lists the methods to pay for a purchase in a currency. Without a currency, lists the methods of
/// the country in the query, or of the country that the edge reports, or all.
#[utoipa::path(get, path = "/v1/capabilities/payment-methods", operation_id = "listPaymentMethods", tag = "Capabilities",
    params(
        ("currency" = Option<String>, Query, description = "Only methods of this currency; the country is then ignored", example = "EUR"),
        ("country_code" = Option<String>, Query, description = "Only methods of this country", example = "DE"),
    ),
    responses((status = 200, description = "The methods", body = MethodList)))]
pub(crate) async fn list_payment_methods(
    _: Entitled,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<MethodList>, ApiError> {
    let url = "/v1/capabilities/payment-methods";
    methods(&app, &headers, &query, Side::OnRamp, url)
}

pub(crate) const LIST_PAYOUT_METHODS: Operation = Operation {
    route: || routes!(list_payout_methods),
    admission: Admission::secret(Group::Capabilities),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List payout methods
///
/// Lists the methods to pay out a sale, with the same filters as payment methods.
#[utoipa::path(get, path = "/v1/capabilities/payout-methods", operation_id = "listPayoutMethods", tag = "Capabilities",
    params(
        ("currency" = Option<String>, Query, description = "Only methods of this currency; the country is then ignored", example = "EUR"),
        ("country_code" = Option<String>, Query, description = "Only methods of this country", example = "DE"),
    ),
    responses((status = 200, description = "The methods", body = MethodList)))]
pub(crate) async fn list_payout_methods(
    _: Entitled,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<MethodList>, ApiError> {
    let url = "/v1/capabilities/payout-methods";
    methods(&app, &headers, &query, Side::OffRamp, url)
}

pub(crate) const CHECK_ELIGIBILITY: Operation = Operation {
    route: || routes!(check_eligibility),
    admission: Admission::secret(Group::Capabilities),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// Check eligibility
///
/// Whether a user can be served, and if not, why. The status is always 200; the result is in the
/// body.
#[utoipa::path(get, path = "/v1/capabilities/eligibility", operation_id = "checkEligibility", tag = "Capabilities",
    params(
        ("country_code" = Option<String>, Query, description = "The user's country; by default the country that the edge reports", example = "DE"),
        ("currency" = Option<String>, Query, description = "The user's currency; by default the country's currency", example = "EUR"),
        ("asset" = Option<String>, Query, description = "The asset that the user buys or sells", example = "USDT"),
        ("side" = Option<words::Side>, Query, description = "The side; by default either"),
    ),
    responses((status = 200, description = "The result", body = EligibilityRecord)))]
pub(crate) async fn check_eligibility(
    _: Entitled,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<EligibilityRecord>, ApiError> {
    let decision = app.catalogue.eligibility(&EligibilityQuery {
        region: region(&app, &headers, &query)?,
        currency: query.text("currency")?.map(str::to_owned),
        asset: query.text("asset")?.map(str::to_owned),
        side: side(&query)?,
    });
    Ok(Json(EligibilityRecord {
        object: "eligibility",
        eligible: decision.reason.is_none(),
        unavailable_reason: decision.reason.map(Into::into),
        country_code: decision.country,
        currency: decision.currency,
        asset: decision.asset,
        geo_source: decision.source.into(),
    }))
}

fn methods(
    app: &App,
    headers: &HeaderMap,
    query: &Query,
    side: Side,
    url: &'static str,
) -> Result<Json<MethodList>, ApiError> {
    let currency = query.text("currency")?;
    let region = region(app, headers, query)?;
    let found = app.catalogue.methods_in(side, currency, &region);
    Ok(WholeList::of(url, found.map(method)))
}

/// The user's country: from the query, otherwise from the edge.
fn region(app: &App, headers: &HeaderMap, query: &Query) -> Result<Region, ApiError> {
    let asked = query.text("country_code")?;
    Ok(Region::of(asked, app.edge.said(headers)))
}

fn side(query: &Query) -> Result<Option<Side>, ApiError> {
    let words = Side::ALL.map(|side| (side.as_str(), side));
    query.one_of("side", &words)
}

fn country(country: &Country) -> CountryRecord {
    CountryRecord {
        object: "country",
        country_code: country.code.to_string(),
        name: country.name.clone(),
        default_currency: country.currency.code().to_owned(),
        supported: country.supported,
    }
}

fn currency(currency: &Currency) -> CurrencyRecord {
    CurrencyRecord {
        object: "currency",
        code: currency.asset.code().to_owned(),
        symbol: currency.symbol.clone(),
        name: currency.name.clone(),
        minor_units: currency.asset.scale(),
    }
}

fn asset(listing: &Listing, currency: Option<kernel::Asset>) -> AssetRecord {
    let limits = listing.limits_in(currency);
    AssetRecord {
        object: "asset",
        symbol: listing.asset.code().to_owned(),
        name: listing.name.clone(),
        active: listing.active,
        decimals: listing.asset.scale(),
        networks: listing.networks.iter().map(network).collect(),
        limits: LimitsRecord::of(limits),
    }
}

impl LimitsRecord {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            currency: limits.min.asset().code().to_owned(),
            min_amount: limits.min.to_string(),
            max_amount: limits.max.to_string(),
        }
    }
}

fn network(network: &Network) -> NetworkRecord {
    NetworkRecord {
        chain: network.chain.clone(),
        contract_address: network.contract_address.clone(),
        evm: network.evm,
    }
}

fn method(method: &Method) -> MethodRecord {
    MethodRecord {
        object: match method.side {
            Side::OnRamp => "payment_method",
            Side::OffRamp => "payout_method",
        },
        id: method.id.clone(),
        name: method.name.clone(),
        currency: method.currency.code().to_owned(),
        side: method.side.into(),
    }
}
