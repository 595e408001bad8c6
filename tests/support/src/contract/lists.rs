//! The list of trades: pages by instant and id that contain each trade once.

use kernel::Mode;
use pools_core::ports::TradeFilter;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{self, CannotComplete, Released, Reversed};
use pools_core::trade::{Trade, TradeId, TradeStatus};

use crate::contract::fixture::Fixture;
use crate::contract::world::{MILLI, Member, ONE, World};

impl<F: Fixture> World<F> {
    async fn page(&self, member: &Member, filter: &TradeFilter, limit: u32) -> Vec<Trade> {
        let page = self.ports().store.trades_page(&member.who, filter, limit);
        page.await.unwrap()
    }

    /// Reads every page of a list by its cursor.
    async fn walk(&self, member: &Member, filter: &TradeFilter, limit: u32) -> Vec<Trade> {
        let mut walked: Vec<Trade> = Vec::new();
        loop {
            let cursor = walked.last().map(|trade| trade.id);
            let mut filter = filter.clone();
            filter.cursor = cursor;
            let page = self.page(member, &filter, limit).await;
            assert!(page.len() <= usize::try_from(limit).unwrap());
            if page.is_empty() {
                return walked;
            }
            walked.extend(page);
        }
    }

    /// Trades of both sides and every status, several of them at one instant.
    async fn market(&self) -> (Member, Vec<Trade>) {
        let member = self.rich("acme").await;
        let other = self.rich("other").await;
        let ends: [&[EngineReport]; 5] = [
            &[],
            &[Released],
            &[CannotComplete],
            &[EngineReport::Delivered("".into())],
            &[EngineReport::Delivered("".into()), Reversed(None)],
        ];
        let mut trades = Vec::new();
        for round in 0..20_usize {
            let side = if round % 3 == 0 {
                Side::OffRamp
            } else {
                Side::OnRamp
            };
            let mut trade = self.trade(&member, side, ONE).await;
            self.trade(&other, side, ONE).await;
            for report in ends[round % 5] {
                trade = self.report(&member.who, trade.id, report.clone()).await;
            }
            trades.push(trade);
            if round % 4 == 3 {
                self.clock().advance(MILLI);
            }
        }
        trades.sort_by_key(|trade| std::cmp::Reverse((trade.created_at, trade.id)));
        (member, trades)
    }
}

// rule: list.order, list.no-loss
pub async fn pages_contain_each_trade_once(world: World<impl Fixture>) {
    let (member, trades) = world.market().await;
    for limit in [1, 2, 3, 7, 20, 200] {
        assert_eq!(
            world.walk(&member, &TradeFilter::default(), limit).await,
            trades,
            "limit {limit}"
        );
    }
}

// rule: pools.trades.filters
pub async fn every_filter_returns_matching_trades(world: World<impl Fixture>) {
    let (member, trades) = world.market().await;
    let sides = [None, Some(Side::OnRamp), Some(Side::OffRamp)];
    let statuses = TradeStatus::ALL.map(Some);
    for side in sides {
        for status in statuses.into_iter().chain([None]) {
            let filter = TradeFilter {
                side,
                status,
                ..TradeFilter::default()
            };
            let expected: Vec<Trade> = trades
                .iter()
                .filter(|trade| side.is_none_or(|side| trade.terms.side == side))
                .filter(|trade| status.is_none_or(|status| trade.state.status() == status))
                .cloned()
                .collect();
            assert_eq!(
                world.walk(&member, &filter, 2).await,
                expected,
                "{side:?} {status:?}"
            );
            assert_eq!(
                world.page(&member, &filter, 200).await,
                expected,
                "{side:?} {status:?}"
            );
        }
    }
}

/// Both bounds are inclusive.
// rule: pools.trades.bounds, pools.trades.filters
pub async fn list_bounds_are_inclusive(world: World<impl Fixture>) {
    let (member, trades) = world.market().await;
    let instant = |place: usize| trades[place].created_at;
    let bounds = [None, Some(0), Some(9), Some(19)].map(|place| place.map(instant));
    for after in bounds {
        for before in bounds {
            for side in [None, Some(Side::OnRamp)] {
                let filter = TradeFilter {
                    created_after: after,
                    created_before: before,
                    side,
                    ..TradeFilter::default()
                };
                let expected: Vec<Trade> = trades
                    .iter()
                    .filter(|trade| after.is_none_or(|after| trade.created_at >= after))
                    .filter(|trade| before.is_none_or(|before| trade.created_at <= before))
                    .filter(|trade| side.is_none_or(|side| trade.terms.side == side))
                    .cloned()
                    .collect();
                assert_eq!(
                    world.walk(&member, &filter, 3).await,
                    expected,
                    "{after:?} {before:?} {side:?}"
                );
            }
        }
    }
}

// rule: list.foreign-cursor
pub async fn unknown_cursor_returns_empty_page(world: World<impl Fixture>) {
    let (member, trades) = world.market().await;
    let newer = TradeId::new(Mode::Test, world.now().plus(MILLI), &world.entropy);
    let twin = TradeId::from_parts(Mode::Live, trades[0].id.ulid());
    for cursor in [newer, twin] {
        let filter = TradeFilter {
            cursor: Some(cursor),
            ..TradeFilter::default()
        };
        assert!(world.page(&member, &filter, 10).await.is_empty());
    }
    let last = TradeFilter {
        cursor: trades.last().map(|trade| trade.id),
        ..TradeFilter::default()
    };
    assert!(world.page(&member, &last, 10).await.is_empty());
}

/// A trade made while a client pages appears on the first page, not on later ones.
// rule: list.no-loss
pub async fn paging_excludes_later_trades(world: World<impl Fixture>) {
    let (member, trades) = world.market().await;
    let first = world.page(&member, &TradeFilter::default(), 5).await;
    let new = world.trade(&member, Side::OnRamp, ONE).await;
    let rest = TradeFilter {
        cursor: first.last().map(|trade| trade.id),
        ..TradeFilter::default()
    };
    let rest = world.page(&member, &rest, 200).await;
    assert_eq!(first.into_iter().chain(rest).collect::<Vec<_>>(), trades);
    assert_eq!(world.page(&member, &TradeFilter::default(), 1).await, [new]);
}
