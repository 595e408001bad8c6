//! What a widget can offer: sides, assets, networks, methods, limits and indicative prices.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use gate_core::catalogue::{CountryCode, Method, Network, UsualTime};
use gate_core::embed::Scope;
use gate_core::limits::Group;
use gate_core::usecases::list_options::{AssetOption, Indicative, PricedFor, SideOptions};
use http_kit::{ApiError, Query};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::App;
use crate::capabilities::LimitsRecord;
use crate::codes;
use crate::embed_caller::EmbedCaller;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::wire::FeesRecord;
use crate::words;

/// What the widget can offer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedOptions)]
pub(crate) struct EmbedOptionsRecord {
    /// `embed_options`
    #[schema(example = "embed_options")]
    object: &'static str,
    /// The user's country, from the query or from the edge, or null.
    #[schema(required = true, example = "DE")]
    country_code: Option<String>,
    /// The sides on offer. A side that offers nothing is absent.
    sides: Vec<SideRecord>,
}

/// What one side offers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedSide)]
pub(crate) struct SideRecord {
    /// Purchase, sale or swap.
    side: words::Flow,
    /// The assets; in a swap, each of them can be sent and received.
    assets: Vec<AssetRecord>,
    /// The methods of payment or payout; empty for a swap.
    methods: Vec<MethodRecord>,
    /// How long a swap usually takes from the arrival of what the user sends to the delivery, or null;
    /// null for a purchase and a sale, which take as long as their method.
    #[schema(required = true)]
    usual_time: Option<UsualTimeRecord>,
    /// Prices of the session's amount at this time, which promise nothing. Empty for a swap,
    /// if no rate is known, and if the asset and the network of the query are not on offer.
    indicative: Vec<IndicativeRecord>,
}

/// An asset on offer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedAsset)]
pub(crate) struct AssetRecord {
    /// Symbol of the asset.
    #[schema(example = "USDT")]
    symbol: String,
    /// Name of the asset.
    #[schema(example = "Tether USD")]
    name: String,
    /// The chains on offer: those whose addresses are checked and that the session's wallet fits.
    networks: Vec<NetworkRecord>,
    /// Suggested order amounts in the session's currency, or null.
    #[schema(required = true)]
    limits: Option<LimitsRecord>,
}

/// A chain on offer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedNetwork)]
pub(crate) struct NetworkRecord {
    /// The chain's name. It is case-sensitive.
    #[schema(example = "ethereum")]
    chain: String,
    /// The asset's contract, which is the address of no wallet; null for the chain's native asset.
    #[schema(
        required = true,
        example = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
    )]
    contract_address: Option<String>,
    /// Whether it is an EVM chain.
    evm: bool,
}

/// A way to pay in or to be paid out.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedMethod)]
pub(crate) struct MethodRecord {
    /// Method id.
    #[schema(example = "sepa")]
    id: String,
    /// Name of the method.
    #[schema(example = "SEPA transfer")]
    name: String,
    /// The currency of the payment.
    #[schema(example = "EUR")]
    currency: String,
    /// The form of the account that a sale is paid to, which decides the fields of `payout`; null for a
    /// method of a purchase.
    #[schema(required = true)]
    account: Option<words::EmbedAccount>,
    /// How long it usually takes, or null: a purchase from the user's payment to the delivery, a sale
    /// from the arrival of the asset to the money in the account.
    #[schema(required = true)]
    usual_time: Option<UsualTimeRecord>,
}

/// How long an order usually takes, which promises nothing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedUsualTime)]
pub(crate) struct UsualTimeRecord {
    /// The minimum, in seconds.
    #[schema(example = 600)]
    from_seconds: u64,
    /// The maximum, in seconds; it can equal the minimum.
    #[schema(example = 86400)]
    to_seconds: u64,
}

/// The price of the session's amount for one asset by one method, on the network of the query or
/// else on the asset's first chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedIndicative)]
pub(crate) struct IndicativeRecord {
    /// The asset.
    #[schema(example = "USDT")]
    asset: String,
    /// The method.
    #[schema(example = "sepa")]
    payment_method: String,
    /// What the user receives in a purchase, or sends in a sale.
    #[schema(example = "106.605318")]
    crypto_amount: String,
    /// The session's amount: paid in a purchase, received in a sale.
    #[schema(example = "100.00")]
    fiat_amount: String,
    /// Output per input before fees.
    #[schema(example = "1.0822875")]
    exchange_rate: String,
    /// The fees.
    fees: FeesRecord,
}

pub(crate) const LIST_EMBED_OPTIONS: Operation = Operation {
    route: || routes!(list_embed_options),
    admission: Admission::widget(Group::Embed),
    errors: &[&[
        codes::INVALID_REQUEST,
        codes::RESOURCE_NOT_FOUND,
        codes::OUTCOME_UNKNOWN,
    ]],
};

/// List the options
///
/// What the session can be paid with, or what the open widget offers, to users in the country of the
/// query or of the edge. A session with a flow has this side alone, and its asset and chain are the
/// only ones. In a swap they are what the user receives, so the other assets are listed too. The
/// indicative prices are those of each asset on its first network, unless `asset` or `network` names
/// another choice; nothing else depends on the two.
#[utoipa::path(get, path = "/v1/embed/options", operation_id = "listEmbedOptions", tag = "Session",
    params(("country_code" = Option<String>, Query, description = "The user's country, an ISO 3166 code; by default the country that the edge reports", example = "DE"),
        ("asset" = Option<String>, Query, description = "The asset that the indicative prices are for; by default each", example = "USDT"),
        ("network" = Option<String>, Query, description = "The network that the indicative prices are for, by default the first one of the asset. It is case-sensitive", example = "ethereum")),
    responses((status = 200, description = "The options", body = EmbedOptionsRecord)))]
pub(crate) async fn list_embed_options(
    who: EmbedCaller,
    State(app): State<App>,
    headers: HeaderMap,
    query: Query,
) -> Result<Json<EmbedOptionsRecord>, ApiError> {
    let token = who.allowed(Scope::SessionRead)?;
    let asked = query.parsed("country_code", |text| {
        CountryCode::parse(text).ok_or("expected an ISO 3166 code of two letters, such as \"DE\"")
    })?;
    let country = asked.or_else(|| app.edge.country(&headers));
    let wanted = PricedFor {
        asset: query.text("asset")?,
        network: query.text("network")?,
    };
    let session = match token {
        Some(token) => {
            let found = app.showing.show(who.tenant(), token, country).await;
            Some(found.map_err(errors::show_error)?.session)
        }
        None => None,
    };
    let terms = session.as_ref().map(|session| &session.terms);
    let sides = app.options.list(terms, country, wanted).await;
    Ok(Json(EmbedOptionsRecord {
        object: "embed_options",
        country_code: country.map(|code| code.to_string()),
        sides: sides.iter().map(side).collect(),
    }))
}

fn side(side: &SideOptions<'_>) -> SideRecord {
    SideRecord {
        side: side.side.into(),
        assets: side.assets.iter().map(asset).collect(),
        methods: side.methods.iter().map(|it| method(it)).collect(),
        usual_time: side.usual_time.map(usual_time),
        indicative: side.indicative.iter().map(indicative).collect(),
    }
}

fn asset(option: &AssetOption<'_>) -> AssetRecord {
    AssetRecord {
        symbol: option.listing.asset.code().to_owned(),
        name: option.listing.name.clone(),
        networks: option.networks.iter().map(|it| network(it)).collect(),
        limits: option.limits.map(LimitsRecord::of),
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
        id: method.id.clone(),
        name: method.name.clone(),
        currency: method.currency.code().to_owned(),
        account: method.account.map(Into::into),
        usual_time: method.usual_time.map(usual_time),
    }
}

const fn usual_time(usual: UsualTime) -> UsualTimeRecord {
    UsualTimeRecord {
        from_seconds: usual.from.as_secs(),
        to_seconds: usual.to.as_secs(),
    }
}

fn indicative(indicative: &Indicative<'_>) -> IndicativeRecord {
    let priced = &indicative.priced;
    IndicativeRecord {
        asset: indicative.asset.code().to_owned(),
        payment_method: indicative.method.id.clone(),
        crypto_amount: priced.crypto.to_string(),
        fiat_amount: priced.fiat.to_string(),
        exchange_rate: priced.rate.to_string(),
        fees: FeesRecord::of(&priced.fees),
    }
}
