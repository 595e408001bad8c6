//! The events of the gate, with their final bytes.
//!
//! The body is an envelope around the resource as it is read at that moment; a client secret is
//! in none.

use kernel::{Entropy, Timestamp};
use partner_core::Tenant;
use partner_core::events::{NewEvent, OpenEvent, Service};
use partner_core::sealing::{SealBroken, Sealer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::session::{Flow, Session, SessionEvent, SessionState};

/// The type of the event that a partner sends itself.
pub const TEST_EVENT: &str = "webhook.test";

/// An event that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EventFault {
    /// Its body could not be written out.
    #[error("an event's body could not be written out")]
    Unwritable(#[from] serde_json::Error),
    /// Its body could not be sealed.
    #[error("an event's body could not be sealed")]
    Unsealed(#[from] SealBroken),
}

/// What events are made with.
#[derive(Clone, Copy)]
pub struct Ink<'i> {
    /// Seals bodies.
    pub sealer: &'i Sealer,
    /// For ids.
    pub entropy: &'i dyn Entropy,
}

impl std::fmt::Debug for Ink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ink")
    }
}

impl Ink<'_> {
    /// The event of a session, as it stands after the step that emits it.
    ///
    /// # Errors
    /// [`EventFault`]: none in practice.
    pub fn session(
        &self,
        who: &Tenant,
        session: &Session,
        event: SessionEvent,
        at: Timestamp,
    ) -> Result<NewEvent, EventFault> {
        let id = self.uuid();
        let data = SessionData::new(who, session)?;
        let body = body(&id, event.as_str(), at, data)?;
        let event = OpenEvent {
            id,
            service: Service::Gate,
            kind: event.as_str(),
            object_id: session.id.to_string(),
            body: &body,
        };
        Ok(event.seal(who, at, self.sealer, self.entropy)?)
    }

    /// The event that a partner sends itself, to see its endpoint work. It is about itself, so it
    /// waits for nothing.
    ///
    /// # Errors
    /// [`EventFault`]: none in practice.
    pub fn test(&self, who: &Tenant, at: Timestamp) -> Result<NewEvent, EventFault> {
        let id = self.uuid();
        let data = TestData {
            object: "webhook_test",
            partner_id: who.partner.as_str(),
            mode: who.mode.as_str(),
        };
        let body = body(&id, TEST_EVENT, at, data)?;
        let event = OpenEvent {
            object_id: id.clone(),
            id,
            service: Service::Gate,
            kind: TEST_EVENT,
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

fn body(
    id: &str,
    kind: &'static str,
    at: Timestamp,
    data: impl Serialize,
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Envelope {
        id,
        object: "event",
        kind,
        created_at: at.seconds(),
        data,
    })
}

/// Does a body tell of this event? What it is about has an id, or is the event itself.
#[must_use]
pub fn tells_of(body: &[u8], id: &str, kind: &str, object: &str) -> bool {
    let told: Result<About, _> = serde_json::from_slice(body);
    told.is_ok_and(|told| {
        let about = told.data.id.as_deref().unwrap_or(id);
        (told.id.as_str(), told.kind.as_str(), about) == (id, kind, object)
    })
}

/// What every body has.
#[derive(Deserialize)]
struct About {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: AboutWhat,
}

#[derive(Deserialize)]
struct AboutWhat {
    id: Option<String>,
}

#[derive(Serialize)]
struct Envelope<'e, D> {
    id: &'e str,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    created_at: i64,
    data: D,
}

#[derive(Serialize)]
struct TestData<'t> {
    object: &'static str,
    partner_id: &'t str,
    mode: &'static str,
}

#[derive(Serialize)]
struct SessionData<'s> {
    id: String,
    object: &'static str,
    partner_id: &'s str,
    mode: &'static str,
    amount: &'s str,
    currency: &'s str,
    return_url: &'s str,
    cancel_url: Option<&'s str>,
    status: &'static str,
    expires_at: String,
    created_at: String,
    flow: Option<&'static str>,
    target_token: Option<&'s str>,
    target_network: Option<&'s str>,
    wallet_address: Option<&'s str>,
    user_reference: Option<&'s str>,
    kyc_pre_verified: bool,
    metadata: &'s RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_refid: Option<String>,
}

impl<'s> SessionData<'s> {
    fn new(who: &'s Tenant, session: &'s Session) -> Result<Self, serde_json::Error> {
        let terms = &session.terms;
        let tx_refid = match session.state {
            SessionState::Completed { refid, .. } => Some(refid.to_string()),
            SessionState::Open | SessionState::Cancelled { .. } | SessionState::Expired { .. } => {
                None
            }
        };
        Ok(Self {
            id: session.id.to_string(),
            object: "gate_session",
            partner_id: who.partner.as_str(),
            mode: who.mode.as_str(),
            amount: terms.amount.as_str(),
            currency: terms.currency.code(),
            return_url: &terms.return_url,
            cancel_url: terms.cancel_url.as_deref(),
            status: session.state.status().as_str(),
            expires_at: session.expires_at.to_string(),
            created_at: session.created_at.to_string(),
            flow: terms.flow.map(Flow::as_str),
            target_token: terms.target_token.as_deref(),
            target_network: terms.target_network.as_deref(),
            wallet_address: terms.wallet_address.as_deref(),
            user_reference: terms.user_reference.as_deref(),
            kyc_pre_verified: session.kyc_pre_verified,
            metadata: serde_json::from_str(terms.metadata.as_str())?,
            tx_refid,
        })
    }
}
