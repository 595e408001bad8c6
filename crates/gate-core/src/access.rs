//! Access to the gate, and the refusals of a known key.

use kernel::Timestamp;
use partner_core::{Access, Denial};

use crate::profile::GateProfile;

/// A known key with its partner and the partner's profile of the gate.
pub type GateAccess = Access<GateProfile>;

/// The reason to refuse a known key at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GateDenial {
    /// The key or its organization is refused.
    #[error(transparent)]
    Access(#[from] Denial),
    /// The product is off for this partner.
    #[error("the gate product is not enabled")]
    NotEnabled,
    /// Signed quotes and rails are off for this partner.
    #[error("rails are not enabled")]
    RailsNotEnabled,
}

impl GateProfile {
    /// Checks that the partner is entitled to the gate.
    ///
    /// # Errors
    /// [`GateDenial::NotEnabled`].
    pub const fn entitled(&self) -> Result<(), GateDenial> {
        if self.enabled {
            Ok(())
        } else {
            Err(GateDenial::NotEnabled)
        }
    }

    /// Checks that the partner is entitled to the gate, then to signed quotes and rails.
    ///
    /// # Errors
    /// The first [`GateDenial`] that applies.
    pub fn rails_entitled(&self) -> Result<(), GateDenial> {
        self.entitled()?;
        if self.rails {
            Ok(())
        } else {
            Err(GateDenial::RailsNotEnabled)
        }
    }
}

/// Checks that the key may write to the gate. A write calls this inside its transaction.
///
/// # Errors
/// The first [`GateDenial`] that applies.
pub fn may_write(access: &GateAccess, now: Timestamp) -> Result<(), GateDenial> {
    access.key_good(now)?;
    access.organization_active()?;
    access.profile.entitled()
}

/// Checks that the key may lock and redeem quotes. These writes call this inside their transactions.
///
/// # Errors
/// The first [`GateDenial`] that applies.
pub fn may_use_rails(access: &GateAccess, now: Timestamp) -> Result<(), GateDenial> {
    may_write(access, now)?;
    access.profile.rails_entitled()
}
