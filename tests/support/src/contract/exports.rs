//! Exports: a window of a partner's ledger and trades, complete, ordered, from one snapshot.

use kernel::{Mode, Timestamp};
use partner_core::export::{Pages, Window};
use pools_core::export::ExportedEntry;
use pools_core::ledger::Reason;
use pools_core::ports::Deposit;
use pools_core::profile::Network;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{self, CannotComplete};
use pools_core::trade::Trade;

use crate::contract::fixture::Fixture;
use crate::contract::world::{MILLI, Member, ONE, World, amount, eur, profile, usdt};

/// A window that contains everything.
pub(crate) fn ever() -> Window {
    let at = |millis| Timestamp::from_millis(millis).unwrap();
    Window::new(at(0), at(253_402_300_799_999)).unwrap()
}

pub(crate) async fn all<T>(mut pages: Box<dyn Pages<T>>, limit: u32) -> Vec<T> {
    let mut found = Vec::new();
    loop {
        let page = pages.next(limit).await.unwrap();
        assert!(page.len() <= usize::try_from(limit).unwrap());
        if page.is_empty() {
            return found;
        }
        found.extend(page);
    }
}

impl<F: Fixture> World<F> {
    async fn trades_in(&self, member: &Member, window: Window, limit: u32) -> Vec<Trade> {
        let exports = &self.ports().exports;
        let pages = exports.trades_export(&member.who, window).await.unwrap();
        all(pages, limit).await
    }

    async fn entries_in(&self, member: &Member, window: Window, limit: u32) -> Vec<ExportedEntry> {
        let exports = &self.ports().exports;
        let pages = exports.ledger_export(&member.who, window).await.unwrap();
        all(pages, limit).await
    }

    /// Trades of both sides, several at each instant, some of them settled.
    async fn busy(&self, member: &Member, rounds: usize) -> Vec<Trade> {
        let mut trades = Vec::new();
        for round in 0..rounds {
            let side = [Side::OnRamp, Side::OffRamp][round % 2];
            let mut trade = self.trade(member, side, ONE).await;
            if round % 3 == 0 {
                let fill = EngineReport::Delivered(format!("fill {round}").into());
                trade = self.report(&member.who, trade.id, fill).await;
            }
            trades.push(trade);
            if round % 4 == 3 {
                self.clock().advance(MILLI);
            }
        }
        trades.sort_by_key(|trade| (trade.created_at, trade.id));
        trades
    }
}

// rule: cli.export
pub async fn trades_are_exported_once_in_order(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let trades = world.busy(&member, 23).await;
    for limit in [1, 2, 7, 23, 500] {
        let found = world.trades_in(&member, ever(), limit).await;
        assert_eq!(found, trades, "limit {limit}");
    }
}

// rule: cli.export
pub async fn export_window_includes_start_and_excludes_end(world: World<impl Fixture>) {
    let start = world.now();
    let member = world.rich("acme").await;
    let trades = world.busy(&member, 20).await;
    let end = world.now().plus(MILLI);
    let (mut parts, mut entries, mut from) = (Vec::new(), Vec::new(), start);
    while from < end {
        let window = Window::new(from, from.plus(MILLI)).unwrap();
        let part = world.trades_in(&member, window, 3).await;
        assert!(part.iter().all(|trade| trade.created_at == from));
        parts.extend(part);
        let part = world.entries_in(&member, window, 3).await;
        assert!(part.iter().all(|booked| booked.entry.created_at == from));
        entries.extend(part);
        from = from.plus(MILLI);
    }
    assert_eq!(parts, trades, "adjacent windows contain each row once");
    assert_eq!(entries, world.entries_in(&member, ever(), 500).await);
    let before = Window::new(start.minus(MILLI), start).unwrap();
    assert!(world.trades_in(&member, before, 5).await.is_empty());
    assert!(world.entries_in(&member, before, 5).await.is_empty());
}

// rule: cli.export
pub async fn entries_of_every_currency_are_exported_in_order(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let trades = world.busy(&member, 23).await;
    let found = world.entries_in(&member, ever(), 500).await;
    for limit in [1, 2, 7] {
        assert_eq!(found, world.entries_in(&member, ever(), limit).await);
    }
    let settled = trades.iter().filter(|it| it.state.settlement().is_some());
    assert_eq!(found.len(), 2 + trades.len() + settled.clone().count());
    let settlements = found
        .iter()
        .filter(|booked| booked.entry.transfer.reason == Reason::Settlement);
    assert_eq!(settlements.count(), settled.count());
    let place = |booked: &ExportedEntry| {
        let entry = &booked.entry;
        let number = entry.mark.map_or(i64::MAX, |mark| mark.sequence);
        let asset = entry.transfer.amount.asset().code().to_owned();
        (entry.created_at, asset, number)
    };
    assert!(found.is_sorted_by_key(place), "{found:?}");
    for asset in [eur(), usdt()] {
        let numbers: Vec<i64> = found
            .iter()
            .filter(|booked| booked.entry.transfer.amount.asset() == asset)
            .filter_map(|booked| booked.entry.mark.map(|mark| mark.sequence))
            .collect();
        let last = i64::try_from(numbers.len()).unwrap();
        assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "none is missing");
    }
}

// rule: cli.export
pub async fn exported_receipt_has_network(world: World<impl Fixture>) {
    let who = world.member("acme").await.who;
    let mut tx = world.ports().store.begin("receive").await.unwrap();
    let before = tx.account_lock(&who, usdt()).await.unwrap();
    let now = tx.now().await.unwrap();
    let received = amount("5", usdt());
    let (after, entry) = world.credit(&who, &before, received, "r", now);
    tx.entry_post(&who, &before, &entry).await.unwrap();
    let deposit = Deposit {
        reference: "r".to_owned(),
        amount: received,
        network: Some(Network::Solana),
        entry: entry.id,
        created_at: now,
    };
    tx.deposit_insert(&who, &deposit).await.unwrap();
    let (_, adjusted) = world.credit(&who, &after, received, "r", now);
    tx.entry_post(&who, &after, &adjusted).await.unwrap();
    tx.commit().await.unwrap();
    let exports = &world.ports().exports;
    let pages = exports.ledger_export(&who, ever()).await.unwrap();
    let found = all(pages, 10).await;
    let expected = [(entry, Some(Network::Solana)), (adjusted, None)]
        .map(|(entry, network)| ExportedEntry { entry, network });
    assert_eq!(found, expected);
}

/// Rows that are written between two pages are absent, and so are their changes.
// rule: cli.export
pub async fn export_reads_one_snapshot(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let trades = world.busy(&member, 8).await;
    let (who, exports) = (&member.who, &world.ports().exports);
    let mut pages = exports.trades_export(who, ever()).await.unwrap();
    let mut entries = exports.ledger_export(who, ever()).await.unwrap();
    let mut found = pages.next(2).await.unwrap();
    let booked = entries.next(2).await.unwrap().len();
    let open = trades.iter().rfind(|it| it.state.settlement().is_none());
    let report = CannotComplete;
    world.report(who, open.unwrap().id, report).await;
    world.busy(&member, 4).await;
    found.extend(all(pages, 3).await);
    assert_eq!(found, trades);
    let rest = all(entries, 3).await.len();
    let settled = trades.iter().filter(|it| it.state.settlement().is_some());
    assert_eq!(booked + rest, 2 + trades.len() + settled.count());
}

// rule: cli.export, tenancy.nothing-crosses
pub async fn exports_are_separate_by_partner_and_mode(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let other = world.member("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    world.busy(&member, 4).await;
    for stranger in [&other, &live] {
        assert!(world.trades_in(stranger, ever(), 9).await.is_empty());
        assert!(world.entries_in(stranger, ever(), 9).await.is_empty());
    }
}
