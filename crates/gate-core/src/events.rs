//! The events of the gate.
//!
//! A body is an envelope around the resource as `GET` returns it at that moment. No body has a client secret.

use kernel::{Entropy, Timestamp};
use partner_core::Tenant;
use partner_core::events::{NewEvent, OpenEvent, Service};
use partner_core::sealing::{SealRefused, Sealer};
use partner_core::stored_response::RenderError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::customer::{Customer, Deleted};
use crate::rail::RailRecord;
use crate::session::Session;
use crate::signed_quote::SignedQuote;

/// The type of the test event.
pub const TEST_EVENT: &str = "webhook.test";

/// The type of the event of a redeemed signed quote.
pub const QUOTE_CONSUMED: &str = "quote.consumed";

/// The type of the event of a payment that a user has made in the widget.
pub const SESSION_PROCESSING: &str = "gate_session.processing";

/// The type of the event of a payment in the widget that has failed. The session stays as it is.
pub const SESSION_FAILED: &str = "gate_session.failed";
/// The type of the event of a session whose user must be verified.
pub const KYC_REQUIRED: &str = "kyc.required";

/// What an event is about.
#[derive(Debug, Clone, Copy)]
pub enum Resource<'r> {
    Session(&'r Session),
    /// A session, with the payment that its user has made in the widget.
    Payment(&'r Session, &'r RailRecord),
    Customer(&'r Customer),
    /// A customer that was deleted. Its event has what the deletion returns.
    DeletedCustomer(Deleted),
    /// A signed quote, as it reads at the instant of the event.
    SignedQuote(&'r SignedQuote),
    /// A pay-in or pay-out.
    Rail(&'r RailRecord),
    /// The partner's own endpoint, on its request.
    Endpoint,
}

impl Resource<'_> {
    /// The id of the resource; `None` for an endpoint, whose event is about itself, so that it waits for no other event.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        match self {
            Self::Session(session) | Self::Payment(session, _) => Some(session.id.to_string()),
            Self::Customer(customer) => Some(customer.id.to_string()),
            Self::DeletedCustomer(deleted) => Some(deleted.id.to_string()),
            Self::SignedQuote(quote) => Some(quote.id.to_string()),
            Self::Rail(record) => Some(record.id.to_string()),
            Self::Endpoint => None,
        }
    }
}

/// Renders a resource of a partner at an instant. The HTTP crate does it, because a resource reads the same in an event and in a
/// response, and its wire shape is written once.
pub type RenderResource =
    fn(&Tenant, Resource<'_>, Timestamp) -> Result<Box<RawValue>, RenderError>;

/// An event that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// Its resource could not be rendered.
    #[error("the resource of an event could not be rendered")]
    Unrendered(#[from] RenderError),
    /// Its body could not be written.
    #[error("the body of an event could not be written")]
    Unwritable(#[from] serde_json::Error),
    /// Its body could not be sealed.
    #[error("the body of an event could not be sealed")]
    Unsealed(#[from] SealRefused),
}

/// Makes events.
#[derive(Clone, Copy)]
pub struct EventFactory<'i> {
    /// Seals the bodies.
    pub sealer: &'i Sealer,
    /// Makes ids.
    pub entropy: &'i dyn Entropy,
    /// Renders the resource.
    pub render: RenderResource,
}

impl EventFactory<'_> {
    /// The event of a resource, as it is after the step that emits the event.
    ///
    /// # Errors
    /// [`EventError`]: none in practice.
    pub fn event(
        &self,
        who: &Tenant,
        kind: &'static str,
        resource: Resource<'_>,
        at: Timestamp,
    ) -> Result<NewEvent, EventError> {
        let id = self.uuid();
        let data = (self.render)(who, resource, at)?;
        let body = serde_json::to_vec(&Envelope {
            id: &id,
            object: "event",
            kind,
            created_at: at.to_string(),
            data,
        })?;
        let event = OpenEvent {
            object_id: resource.id().unwrap_or_else(|| id.clone()),
            id,
            service: Service::Gate,
            kind,
            body: &body,
        };
        Ok(event.seal(who, at, self.sealer, self.entropy)?)
    }

    fn uuid(&self) -> String {
        let mut bytes = [0; 16];
        self.entropy.fill(&mut bytes);
        let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
        Uuid::to_string(&id)
    }
}

#[derive(Serialize)]
struct Envelope<'e> {
    id: &'e str,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    created_at: String,
    data: Box<RawValue>,
}

/// Is this the body of the event? Its resource has an id, or the event is about itself.
#[must_use]
pub fn tells_of(body: &[u8], id: &str, kind: &str, object: &str) -> bool {
    serde_json::from_slice(body).is_ok_and(|body: Identity| {
        let about = body.data.id.as_deref().unwrap_or(id);
        (body.id.as_str(), body.kind.as_str(), about) == (id, kind, object)
    })
}

/// The fields that every body has.
#[derive(Deserialize)]
struct Identity {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: ResourceIdentity,
}

#[derive(Deserialize)]
struct ResourceIdentity {
    id: Option<String>,
}
