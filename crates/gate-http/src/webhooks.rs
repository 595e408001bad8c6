//! Webhook tools: list deliveries, replay one, send a test event.

use axum::Json;
use axum::extract::State;
use gate_core::limits::Group;
use http_kit::{ApiError, PathId, Query, log_id};
use partner_core::events::DeliveryId;
use partner_core::ports::{DeliveryFilter, DeliveryView};
use partner_core::webhooks::delivery::DeliveryState;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::errors;
use crate::lists::DeliveryList;
use crate::operation::{Admission, Operation};
use crate::wire::{created, instant};
use crate::words;

/// The largest page, and below it the default page size.
const LONGEST_PAGE: u32 = 200;
const PAGE: u32 = 50;
/// The largest `skip`. Skipped deliveries cost time, though less than listed ones.
const MAX_SKIP: u32 = 10_000;

/// The delivery of one event to your endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub(crate) struct DeliveryRecord {
    /// `webhook_delivery`
    #[schema(example = "webhook_delivery")]
    object: &'static str,
    /// Delivery id.
    #[schema(example = "wd_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
    /// The event's id. It is the same on every attempt and after a replay.
    #[schema(example = "0b8f6f0e-2f5d-4c39-9d6c-6c1a1f0f7a11")]
    event_id: String,
    /// The event's type.
    #[schema(example = "gate_session.completed")]
    event_type: String,
    /// The URL of your endpoint.
    #[schema(example = "https://shop.example/webhooks")]
    target_url: String,
    /// Branch on this.
    status: words::DeliveryStatus,
    /// Attempts with a known outcome, counted from zero after a replay.
    attempts: u32,
    /// The status of your endpoint's last response, or null.
    #[schema(required = true)]
    last_response_status: Option<u16>,
    /// The last error, or null.
    #[schema(required = true)]
    last_error: Option<String>,
    /// When the next attempt is due; null unless the delivery is pending.
    #[schema(required = true, format = DateTime)]
    next_attempt_at: Option<String>,
    /// When your endpoint accepted the event, or null.
    #[schema(required = true, format = DateTime)]
    delivered_at: Option<String>,
    /// When the event happened.
    #[schema(format = DateTime)]
    created_at: String,
}

pub(crate) const LIST_DELIVERIES: Operation = Operation {
    route: || routes!(list_deliveries),
    admission: Admission::secret(Group::Global),
    errors: &[&[codes::INVALID_REQUEST]],
};

/// List webhook deliveries
///
/// Newest first. For the next page, send the last id as `starting_after` while `has_more` is true.
/// A `dead_lettered` delivery has no further attempts unless you replay it.
#[utoipa::path(get, path = "/v1/webhooks/deliveries", operation_id = "listPartnerWebhookDeliveries", tag = "Webhooks",
    params(
        ("status" = Option<words::DeliveryStatus>, Query, description = "Only deliveries with this status"),
        ("created_after" = Option<String>, Query, format = DateTime, description = "Only deliveries created later than this instant: RFC 3339, or a date", example = "2026-05-25T00:00:00Z"),
        ("created_before" = Option<String>, Query, format = DateTime, description = "Only deliveries created no later than this instant: RFC 3339, or a date", example = "2026-05-26T00:00:00Z"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50 by default", minimum = 1, maximum = 200),
        ("starting_after" = Option<String>, Query, description = "The last id of the previous page; not together with `skip`",
            pattern = "^wd_(test|live)_[0-7][0-9A-HJKMNP-TV-Z]{25}$", example = "wd_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        ("skip" = Option<i64>, Query, minimum = 0, maximum = 10_000,
            description = "Number of newest deliveries to skip; 0 by default. A delivery that is created, or enters or leaves the \
                listed status, moves the others: a later page may omit or repeat some, so prefer `starting_after`"),
    ),
    responses((status = 200, description = "A page of deliveries", body = DeliveryList)))]
pub(crate) async fn list_deliveries(
    who: Entitled,
    State(app): State<App>,
    query: Query,
) -> Result<Json<DeliveryList>, ApiError> {
    let statuses = DeliveryState::WORDS.map(|word| (word, word));
    let filter = DeliveryFilter {
        status: query.one_of("status", &statuses)?,
        after: query.parsed("starting_after", |text| {
            DeliveryId::parse(text).ok_or("expected the id of a delivery")
        })?,
        created: created(&query)?,
        skip: skip(&query)?,
    };
    if filter.after.is_some() && query.text("skip")?.is_some() {
        return Err(ApiError::invalid_request(
            "Query parameters `starting_after` and `skip`: send only one of them.",
        ));
    }
    let limit = query.integer("limit", 1..=LONGEST_PAGE)?.unwrap_or(PAGE);
    let page = app.delivered.list(who.tenant(), filter, limit);
    let page = page.await?;
    Ok(DeliveryList::of(page, record))
}

pub(crate) const REPLAY_DELIVERY: Operation = Operation {
    route: || routes!(replay_delivery),
    admission: Admission::secret(Group::Global),
    errors: &[&[
        codes::RESOURCE_NOT_FOUND,
        codes::DELIVERY_NOT_DEAD_LETTERED,
        codes::OUTCOME_UNKNOWN,
    ]],
};

/// Replay a webhook delivery
///
/// Queues a `dead_lettered` delivery again: the same event with the same id. Its attempts are
/// counted from zero.
#[utoipa::path(post, path = "/v1/webhooks/deliveries/{id}/replay", operation_id = "replayWebhookDelivery", tag = "Webhooks",
    params(("id" = String, Path, description = "Delivery id", example = "wd_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The delivery, pending", body = DeliveryRecord)))]
pub(crate) async fn replay_delivery(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<DeliveryRecord>, ApiError> {
    let id = id.parse("delivery", DeliveryId::parse)?;
    let replayed = app.delivered.replay(who.tenant(), id).await;
    Ok(Json(record(replayed.map_err(errors::replay_error)?)))
}

pub(crate) const SEND_TEST: Operation = Operation {
    route: || routes!(send_test),
    admission: Admission::secret(Group::Global),
    errors: &[&[codes::WEBHOOK_NOT_CONFIGURED, codes::OUTCOME_UNKNOWN]],
};

/// Send a test event
///
/// Queues a `webhook.test` event for your endpoint. It is signed and delivered like every other
/// event.
#[utoipa::path(post, path = "/v1/webhooks/test", operation_id = "sendTestWebhook", tag = "Webhooks",
    responses((status = 200, description = "The delivery of the test event", body = DeliveryRecord)))]
pub(crate) async fn send_test(
    who: Entitled,
    State(app): State<App>,
) -> Result<Json<DeliveryRecord>, ApiError> {
    let sent = app.test_sending.send(who.tenant()).await;
    let sent = record(sent.map_err(errors::test_send_error)?);
    log_id(&sent.id);
    Ok(Json(sent))
}

/// Reads `skip`. The error of a larger number says how to reach older deliveries.
fn skip(query: &Query) -> Result<u32, ApiError> {
    let asked = query.clamped("skip", 0..=u32::MAX)?;
    if asked.is_some_and(|skip| skip > MAX_SKIP) {
        return Err(ApiError::invalid_request(format!(
            "Query parameter `skip` must be at most {MAX_SKIP}: to reach older deliveries, page by `starting_after`."
        )));
    }
    Ok(query.integer("skip", 0..=MAX_SKIP)?.unwrap_or_default())
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
        status: record.progress.state.into(),
        attempts: record.progress.attempts,
        last_response_status: record.last_response_status,
        last_error: record.last_error,
        next_attempt_at: due.map(instant),
        delivered_at: taken.map(instant),
        created_at: instant(view.created_at),
    }
}
