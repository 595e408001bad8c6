//! Cached entitlements of the gate are never older than five seconds.

use gate_core::profile::GateProfile;
use partner_core::ports::LONGEST_CACHED;

use crate::contract::caches::SEEN;
use crate::contract::fixture::{Fixture, GateFixture};
use crate::contract::world::{Member, World};

impl<F: Fixture> World<F> {
    async fn gate_profile(&self, member: &Member, quota: u64) {
        let gate = GateProfile {
            enabled: true,
            live_session_quota: Some(quota),
            kyc_trusted: quota == 1,
            rails: quota == 1,
            ..GateProfile::default()
        };
        let mut tx = self.provision_begin("gate").await;
        tx.gate_profile_put(&member.who, &gate).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// A gate transaction reads quota, rails and trust in verified customers by the same rule.
// rule: base.caches-five-seconds
pub async fn gate_uses_new_entitlements_after_five_seconds_under_repeated_version(
    world: World<impl GateFixture>,
) {
    let member = world.member("acme").await;
    for quota in [1, 2] {
        world.gate_profile(&member, quota).await;
        world.fixture.set_versions(SEEN).await;
        world.clock().advance(LONGEST_CACHED);
        let mut tx = world.gate_begin().await;
        let access = tx.access_get(&member.who, member.key).await.unwrap();
        let gate = access.unwrap().profile.clone();
        assert_eq!(gate.live_session_quota, Some(quota));
        assert_eq!((gate.rails, gate.kyc_trusted), (quota == 1, quota == 1));
    }
}
