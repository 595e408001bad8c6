//! Webhook tools: what became of a partner's events, once more, and one to try.

use axum::Json;
use axum::extract::State;
use http_kit::{ApiError, PathId, Query};
use partner_core::events::DeliveryId;
use partner_core::ports::{DeliveryFilter, DeliveryView};
use partner_core::webhooks::delivery::DeliveryState;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{App, Entitled};
use crate::errors;
use crate::wire::instant;

/// The list's own path.
const LIST: &str = "/v1/webhooks/deliveries";
/// The most deliveries of a page, and how many it has where no number is asked for.
const LONGEST_PAGE: i64 = 200;
const PAGE: u32 = 50;

/// Where a delivery stands.
#[derive(Debug, ToSchema)]
#[schema(as = DeliveryStatus, rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the words; values are written from the domain's own type"
)]
pub(crate) enum DeliveryStatusWord {
    Pending,
    InFlight,
    Succeeded,
    DeadLettered,
}

/// One event on its way to your endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub(crate) struct DeliveryRecord {
    /// `webhook_delivery`
    #[schema(example = "webhook_delivery")]
    object: &'static str,
    /// Delivery id.
    #[schema(example = "wd_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// The event's id: the same on every attempt, also after a replay.
    #[schema(example = "0b8f6f0e-2f5d-4c39-9d6c-6c1a1f0f7a11")]
    event_id: String,
    /// The event's type.
    #[schema(example = "gate_session.completed")]
    event_type: String,
    /// Where it is sent.
    #[schema(example = "https://shop.example/webhooks")]
    target_url: String,
    /// Branch on this.
    #[schema(value_type = DeliveryStatusWord)]
    status: &'static str,
    /// Attempts whose end is known, counted anew after a replay.
    attempts: u32,
    /// The status of the last answer, or null.
    #[schema(required = true)]
    last_response_status: Option<u16>,
    /// What went wrong the last time, or null.
    #[schema(required = true)]
    last_error: Option<String>,
    /// When it is tried next; null unless it is pending.
    #[schema(required = true, format = DateTime)]
    next_attempt_at: Option<String>,
    /// When your endpoint took it; null unless it did.
    #[schema(required = true, format = DateTime)]
    delivered_at: Option<String>,
    /// When the event happened.
    #[schema(format = DateTime)]
    created_at: String,
}

/// A page of deliveries, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    /// `list`
    #[schema(example = "list")]
    object: &'static str,
    /// The deliveries.
    data: Vec<DeliveryRecord>,
    /// Do more follow? Go on with a larger `skip`.
    has_more: bool,
    /// The list's path.
    #[schema(example = "/v1/webhooks/deliveries")]
    url: &'static str,
}

/// List webhook deliveries
///
/// Newest first. What is `dead_lettered` is tried no more, unless you replay it.
#[utoipa::path(get, path = "/v1/webhooks/deliveries", operation_id = "listPartnerWebhookDeliveries", tag = "Webhooks",
    params(
        ("status" = Option<DeliveryStatusWord>, Query, description = "Only this status"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50 where it is left out", minimum = 1, maximum = 200),
        ("skip" = Option<i64>, Query, description = "So many of the newest are passed over; 0 where it is left out", minimum = 0, maximum = 4_294_967_295_i64),
    ),
    security(("secretKey" = [])),
    responses((status = 200, description = "A page of deliveries", body = DeliveryList)))]
pub(crate) async fn list_deliveries(
    who: Entitled,
    State(app): State<App>,
    query: Query,
) -> Result<Json<DeliveryList>, ApiError> {
    let statuses = DeliveryState::WORDS.map(|word| (word, word));
    let filter = DeliveryFilter {
        status: query.one_of("status", &statuses)?,
        skip: number(query.integer("skip", 0..=i64::from(u32::MAX))?).unwrap_or_default(),
    };
    let limit = number(query.integer("limit", 1..=LONGEST_PAGE)?).unwrap_or(PAGE);
    let page = app.parts().delivered.list(who.tenant(), filter, limit);
    let page = page.await?;
    Ok(Json(DeliveryList {
        object: "list",
        data: page.items.into_iter().map(record).collect(),
        has_more: page.has_more,
        url: LIST,
    }))
}

/// Replay a webhook delivery
///
/// Puts a `dead_lettered` delivery back into the queue: the same event under the same id, its attempts
/// counted anew.
#[utoipa::path(post, path = "/v1/webhooks/deliveries/{id}/replay", operation_id = "replayWebhookDelivery", tag = "Webhooks",
    params(("id" = String, Path, description = "Delivery id", example = "wd_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    security(("secretKey" = [])),
    responses((status = 200, description = "The delivery, pending", body = DeliveryRecord)))]
pub(crate) async fn replay_delivery(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<DeliveryRecord>, ApiError> {
    let id = id.parse("delivery", DeliveryId::parse)?;
    let replayed = app.parts().delivered.replay(who.tenant(), id).await;
    Ok(Json(record(replayed.map_err(errors::replay_error)?)))
}

/// Send a test event
///
/// Queues a `webhook.test` for your endpoint, signed and delivered as every other.
#[utoipa::path(post, path = "/v1/webhooks/test", operation_id = "sendTestWebhook", tag = "Webhooks",
    security(("secretKey" = [])),
    responses((status = 200, description = "Its delivery", body = DeliveryRecord)))]
pub(crate) async fn send_test(
    who: Entitled,
    State(app): State<App>,
) -> Result<Json<DeliveryRecord>, ApiError> {
    let sent = app.parts().test_sending.send(who.tenant()).await;
    Ok(Json(record(sent.map_err(errors::test_send_error)?)))
}

/// A number that has been read within its bounds.
fn number(asked: Option<i64>) -> Option<u32> {
    asked.and_then(|number| u32::try_from(number).ok())
}

fn record(view: DeliveryView) -> DeliveryRecord {
    let record = view.record;
    let (due, taken) = match record.progress.state {
        DeliveryState::Pending { due } => (Some(due), None),
        DeliveryState::Succeeded { at } => (None, Some(at)),
        DeliveryState::InFlight(_) | DeliveryState::DeadLettered => (None, None),
    };
    DeliveryRecord {
        object: "webhook_delivery",
        id: record.id.to_string(),
        event_id: record.event_id,
        event_type: view.event_kind,
        target_url: view.target_url,
        status: record.progress.state.as_str(),
        attempts: record.progress.attempts,
        last_response_status: record.last_response_status,
        last_error: record.last_error,
        next_attempt_at: due.map(instant),
        delivered_at: taken.map(instant),
        created_at: instant(view.created_at),
    }
}
