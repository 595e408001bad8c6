//! Cached keys and entitlements: their versions never repeat, and no cached value is older than five seconds.

use std::collections::BTreeSet;

use partner_core::ports::LONGEST_CACHED;
use pools_core::batch::Refusal;

use crate::contract::fixture::Fixture;
use crate::contract::world::{ONE, World, assert_opened};

/// A version that the tests set twice.
pub(crate) const SEEN: i64 = 4711;

/// A database that loses a change never repeats a version that a process may have cached.
// rule: base.versions-never-return
pub async fn versions_never_repeat_after_restore(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let mut seen = BTreeSet::new();
    for _restore in 0..4 {
        world.fixture.set_versions(SEEN).await;
        for cap in 1..5 {
            world.cap(&member, cap * ONE).await;
            assert!(seen.insert(world.version().await), "{seen:?}");
        }
    }
}

/// The cap changes while the version that the process has cached returns.
// rule: base.caches-five-seconds
pub async fn transact_uses_new_cap_after_five_seconds_under_repeated_version(
    world: World<impl Fixture>,
) {
    let member = world.rich("acme").await;
    world.cap(&member, 1000 * ONE).await;
    world.fixture.set_versions(SEEN).await;
    let quote = world.buy(&member, 1).await;
    assert_opened(&world.transact_one(world.command(&member, quote.id)).await);

    world.cap(&member, 10 * ONE).await;
    world.fixture.set_versions(SEEN).await;
    world.clock().advance(LONGEST_CACHED);
    let quote = world.buy(&member, 100).await;
    let refused = world.transact_one(world.command(&member, quote.id)).await;
    assert_eq!(refused, Err(Refusal::VelocityCapExceeded));
}
