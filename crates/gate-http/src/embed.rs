//! Bootstrapping a widget: the one call of browsers.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ORIGIN, REFERER};
use gate_core::embed::Scopes;
use gate_core::session::Flow;
use gate_core::usecases::bootstrap_embed::{BootstrapRequest, Embed, PageHeaders};
use http_kit::{ApiError, OptionalJson};
use partner_core::Tenant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::{App, Publishable};
use crate::branding::{self, BrandingRecord};
use crate::errors;
use crate::wire::{self, instant, only_header};

/// The route's own path.
pub(crate) const PATH: &str = "/v1/embed/bootstrap";

/// What a widget is to be started for.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct CreateEmbedTokenRequest {
    /// The client secret of the session the widget is for. Absent: the open widget, which the
    /// widget's own origin does not have.
    #[serde(rename = "clientSecret")]
    #[schema(example = "gsec_gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK_0123456789abcdefABCDEF0123456789")]
    client_secret: Option<String>,
    /// What the token is to allow. Absent: all; an empty list: nothing.
    #[schema(value_type = Option<Vec<ScopeWord>>, example = json!(["session:read", "branding:read"]))]
    requested_scopes: Option<Vec<String>>,
}

/// What a token may be good for.
#[derive(Debug, ToSchema)]
#[schema(as = EmbedScope)]
#[expect(
    dead_code,
    reason = "documents the words; values are read by the domain's own type"
)]
pub(crate) enum ScopeWord {
    #[schema(rename = "session:read")]
    ReadSession,
    #[schema(rename = "session:pay")]
    PaySession,
    #[schema(rename = "kyc:submit")]
    SubmitKyc,
    #[schema(rename = "branding:read")]
    ReadBranding,
}

/// What a widget starts with. What belongs to a session is null without a client secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedToken)]
pub(crate) struct EmbedTokenRecord {
    /// `embed_token`
    #[schema(example = "embed_token")]
    object: &'static str,
    /// Has the widget something to offer? Where not, show a neutral state.
    available: bool,
    /// The token, for the header `X-Embed-Token` of the widget's calls.
    embed_token: String,
    /// From this instant on the token is worth nothing.
    #[schema(format = DateTime)]
    expires_at: String,
    /// The partner.
    #[schema(example = "acme")]
    partner_id: String,
    /// The mode of the key.
    #[schema(value_type = wire::Mode)]
    mode: &'static str,
    /// The session the token is bound to, or null.
    #[schema(required = true)]
    session_id: Option<String>,
    /// The session's amount, or null.
    #[schema(required = true)]
    amount: Option<String>,
    /// The session's currency, or null.
    #[schema(required = true)]
    currency: Option<String>,
    /// The session's asset, or null.
    #[schema(required = true)]
    target_token: Option<String>,
    /// The session's chain, or null.
    #[schema(required = true)]
    target_network: Option<String>,
    /// Where the user is led after success, or null.
    #[schema(required = true)]
    return_url: Option<String>,
    /// The flow the widget is locked to, or null.
    #[schema(required = true, value_type = Option<wire::Flow>)]
    flow: Option<&'static str>,
    /// How the widget looks.
    branding: BrandingRecord,
    /// Why there is nothing to offer, or null: `quota_exhausted`, or of what the session binds `currency_not_supported`,
    /// `asset_not_supported` or `corridor_not_available`.
    #[schema(required = true, example = json!(null))]
    unavailable_reason: Option<&'static str>,
}

/// Start a widget
///
/// For browsers, with a publishable key: the page's `Origin`, or without one its `Referer`, must be one of your
/// allowed domains exactly. Gives a token for one partner, and for one session where its client
/// secret is sent.
///
/// The limit counts your key together with the client's address, an IPv6 /64 as one address: tier `short`, 30 a minute. A
/// ceiling counts your key over all addresses: tier `medium`, 6,000 a minute. Requests from pages that are not yours count
/// apart and use up neither.
#[utoipa::path(post, path = "/v1/embed/bootstrap", operation_id = "createEmbedToken", tag = "Embed",
    params(
        ("Origin" = Option<String>, Header, description = "Where the page is from, as browsers send it", example = "https://shop.example"),
        ("Referer" = Option<String>, Header, description = "Asked where there is no `Origin`"),
        ("publishable_key" = Option<String>, Query, description = "The publishable key, where no header can be sent"),
    ),
    request_body = Option<CreateEmbedTokenRequest>,
    security(("publishableKey" = [])),
    responses((status = 200, description = "The token, and what the widget shows", body = EmbedTokenRecord)))]
pub(crate) async fn create_embed_token(
    who: Publishable,
    State(app): State<App>,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<CreateEmbedTokenRequest>,
) -> Result<Json<EmbedTokenRecord>, ApiError> {
    let request = request.unwrap_or_default();
    let scopes = Scopes::requested(request.requested_scopes.as_deref());
    let ask = BootstrapRequest {
        stands: stands(&headers),
        client_secret: request.client_secret.as_deref(),
        scopes: scopes.map_err(|fault| ApiError::invalid_request(format!("{fault}.")))?,
    };
    let embed = app.parts().bootstrapping.bootstrap(who.access(), ask).await;
    let embed = embed.map_err(errors::bootstrap_error)?;
    Ok(Json(record(who.tenant(), embed)))
}

/// Where a browser says that its page is from.
pub(crate) fn stands(headers: &HeaderMap) -> PageHeaders<'_> {
    PageHeaders {
        origin: only_header(headers, &ORIGIN),
        referer: only_header(headers, &REFERER),
    }
}

fn record(who: &Tenant, embed: Embed) -> EmbedTokenRecord {
    let terms = embed.session.as_ref().map(|session| &session.terms);
    EmbedTokenRecord {
        object: "embed_token",
        available: embed.unavailable.is_none(),
        embed_token: embed.token,
        expires_at: instant(embed.expires_at),
        partner_id: who.partner.to_string(),
        mode: who.mode.as_str(),
        session_id: embed.session.as_ref().map(|session| session.id.to_string()),
        amount: terms.map(|terms| terms.amount.as_str().to_owned()),
        currency: terms.map(|terms| terms.currency.code().to_owned()),
        target_token: terms.and_then(|terms| terms.target_token.clone()),
        target_network: terms.and_then(|terms| terms.target_network.clone()),
        return_url: terms.map(|terms| terms.return_url.clone()),
        flow: terms.and_then(|terms| terms.flow).map(Flow::as_str),
        branding: branding::record(&embed.branding),
        unavailable_reason: embed.unavailable.map(|reason| reason.as_str()),
    }
}
