//! Events and the endpoints they are delivered to.

use kernel::{Entropy, Id, Mode, Timestamp};
use secrecy::SecretString;

use crate::Tenant;
use crate::sealing::{SealRefused, Sealed, Sealer};
use crate::webhooks::signing::SigningSecret;

kernel::id_kind!(EndpointIdKind, "whe");

/// `whe_<mode>_<ULID>`.
pub type EndpointId = Id<EndpointIdKind>;

kernel::id_kind!(DeliveryIdKind, "wd");

/// `wd_<mode>_<ULID>`.
pub type DeliveryId = Id<DeliveryIdKind>;

kernel::closed_list! {
    /// The service that emits an event. A partner has one endpoint per mode and service.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Service {
        /// The liquidity pools API.
        Pools = "pools",
        /// The hosted ramp session API.
        Gate = "gate",
    }
}

/// An event, written in the transaction of the change that it reports.
///
/// The bytes of the body are final: every delivery attempt sends exactly these.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The partner and mode of the event.
    pub tenant: Tenant,
    /// The event's id, unchanged in every delivery and replay.
    pub id: String,
    /// The service that emits it.
    pub service: Service,
    /// The type, such as `pool.transaction.settled`.
    pub kind: String,
    /// The object of the event. Deliveries keep their order per object.
    pub object_id: String,
    /// The body, sealed for [`event_place`].
    pub body: Sealed,
    /// The instant of the reported change.
    pub created_at: Timestamp,
    /// The id of its delivery, used if the partner has an active endpoint.
    pub delivery: DeliveryId,
}

/// An event before it is sealed.
#[derive(Debug)]
pub struct OpenEvent<'e> {
    pub id: String,
    /// The service that emits it.
    pub service: Service,
    /// The type, such as `pool.transaction.settled`.
    pub kind: &'static str,
    /// The object of the event.
    pub object_id: String,
    /// The final bytes of the body.
    pub body: &'e [u8],
}

impl OpenEvent<'_> {
    /// Seals the event and makes the id of its delivery.
    ///
    /// # Errors
    /// [`SealRefused`] if the body cannot be sealed.
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
    pub id: EndpointId,
    /// The service whose events it receives.
    pub service: Service,
    /// The URL that receives the events.
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
    /// When it stops signing, if a newer secret replaces it; `None` means that it has no end.
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

/// Whether a text is `whsec_` and base64 of 32 bytes.
#[must_use]
pub fn is_secret(text: &str) -> bool {
    SigningSecret::parse(text).is_some()
}

/// Makes the delivery id of a new event.
#[must_use]
pub fn new_delivery(mode: Mode, at: Timestamp, entropy: &dyn Entropy) -> DeliveryId {
    DeliveryId::new(mode, at, entropy)
}

/// Seals the final body of an event.
///
/// # Errors
/// [`SealRefused`] if the body cannot be sealed.
pub fn seal_body(
    sealer: &Sealer,
    tenant: &Tenant,
    id: &str,
    body: &[u8],
    entropy: &dyn Entropy,
) -> Result<Sealed, SealRefused> {
    sealer.seal(&event_place(tenant, id), body, entropy)
}
