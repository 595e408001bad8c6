//! Capabilities: what can be offered to whom. Planning reads, answered from the catalogue alone.

use std::fmt;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use gate_core::catalogue::{Country, Currency, Enquiry, Listing, Method, Network, Region};
use http_kit::{ApiError, PathId, Query};
use kernel::rates::Side;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{App, Entitled};
use crate::whole_list::WholeList;
use crate::wire;

/// The header in which the edge says which country a request comes from.
#[derive(Clone)]
pub struct EdgeHeader(Option<HeaderName>);

impl EdgeHeader {
    /// The header of this name; `None`: there is no edge to believe.
    #[must_use]
    pub fn new(name: Option<&str>) -> Self {
        Self(name.and_then(|name| name.parse().ok()))
    }

    fn said<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        wire::only_header(headers, self.0.as_ref()?)
    }
}

impl fmt::Debug for EdgeHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EdgeHeader({:?})", self.0)
    }
}

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
    /// Its name, in English.
    #[schema(example = "Germany")]
    name: String,
    /// ISO 4217 code of what its people pay in.
    #[schema(example = "EUR")]
    default_currency: String,
    /// Is it served?
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
    /// What stands beside amounts.
    #[schema(example = "€")]
    symbol: String,
    /// Its name, in English.
    #[schema(example = "Euro")]
    name: String,
    /// Fractional digits of its amounts.
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
    /// Its symbol.
    #[schema(example = "USDT")]
    symbol: String,
    /// Its name.
    #[schema(example = "Tether USD")]
    name: String,
    /// Is it offered at present?
    active: bool,
    /// The most fractional digits of its amounts.
    #[schema(example = 6)]
    decimals: u8,
    /// The chains it moves on.
    networks: Vec<NetworkRecord>,
    /// Between which amounts an order makes sense, in the chosen currency if it is stated.
    limits: LimitsRecord,
}

/// A chain that an asset moves on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AssetNetwork)]
pub(crate) struct NetworkRecord {
    /// The chain's name, in which case matters.
    #[schema(example = "tron")]
    chain: String,
    /// The asset's contract; null where the asset is the chain's own.
    #[schema(required = true, example = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t")]
    contract_address: Option<String>,
    /// Is it an EVM chain?
    evm: bool,
}

/// Between which amounts an order makes sense. They are advice: nothing is refused by them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AssetLimits)]
pub(crate) struct LimitsRecord {
    /// The currency of both.
    #[schema(example = "EUR")]
    currency: String,
    /// The least.
    #[schema(example = "10.00")]
    min_amount: String,
    /// The most.
    #[schema(example = "50000.00")]
    max_amount: String,
}

/// A way to pay in, or to be paid out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Method)]
pub(crate) struct MethodRecord {
    /// `payment_method` or `payout_method`
    #[schema(example = "payment_method")]
    object: &'static str,
    /// Its id. One id can stand for several currencies.
    #[schema(example = "sepa")]
    id: String,
    /// Its name.
    #[schema(example = "SEPA transfer")]
    name: String,
    /// The currency it moves.
    #[schema(example = "EUR")]
    currency: String,
    /// `on_ramp` of a payment method, `off_ramp` of a payout method.
    #[schema(value_type = wire::Side)]
    side: &'static str,
}

/// The lists by name: the contract's macros would name a list of their own making.
type CountryList = WholeList<CountryRecord>;
type CurrencyList = WholeList<CurrencyRecord>;
type AssetList = WholeList<AssetRecord>;
type MethodList = WholeList<MethodRecord>;

/// Whether somebody somewhere can be served.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Eligibility)]
pub(crate) struct EligibilityRecord {
    /// `eligibility`
    #[schema(example = "eligibility")]
    object: &'static str,
    /// Branch on this.
    eligible: bool,
    /// Why not, or null.
    #[schema(required = true, value_type = Option<IneligibleWord>)]
    unavailable_reason: Option<&'static str>,
    /// The country it was judged for, as it was said, or null.
    #[schema(required = true, example = "DE")]
    country_code: Option<String>,
    /// The currency it was judged for, or null.
    #[schema(required = true, example = "EUR")]
    currency: Option<String>,
    /// The asset it was judged for, or null.
    #[schema(required = true, example = "USDT")]
    asset: Option<String>,
    /// Who said where the user is.
    #[schema(value_type = GeoSourceWord)]
    geo_source: &'static str,
}

/// Why somebody cannot be served.
#[derive(Debug, ToSchema)]
#[schema(as = Ineligible, rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum IneligibleWord {
    CountryUnresolved,
    CountryNotSupported,
    CurrencyNotSupported,
    AssetNotSupported,
    CorridorNotAvailable,
}

/// Who said where the user is.
#[derive(Debug, ToSchema)]
#[schema(as = GeoSource, rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum GeoSourceWord {
    Query,
    Edge,
    None,
}

/// List countries
///
/// Those that are served, and some that are known not to be.
#[utoipa::path(get, path = "/v1/capabilities/countries", operation_id = "listCountries", tag = "Capabilities",
    params(
        ("country_code" = Option<String>, Query, description = "Only this one, by its ISO 3166 code", example = "DE"),
        ("supported" = Option<bool>, Query, description = "Only those that are served, or only those that are not"),
    ),
    security(("secretKey" = [])),
    responses((status = 200, description = "The countries", body = CountryList)))]
pub(crate) async fn list_countries(
    _: Entitled,
    State(app): State<App>,
    query: Query,
) -> Result<Json<CountryList>, ApiError> {
    let code = query.text("country_code")?;
    let supported = query.one_of("supported", &[("true", true), ("false", false)])?;
    let found = app.parts().catalogue.countries_of(code, supported);
    Ok(WholeList::of(
        "/v1/capabilities/countries",
        found.map(country),
    ))
}

/// List currencies
///
/// Those of a country where one is named or the edge knows it; else all.
#[utoipa::path(get, path = "/v1/capabilities/currencies", operation_id = "listCurrencies", tag = "Capabilities",
    params(("country_code" = Option<String>, Query, description = "Only those of this country", example = "DE")),
    security(("secretKey" = [])),
    responses((status = 200, description = "The currencies", body = CurrencyList)))]
pub(crate) async fn list_currencies(
    _: Entitled,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<CurrencyList>, ApiError> {
    let region = region(&app, &headers, &query)?;
    let found = app.parts().catalogue.currencies_in(&region);
    Ok(WholeList::of(
        "/v1/capabilities/currencies",
        found.map(currency),
    ))
}

/// List assets
///
/// Those that go the side, for the currency and the country that are named or that the edge knows;
/// else all.
#[utoipa::path(get, path = "/v1/capabilities/assets", operation_id = "listAssets", tag = "Capabilities",
    params(
        ("side" = Option<wire::Side>, Query, description = "Only those that can be bought, or sold"),
        ("country_code" = Option<String>, Query, description = "Only those for people of this country", example = "DE"),
        ("currency" = Option<String>, Query, description = "Only those for this currency", example = "EUR"),
    ),
    security(("secretKey" = [])),
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
    let found = app.parts().catalogue.assets_in(side, currency, &region);
    let found = found.map(|(listing, currency)| asset(listing, currency));
    Ok(WholeList::of("/v1/capabilities/assets", found))
}

/// Read an asset
///
/// By its symbol, in which case does not matter.
#[utoipa::path(get, path = "/v1/capabilities/assets/{symbol}", operation_id = "getAsset", tag = "Capabilities",
    params(("symbol" = String, Path, description = "The asset's symbol, in whatever case", example = "USDT")),
    security(("secretKey" = [])),
    responses((status = 200, description = "The asset", body = AssetRecord)))]
pub(crate) async fn get_asset(
    _: Entitled,
    State(app): State<App>,
    symbol: PathId,
) -> Result<Json<AssetRecord>, ApiError> {
    let catalogue = &app.parts().catalogue;
    let found = symbol.parse("asset", |symbol| catalogue.asset(symbol))?;
    Ok(Json(asset(found, None)))
}

/// List payment methods
///
/// How a purchase can be paid: in a currency, else in the country that is named or that the edge
/// knows; else all.
#[utoipa::path(get, path = "/v1/capabilities/payment-methods", operation_id = "listPaymentMethods", tag = "Capabilities",
    params(
        ("currency" = Option<String>, Query, description = "Only those of this currency; then the country is not asked", example = "EUR"),
        ("country_code" = Option<String>, Query, description = "Only those of this country", example = "DE"),
    ),
    security(("secretKey" = [])),
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

/// List payout methods
///
/// How a sale can be paid out; the same rules.
#[utoipa::path(get, path = "/v1/capabilities/payout-methods", operation_id = "listPayoutMethods", tag = "Capabilities",
    params(
        ("currency" = Option<String>, Query, description = "Only those of this currency; then the country is not asked", example = "EUR"),
        ("country_code" = Option<String>, Query, description = "Only those of this country", example = "DE"),
    ),
    security(("secretKey" = [])),
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

/// Check eligibility
///
/// Whether somebody can be served, and if not, why. Always 200: the answer is in the body.
#[utoipa::path(get, path = "/v1/capabilities/eligibility", operation_id = "checkEligibility", tag = "Capabilities",
    params(
        ("country_code" = Option<String>, Query, description = "Where the user is; left out, the edge is asked", example = "DE"),
        ("currency" = Option<String>, Query, description = "What the user pays in; left out, the country's currency", example = "EUR"),
        ("asset" = Option<String>, Query, description = "What the user buys or sells", example = "USDT"),
        ("side" = Option<wire::Side>, Query, description = "Which of the two; left out, either"),
    ),
    security(("secretKey" = [])),
    responses((status = 200, description = "The verdict", body = EligibilityRecord)))]
pub(crate) async fn check_eligibility(
    _: Entitled,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<EligibilityRecord>, ApiError> {
    let verdict = app.parts().catalogue.eligibility(&Enquiry {
        region: region(&app, &headers, &query)?,
        currency: query.text("currency")?.map(str::to_owned),
        asset: query.text("asset")?.map(str::to_owned),
        side: side(&query)?,
    });
    Ok(Json(EligibilityRecord {
        object: "eligibility",
        eligible: verdict.reason.is_none(),
        unavailable_reason: verdict.reason.map(|reason| reason.as_str()),
        country_code: verdict.country,
        currency: verdict.currency,
        asset: verdict.asset,
        geo_source: verdict.source.as_str(),
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
    let found = app.parts().catalogue.methods_in(side, currency, &region);
    Ok(WholeList::of(url, found.map(method)))
}

/// Where the user is: what the query says, else what the edge says.
fn region(app: &App, headers: &HeaderMap, query: &Query) -> Result<Region, ApiError> {
    let asked = query.text("country_code")?;
    Ok(Region::of(asked, app.parts().edge.said(headers)))
}

fn side(query: &Query) -> Result<Option<Side>, ApiError> {
    let words = [Side::OnRamp, Side::OffRamp].map(|side| (side.as_str(), side));
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
        limits: LimitsRecord {
            currency: limits.min.asset().code().to_owned(),
            min_amount: limits.min.to_string(),
            max_amount: limits.max.to_string(),
        },
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
        side: method.side.as_str(),
    }
}
