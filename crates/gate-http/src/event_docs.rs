//! The published events of the gate: their bodies, descriptions and examples.

use gate_core::customer::CustomerEvent;
use gate_core::events::{Resource, SESSION_FAILED, SESSION_PROCESSING, TEST_EVENT};
use gate_core::rail::{RailKind, RailRecord};
use gate_core::session::{Session, SessionEvent, SessionState};
use http_kit::openapi::{Contract, WebhookDoc};
use kernel::Timestamp;
use partner_core::Tenant;
use partner_core::stored_response::RenderError;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::{PartialSchema, ToSchema};

use crate::customers::{self, CustomerRecord, DeletedCustomerRecord};
use crate::event_shape::{DELIVERY_HEADERS, envelope};
use crate::rails::{PayInRecord, PayOutRecord};
use crate::sessions::{self, SessionRecord};
use crate::{rail_events, signed_quotes, wire};

/// Adds all events to the contract.
pub(crate) fn with_events(contract: Contract) -> Contract {
    let events: Vec<WebhookDoc> = webhooks()
        .into_iter()
        .chain(rail_events::webhooks())
        .collect();
    contract
        .schema("SessionEvent", SessionEventBody::schema())
        .schema("CustomerEvent", CustomerEventBody::schema())
        .schema("CustomerDeletedEvent", CustomerDeletedEventBody::schema())
        .schema("SessionEventData", SessionEventData::schema())
        .schema("TestEvent", TestEventBody::schema())
        .schema("TestEventData", TestEventData::schema())
        .schema("QuoteEvent", rail_events::QuoteEventBody::schema())
        .schema("PayInEvent", rail_events::PayInEventBody::schema())
        .schema("PayOutEvent", rail_events::PayOutEventBody::schema())
        .webhooks(&events, DELIVERY_HEADERS)
}

/// The body of an event of a session.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents a body that is written elsewhere")]
struct SessionEventBody {
    /// The event's id, a UUID. Deliveries can repeat, so handle each id once.
    id: String,
    /// `event`
    #[schema(example = "event")]
    object: String,
    /// The event's type.
    #[schema(rename = "type", example = "gate_session.completed")]
    kind: String,
    /// When it happened, in unix seconds.
    created_at: i64,
    /// The session at the time of the event.
    data: SessionEventData,
}

/// A session as it is read, with the transaction of a completed one.
#[derive(Debug, Serialize, ToSchema)]
struct SessionEventData {
    #[serde(flatten)]
    session: SessionRecord,
    /// The transaction of the payment; on `gate_session.processing`, `gate_session.failed` and `gate_session.completed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "test_tx_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    tx_refid: Option<String>,
    /// Why the payment failed; on `gate_session.failed` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "provider_declined")]
    failure_code: Option<String>,
}

/// The body of an event of an existing customer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents a body that is written elsewhere")]
struct CustomerEventBody {
    /// The event's id, a UUID. Deliveries can repeat, so handle each id once.
    id: String,
    /// `event`
    #[schema(example = "event")]
    object: String,
    /// The event's type.
    #[schema(rename = "type", example = "customer.updated")]
    kind: String,
    /// When it happened, in unix seconds.
    created_at: i64,
    /// The customer at the time of the event.
    data: CustomerRecord,
}

/// The body of the event of a deleted customer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents a body that is written elsewhere")]
struct CustomerDeletedEventBody {
    /// The event's id, a UUID. Deliveries can repeat, so handle each id once.
    id: String,
    /// `event`
    #[schema(example = "event")]
    object: String,
    /// The event's type.
    #[schema(rename = "type", example = "customer.deleted")]
    kind: String,
    /// When it happened, in unix seconds.
    created_at: i64,
    /// The response to the deletion, without other data of the customer.
    data: DeletedCustomerRecord,
}

/// The body of a test event.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "documents a body that is written elsewhere")]
struct TestEventBody {
    /// The event's id, a UUID.
    id: String,
    /// `event`
    #[schema(example = "event")]
    object: String,
    /// `webhook.test`
    #[schema(rename = "type", example = "webhook.test")]
    kind: String,
    /// When it was sent, in unix seconds.
    created_at: i64,
    /// The partner whose endpoint is tested.
    data: TestEventData,
}

#[derive(Debug, Serialize, ToSchema)]
struct TestEventData {
    /// `webhook_test`
    #[schema(example = "webhook_test")]
    object: &'static str,
    /// The partner.
    #[schema(example = "acme")]
    partner_id: String,
    /// The mode of the key.
    #[schema(value_type = wire::Mode)]
    mode: &'static str,
}

/// Renders a resource for an event, as `GET` returns it.
///
/// # Errors
/// [`RenderError`]: none in practice.
pub fn render_resource(
    who: &Tenant,
    resource: Resource<'_>,
    at: Timestamp,
) -> Result<Box<RawValue>, RenderError> {
    let rendered = match resource {
        Resource::Session(session) => to_raw_value(&SessionEventData::new(who, session)),
        Resource::Payment(session, record) => {
            to_raw_value(&SessionEventData::of_payment(who, session, record))
        }
        Resource::Customer(customer) => to_raw_value(&customers::record(who, customer)),
        Resource::DeletedCustomer(deleted) => to_raw_value(&customers::deleted(&deleted)),
        Resource::SignedQuote(quote) => to_raw_value(&signed_quotes::record(quote, at)),
        Resource::Rail(record) => match record.id.kind() {
            RailKind::PayIn => to_raw_value(&PayInRecord::of(record)),
            RailKind::PayOut => to_raw_value(&PayOutRecord::of(record)),
            RailKind::Swap => {
                return Err(RenderError("no event shows a swap as a rail record".into()));
            }
        },
        Resource::Endpoint => to_raw_value(&TestEventData {
            object: "webhook_test",
            partner_id: who.partner.to_string(),
            mode: who.mode.as_str(),
        }),
    };
    rendered.map_err(|error| RenderError(error.into()))
}

impl SessionEventData {
    fn new(who: &Tenant, session: &Session) -> Self {
        let tx_refid = match session.state {
            SessionState::Completed { refid, .. } => Some(refid.to_string()),
            SessionState::Open | SessionState::Cancelled { .. } | SessionState::Expired { .. } => {
                None
            }
        };
        Self {
            session: sessions::record(who, session),
            tx_refid,
            failure_code: None,
        }
    }

    fn of_payment(who: &Tenant, session: &Session, record: &RailRecord) -> Self {
        Self {
            session: sessions::record(who, session),
            tx_refid: Some(record.refid.to_string()),
            failure_code: record.state.failure_code().map(str::to_owned),
        }
    }
}

fn webhooks() -> [WebhookDoc; 12] {
    use SessionEvent::{Cancelled, Completed, Created, Expired, KycPackageAccepted};
    [
        of_session(
            Created.as_str(),
            "A session was created",
            "Its client secret is only in the response to the create, never in an event.",
            "open",
        ),
        of_session(
            KycPackageAccepted.as_str(),
            "A verification was accepted",
            "The `kyc_package` of a create was accepted. It is never returned.",
            "open",
        ),
        of_session(
            Completed.as_str(),
            "A session was completed",
            "The payment is complete; `tx_refid` is the reference of its transaction.",
            "completed",
        ),
        of_session(
            Cancelled.as_str(),
            "A session was cancelled",
            "Your server cancelled the session.",
            "cancelled",
        ),
        of_session(
            Expired.as_str(),
            "A session expired",
            "The session was not completed in time.",
            "expired",
        ),
        of_session(
            SESSION_PROCESSING,
            "A payment was submitted",
            "The user has submitted a payment in the hosted flow; `tx_refid` is the reference of its transaction. Wait for its outcome.",
            "open",
        ),
        of_session(
            SESSION_FAILED,
            "A payment failed",
            "A payment of the hosted flow has failed; `failure_code` is the reason. The session stays open, and the user may try again; no \
             session ever has this state. `failTestSession` does not send it.",
            "open",
        ),
        of_session(
            "kyc.required",
            "A verification is required",
            "The user must be verified before paying in the hosted flow. Sent once per session, when a payment is first refused for it or the \
             verification starts.",
            "open",
        ),
        of_customer(
            CustomerEvent::Created,
            "A customer was created",
            "The customer as in the response to its create.",
        ),
        of_customer(
            CustomerEvent::Updated,
            "A customer was updated",
            "The customer after the update. An update without a change sends no event.",
        ),
        deletion_of_customer(),
        WebhookDoc {
            name: TEST_EVENT,
            summary: "You sent a test event",
            description: "Sent by `sendTestWebhook`, to test your endpoint.",
            schema: "TestEvent",
            example: envelope(
                TEST_EVENT,
                &json!({ "object": "webhook_test", "partner_id": "acme", "mode": "test" }),
            ),
        },
    ]
}

fn of_session(
    name: &'static str,
    summary: &'static str,
    description: &'static str,
    status: &'static str,
) -> WebhookDoc {
    let mut session = json!({
        "id": "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "object": "gate_session",
        "partner_id": "acme",
        "mode": "test",
        "amount": "100.00",
        "currency": "EUR",
        "return_url": "https://shop.example/done",
        "cancel_url": null,
        "status": status,
        "expires_at": "2026-05-26T12:00:00.000Z",
        "created_at": "2026-05-25T12:00:00.000Z",
        "flow": "on_ramp",
        "target_token": "USDT",
        "target_network": "TRON",
        "wallet_address": null,
        "user_reference": "user-1",
        "kyc_pre_verified": name == SessionEvent::KycPackageAccepted.as_str(),
        "metadata": {},
        "url": null,
    });
    let of_payment = [
        SESSION_PROCESSING,
        SESSION_FAILED,
        SessionEvent::Completed.as_str(),
    ];
    if let Some(fields) = session.as_object_mut() {
        if of_payment.contains(&name) {
            let refid = "test_tx_01KSFVT5B3X8D0E2F4G6H8J0KM";
            fields.insert("tx_refid".to_owned(), refid.into());
        }
        if name == SESSION_FAILED {
            fields.insert("failure_code".to_owned(), "provider_declined".into());
        }
    }
    WebhookDoc {
        name,
        summary,
        description,
        schema: "SessionEvent",
        example: envelope(name, &session),
    }
}

fn of_customer(
    event: CustomerEvent,
    summary: &'static str,
    description: &'static str,
) -> WebhookDoc {
    let customer = json!({
        "id": "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "object": "customer",
        "partner_id": "acme",
        "mode": "test",
        "external_id": "user-1",
        "email": "ann@example.com",
        "phone": "+4915112345678",
        "first_name": "Ann",
        "last_name": "Lee",
        "country_code": "DE",
        "metadata": {},
        "kyc_status": "unverified",
        "created_at": "2026-05-25T12:00:00.000Z",
        "updated_at": "2026-05-25T12:00:00.000Z",
    });
    WebhookDoc {
        name: event.as_str(),
        summary,
        description,
        schema: "CustomerEvent",
        example: envelope(event.as_str(), &customer),
    }
}

fn deletion_of_customer() -> WebhookDoc {
    let name = CustomerEvent::Deleted.as_str();
    let deleted = json!({
        "id": "cus_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "object": "customer",
        "deleted": true,
        "deleted_at": "2026-05-25T12:00:00.000Z",
    });
    WebhookDoc {
        name,
        summary: "A customer was deleted",
        description: "Sent once, even if the deletion is repeated. It contains no personal data.",
        schema: "CustomerDeletedEvent",
        example: envelope(name, &deleted),
    }
}
