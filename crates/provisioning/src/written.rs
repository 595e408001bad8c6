//! A `[partners.pools]` table over a stored profile.

use pools_core::profile::PoolsProfile;

/// A `[partners.pools]` table as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenProfile {
    /// Its values, with defaults for the keys that are left out.
    pub(crate) profile: PoolsProfile,
    /// Whether `balance_gate` is written.
    pub(crate) has_balance_gate: bool,
    /// Whether `velocity_cap_usdt` is written.
    pub(crate) has_velocity_cap: bool,
}

impl WrittenProfile {
    /// What the table makes of the stored profile. The table replaces everything but the terms.
    ///
    /// A table that switches pools off may leave out the balance gate and the velocity cap. The
    /// stored values of both stay then, so that switching pools off and on again loosens nothing.
    #[must_use]
    pub fn over(&self, stored: PoolsProfile) -> PoolsProfile {
        let mut after = self.profile.clone();
        if !self.has_balance_gate {
            after.balance_gate = stored.balance_gate;
        }
        if !self.has_velocity_cap {
            after.velocity_cap = stored.velocity_cap;
        }
        after.terms = stored.terms;
        after
    }
}
