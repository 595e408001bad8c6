//! A `[partners.pools]` table, and its application to a stored profile.

use partner_core::PartnerId;
use pools_core::deposits::former_funding_reference;
use pools_core::profile::PoolsProfile;

/// The values of a `[partners.pools]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenProfile {
    /// Its values, with defaults for absent keys.
    pub(crate) profile: PoolsProfile,
    /// Whether `access` is present.
    pub(crate) has_access: bool,
    /// Whether `balance_gate` is present.
    pub(crate) has_balance_gate: bool,
    /// Whether `velocity_cap_usdt` is present.
    pub(crate) has_velocity_cap: bool,
    /// Whether `funding_reference` is present.
    pub(crate) has_reference: bool,
}

impl WrittenProfile {
    /// The stored profile after the table, which replaces everything but the terms.
    ///
    /// A table that omits `access` keeps the stored value, so that it does not end a suspension.
    ///
    /// A table that disables pools may omit the balance gate and the velocity cap. Then the stored values stay, so
    /// that disabling and enabling pools loosens nothing. A default funding reference of an earlier version stays too,
    /// because depositors use it.
    #[must_use]
    pub fn over(&self, stored: PoolsProfile, partner: &PartnerId) -> PoolsProfile {
        let mut after = self.profile.clone();
        if !self.has_access {
            after.access = stored.access;
        }
        if !self.has_balance_gate {
            after.balance_gate = stored.balance_gate;
        }
        if !self.has_velocity_cap {
            after.velocity_cap = stored.velocity_cap;
        }
        if !self.has_reference && stored.funding_reference == former_funding_reference(partner) {
            after.funding_reference = stored.funding_reference;
        }
        after.terms = stored.terms;
        after
    }
}
