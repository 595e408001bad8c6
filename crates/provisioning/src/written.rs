//! A `[partners.pools]` table, and its application to a stored profile.

use pools_core::profile::PoolsProfile;

/// The values of a `[partners.pools]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenProfile {
    /// Its values, with defaults for absent keys.
    pub(crate) profile: PoolsProfile,
    /// Whether `balance_gate` is present.
    pub(crate) has_balance_gate: bool,
    /// Whether `velocity_cap_usdt` is present.
    pub(crate) has_velocity_cap: bool,
}

impl WrittenProfile {
    /// The stored profile after the table, which replaces everything but the terms.
    ///
    /// A table that disables pools may omit the balance gate and the velocity cap. Then the stored values stay, so
    /// that disabling and enabling pools loosens nothing.
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
