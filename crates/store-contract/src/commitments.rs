//! What accounts are committed to: what may come back to them is counted, and sales need room.

use std::time::Duration;

use kernel::{Asset, Mode, Timestamp};
use partner_core::Tenant;
use pools_core::books::{Outcome, Refusal};
use pools_core::ledger::BALANCE_LIMIT;
use pools_core::quote::Side;
use pools_core::trade::EngineReport;

use crate::fixture::Fixture;
use crate::world::{Decided, Member, ONE, World, amount, eur, profile, tenant, terms, usdt};

const HOUR: Duration = Duration::from_secs(3600);

impl<F: Fixture> World<F> {
    async fn refundable(&self, who: &Tenant, asset: Asset, settled_after: Timestamp) -> i128 {
        let mut tx = self.ports().store.begin("count").await.unwrap();
        tx.refundable(who, asset, settled_after).await.unwrap()
    }

    async fn commit_to(&self, who: &Tenant, asset: Asset, total: i64) {
        let mut tx = self.ports().store.begin("commit").await.unwrap();
        tx.commitment_put(who, asset, total).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn above(&self, total: i64) -> Vec<(Tenant, Asset)> {
        let store = &self.ports().store;
        store.commitments_above(Mode::Test, total).await.unwrap()
    }

    async fn sell(&self, member: &Member, units: i64) -> Decided {
        let quote = self.quote(&member.who, terms(Side::OffRamp, units)).await;
        self.transact_one(self.command(member, quote.id)).await
    }
}

// rule: money.credit-limit, pools.ledger.sell-returned, pools.refund.mirrors
pub async fn what_may_come_back_is_counted(store: impl Fixture) {
    let world = World::new(store);
    let member = world.rich("acme").await;
    let delivered = || EngineReport::Delivered("fill".to_owned());
    for (side, euros, reports) in [
        (Side::OnRamp, 1, vec![]),
        (Side::OffRamp, 2, vec![]),
        (Side::OnRamp, 4, vec![delivered()]),
        (Side::OffRamp, 8, vec![delivered()]),
        (Side::OnRamp, 16, vec![EngineReport::CannotComplete]),
        (Side::OffRamp, 32, vec![EngineReport::LetGo]),
        (Side::OnRamp, 64, vec![delivered(), EngineReport::Reversed]),
        (
            Side::OffRamp,
            128,
            vec![delivered(), EngineReport::Reversed],
        ),
    ] {
        let trade = world.trade(&member, side, euros * ONE).await;
        for report in reports {
            world.report(&member.who, trade.id, report).await;
        }
    }
    let mut ungated = profile();
    ungated.balance_gate = false;
    world.reprofile(&member, &ungated).await;
    for reports in [vec![], vec![delivered()]] {
        let trade = world.trade(&member, Side::OnRamp, 256 * ONE).await;
        for report in reports {
            world.report(&member.who, trade.id, report).await;
        }
    }
    let (who, settled) = (&member.who, world.now());
    let lately = settled.minus(HOUR);
    let one = i128::from(ONE);
    assert_eq!(world.refundable(who, eur(), lately).await, 15 * one);
    assert_eq!(world.refundable(who, eur(), settled).await, 3 * one);
    assert_eq!(world.refundable(who, usdt(), lately).await, 2 * one);
    for other in [tenant("other", Mode::Test), tenant("acme", Mode::Live)] {
        assert_eq!(world.refundable(&other, eur(), lately).await, 0);
    }
}

/// Nothing wraps, however much has been traded.
// rule: money.credit-limit
pub async fn more_than_an_account_could_hold_is_counted(store: impl Fixture) {
    let world = World::new(store);
    let member = world.member("acme").await;
    let most = amount("10000000000", usdt());
    for round in 0..12 {
        world
            .fund(&member.who, most, &format!("wire-{round}"))
            .await;
        let sold = world.sell(&member, most.units()).await;
        assert!(matches!(sold, Ok(Outcome::Opened(_))), "{sold:?}");
        world.commit_to(&member.who, eur(), 0).await;
    }
    let total = 12 * i128::from(most.units());
    let long_ago = world.now().minus(HOUR);
    let counted = world.refundable(&member.who, eur(), long_ago).await;
    assert_eq!(counted, total);
    assert!(counted > i64::MAX.into());
}

// rule: money.sale-limit
pub async fn a_sale_takes_its_room(store: impl Fixture) {
    let world = World::new(store);
    let member = world.rich("acme").await;
    let other = world.rich("other").await;
    let who = &member.who;
    world.commit_to(who, eur(), BALANCE_LIMIT - 5 * ONE).await;
    world
        .commit_to(&other.who, usdt(), BALANCE_LIMIT - 5 * ONE)
        .await;
    assert_eq!(world.above(BALANCE_LIMIT - 4 * ONE).await, []);

    let quotes = [
        world.quote(who, terms(Side::OffRamp, 2 * ONE)).await,
        world.quote(who, terms(Side::OffRamp, 4 * ONE)).await,
        world.quote(who, terms(Side::OffRamp, 3 * ONE)).await,
    ];
    let batch = quotes.map(|quote| world.command(&member, quote.id));
    let decided = world.transact(&batch).await;
    assert!(matches!(decided[0], Ok(Outcome::Opened(_))), "{decided:?}");
    assert_eq!(decided[1], Err(Refusal::NoRoomForReturn));
    assert!(matches!(decided[2], Ok(Outcome::Opened(_))), "{decided:?}");
    let full = vec![(who.clone(), eur())];
    assert_eq!(world.above(BALANCE_LIMIT - 1).await, full);
    assert_eq!(world.above(BALANCE_LIMIT).await, []);
    let live = &world.ports().store;
    let live = live.commitments_above(Mode::Live, 0).await.unwrap();
    assert_eq!(live, []);

    let before = world.standing(who).await;
    assert_eq!(
        world.sell(&member, ONE / 100).await,
        Err(Refusal::NoRoomForReturn)
    );
    assert_eq!(world.standing(who).await, before);
    // A purchase gives back no more than it takes, and others have room of their own.
    world.trade(&member, Side::OnRamp, ONE).await;
    world.trade(&other, Side::OffRamp, ONE).await;
    world.commit_to(who, eur(), BALANCE_LIMIT / 2).await;
    world.trade(&member, Side::OffRamp, ONE).await;
    world.assert_clean().await;
}
