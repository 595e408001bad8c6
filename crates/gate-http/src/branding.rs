//! Branding: the look of a partner's widget.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gate_core::branding::{Branding, BrandingUpdate};
use gate_core::change::Change;
use gate_core::limits::Group;
use http_kit::{ApiError, IdempotencyHeader, IdempotentReply, Json as Body, ResponseBuilder};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::wire::change;

/// Changes to the branding. Null clears a field, an absent field stays unchanged, and an unknown
/// field is refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateBrandingRequest {
    /// An absolute https URL.
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, max_length = 2048, example = "https://cdn.shop.example/logo.svg")]
    logo_url: Change,
    /// `#RRGGBB`
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, pattern = "^#[0-9A-Fa-f]{6}$", example = "#1A2B3C")]
    primary_color: Change,
    /// `#RRGGBB`
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, pattern = "^#[0-9A-Fa-f]{6}$", example = "#1A2B3C")]
    secondary_color: Change,
    /// `#RRGGBB`
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, pattern = "^#[0-9A-Fa-f]{6}$", example = "#1A2B3C")]
    accent_color: Change,
    /// The name shown to users.
    #[serde(default, deserialize_with = "change")]
    #[schema(value_type = Option<String>, max_length = 64, example = "Acme")]
    brand_name: Change,
}

/// The look of the widget. If all fields are null, the widget has the default look.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Branding)]
pub(crate) struct BrandingRecord {
    /// `branding`
    #[schema(example = "branding")]
    object: &'static str,
    /// An absolute https URL, or null.
    #[schema(required = true)]
    logo_url: Option<String>,
    /// `#RRGGBB`, or null.
    #[schema(required = true, example = "#1A2B3C")]
    primary_color: Option<String>,
    /// `#RRGGBB`, or null.
    #[schema(required = true)]
    secondary_color: Option<String>,
    /// `#RRGGBB`, or null.
    #[schema(required = true)]
    accent_color: Option<String>,
    /// The name shown to users, or null.
    #[schema(required = true)]
    brand_name: Option<String>,
}

pub(crate) const GET_BRANDING: Operation = Operation {
    route: || routes!(get_branding),
    admission: Admission::secret(Group::Global),
    errors: &[],
};

/// Read the branding
///
/// All fields are null if none was ever set; the widget then has the default look.
#[utoipa::path(get, path = "/v1/branding", operation_id = "getBranding", tag = "Branding",
    responses((status = 200, description = "The branding", body = BrandingRecord)))]
pub(crate) async fn get_branding(
    who: Entitled,
    State(app): State<App>,
) -> Result<Json<BrandingRecord>, ApiError> {
    let branding = app.reading.branding(who.tenant()).await?;
    Ok(Json(record(&branding)))
}

pub(crate) const UPDATE_BRANDING: Operation = Operation {
    route: || routes!(update_branding),
    admission: Admission::secret(Group::Global),
    errors: &[codes::BODY, codes::OPTIONAL_KEY],
};

/// Update the branding
///
/// Changes the fields in the body and leaves all others unchanged.
#[utoipa::path(patch, path = "/v1/branding", operation_id = "updateBranding", tag = "Branding",
    params(("Idempotency-Key" = Option<String>, Header, description = "A value of your own, the same for every retry")),
    request_body = UpdateBrandingRequest,
    responses((status = 200, description = "The branding after the update", body = BrandingRecord)))]
pub(crate) async fn update_branding(
    who: Entitled,
    State(app): State<App>,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<UpdateBrandingRequest>,
) -> Result<IdempotentReply, ApiError> {
    let key = key.optional()?;
    let rebranding = &app.rebranding;
    let reply = rebranding
        .update(who.tenant(), key, &request.into(), &|branding| {
            response.json(StatusCode::OK, &record(branding))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::rebrand_error)
}

/// The branding as JSON.
pub(crate) fn record(branding: &Branding) -> BrandingRecord {
    BrandingRecord {
        object: "branding",
        logo_url: branding.logo_url.clone(),
        primary_color: branding.primary_color.clone(),
        secondary_color: branding.secondary_color.clone(),
        accent_color: branding.accent_color.clone(),
        brand_name: branding.brand_name.clone(),
    }
}

impl From<UpdateBrandingRequest> for BrandingUpdate {
    fn from(request: UpdateBrandingRequest) -> Self {
        Self {
            logo_url: request.logo_url,
            primary_color: request.primary_color,
            secondary_color: request.secondary_color,
            accent_color: request.accent_color,
            brand_name: request.brand_name,
        }
    }
}
