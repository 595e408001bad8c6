//! Events and the endpoints they are delivered to.

use kernel::{Entropy, Id, IdKind, Mode, Timestamp};
use secrecy::SecretString;

use crate::Tenant;
use crate::sealing::{SealRefused, Sealed, Sealer};
use crate::webhooks::signing::SigningSecret;

/// Names a webhook endpoint.
#[derive(Debug)]
pub enum EndpointIdKind {}

impl IdKind for EndpointIdKind {
    const PREFIX: &'static str = "whe";
}

/// `whe_<mode>_<ULID>`.
pub type EndpointId = Id<EndpointIdKind>;

/// Names one delivery of an event to an endpoint.
#[derive(Debug)]
pub enum DeliveryIdKind {}

impl IdKind for DeliveryIdKind {
    const PREFIX: &'static str = "wd";
}

/// `wd_<mode>_<ULID>`.
pub type DeliveryId = Id<DeliveryIdKind>;

/// The service an event comes from. A partner has one endpoint per mode and service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// The liquidity pools API.
    Pools,
    /// The hosted ramp session API.
    Gate,
}

impl Service {
    /// The word used in the operator's tools and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pools => "pools",
            Self::Gate => "gate",
        }
    }

    /// Reads the word written by [`Service::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pools" => Some(Self::Pools),
            "gate" => Some(Self::Gate),
            _ => None,
        }
    }
}

/// An event to be written in the transaction of the state change it reports.
///
/// The body's bytes are final: every delivery attempt sends exactly these.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Whose event it is.
    pub tenant: Tenant,
    /// The event's id; it never changes, also on replay.
    pub id: String,
    /// Where it comes from.
    pub service: Service,
    /// Such as `pool.transaction.settled`.
    pub kind: String,
    /// The object it is about; deliveries keep their order per object.
    pub object_id: String,
    /// The body, sealed for [`event_place`].
    pub body: Sealed,
    /// The instant of the state change.
    pub created_at: Timestamp,
    /// The id of its delivery, used if the partner has an active endpoint at that moment.
    pub delivery: DeliveryId,
}

/// An event before it is sealed.
#[derive(Debug)]
pub struct OpenEvent<'e> {
    /// Its id.
    pub id: String,
    /// Where it comes from.
    pub service: Service,
    /// Such as `pool.transaction.settled`.
    pub kind: &'static str,
    /// The object it is about.
    pub object_id: String,
    /// The body's final bytes.
    pub body: &'e [u8],
}

impl OpenEvent<'_> {
    /// Seals it, and makes the id of its delivery.
    ///
    /// # Errors
    /// [`SealRefused`].
    pub fn seal(
        self,
        who: &Tenant,
        at: Timestamp,
        sealer: &Sealer,
        entropy: &dyn Entropy,
    ) -> Result<NewEvent, SealRefused> {
        let body = seal_body(sealer, who, &self.id, self.body, entropy)?;
        Ok(NewEvent {
            tenant: who.clone(),
            id: self.id,
            service: self.service,
            kind: self.kind.to_owned(),
            object_id: self.object_id,
            body,
            created_at: at,
            delivery: new_delivery(who.mode, at, entropy),
        })
    }
}

/// The place an event's body is sealed for.
#[must_use]
pub fn event_place(tenant: &Tenant, id: &str) -> String {
    format!("events/{}/{}/{id}", tenant.mode, tenant.partner)
}

/// An endpoint that the operator has set for a partner, with one or two secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Names the endpoint.
    pub id: EndpointId,
    /// Which service's events it receives.
    pub service: Service,
    /// Where they are sent.
    pub url: String,
    /// The signing secrets, the newest first.
    pub secrets: Vec<EndpointSecret>,
}

/// One signing secret of an endpoint, `whsec_` and base64 of 32 bytes, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSecret {
    /// The secret's text, sealed for [`secret_place`].
    pub sealed: Sealed,
    /// When it was set.
    pub created_at: Timestamp,
    /// Until when it signs beside a newer one; `None`: it does not end.
    pub expires_at: Option<Timestamp>,
}

/// The place an endpoint's secrets are sealed for.
#[must_use]
pub fn secret_place(endpoint: EndpointId) -> String {
    format!("webhook_endpoints/{endpoint}/secret")
}

/// A new signing secret: `whsec_` and base64 of 32 random bytes.
#[must_use]
pub fn generate_secret(entropy: &dyn Entropy) -> SecretString {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    entropy.fill(&mut bytes);
    SecretString::from(format!(
        "whsec_{}",
        base64::engine::general_purpose::STANDARD.encode(bytes)
    ))
}

/// Is this text `whsec_` and base64 of 32 bytes?
#[must_use]
pub fn is_secret(text: &str) -> bool {
    SigningSecret::parse(text).is_some()
}

/// Makes the delivery id of a new event.
#[must_use]
pub fn new_delivery(mode: Mode, at: Timestamp, entropy: &dyn Entropy) -> DeliveryId {
    DeliveryId::new(mode, at, entropy)
}

/// Seals an event's final body.
///
/// # Errors
/// [`SealRefused`].
pub fn seal_body(
    sealer: &Sealer,
    tenant: &Tenant,
    id: &str,
    body: &[u8],
    entropy: &dyn Entropy,
) -> Result<Sealed, SealRefused> {
    sealer.seal(&event_place(tenant, id), body, entropy)
}
