//! The event factory of the gate. It renders the final bytes of every event.
//!
//! The body is an envelope around the resource as `GET` returns it at that instant. No event contains a client
//! secret.

use std::collections::BTreeMap;

use kernel::{Entropy, Timestamp};
use partner_core::Tenant;
use partner_core::events::{NewEvent, OpenEvent, Service};
use partner_core::sealing::{SealRefused, Sealer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::catalogue::CountryCode;
use crate::customer::{Customer, CustomerEvent};
use crate::pricing::Fees;
use crate::rail::RailRecord;
use crate::session::{Flow, Session, SessionEvent, SessionState};
use crate::signed_quote::SignedQuote;

/// The type of the test event.
pub const TEST_EVENT: &str = "webhook.test";

/// The type of the event of a redeemed signed quote.
pub const QUOTE_CONSUMED: &str = "quote.consumed";

/// Why an event could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The body could not be serialized.
    #[error("an event's body could not be written out")]
    Unwritable(#[from] serde_json::Error),
    /// The body could not be sealed.
    #[error("an event's body could not be sealed")]
    Unsealed(#[from] SealRefused),
}

/// Makes events.
#[derive(Clone, Copy)]
pub struct EventFactory<'i> {
    /// Seals the bodies.
    pub sealer: &'i Sealer,
    /// Randomness for event ids.
    pub entropy: &'i dyn Entropy,
}

impl std::fmt::Debug for EventFactory<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ink")
    }
}

impl EventFactory<'_> {
    /// The event of a session, whose `session` is the state after the step.
    ///
    /// # Errors
    /// [`EventError`] if the body cannot be serialized or sealed.
    pub fn session(
        &self,
        who: &Tenant,
        session: &Session,
        event: SessionEvent,
        at: Timestamp,
    ) -> Result<NewEvent, EventError> {
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

    /// The event of a customer, with its state after the write. The event of a deletion has only the fields of the
    /// deletion's response.
    ///
    /// # Errors
    /// [`EventError`] if the body cannot be serialized or sealed.
    pub fn customer(
        &self,
        who: &Tenant,
        customer: &Customer,
        event: CustomerEvent,
        at: Timestamp,
    ) -> Result<NewEvent, EventError> {
        let id = self.uuid();
        let body = match event {
            CustomerEvent::Created | CustomerEvent::Updated => {
                body(&id, event.as_str(), at, CustomerData::new(who, customer)?)?
            }
            CustomerEvent::Deleted => body(&id, event.as_str(), at, DeletedData::new(customer))?,
        };
        let event = OpenEvent {
            id,
            service: Service::Gate,
            kind: event.as_str(),
            object_id: customer.id.to_string(),
            body: &body,
        };
        Ok(event.seal(who, at, self.sealer, self.entropy)?)
    }

    /// The event of a redeemed signed quote.
    ///
    /// # Errors
    /// [`EventError`] if the body cannot be serialized or sealed.
    pub fn quote_consumed(
        &self,
        who: &Tenant,
        quote: &SignedQuote,
        at: Timestamp,
    ) -> Result<NewEvent, EventError> {
        let id = self.uuid();
        let body = body(&id, QUOTE_CONSUMED, at, SignedQuoteData::new(quote, at))?;
        let event = OpenEvent {
            id,
            service: Service::Gate,
            kind: QUOTE_CONSUMED,
            object_id: quote.id.to_string(),
            body: &body,
        };
        Ok(event.seal(who, at, self.sealer, self.entropy)?)
    }

    /// The event of a rail record's current state.
    ///
    /// # Errors
    /// [`EventError`] if the body cannot be serialized or sealed.
    pub fn rail(
        &self,
        who: &Tenant,
        record: &RailRecord,
        at: Timestamp,
    ) -> Result<NewEvent, EventError> {
        let id = self.uuid();
        let body = body(&id, record.event(), at, RailData::new(record))?;
        let event = OpenEvent {
            id,
            service: Service::Gate,
            kind: record.event(),
            object_id: record.id.to_string(),
            body: &body,
        };
        Ok(event.seal(who, at, self.sealer, self.entropy)?)
    }

    /// The test event that a partner requests for its own endpoint.
    ///
    /// Its object is the event itself, so no other delivery precedes it.
    ///
    /// # Errors
    /// [`EventError`] if the body cannot be serialized or sealed.
    pub fn test(&self, who: &Tenant, at: Timestamp) -> Result<NewEvent, EventError> {
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

/// Whether a stored body belongs to this event: its id, type and object match. A body without an object id is about
/// the event itself.
#[must_use]
pub fn tells_of(body: &[u8], id: &str, kind: &str, object: &str) -> bool {
    let parsed: Result<About, _> = serde_json::from_slice(body);
    parsed.is_ok_and(|body| {
        let about = body.data.id.as_deref().unwrap_or(id);
        (body.id.as_str(), body.kind.as_str(), about) == (id, kind, object)
    })
}

/// The part that all bodies share.
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

#[derive(Serialize)]
struct FeesData {
    total: String,
    service: String,
    network: String,
    currency: String,
}

impl FeesData {
    fn new(fees: &Fees) -> Self {
        Self {
            total: fees.total.to_string(),
            service: fees.service.to_string(),
            network: fees.network.to_string(),
            currency: fees.total.asset().code().to_owned(),
        }
    }
}

#[derive(Serialize)]
struct SignedQuoteData<'q> {
    id: String,
    object: &'static str,
    status: &'static str,
    side: &'static str,
    currency: String,
    asset: String,
    network: &'q str,
    payment_method: &'q str,
    fiat_amount: String,
    crypto_amount: String,
    exchange_rate: String,
    fees: FeesData,
    expires_at: String,
    consumed_at: Option<String>,
    created_at: String,
    signature: String,
}

impl<'q> SignedQuoteData<'q> {
    fn new(quote: &'q SignedQuote, at: Timestamp) -> Self {
        let (terms, priced) = (&quote.terms, &quote.terms.priced);
        Self {
            id: quote.id.to_string(),
            object: "signed_quote",
            status: quote.status(at).as_str(),
            side: terms.side.as_str(),
            currency: terms.currency().code().to_owned(),
            asset: terms.asset().code().to_owned(),
            network: &terms.network,
            payment_method: &terms.payment_method,
            fiat_amount: priced.fiat.to_string(),
            crypto_amount: priced.crypto.to_string(),
            exchange_rate: priced.rate.to_string(),
            fees: FeesData::new(&priced.fees),
            expires_at: quote.expires_at.to_string(),
            consumed_at: quote.consumed_at.map(|at| at.to_string()),
            created_at: quote.created_at.to_string(),
            signature: quote.signature.to_string(),
        }
    }
}

#[derive(Serialize)]
struct RailData<'r> {
    id: String,
    object: &'static str,
    kind: &'static str,
    status: &'static str,
    quote_id: String,
    session_id: String,
    currency: String,
    asset: String,
    fiat_amount: String,
    crypto_amount: String,
    exchange_rate: String,
    fees: FeesData,
    payment_method: &'r str,
    instructions: Option<&'r BTreeMap<String, String>>,
    failure_code: Option<&'r str>,
    created_at: String,
    updated_at: String,
    settled_at: Option<String>,
}

impl<'r> RailData<'r> {
    fn new(record: &'r RailRecord) -> Self {
        let (terms, priced) = (&record.terms, &record.terms.priced);
        let instructions = record.instructions.as_ref();
        Self {
            id: record.id.to_string(),
            object: record.id.kind().object(),
            kind: record.id.kind().as_str(),
            status: record.state.status().as_str(),
            quote_id: record.quote.to_string(),
            session_id: record.session.to_string(),
            currency: terms.currency().code().to_owned(),
            asset: terms.asset().code().to_owned(),
            fiat_amount: priced.fiat.to_string(),
            crypto_amount: priced.crypto.to_string(),
            exchange_rate: priced.rate.to_string(),
            fees: FeesData::new(&priced.fees),
            payment_method: &terms.payment_method,
            instructions: instructions.map(|instructions| &instructions.0),
            failure_code: record.state.failure_code(),
            created_at: record.created_at.to_string(),
            updated_at: record.updated_at().to_string(),
            settled_at: record.state.settled_at().map(|at| at.to_string()),
        }
    }
}

#[derive(Serialize)]
struct CustomerData<'c> {
    id: String,
    object: &'static str,
    partner_id: &'c str,
    mode: &'static str,
    external_id: Option<&'c str>,
    email: &'c str,
    phone: Option<&'c str>,
    first_name: Option<&'c str>,
    last_name: Option<&'c str>,
    country_code: Option<&'c str>,
    metadata: &'c RawValue,
    kyc_status: &'static str,
    created_at: String,
    updated_at: String,
}

impl<'c> CustomerData<'c> {
    fn new(who: &'c Tenant, customer: &'c Customer) -> Result<Self, serde_json::Error> {
        let person = &customer.person;
        Ok(Self {
            id: customer.id.to_string(),
            object: "customer",
            partner_id: who.partner.as_str(),
            mode: who.mode.as_str(),
            external_id: person.external_id.as_deref(),
            email: &person.email,
            phone: person.phone.as_deref(),
            first_name: person.first_name.as_deref(),
            last_name: person.last_name.as_deref(),
            country_code: person.country.as_ref().map(CountryCode::as_str),
            metadata: serde_json::from_str(person.metadata.as_str())?,
            kyc_status: customer.kyc.as_str(),
            created_at: customer.created_at.to_string(),
            updated_at: customer.updated_at.to_string(),
        })
    }
}

#[derive(Serialize)]
struct DeletedData {
    id: String,
    object: &'static str,
    deleted: bool,
    deleted_at: Option<String>,
}

impl DeletedData {
    fn new(customer: &Customer) -> Self {
        Self {
            id: customer.id.to_string(),
            object: "customer",
            deleted: customer.deleted_at.is_some(),
            deleted_at: customer.deleted_at.map(|at| at.to_string()),
        }
    }
}
