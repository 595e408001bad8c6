//! A key with its partner, and the refusals of a key or an organization.

use std::fmt;

use kernel::{Mode, Timestamp};

use crate::key::KeyRecord;
use crate::{Partner, PartnerStatus, Tenant};

/// A product's profile of a partner: the use of the product that the operator allows the partner.
///
/// Each product implements this for its own type.
pub trait Profile: Clone + fmt::Debug + Send + Sync + 'static {
    /// What the directory lists for all partners of a mode together, such as the pools.
    type Listing: ?Sized + Send + Sync + 'static;
    /// The name of the listing in metrics.
    const LISTING: &'static str;
}

/// A known key with its partner and the partner's profile of one product.
///
/// One look-up reads all of it. The route class checks it, and every money write checks it again.
#[derive(Debug, Clone)]
pub struct Access<P> {
    /// The key that was presented.
    pub key: KeyRecord,
    pub partner: Partner,
    /// The partner and the process's mode.
    pub tenant: Tenant,
    /// The partner's profile of the product.
    pub profile: P,
}

/// Why a known key is refused, whatever the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The key has been revoked.
    #[error("the key has been revoked")]
    KeyRevoked,
    /// The key has expired.
    #[error("the key has expired")]
    KeyExpired,
    #[error("the organization is suspended")]
    OrganizationSuspended,
}

impl<P> Access<P> {
    /// Builds the access from stored parts.
    #[must_use]
    pub fn new(mode: Mode, key: KeyRecord, partner: Partner, profile: P) -> Self {
        let tenant = Tenant {
            partner: partner.id.clone(),
            mode,
        };
        Self {
            key,
            partner,
            tenant,
            profile,
        }
    }

    /// Checks that the key is neither revoked nor expired.
    ///
    /// # Errors
    /// [`Denial::KeyRevoked`], [`Denial::KeyExpired`].
    pub fn key_good(&self, now: Timestamp) -> Result<(), Denial> {
        if self.key.revoked_at.is_some() {
            return Err(Denial::KeyRevoked);
        }
        match self.key.expires_at {
            Some(expires_at) if now >= expires_at => Err(Denial::KeyExpired),
            _ => Ok(()),
        }
    }

    /// Checks that the organization is active.
    ///
    /// # Errors
    /// [`Denial::OrganizationSuspended`].
    pub fn organization_active(&self) -> Result<(), Denial> {
        match self.partner.status {
            PartnerStatus::Active => Ok(()),
            PartnerStatus::Suspended => Err(Denial::OrganizationSuspended),
        }
    }
}
