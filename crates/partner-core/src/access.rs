//! The access of a caller: its key, its partner and the operator's entitlements.

use kernel::{Mode, Timestamp};

use crate::gate::GateProfile;
use crate::key::KeyRecord;
use crate::pools::{Kyc, Pool, PoolId, PoolsAccess, PoolsProfile};
use crate::{Partner, PartnerStatus, Tenant};

/// A known key with its partner and entitlements. Checked at the door and again inside every money write.
#[derive(Debug, Clone)]
pub struct Access {
    /// The key that was presented.
    pub key: KeyRecord,
    /// Its partner.
    pub partner: Partner,
    /// The partner and the process's mode.
    pub tenant: Tenant,
    /// The partner's access to pools.
    pub pools: PoolsProfile,
    /// The partner's access to the gate.
    pub gate: GateProfile,
}

/// Why a known key is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The key has been revoked.
    #[error("the key has been revoked")]
    KeyRevoked,
    /// The key has expired.
    #[error("the key has expired")]
    KeyExpired,
    /// The organization is suspended.
    #[error("the organization is suspended")]
    OrganizationSuspended,
    /// The pools product is off for this partner.
    #[error("the pools product is not enabled")]
    PoolsNotEnabled,
    /// The operator has suspended access to pools.
    #[error("access to pools is suspended")]
    PoolAccessSuspended,
    /// KYC is not approved.
    #[error("KYC is not approved")]
    KycNotApproved,
    /// The pool exists and is not allowed.
    #[error("the pool is not allowed")]
    PoolNotAllowed,
    /// The gate product is off for this partner.
    #[error("the gate product is not enabled")]
    GateNotEnabled,
    /// Signed quotes and rails are off for this partner.
    #[error("rails are not enabled")]
    RailsNotEnabled,
}

impl Access {
    /// Builds the access from stored parts, without the gate.
    #[must_use]
    pub fn new(mode: Mode, key: KeyRecord, partner: Partner, pools: PoolsProfile) -> Self {
        let tenant = Tenant {
            partner: partner.id.clone(),
            mode,
        };
        Self {
            key,
            partner,
            tenant,
            pools,
            gate: GateProfile::default(),
        }
    }

    /// The same access with a gate profile.
    #[must_use]
    pub fn with_gate(self, gate: GateProfile) -> Self {
        Self { gate, ..self }
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

    /// Checks the pools entitlement, in the order product, access, KYC.
    ///
    /// # Errors
    /// The first [`Denial`] that applies.
    pub fn pools_entitled(&self) -> Result<(), Denial> {
        if !self.pools.enabled {
            return Err(Denial::PoolsNotEnabled);
        }
        match (self.pools.access, self.pools.kyc) {
            (PoolsAccess::Suspended, _) => Err(Denial::PoolAccessSuspended),
            (PoolsAccess::Active, Kyc::Pending | Kyc::Revoked) => Err(Denial::KycNotApproved),
            (PoolsAccess::Active, Kyc::Approved) => Ok(()),
        }
    }

    /// Checks the gate entitlement.
    ///
    /// # Errors
    /// [`Denial::GateNotEnabled`].
    pub fn gate_entitled(&self) -> Result<(), Denial> {
        if self.gate.enabled {
            Ok(())
        } else {
            Err(Denial::GateNotEnabled)
        }
    }

    /// Checks whether the key may write to the gate. Writes repeat this check inside their transaction.
    ///
    /// # Errors
    /// The first [`Denial`] that applies.
    pub fn may_write_to_gate(&self, now: Timestamp) -> Result<(), Denial> {
        self.key_good(now)?;
        self.organization_active()?;
        self.gate_entitled()
    }

    /// Checks the entitlement to signed quotes and rails, after the gate entitlement.
    ///
    /// # Errors
    /// The first [`Denial`] that applies.
    pub fn rails_entitled(&self) -> Result<(), Denial> {
        self.gate_entitled()?;
        if self.gate.rails {
            Ok(())
        } else {
            Err(Denial::RailsNotEnabled)
        }
    }

    /// Checks whether the key may lock and redeem quotes. Writes repeat this check inside their transaction.
    ///
    /// # Errors
    /// The first [`Denial`] that applies.
    pub fn may_use_rails(&self, now: Timestamp) -> Result<(), Denial> {
        self.may_write_to_gate(now)?;
        self.rails_entitled()
    }

    /// Checks that the partner may use a pool.
    ///
    /// # Errors
    /// [`Denial::PoolNotAllowed`].
    pub fn pool_allowed(&self, pool: &PoolId) -> Result<(), Denial> {
        if self.pools.allowed.contains(pool) {
            Ok(())
        } else {
            Err(Denial::PoolNotAllowed)
        }
    }

    /// Checks all conditions of a money write, which repeats this check inside its transaction.
    ///
    /// # Errors
    /// The first [`Denial`] that applies.
    pub fn may_transact_in(&self, pool: &PoolId, now: Timestamp) -> Result<(), Denial> {
        self.key_good(now)?;
        self.organization_active()?;
        self.pools_entitled()?;
        self.pool_allowed(pool)
    }

    /// The pools that discovery shows, in the given order. It shows no pool without the product or while access is
    /// suspended. KYC does not matter.
    pub fn visible<'p>(&'p self, pools: &'p [Pool]) -> impl Iterator<Item = &'p Pool> {
        let shown = self.pools.enabled && self.pools.access == PoolsAccess::Active;
        pools
            .iter()
            .filter(move |pool| shown && self.pools.allowed.contains(&pool.id))
    }
}
