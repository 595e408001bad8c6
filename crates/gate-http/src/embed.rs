//! Bootstraps a widget, for pages with a publishable key.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ORIGIN, REFERER};
use gate_core::access::GateAccess;
use gate_core::embed::Scopes;
use gate_core::redirect::still_allowed;
use gate_core::usecases::bootstrap_embed::{BootstrapRequest, Embed, PageHeaders};
use http_kit::{ApiError, OptionalJson, log_id};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Publishable};
use crate::branding::{self, BrandingRecord};
use crate::codes;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::wire::{instant, only_header};
use crate::words;

/// The parameters of a widget token.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct CreateEmbedTokenRequest {
    /// The client secret of the widget's session. Without it the widget is open, which the widget's
    /// own origin does not allow.
    #[serde(rename = "clientSecret")]
    #[schema(example = "gsec_gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK_0123456789abcdefABCDEF0123456789")]
    client_secret: Option<String>,
    /// The scopes that the token allows. Absent means all; an empty list means none.
    #[schema(value_type = Option<Vec<words::EmbedScope>>, example = json!(["session:read", "branding:read"]))]
    requested_scopes: Option<Vec<String>>,
}

/// The initial data of a widget. The fields of a session are null without a client secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedToken)]
pub(crate) struct EmbedTokenRecord {
    /// `embed_token`
    #[schema(example = "embed_token")]
    object: &'static str,
    /// Whether the widget has something to offer. If not, show a neutral state.
    available: bool,
    /// The token, for the header `X-Embed-Token` of the widget's calls.
    embed_token: String,
    /// The token is invalid from this instant on.
    #[schema(format = DateTime)]
    expires_at: String,
    /// The partner.
    #[schema(example = "acme")]
    partner_id: String,
    /// The mode of the key.
    mode: words::Mode,
    /// The session of the token, or null.
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
    /// Where the user is redirected after success, or null. Null also if its origin is no longer one of
    /// your allowed domains.
    #[schema(required = true)]
    return_url: Option<String>,
    /// The flow the widget is locked to, or null.
    #[schema(required = true)]
    flow: Option<words::Flow>,
    /// The look of the widget.
    branding: BrandingRecord,
    /// Why there is nothing to offer, or null: `quota_exhausted`, or for a session that no choice can
    /// pay `currency_not_supported`, `asset_not_supported`, `corridor_not_available`,
    /// `network_not_supported`, `invalid_address`, `amount_precision` or `amount_out_of_range`.
    #[schema(required = true, example = json!(null))]
    unavailable_reason: Option<&'static str>,
}

pub(crate) const CREATE_EMBED_TOKEN: Operation = Operation {
    route: || routes!(create_embed_token),
    admission: Admission::BROWSER,
    errors: &[
        codes::BODY,
        &[
            codes::ORIGIN_NOT_ALLOWED,
            codes::CLIENT_SECRET_INVALID,
            codes::SESSION_NOT_OPEN_TO_PAGE,
            codes::OUTCOME_UNKNOWN,
        ],
    ],
};

/// Start a widget
///
/// For browsers, with a publishable key. The page's `Origin`, or without an `Origin` its `Referer`,
/// must equal one of your allowed domains. Returns a token for one partner, and for one session if
/// its client secret is sent. A session has at most 10 valid tokens: each further one ends the
/// oldest.
///
/// Tier `short` allows 30 requests a minute for your key and the client's address; an IPv6 /64
/// counts as one address. Tier `medium`, the ceiling, allows 6,000 requests a minute for your key
/// from all addresses. Reads of outcomes count in the same tiers. Requests from pages that are not
/// yours are counted separately and use up neither tier.
#[utoipa::path(post, path = "/v1/embed/bootstrap", operation_id = "createEmbedToken", tag = "Embed",
    params(
        ("Origin" = Option<String>, Header, description = "The origin of the page, as browsers send it", example = "https://shop.example"),
        ("Referer" = Option<String>, Header, description = "Used if there is no `Origin`"),
        ("publishable_key" = Option<String>, Query, description = "The publishable key, if no header can be sent"),
    ),
    request_body = Option<CreateEmbedTokenRequest>,
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
        page: page_headers(&headers),
        client_secret: request.client_secret.as_deref(),
        scopes: scopes.map_err(|error| ApiError::invalid_request(format!("{error}.")))?,
    };
    let embed = app.bootstrapping.bootstrap(who.access(), ask).await;
    let embed = embed.map_err(errors::bootstrap_error)?;
    if let Some(session) = &embed.session {
        log_id(session.id);
    }
    Ok(Json(record(who.access(), embed)))
}

/// The headers in which a browser names the page.
pub(crate) fn page_headers(headers: &HeaderMap) -> PageHeaders<'_> {
    PageHeaders {
        origin: only_header(headers, &ORIGIN),
        referer: only_header(headers, &REFERER),
    }
}

fn record(access: &GateAccess, embed: Embed) -> EmbedTokenRecord {
    let who = &access.tenant;
    let terms = embed.session.as_ref().map(|session| &session.terms);
    let return_url = terms.and_then(|terms| still_allowed(&terms.return_url, access));
    EmbedTokenRecord {
        object: "embed_token",
        available: embed.unavailable.is_none(),
        embed_token: embed.token,
        expires_at: instant(embed.expires_at),
        partner_id: who.partner.to_string(),
        mode: who.mode.into(),
        session_id: embed.session.as_ref().map(|session| session.id.to_string()),
        amount: terms.map(|terms| terms.amount.as_str().to_owned()),
        currency: terms.map(|terms| terms.currency.code().to_owned()),
        target_token: terms.and_then(|terms| terms.target_token.clone()),
        target_network: terms.and_then(|terms| terms.target_network.clone()),
        return_url: return_url.map(str::to_owned),
        flow: terms.and_then(|terms| terms.flow).map(Into::into),
        branding: branding::record(&embed.branding),
        unavailable_reason: embed.unavailable.map(|reason| reason.as_str()),
    }
}
