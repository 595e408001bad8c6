//! The published events of the gate: their bodies, descriptions and examples.

use gate_core::customer::CustomerEvent;
use gate_core::events::{QUOTE_CONSUMED, Resource, SESSION_FAILED, SESSION_PROCESSING, TEST_EVENT};
use gate_core::rail::{RailKind, RailRecord, RailState};
use gate_core::session::{Session, SessionEvent};
use http_kit::openapi::{Contract, WebhookDoc};
use kernel::Timestamp;
use partner_core::Tenant;
use partner_core::stored_response::RenderError;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::customers;
use crate::event_shape::{ANY_TYPE, body, envelope, recorded};
use crate::payments::ReceivedRecord;
use crate::rails::{PayInRecord, PayOutRecord};
use crate::sessions::{self, SessionRecord};
use crate::wire::instant;
use crate::{payments, rail_events, signed_quotes, words};

/// Adds all events to the contract.
pub(crate) fn with_events(contract: Contract) -> Contract {
    let events: Vec<WebhookDoc> = webhooks()
        .into_iter()
        .chain(rail_events::webhooks())
        .collect();
    let data = [
        ("SessionEventData", SessionEventData::schema()),
        ("EmbedPaymentReceived", ReceivedRecord::schema()),
        ("FailureReason", words::FailureReason::schema()),
        ("TestEventData", TestEventData::schema()),
    ];
    let schemas = data.into_iter().chain(bodies());
    schemas
        .fold(contract, |contract, (name, schema)| {
            contract.schema(name, schema)
        })
        .webhooks(&events, "Gate-Signature")
}

/// The bodies of the events, by the names of their schemas.
fn bodies() -> [(&'static str, RefOr<Schema>); 7] {
    [
        body(
            ("SessionEvent", "The body of an event of a session."),
            (ANY_TYPE, "gate_session.completed"),
            ("SessionEventData", "The session at the time of the event."),
        ),
        body(
            (
                "CustomerEvent",
                "The body of an event of an existing customer.",
            ),
            (ANY_TYPE, "customer.updated"),
            ("Customer", "The customer at the time of the event."),
        ),
        body(
            (
                "CustomerDeletedEvent",
                "The body of the event of a deleted customer.",
            ),
            (ANY_TYPE, "customer.deleted"),
            (
                "DeletedCustomer",
                "The response to the deletion, without other data of the customer.",
            ),
        ),
        body(
            ("QuoteEvent", "The body of the event of a redeemed quote."),
            ("`quote.consumed`", QUOTE_CONSUMED),
            ("SignedQuote", "The quote at the time of the event."),
        ),
        body(
            ("PayInEvent", "The body of an event of a pay-in."),
            (ANY_TYPE, "rail.pay_in.settled"),
            ("PayIn", "The pay-in at the time of the event."),
        ),
        body(
            ("PayOutEvent", "The body of an event of a pay-out."),
            (ANY_TYPE, "rail.pay_out.settled"),
            ("PayOut", "The pay-out at the time of the event."),
        ),
        body(
            ("TestEvent", "The body of a test event."),
            ("`webhook.test`", TEST_EVENT),
            ("TestEventData", "The partner whose endpoint is tested."),
        ),
    ]
}

/// A session as it is read, with the payment that the event is about.
#[derive(Debug, Serialize, ToSchema)]
struct SessionEventData {
    #[serde(flatten)]
    session: SessionRecord,
    /// Until when the user can pay; on `gate_session.processing` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pay_until: Option<String>,
    /// What has arrived of the payment; on `gate_session.failed` only, if its rail says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    received: Option<ReceivedRecord>,
    /// Why the rail gives back what had arrived; on `gate_session.failed` only, if its rail says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    failure_reason: Option<words::FailureReason>,
    /// Why the payment failed; on `gate_session.failed` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "provider_declined")]
    failure_code: Option<String>,
    /// An explanation for people; on `gate_session.failed` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "The payment was declined.")]
    failure_message: Option<&'static str>,
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
    mode: words::Mode,
}

/// Renders a resource for an event, as `GET` returns it.
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
            mode: who.mode.into(),
        }),
    };
    rendered.map_err(|error| RenderError(error.into()))
}

impl SessionEventData {
    fn new(who: &Tenant, session: &Session) -> Self {
        Self {
            session: sessions::record(who, session),
            pay_until: None,
            received: None,
            failure_reason: None,
            failure_code: None,
            failure_message: None,
        }
    }

    fn of_payment(who: &Tenant, session: &Session, record: &RailRecord) -> Self {
        let (failure_code, failure_message) = payments::failure(record).unzip();
        let pay_until = record
            .pay_until
            .filter(|_| record.state == RailState::Processing);
        let mut session = sessions::record(who, session);
        session.tx_refid = Some(record.refid.to_string());
        Self {
            session,
            pay_until: pay_until.map(instant),
            received: ReceivedRecord::of(record),
            failure_reason: record.state.failure_reason().map(Into::into),
            failure_code,
            failure_message,
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
            "Your server cancelled the session, or the user gave up in the hosted flow.",
            "cancelled",
        ),
        of_session(
            Expired.as_str(),
            "A session expired",
            "The session was not completed in time. While a payment is in progress, no session expires.",
            "expired",
        ),
        of_session(
            SESSION_PROCESSING,
            "A payment was submitted",
            "The user has submitted a payment in the hosted flow; `tx_refid` is the reference of its transaction. Wait for its outcome: the \
             session completes, or the payment fails. A payment that the user cancels sends no further event of the session.",
            "open",
        ),
        of_session(
            SESSION_FAILED,
            "A payment failed",
            "A payment of the hosted flow has failed; `failure_code` is the reason, and `failure_message` explains it. No session ever has \
             this state: it stays open, and the user may try again. If its time has run out, `gate_session.expired` follows. \
             `failTestSession` does not send this event.",
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
            "createCustomer",
            "A customer was created",
            "The customer as in the response to its create.",
        ),
        of_customer(
            CustomerEvent::Updated,
            "updateCustomer",
            "A customer was updated",
            "The customer after the update. An update without a change sends no event.",
        ),
        of_customer(
            CustomerEvent::Deleted,
            "deleteCustomer",
            "A customer was deleted",
            "Sent once, even if the deletion is repeated. It contains no personal data.",
        ),
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
    let verified = name == SessionEvent::KycPackageAccepted.as_str();
    let refid = "test_tx_01KSFVT5B3X8D0E2F4G6H8J0KM";
    let changes = if name == SESSION_FAILED {
        let message = "The payment was declined.";
        json!({ "status": status, "tx_refid": refid, "failure_code": "provider_declined", "failure_message": message })
    } else if [SESSION_PROCESSING, SessionEvent::Completed.as_str()].contains(&name) {
        json!({ "status": status, "tx_refid": refid })
    } else {
        json!({ "status": status, "kyc_pre_verified": verified })
    };
    WebhookDoc {
        name,
        summary,
        description,
        schema: "SessionEvent",
        example: envelope(name, &recorded("retrieveSession", changes)),
    }
}

fn of_customer(
    event: CustomerEvent,
    operation: &str,
    summary: &'static str,
    description: &'static str,
) -> WebhookDoc {
    let name = event.as_str();
    WebhookDoc {
        name,
        summary,
        description,
        schema: if event == CustomerEvent::Deleted {
            "CustomerDeletedEvent"
        } else {
            "CustomerEvent"
        },
        example: envelope(name, &recorded(operation, Value::Null)),
    }
}
