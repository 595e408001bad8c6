//! Quote previews: the price of an order, for each method.

use axum::Json;
use axum::extract::State;
use gate_core::limits::Group;
use gate_core::order::OrderDraft;
use gate_core::usecases::preview_quotes::{PreviewDraft, PreviewOption, Previewed};
use http_kit::{ApiError, Json as Body};
use kernel::rates::Side;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::wire::{FeesRecord, instant};
use crate::words;

/// An order to preview.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PreviewQuotesRequest {
    /// A currency of the catalogue, in upper or lower case.
    #[schema(example = "EUR")]
    currency: String,
    /// An asset of the catalogue, in upper or lower case.
    #[schema(example = "USDT")]
    asset: String,
    /// What the user pays, a decimal string: fiat on `on_ramp`, crypto on `off_ramp`, with at most
    /// as many fractional digits as the currency or asset has.
    #[schema(example = "100.00", pattern = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$")]
    amount: String,
    /// The direction of the order.
    side: words::Side,
    /// The user's country, an ISO 3166 code.
    #[schema(example = "DE")]
    country_code: Option<String>,
    /// The chain, in its exact spelling; by default the first chain that the asset lists.
    #[schema(example = "tron")]
    network: Option<String>,
    /// Returns only this method; by default all methods.
    #[schema(example = "sepa")]
    payment_method: Option<String>,
}

/// The price of an order at this time. It promises nothing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuotePreview)]
pub(crate) struct PreviewRecord {
    /// `quote_preview`
    #[schema(example = "quote_preview")]
    object: &'static str,
    /// The id with which one session may use the preview; null if your previews are not locked.
    #[schema(required = true, example = "5e0f6d1c2b3a49788796a5b4")]
    quote_preview_id: Option<String>,
    /// The preview is invalid from this instant on.
    #[schema(format = DateTime)]
    expires_at: String,
    /// The direction of the order.
    side: words::Side,
    /// ISO 4217 code.
    #[schema(example = "EUR")]
    currency: String,
    /// The asset.
    #[schema(example = "USDT")]
    asset: String,
    /// What the user pays.
    #[schema(example = "100.00")]
    amount: String,
    /// One option per method.
    options: Vec<OptionRecord>,
}

/// The price of an order with one method.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuotePreviewOption)]
pub(crate) struct OptionRecord {
    /// The payment method on `on_ramp`, the payout method on `off_ramp`.
    #[schema(example = "sepa")]
    payment_method: String,
    /// The fiat side; null if unknown.
    #[schema(required = true, example = "100.00")]
    fiat_amount: Option<String>,
    /// The crypto side; null if unknown.
    #[schema(required = true, example = "106.605318")]
    crypto_amount: Option<String>,
    /// Output per input before fees; null if unknown.
    #[schema(required = true, example = "1.0822875")]
    exchange_rate: Option<String>,
    /// The fees; null if unknown.
    #[schema(required = true)]
    fees: Option<FeesRecord>,
    /// Why the method is unavailable, or null.
    #[schema(required = true)]
    unavailable_reason: Option<words::PreviewUnavailable>,
}

pub(crate) const PREVIEW_QUOTES: Operation = Operation {
    route: || routes!(preview_quotes),
    admission: Admission::secret(Group::Preview),
    errors: &[codes::BODY, codes::ORDER, &[codes::OUTCOME_UNKNOWN]],
};

/// Preview quotes
///
/// The price of an order at this time, for each method. A purchase delivers (fiat − fees) × rate; a
/// sale pays crypto × rate − fees. Both are rounded down. If your previews are locked, one session
/// may use `quote_preview_id`. Its amount, currency, asset and side must match the preview.
#[utoipa::path(post, path = "/v1/quotes/preview", operation_id = "previewQuotes", tag = "Quotes",
    request_body = PreviewQuotesRequest,
    responses((status = 200, description = "The price of the order, for each method", body = PreviewRecord)))]
pub(crate) async fn preview_quotes(
    who: Entitled,
    State(app): State<App>,
    Body(request): Body<PreviewQuotesRequest>,
) -> Result<Json<PreviewRecord>, ApiError> {
    let previewed = app.previewing.preview(who.access(), &request.into()).await;
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
        side: order.side.into(),
        currency: order.currency.code().to_owned(),
        asset: order.listing.asset.code().to_owned(),
        options: options.map(|it| option(it, order.side, &amount)).collect(),
        amount,
    }
}

/// One option. Without a price only the user's leg is known.
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
            unavailable_reason: Some((*reason).into()),
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
                side: request.side.0,
                network: request.network,
                country_code: request.country_code,
            },
            payment_method: request.payment_method,
        }
    }
}
