//! Quote previews: what an order would come to, by each method.

use axum::Json;
use axum::extract::State;
use gate_core::order::OrderDraft;
use gate_core::usecases::preview_quotes::{PreviewDraft, PreviewOption, Previewed};
use http_kit::{ApiError, Json as Body};
use kernel::rates::Side;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::{App, Entitled};
use crate::errors;
use crate::wire::{self, FeesRecord, SideWord, instant};

/// An order to be previewed.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PreviewQuotesRequest {
    /// A currency of the catalogue, in whatever case.
    #[schema(example = "EUR")]
    currency: String,
    /// An asset of the catalogue, in whatever case.
    #[schema(example = "USDT")]
    asset: String,
    /// What the user gives, a decimal string: fiat on `on_ramp`, crypto on `off_ramp`, with the digits
    /// of either at most.
    #[schema(example = "100.00", pattern = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$")]
    amount: String,
    /// Which way it goes.
    #[schema(value_type = wire::Side)]
    side: SideWord,
    /// Where the user is: an ISO 3166 code.
    #[schema(example = "DE")]
    country_code: Option<String>,
    /// The chain, in its exact spelling; left out, the one that the asset lists first.
    #[schema(example = "tron")]
    network: Option<String>,
    /// Only this method; left out, each there is.
    #[schema(example = "sepa")]
    payment_method: Option<String>,
}

/// What an order would come to now. Nothing is promised.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuotePreview)]
pub(crate) struct PreviewRecord {
    /// `quote_preview`
    #[schema(example = "quote_preview")]
    object: &'static str,
    /// Names the preview to the one session that may use it; null where your previews are not locked.
    #[schema(required = true, example = "5e0f6d1c2b3a49788796a5b4")]
    quote_preview_id: Option<String>,
    /// From this instant on it stands no longer.
    #[schema(format = DateTime)]
    expires_at: String,
    /// Which way it goes.
    #[schema(value_type = wire::Side)]
    side: &'static str,
    /// ISO 4217 code.
    #[schema(example = "EUR")]
    currency: String,
    /// The asset.
    #[schema(example = "USDT")]
    asset: String,
    /// What the user gives.
    #[schema(example = "100.00")]
    amount: String,
    /// One of each method.
    options: Vec<OptionRecord>,
}

/// What an order would come to by one method.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuotePreviewOption)]
pub(crate) struct OptionRecord {
    /// The method paid with on `on_ramp`, paid out by on `off_ramp`.
    #[schema(example = "sepa")]
    payment_method: String,
    /// The fiat side; null where it is not known.
    #[schema(required = true, example = "100.00")]
    fiat_amount: Option<String>,
    /// The crypto side; null where it is not known.
    #[schema(required = true, example = "106.605318")]
    crypto_amount: Option<String>,
    /// Output per input before fees; null where it is not known.
    #[schema(required = true, example = "1.0822875")]
    exchange_rate: Option<String>,
    /// What it costs; null where it is not known.
    #[schema(required = true)]
    fees: Option<FeesRecord>,
    /// Why it is not to be had, or null.
    #[schema(required = true, value_type = Option<UnavailableWord>)]
    unavailable_reason: Option<&'static str>,
}

/// Why an order is not to be had by a method.
#[derive(Debug, ToSchema)]
#[schema(as = PreviewUnavailable, rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum UnavailableWord {
    CountryNotSupported,
    AssetNotSupported,
    CorridorNotAvailable,
    RateUnavailable,
    AmountOutOfRange,
}

/// Preview quotes
///
/// What an order would come to now, by each method there is. A purchase delivers (fiat − fees) × rate, a sale pays
/// crypto × rate − fees, rounded down. Where your previews are locked, `quote_preview_id` names this one to
/// one session, which must agree with it in amount, currency, asset and side.
#[utoipa::path(post, path = "/v1/quotes/preview", operation_id = "previewQuotes", tag = "Quotes",
    request_body = PreviewQuotesRequest,
    security(("secretKey" = [])),
    responses((status = 200, description = "The order by each method", body = PreviewRecord)))]
pub(crate) async fn preview_quotes(
    who: Entitled,
    State(app): State<App>,
    Body(request): Body<PreviewQuotesRequest>,
) -> Result<Json<PreviewRecord>, ApiError> {
    let previewing = &app.parts().previewing;
    let previewed = previewing.preview(who.access(), &request.into()).await;
    Ok(Json(record(previewed.map_err(errors::preview_error)?)))
}

fn record(previewed: Previewed<'_>) -> PreviewRecord {
    let order = &previewed.order;
    let amount = order.amount.to_string();
    let options = previewed.options.iter();
    PreviewRecord {
        object: "quote_preview",
        quote_preview_id: previewed.id.map(|id| id.to_string()),
        expires_at: instant(previewed.expires_at),
        side: order.side.as_str(),
        currency: order.currency.code().to_owned(),
        asset: order.listing.asset.code().to_owned(),
        options: options.map(|it| option(it, order.side, &amount)).collect(),
        amount,
    }
}

/// Without a price only the leg is known that the user gives.
fn option(option: &PreviewOption<'_>, side: Side, amount: &str) -> OptionRecord {
    let payment_method = option.method.id.clone();
    match &option.priced {
        Ok(priced) => OptionRecord {
            payment_method,
            fiat_amount: Some(priced.fiat.to_string()),
            crypto_amount: Some(priced.crypto.to_string()),
            exchange_rate: Some(priced.rate.to_string()),
            fees: Some(FeesRecord::of(&priced.fees)),
            unavailable_reason: None,
        },
        Err(reason) => OptionRecord {
            payment_method,
            fiat_amount: (side == Side::OnRamp).then(|| amount.to_owned()),
            crypto_amount: (side == Side::OffRamp).then(|| amount.to_owned()),
            exchange_rate: None,
            fees: None,
            unavailable_reason: Some(reason.as_str()),
        },
    }
}

impl From<PreviewQuotesRequest> for PreviewDraft {
    fn from(request: PreviewQuotesRequest) -> Self {
        Self {
            order: OrderDraft {
                currency: request.currency,
                asset: request.asset,
                amount: request.amount,
                side: request.side.into(),
                network: request.network,
                country_code: request.country_code,
            },
            payment_method: request.payment_method,
        }
    }
}
