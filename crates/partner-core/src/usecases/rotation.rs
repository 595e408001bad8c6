//! Rotating the signing secret of a partner's endpoint.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Entropy, Mode, StoreError, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};

use super::master_keys;
use crate::events::{EndpointSecret, Service, generate_secret, secret_place};
use crate::ports::PartnerStore;
use crate::races::{LostRace, retry_lost_races};
use crate::sealing::Sealer;
use crate::{PartnerId, Tenant};

/// Maximum overlap of two secrets: 30 days.
const LONGEST_OVERLAP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Rotates webhook secrets.
#[derive(Clone)]
pub struct RotateSecret {
    pub store: Arc<dyn PartnerStore>,
    /// Seals the new secret.
    pub sealer: Arc<Sealer>,
    /// Randomness for the new secret.
    pub entropy: Arc<dyn Entropy>,
    pub mode: Mode,
}

/// What happens to the present secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// It stops signing.
    EndsAtOnce,
    /// It signs in addition to the new secret for this long.
    Overlaps(Duration),
}

/// The result of a rotation.
#[derive(Debug)]
pub struct Rotated {
    /// The new secret, shown only here.
    pub secret: SecretString,
    /// When the previous secret stops signing; `None` if it has stopped.
    pub overlap_until: Option<Timestamp>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The overlap is zero or longer than the maximum.
    #[error(
        "expected an overlap of more than nothing and at most 720h; without one the new secret signs alone at once"
    )]
    Overlap,
    /// The mode has no partner with this id.
    #[error("no partner `{0}` in mode {1}")]
    UnknownPartner(PartnerId, Mode),
    /// The partner has no endpoint.
    #[error(
        "partner `{0}` has no {service} webhook in mode {1}: nothing is signed for it; add [partners.{service}.webhook] with a url to its file, and apply the file",
        service = .2.as_str()
    )]
    NoEndpoint(PartnerId, Mode, Service),
    /// Two secrets sign already, and the partner may depend on either.
    #[error(
        "two secrets sign until {0}, and there can be no third: wait until then, or rotate without an overlap, which ends both at once"
    )]
    Overlapping(Timestamp),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for RotateError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

impl RotateSecret {
    /// Creates a new secret. Its text is only in the result. Running services sign with it from their next attempt
    /// on.
    ///
    /// # Errors
    /// [`RotateError`]. Then nothing is changed.
    pub async fn rotate(
        &self,
        partner: &PartnerId,
        service: Service,
        present: Present,
    ) -> Result<Rotated, RotateError> {
        if let Present::Overlaps(span) = present
            && (span.is_zero() || span > LONGEST_OVERLAP)
        {
            return Err(RotateError::Overlap);
        }
        retry_lost_races(|| self.rotate_once(partner, service, present)).await
    }

    async fn rotate_once(
        &self,
        partner: &PartnerId,
        service: Service,
        present: Present,
    ) -> Result<Rotated, RotateError> {
        let mode = self.mode;
        let who = Tenant {
            partner: partner.clone(),
            mode,
        };
        let mut tx = self.store.partner_begin("webhook_rotate").await?;
        master_keys::follow(&mut *tx, &self.sealer).await?;
        if tx.partner_lock(&who).await?.is_none() {
            return Err(RotateError::UnknownPartner(who.partner, mode));
        }
        let Some(mut endpoint) = tx.endpoint_get(&who, service).await? else {
            return Err(RotateError::NoEndpoint(who.partner, mode, service));
        };
        let now = tx.now().await?;
        let (kept, overlap_until) = kept(endpoint.secrets, present, now)?;
        let text = generate_secret(self.entropy.as_ref());
        let (place, plain) = (secret_place(endpoint.id), text.expose_secret().as_bytes());
        let sealed = self.sealer.seal(&place, plain, self.entropy.as_ref());
        let new = EndpointSecret {
            sealed: sealed.map_err(StoreError::from)?,
            created_at: now,
            expires_at: None,
        };
        endpoint.secrets = std::iter::once(new).chain(kept).collect();
        tx.endpoint_put(&who, &endpoint).await?;
        tx.config_version_raise().await?;
        tx.commit().await?;
        Ok(Rotated {
            secret: text,
            overlap_until,
        })
    }
}

/// The secret that continues to sign, and until when. Expired secrets do not count.
fn kept(
    secrets: Vec<EndpointSecret>,
    present: Present,
    now: Timestamp,
) -> Result<(Option<EndpointSecret>, Option<Timestamp>), RotateError> {
    let Present::Overlaps(span) = present else {
        return Ok((None, None));
    };
    let active = |secret: &EndpointSecret| secret.expires_at.is_none_or(|until| until > now);
    let mut active = secrets.into_iter().filter(active);
    let newest = active.next();
    if let Some(until) = active.filter_map(|secret| secret.expires_at).max() {
        return Err(RotateError::Overlapping(until));
    }
    let until = now.plus(span);
    let kept = newest.map(|secret| EndpointSecret {
        expires_at: Some(until),
        ..secret
    });
    let until = kept.as_ref().map(|_| until);
    Ok((kept, until))
}
