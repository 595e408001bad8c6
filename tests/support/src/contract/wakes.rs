//! Notifications about rail records: a record is due at once, keeps the lease of its poll, and is watched once after its end.

use gate_core::rail::{PollLease, RailId, RailKind, RailRecord, RailState};
use kernel::{Cas, Mode, UpstreamName};
use partner_core::Tenant;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, RAIL};
use crate::contract::rails::TTL;
use crate::contract::world::World;

impl<F: GateFixture> World<F> {
    fn lease(&self, attempts: u32, token: Option<u64>) -> PollLease {
        PollLease {
            attempts,
            token,
            next_at: self.now().plus(TTL),
        }
    }

    /// The owner of a record that a notification would wake.
    async fn asleep(&self, id: RailId) -> Option<Tenant> {
        let gate = &self.fixture.gate().store;
        let notified = gate.rail_notified(Mode::Test, id).await.unwrap().unwrap();
        assert_eq!(notified.rail, UpstreamName::built_in(RAIL));
        notified.is_asleep.then_some(notified.who)
    }

    pub(crate) async fn woken(&self, who: &Tenant, id: RailId) -> Cas {
        let now = self.now();
        let mut tx = self.gate_begin().await;
        let woken = tx.rail_wake(who, id, now).await.unwrap();
        tx.commit().await.unwrap();
        woken
    }

    pub(crate) async fn asked(
        &self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        after: &PollLease,
    ) -> Cas {
        let mut tx = self.gate_begin().await;
        let Some(record) = tx.rail_lock(who, id).await.unwrap() else {
            return Cas::Lost;
        };
        let asking = *after;
        let after = RailRecord { asking, ..record };
        let asked = tx.rail_ask(who, before, &after).await.unwrap();
        tx.commit().await.unwrap();
        asked
    }
}

// rule: rail.notification.wakes
pub async fn woken_record_is_due_at_once_and_keeps_its_lease(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let (_, id) = rails.redeemed("one", "100.00").await;
    let asleep = || world.asleep(id);
    let due = || world.rails_due(Mode::Test);
    let asking = || async { world.record(&who, id).await.unwrap().asking };
    let woken = || async { (asleep().await, world.woken(&who, id).await) };
    let asked = async |before: &PollLease, after: &PollLease| {
        let asked = world.asked(&who, id, before, after);
        asked.await
    };
    // A record that is due already is not woken.
    assert_eq!(woken().await, (None, Cas::Lost));
    let lease = |attempts, token| world.lease(attempts, token);
    let resting = lease(1, None);
    assert_eq!(asked(&asking().await, &resting).await, Cas::Won);
    assert_eq!(asleep().await, Some(who.clone()));
    let other = RailId::from_parts(RailKind::PayOut, id.id());
    let gate = world.fixture.gate().store.clone();
    assert_eq!(gate.rail_notified(Mode::Test, other).await.unwrap(), None);
    assert_eq!(gate.rail_notified(Mode::Live, id).await.unwrap(), None);
    let rival = world.open_rails("rival").await;
    assert_eq!(world.woken(rival.who(), id).await, Cas::Lost);
    assert!(due().await.is_empty());
    assert_eq!(world.woken(&who, id).await, Cas::Won);
    assert_eq!(due().await, [(who.clone(), id)]);
    assert_eq!(woken().await, (None, Cas::Lost));
    // During a poll the lease stays. When the poll ends, the next one is due, once.
    let claimed = lease(2, Some(7));
    assert_eq!(asked(&asking().await, &claimed).await, Cas::Won);
    assert_eq!(asleep().await, Some(who.clone()));
    assert_eq!(world.woken(&who, id).await, Cas::Won);
    assert_eq!(woken().await, (None, Cas::Lost));
    assert_eq!(asking().await, claimed);
    assert!(due().await.is_empty());
    assert_eq!(asked(&claimed, &lease(2, None)).await, Cas::Won);
    assert_eq!(due().await, [(who.clone(), id)]);
    let rested = lease(2, None);
    assert_eq!(asked(&asking().await, &rested).await, Cas::Won);
    assert_eq!((asking().await, due().await), (rested, Vec::new()));
    world.assert_clean().await;
}

// rule: rail.notification.wakes
pub async fn woken_record_is_watched_once_after_its_end(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let (_, id) = rails.redeemed("one", "100.00").await;
    let woken = || async { (world.asleep(id).await, world.woken(&who, id).await) };
    world.clock().advance(TTL);
    rails.settling.advance(&who, id).await.unwrap();
    assert!(world.rails_watched(Mode::Test).await.is_empty());
    assert_eq!(woken().await, (Some(who.clone()), Cas::Won));
    assert_eq!(woken().await, (None, Cas::Lost));
    assert_eq!(world.rails_watched(Mode::Test).await, [(who.clone(), id)]);
    assert!(world.rails_due(Mode::Test).await.is_empty());
    // A record that was woken during the poll that ends it is watched once too.
    let (_, id) = rails.redeemed("two", "101.00").await;
    let record = world.record(&who, id).await.unwrap();
    let claimed = world.lease(1, Some(8));
    assert_eq!(
        world.asked(&who, id, &record.asking, &claimed).await,
        Cas::Won
    );
    assert_eq!(world.woken(&who, id).await, Cas::Won);
    let ended = RailRecord {
        state: RailState::Cancelled { at: world.now() },
        watch_at: Some(world.now().plus(DAY)),
        ..record
    };
    let mut tx = world.gate_begin().await;
    let refid = ended.refid;
    assert_eq!(tx.rail_end(&who, &claimed, &ended).await.unwrap(), Cas::Won);
    let state = ended.transaction().state;
    assert_eq!(
        tx.transaction_end(&who, refid, state).await.unwrap(),
        Cas::Won
    );
    tx.commit().await.unwrap();
    assert!(world.rails_watched(Mode::Test).await.contains(&(who, id)));
}
