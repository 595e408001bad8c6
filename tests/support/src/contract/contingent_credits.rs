//! Contingent credits (table `commitments`): an account's possible credits are counted, and a sale needs room for its return.

use std::time::Duration;

use kernel::{Asset, Mode, Timestamp};
use partner_core::Tenant;
use pools_core::batch::Refusal;
use pools_core::contingent_credit::{Amounts, Range, Recount};
use pools_core::ledger::BALANCE_LIMIT;
use pools_core::ports::TradeFilter;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{CannotComplete, Released, Reversed};
use pools_core::trade::{Trade, TradeState};
use pools_core::usecases::recount_contingent_credits::RecountContingentCredits;

use crate::contract::fixture::Fixture;
use crate::contract::world::{
    Decided, MILLI, Member, ONE, World, amount, assert_opened, delivered, eur, profile, tenant,
    terms, usdt,
};

const HOUR: Duration = Duration::from_secs(3600);

impl<F: Fixture> World<F> {
    async fn read_back(&self, who: &Tenant, asset: Asset, range: Range, limit: u32) -> Amounts {
        let mut tx = self.ports().store.begin("count").await.unwrap();
        tx.refundable(who, asset, range, limit).await.unwrap()
    }

    /// Sums what trades may still credit: those that settled after an instant, and those that are reserved.
    async fn refundable(&self, who: &Tenant, asset: Asset, settled_after: Timestamp) -> i128 {
        let settled = Range::Settled {
            after: settled_after,
            up_to: self.now(),
            created_after: Timestamp::from_millis(0).unwrap(),
        };
        let reserved = Range::Reserved {
            after: Timestamp::from_millis(0).unwrap(),
        };
        let settled = self.read_back(who, asset, settled, 1_000).await;
        let reserved = self.read_back(who, asset, reserved, 1_000).await;
        assert_eq!((settled.reached, reserved.reached), (None, None));
        settled.amount + reserved.amount
    }

    async fn committed(&self, who: &Tenant) -> i64 {
        let mut tx = self.ports().store.begin("committed").await.unwrap();
        tx.commitment_get(who, eur()).await.unwrap().unwrap()
    }

    /// Sums an account's balance and what trades may credit to it, from the trades themselves.
    async fn plain(&self, who: &Tenant) -> i64 {
        let filter = TradeFilter::default();
        let trades = self.ports().store.trades_page(who, &filter, 10_000).await;
        let since = self.now().minus(HOUR * 24 * 31);
        let back = trades
            .unwrap()
            .into_iter()
            .filter(|trade| match &trade.state {
                TradeState::Reserved => true,
                TradeState::Settled(settlement) => settlement.at > since,
                _ => false,
            });
        let back: i64 = back.map(|trade| trade.terms.fiat.units()).sum();
        self.available(who, eur()).await + back
    }

    fn recounting(&self) -> RecountContingentCredits {
        RecountContingentCredits {
            store: self.ports().store.clone(),
            mode: Mode::Test,
        }
    }

    async fn commit_to(&self, who: &Tenant, asset: Asset, total: i64) {
        let mut tx = self.ports().store.begin("commit").await.unwrap();
        tx.commitment_put(who, asset, total).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn above(&self, total: i64) -> Vec<(Tenant, Asset)> {
        let store = &self.ports().store;
        let above = store.commitments_above(Mode::Test, total).await;
        above.unwrap().rows
    }

    async fn sell(&self, member: &Member, units: i64) -> Decided {
        let quote = self.quote(&member.who, terms(Side::OffRamp, units)).await;
        self.transact_one(self.command(member, quote.id)).await
    }
}

// rule: money.credit-limit, pools.ledger.sell-returned, pools.refund.mirrors
pub async fn contingent_credits_count_possible_returns(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    for (side, euros, reports) in [
        (Side::OnRamp, 1, vec![]),
        (Side::OffRamp, 2, vec![]),
        (Side::OnRamp, 4, vec![delivered()]),
        (Side::OffRamp, 8, vec![delivered()]),
        (Side::OnRamp, 16, vec![CannotComplete]),
        (Side::OffRamp, 32, vec![Released]),
        (Side::OnRamp, 64, vec![delivered(), Reversed(None)]),
        (Side::OffRamp, 128, vec![delivered(), Reversed(None)]),
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

/// The sum never overflows.
// rule: money.credit-limit
pub async fn contingent_credits_exceed_account_limit_without_overflow(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let most = amount("10000000000", usdt());
    for round in 0..12 {
        let reference = format!("wire-{round}");
        world.fund(&member.who, most, &reference).await;
        assert_opened(&world.sell(&member, most.units()).await);
        world.commit_to(&member.who, eur(), 0).await;
    }
    let total = 12 * i128::from(most.units());
    let long_ago = world.now().minus(HOUR);
    let counted = world.refundable(&member.who, eur(), long_ago).await;
    assert_eq!(counted, total);
    assert!(counted > i64::MAX.into());
}

// rule: money.sale-limit
pub async fn sale_requires_room_for_its_return(world: World<impl Fixture>) {
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
    assert_opened(&decided[0]);
    assert_eq!(decided[1], Err(Refusal::NoRoomForReturn));
    assert_opened(&decided[2]);
    let full = vec![(who.clone(), eur())];
    assert_eq!(world.above(BALANCE_LIMIT - 1).await, full);
    assert_eq!(world.above(BALANCE_LIMIT).await, []);
    let live = &world.ports().store;
    let live = live.commitments_above(Mode::Live, 0).await.unwrap();
    assert_eq!(live.rows, []);

    let before = world.standing(who).await;
    assert_eq!(
        world.sell(&member, ONE / 100).await,
        Err(Refusal::NoRoomForReturn)
    );
    assert_eq!(world.standing(who).await, before);
    // A purchase returns at most what it takes, and other partners have room of their own.
    world.trade(&member, Side::OnRamp, ONE).await;
    world.trade(&other, Side::OffRamp, ONE).await;
    world.commit_to(who, eur(), BALANCE_LIMIT / 2).await;
    world.trade(&member, Side::OffRamp, ONE).await;
    world.assert_clean().await;
}

/// A slice continues to the end of the instant at which it reaches its limit.
// rule: money.recount
pub async fn slice_reads_at_most_its_limit(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let who = &member.who;
    let mut made = Vec::new();
    for (euros, later) in [(1, 0), (2, 1), (4, 0), (8, 1), (16, 1)] {
        world.clock().advance(MILLI * later);
        made.push(world.trade(&member, Side::OffRamp, euros * ONE).await);
    }
    let read = |asset, range, limit| world.read_back(who, asset, range, limit);
    let at = |place: usize| made[place].created_at;
    let start = at(0).minus(MILLI);
    let one = i128::from(ONE);
    for (limit, euros, reached) in [
        (1, 1, Some(at(0))),
        (2, 7, Some(at(1))),
        (5, 31, Some(at(4))),
        (6, 31, None),
    ] {
        let amounts = Amounts {
            amount: euros * one,
            reached,
        };
        let range = Range::Reserved { after: start };
        assert_eq!(read(eur(), range, limit).await, amounts, "{limit}");
        assert_eq!(read(usdt(), range, limit).await, amounts, "{limit}");
    }
    for trade in &made {
        world.clock().advance(MILLI);
        world.report(who, trade.id, delivered()).await;
    }
    let last = world.now();
    for (limit, created_after, euros, reached) in [
        (1, start, 1, Some(last.minus(MILLI * 4))),
        (3, start, 7, Some(last.minus(MILLI * 2))),
        (3, at(1), 0, Some(last.minus(MILLI * 2))),
        (9, at(1), 24, None),
        (9, start, 31, None),
    ] {
        let range = Range::Settled {
            after: start,
            up_to: last,
            created_after,
        };
        let amounts = Amounts {
            amount: euros * one,
            reached,
        };
        assert_eq!(read(eur(), range, limit).await, amounts, "{limit}");
        let none = Amounts::default();
        assert_eq!(
            read(usdt(), range, limit).await,
            none,
            "settled trades return no crypto"
        );
    }
}

/// A stored recount reads back unchanged, so that any process can run its next slice.
// rule: money.recount
pub async fn recount_progress_reads_back(mut world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let who = member.who.clone();
    let mut recount = Recount::begin(world.now());
    for ended_at in [None, Some(world.now())] {
        recount = Recount {
            ended_at,
            settled: recount.settled.plus(HOUR),
            reserved: recount.reserved.plus(HOUR),
            total: recount.total + 5 * ONE,
            ..recount
        };
        let mut tx = world.ports().store.begin("recount").await.unwrap();
        tx.recount_put(&who, eur(), &recount).await.unwrap();
        tx.commit().await.unwrap();
        world.fixture.reopen(crate::contract::fixture::WINDOW).await;
        let mut tx = world.ports().store.begin("recount").await.unwrap();
        assert_eq!(tx.recount_get(&who, eur()).await.unwrap(), Some(recount));
        assert_eq!(tx.recount_get(&who, usdt()).await.unwrap(), None);
        drop(tx);
    }
    // The recount has ended, so the next one starts over after a pause.
    let recounting = world.recounting();
    assert!(!recounting.advance(&who, eur()).await.unwrap());
    world.clock().advance(HOUR);
    world.commit_to(&who, eur(), BALANCE_LIMIT).await;
    assert!(
        !recounting.advance(&who, eur()).await.unwrap(),
        "one slice was enough"
    );
    assert_eq!(world.committed(&who).await, world.plain(&who).await);
}

/// Random sales, settlements, ends and returns between the slices of a recount. The stored figure is never below the plain sum,
/// and equals it after a recount without concurrent trades.
// rule: money.recount, money.credit-limit
pub async fn recount_during_trading_stays_upper_bound(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let who = &member.who;
    let recounting = world.recounting();
    let mut open: Vec<Trade> = Vec::new();
    let mut settled: Vec<Trade> = Vec::new();
    for _ in 0..150 {
        let later =
            [0, 1, 3_600_000, 100_000_000][usize::try_from(world.entropy.below(4)).unwrap()];
        world.clock().advance(Duration::from_millis(later));
        match world.entropy.below(8) {
            0..=2 => open.push(world.trade(&member, Side::OffRamp, ONE).await),
            3 | 4 if !open.is_empty() => {
                let trade = open.remove(0);
                let report = delivered();
                settled.push(world.report(who, trade.id, report).await);
            }
            5 if !open.is_empty() => {
                let trade = open.remove(0);
                world.report(who, trade.id, Released).await;
            }
            6 if !settled.is_empty() => {
                let trade = settled.remove(0);
                world.report(who, trade.id, Reversed(None)).await;
            }
            _ => {
                recounting.advance(who, eur()).await.unwrap();
            }
        }
        let (committed, plain) = (world.committed(who).await, world.plain(who).await);
        assert!(committed >= plain, "{committed} {plain}");
    }
    world.clock().advance(HOUR);
    while recounting.advance(who, eur()).await.unwrap() {}
    world.clock().advance(HOUR);
    while recounting.advance(who, eur()).await.unwrap() {}
    assert_eq!(world.committed(who).await, world.plain(who).await);
    world.assert_clean().await;
}
