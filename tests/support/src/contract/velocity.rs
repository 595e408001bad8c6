//! The running total is exact at every instant, also after trades leave the window or fail.

use std::time::Duration;

use partner_core::Tenant;
use pools_core::batch::{Refusal, TransactOutcome};
use pools_core::ports::VelocityRange;
use pools_core::profile::PoolsProfile;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{CannotComplete, Released, Reversed};
use pools_core::trade::Trade;
use pools_core::velocity::{CountedTrades, TradesRead, Velocity};

use crate::contract::fixture::{Fixture, WINDOW};
use crate::contract::world::{Decided, MILLI, Member, ONE, World, amount, delivered, eur, profile};

impl<F: Fixture> World<F> {
    pub(crate) async fn total(&self, who: &Tenant) -> Option<Velocity> {
        let mut tx = self.ports().store.begin("total").await.unwrap();
        tx.velocity_lock(who).await.unwrap()
    }

    /// Sets the cap of a partner.
    pub(crate) async fn cap(&self, member: &Member, cap: i64) {
        let capped = PoolsProfile {
            velocity_cap: Some(cap),
            ..profile()
        };
        self.reprofile(member, &capped).await;
    }

    async fn capped(&self, name: &str, cap: i64) -> Member {
        let member = self.funded(name).await;
        self.cap(&member, cap).await;
        member
    }

    async fn attempt(&self, member: &Member, euros: i64) -> Decided {
        let quote = self.buy(member, euros).await;
        self.transact_one(self.command(member, quote.id)).await
    }

    async fn admitted(&self, member: &Member, euros: i64) -> Trade {
        match self.attempt(member, euros).await {
            Ok(TransactOutcome::Opened(trade)) => trade,
            other => panic!("expected a trade, got {other:?}"),
        }
    }

    async fn refused(&self, member: &Member, euros: i64) {
        assert_eq!(
            self.attempt(member, euros).await,
            Err(Refusal::VelocityCapExceeded)
        );
    }
}

/// A trade counts if it was made after now minus the window; a trade of exactly that instant does not count.
// rule: pools.velocity.window
pub async fn trade_stops_counting_at_window_end(world: World<impl Fixture>) {
    let member = world.capped("acme", 100 * ONE).await;
    let first = world.admitted(&member, 60).await;
    world.clock().advance(MILLI);
    world.admitted(&member, 40).await;
    world
        .clock()
        .set(first.created_at.plus(WINDOW).minus(MILLI));
    world.refused(&member, 1).await;
    world.clock().advance(MILLI);
    world.refused(&member, 61).await;
    world.admitted(&member, 60).await;
    world.clock().advance(MILLI);
    world.refused(&member, 41).await;
    world.admitted(&member, 40).await;
    world.refused(&member, 1).await;
    world.assert_clean().await;
}

// rule: pools.velocity.given-back
pub async fn unsettled_trade_stops_counting_when_it_ends(world: World<impl Fixture>) {
    let member = world.capped("acme", 100 * ONE).await;
    for report in [Released, CannotComplete] {
        let trade = world.admitted(&member, 100).await;
        world.refused(&member, 1).await;
        world.report(&member.who, trade.id, report).await;
    }
    let trade = world.admitted(&member, 100).await;
    world.report(&member.who, trade.id, delivered()).await;
    world.refused(&member, 1).await;
    world.report(&member.who, trade.id, Reversed(None)).await;
    world.refused(&member, 1).await;
    world.assert_clean().await;
}

/// A failure after the trade has left the window does not change the total.
// rule: pools.velocity.given-back
pub async fn failure_outside_window_is_not_subtracted_again(world: World<impl Fixture>) {
    let member = world.capped("acme", 100 * ONE).await;
    let old = world.admitted(&member, 70).await;
    world.clock().advance(WINDOW);
    world.admitted(&member, 30).await;
    world.report(&member.who, old.id, CannotComplete).await;
    world.refused(&member, 71).await;
    world.admitted(&member, 70).await;
    world.assert_clean().await;
}

/// A longer window counts earlier trades again.
// rule: pools.velocity.window
pub async fn longer_window_counts_earlier_trades_again(mut world: World<impl Fixture>) {
    let member = world.capped("acme", 100 * ONE).await;
    world.admitted(&member, 60).await;
    let gone = world.admitted(&member, 40).await;
    world.report(&member.who, gone.id, Released).await;
    world.clock().advance(WINDOW);
    world.admitted(&member, 1).await;
    world.reopen(WINDOW * 2).await;
    world.refused(&member, 40).await;
    world.admitted(&member, 39).await;
    world.reopen(WINDOW).await;
    world.admitted(&member, 60).await;
    world.refused(&member, 1).await;
    world.assert_clean().await;
}

/// Trades of a partner without a cap count too, in case it is given one.
// rule: pools.velocity.off
pub async fn later_cap_counts_earlier_trades(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    assert!(world.total(&member.who).await.is_none());
    world.trade(&member, Side::OnRamp, 90 * ONE).await;
    world.cap(&member, 100 * ONE).await;
    world.refused(&member, 11).await;
    world.admitted(&member, 10).await;
}

pub async fn total_reads_back(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let other = world.member("other").await;
    let wide = i128::from(i64::MAX) * 1_000;
    for total in [wide, 0] {
        let velocity = Velocity {
            total,
            floor: world.now(),
        };
        let mut tx = world.ports().store.begin("put").await.unwrap();
        tx.velocity_put(&member.who, &velocity).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(world.total(&member.who).await, Some(velocity));
    }
    assert!(world.total(&other.who).await.is_none());
}

// rule: pools.velocity.window
pub async fn shorter_window_drops_trades_at_exact_millisecond(mut world: World<impl Fixture>) {
    let member = world.capped("acme", 10 * ONE).await;
    let ten = Duration::from_secs(10);
    world.admitted(&member, 4).await;
    world.clock().advance(ten);
    world.admitted(&member, 6).await;
    world.reopen(ten + MILLI).await;
    world.refused(&member, 1).await;
    world.reopen(ten).await;
    world.refused(&member, 5).await;
    world.admitted(&member, 4).await;
    world.assert_clean().await;
    world.reopen(WINDOW).await;
    world.refused(&member, 1).await;
    let total = world.total(&member.who).await.unwrap().total;
    assert_eq!(total, i128::from(14 * ONE), "all three count again");
    world.assert_clean().await;
}

/// Refusals also move the window of the total, and only once.
// rule: pools.velocity.window
pub async fn refusals_move_window(world: World<impl Fixture>) {
    let member = world.capped("acme", 10 * ONE).await;
    world.admitted(&member, 3).await;
    world.clock().advance(MILLI);
    world.admitted(&member, 7).await;
    world.clock().advance(WINDOW - MILLI);
    for _ in 0..3 {
        world.refused(&member, 4).await;
        let total = world.total(&member.who).await.unwrap().total;
        assert_eq!(total, i128::from(7 * ONE));
    }
    world.assert_clean().await;
    world.admitted(&member, 3).await;
}

/// A trade that fails after it has left the window, before the total was moved, is subtracted once.
// rule: pools.velocity.given-back
pub async fn late_failure_is_subtracted_once(world: World<impl Fixture>) {
    let member = world.capped("acme", 10 * ONE).await;
    let gone = world.admitted(&member, 4).await;
    world.admitted(&member, 2).await;
    world.clock().advance(WINDOW);
    world.report(&member.who, gone.id, Released).await;
    world.admitted(&member, 1).await;
    world.refused(&member, 10).await;
    world.admitted(&member, 9).await;
    world.assert_clean().await;
}

// rule: pools.velocity.boundary
pub async fn cap_is_exact_to_last_unit(world: World<impl Fixture>) {
    let member = world.capped("acme", 10 * ONE).await;
    for (notional, fits) in [
        (10 * ONE - 1, true),
        (2, false),
        (1, true),
        (1, false),
        (i64::MAX, false),
    ] {
        let mut terms = crate::contract::world::terms(Side::OnRamp, ONE);
        terms.notional = notional;
        let quote = world.quote(&member.who, terms).await;
        let decided = world.transact_one(world.command(&member, quote.id)).await;
        assert_eq!(decided.is_ok(), fits, "{notional}: {decided:?}");
    }
    world.assert_clean().await;
}

// rule: mode.on-every-row
pub async fn partners_and_modes_have_separate_totals(world: World<impl Fixture>) {
    let capped = PoolsProfile {
        velocity_cap: Some(5 * ONE),
        ..profile()
    };
    let live = world.member_with("acme", kernel::Mode::Live, &capped).await;
    world.fund(&live.who, amount("100", eur()), "start").await;
    let acme = world.capped("acme", 5 * ONE).await;
    let rival = world.capped("rival", 5 * ONE).await;
    for member in [&acme, &rival, &live] {
        assert_eq!(world.total(&member.who).await, None);
        world.admitted(member, 5).await;
        world.refused(member, 1).await;
    }
    world.assert_clean().await;
}

/// The floor moves in steps, each stored whatever the outcome of the trade, and a lagging total refuses no transact.
// rule: pools.velocity.bounded
pub async fn lagging_total_catches_up_and_refuses_nothing(world: World<impl Fixture>) {
    let member = world.capped("acme", 100 * ONE).await;
    world.admitted(&member, 60).await;
    world.clock().advance(MILLI);
    world.admitted(&member, 40).await;
    let before = world.total(&member.who).await.unwrap();
    // Three windows later the first trade succeeds, and no old trade counts.
    world.clock().advance(WINDOW * 3);
    world.admitted(&member, 100).await;
    let after = world.total(&member.who).await.unwrap();
    assert_eq!(after.total, i128::from(100 * ONE));
    assert!(after.floor > before.floor);
    world.refused(&member, 1).await;
    world.assert_clean().await;
}

/// A partner without a cap adds to its total and never moves it. A later cap counts the trades of the window only.
// rule: pools.velocity.bounded, pools.velocity.off
pub async fn cap_set_after_pause_counts_window_only(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    for _ in 0..3 {
        world.trade(&member, Side::OnRamp, 90 * ONE).await;
        world.clock().advance(WINDOW);
    }
    let floor = world.total(&member.who).await.unwrap().floor;
    world.trade(&member, Side::OnRamp, 30 * ONE).await;
    let total = world.total(&member.who).await.unwrap();
    assert_eq!((total.floor, total.total), (floor, i128::from(300 * ONE)));
    world.cap(&member, 100 * ONE).await;
    world.refused(&member, 71).await;
    world.admitted(&member, 70).await;
    let total = world.total(&member.who).await.unwrap().total;
    assert_eq!(total, i128::from(100 * ONE));
    world.assert_clean().await;
}

/// The oldest trades after the floor are read with the total, the oldest first. A released trade has the notional 0.
// rule: pools.velocity.retry-after
pub async fn total_is_read_with_the_oldest_trades(world: World<impl Fixture>) {
    let member = world.capped("acme", 100 * ONE).await;
    let rival = world.capped("rival", 100 * ONE).await;
    let store = &world.ports().store;
    let none = store.counted_trades(&member.who, 9).await.unwrap();
    assert!(none.is_none());
    let mut made = Vec::new();
    for euros in [30, 20, 50] {
        world.clock().advance(MILLI);
        made.push(world.admitted(&member, euros).await);
    }
    world.admitted(&rival, 7).await;
    world.report(&member.who, made[1].id, Released).await;
    let velocity = world.total(&member.who).await.unwrap();
    let notionals = [30 * ONE, 0, 50 * ONE];
    let all: Vec<_> = made
        .iter()
        .zip(notionals)
        .map(|(trade, notional)| (trade.created_at, notional))
        .collect();
    for limit in [1, 2, 3, 9] {
        let read = store.counted_trades(&member.who, limit).await.unwrap();
        let read = read.unwrap().value;
        let oldest = all.iter().copied().take(limit as usize).collect();
        assert_eq!(read, CountedTrades { velocity, oldest }, "{limit}");
    }
    // A trade that the total no longer counts is not read.
    world.clock().advance(WINDOW);
    world.refused(&member, 101).await;
    let read = store.counted_trades(&member.who, 9).await.unwrap();
    assert!(read.unwrap().value.oldest.is_empty());
    world.assert_clean().await;
}

/// A step continues to the end of the instant at which it reaches its limit, from either end.
pub async fn step_reads_at_most_its_limit(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let mut made = Vec::new();
    for (euros, later) in [(1, 0), (2, 1), (4, 0), (8, 1), (16, 1)] {
        world.clock().advance(MILLI * later);
        made.push(world.trade(&member, Side::OnRamp, euros * ONE).await);
    }
    let gone = world.trade(&member, Side::OnRamp, 32 * ONE).await;
    world.report(&member.who, gone.id, Released).await;
    let at = |place: usize| made[place].created_at;
    let all = VelocityRange {
        after: at(0).minus(MILLI),
        up_to: at(4),
        newest_first: false,
    };
    for (newest_first, limit, euros, reached) in [
        (false, 1, vec![1], Some(at(0))),
        (false, 2, vec![1, 2, 4], Some(at(1))),
        (false, 3, vec![1, 2, 4], Some(at(2))),
        (false, 7, vec![1, 2, 4, 8, 16], None),
        (true, 1, vec![16], Some(at(4))),
        (true, 3, vec![8, 16], Some(at(3))),
        (true, 4, vec![2, 4, 8, 16], Some(at(1))),
        (true, 7, vec![1, 2, 4, 8, 16], None),
    ] {
        let mut tx = world.ports().store.begin("read").await.unwrap();
        let range = VelocityRange {
            newest_first,
            ..all
        };
        let mut read = tx.velocity_read(&member.who, range, limit).await.unwrap();
        read.notionals.sort_unstable();
        let notionals = euros.iter().map(|euros| euros * ONE).collect();
        assert_eq!(
            read,
            TradesRead { notionals, reached },
            "{newest_first} {limit}"
        );
    }
}
