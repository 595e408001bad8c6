//! Access to pools, and the refusals of a known key.

use kernel::Timestamp;
use partner_core::{Access, Denial};

use crate::profile::{Kyc, Pool, PoolId, PoolsAccess, PoolsProfile};

/// The reason to refuse a known key at pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolsDenial {
    /// The key or its organization is refused.
    #[error(transparent)]
    Access(#[from] Denial),
    /// The product is off for this partner.
    #[error("the pools product is not enabled")]
    NotEnabled,
    /// The operator has suspended access to pools.
    #[error("access to pools is suspended")]
    AccessSuspended,
    #[error("KYC is not approved")]
    KycNotApproved,
    /// The pool exists and is not allowed.
    #[error("the pool is not allowed")]
    PoolNotAllowed,
}

impl PoolsProfile {
    /// Checks product, access and KYC, in this order.
    ///
    /// # Errors
    /// The first [`PoolsDenial`] that applies.
    pub const fn entitled(&self) -> Result<(), PoolsDenial> {
        if !self.enabled {
            return Err(PoolsDenial::NotEnabled);
        }
        match (self.access, self.kyc) {
            (PoolsAccess::Suspended, _) => Err(PoolsDenial::AccessSuspended),
            (PoolsAccess::Active, Kyc::Pending | Kyc::Revoked) => Err(PoolsDenial::KycNotApproved),
            (PoolsAccess::Active, Kyc::Approved) => Ok(()),
        }
    }

    /// Checks that the partner may use a pool.
    ///
    /// # Errors
    /// [`PoolsDenial::PoolNotAllowed`].
    pub fn pool_allowed(&self, pool: &PoolId) -> Result<(), PoolsDenial> {
        if self.allowed.contains(pool) {
            Ok(())
        } else {
            Err(PoolsDenial::PoolNotAllowed)
        }
    }

    /// The pools that discovery shows, in the given order. It shows no pool without the product or while access is suspended.
    pub fn visible<'p>(&'p self, pools: &'p [Pool]) -> impl Iterator<Item = &'p Pool> {
        let shown = self.enabled && self.access == PoolsAccess::Active;
        pools
            .iter()
            .filter(move |pool| shown && self.allowed.contains(&pool.id))
    }
}

/// Checks the caller of a money write. The write calls this inside its transaction.
///
/// # Errors
/// The first [`PoolsDenial`] that applies.
pub fn may_transact_in(
    access: &Access<PoolsProfile>,
    pool: &PoolId,
    now: Timestamp,
) -> Result<(), PoolsDenial> {
    access.key_good(now)?;
    access.organization_active()?;
    access.profile.entitled()?;
    access.profile.pool_allowed(pool)
}
