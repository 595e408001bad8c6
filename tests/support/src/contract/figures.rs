//! Statistics for operators: the number of trades of a mode by status.

use std::time::Duration;

use kernel::{Mode, UpstreamName};
use pools_core::batch::{TransactCommand, TransactOutcome};
use pools_core::ports::TradeStats;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{CannotComplete, Released, Reversed};
use pools_core::trade::TradeStatus;
use pools_core::usecases::poll_trade::RETURN_WINDOW;

use crate::contract::fixture::{Fixture, WINDOW};
use crate::contract::world::{Member, ONE, World, amount, delivered, eur, profile, terms};

impl<F: Fixture> World<F> {
    async fn trade_stats(&self, mode: Mode) -> TradeStats {
        let port = &self.ports().figures;
        port.trade_stats(mode).await.unwrap()
    }
}

fn standing(counts: [u64; 5], oldest_reserved: Option<u64>) -> TradeStats {
    let mut counts = counts.into_iter();
    TradeStats {
        by_status: TradeStatus::ALL.map(|status| (status, counts.next().unwrap_or_default())),
        oldest_reserved: oldest_reserved.map(Duration::from_secs),
    }
}

pub async fn trades_are_counted_by_status(mut world: World<impl Fixture>) {
    let (member, other) = (world.rich("acme").await, world.rich("other").await);
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    world.fund(&live.who, amount("5", eur()), "start").await;
    let nothing = standing([0; 5], None);
    assert_eq!(world.trade_stats(Mode::Test).await, nothing);
    let first = world.trade(&member, Side::OnRamp, ONE).await;
    world.clock().advance(Duration::from_secs(7));
    world.trade(&live, Side::OnRamp, ONE).await;
    let second = world.trade(&other, Side::OffRamp, ONE).await;
    world.clock().advance(Duration::from_secs(3));
    let both = standing([2, 0, 0, 0, 0], Some(10));
    assert_eq!(world.trade_stats(Mode::Test).await, both);

    world.report(&member.who, first.id, delivered()).await;
    let one = standing([1, 1, 0, 0, 0], Some(3));
    assert_eq!(world.trade_stats(Mode::Test).await, one);
    world.report(&other.who, second.id, Released).await;
    let third = world.trade(&other, Side::OnRamp, ONE).await;
    world.report(&other.who, third.id, CannotComplete).await;
    world.report(&member.who, first.id, Reversed(None)).await;
    let ended = standing([0, 0, 1, 1, 1], None);
    assert_eq!(world.trade_stats(Mode::Test).await, ended);
    assert_eq!(world.trade_stats(Mode::Test).await, ended, "asked again");
    let other_mode = standing([1, 0, 0, 0, 0], Some(3));
    assert_eq!(world.trade_stats(Mode::Live).await, other_mode);
    world.fixture.reopen(WINDOW).await;
    assert_eq!(world.trade_stats(Mode::Test).await, ended);
}

// rule: pools.engine.which
pub async fn reserved_trades_of_other_engines_are_counted(world: World<impl Fixture>) {
    let (member, other) = (world.rich("acme").await, world.rich("other").await);
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    world.fund(&live.who, amount("5", eur()), "start").await;
    let held = async |world: &World<_>, mode, engine| {
        let engine = UpstreamName::built_in(engine);
        let figures = &world.ports().figures;
        let held = figures
            .trades_held_elsewhere(mode, &[engine])
            .await
            .unwrap();
        let held = held
            .iter()
            .map(|(engine, trades)| format!("{engine} {trades}"));
        held.collect::<Vec<_>>()
    };
    let nothing: [&str; 0] = [];
    assert_eq!(held(&world, Mode::Test, "engine-b").await, nothing);
    for member in [&member, &member, &other, &live] {
        world.trade(member, Side::OnRamp, ONE).await;
    }
    let quote = world.quote(&other.who, terms(Side::OnRamp, ONE)).await;
    let elsewhere = TransactCommand {
        engine: UpstreamName::built_in("https://engine.example:8443/a"),
        ..world.command(&other, quote.id)
    };
    let opened = world.transact(&[elsewhere]).await;
    assert!(
        matches!(&opened[..], [Ok(TransactOutcome::Opened(_))]),
        "{opened:?}"
    );
    let (a, c) = ("engine-a 3", "https://engine.example:8443/a 1");
    assert_eq!(held(&world, Mode::Test, "engine-b").await, [a, c]);
    assert_eq!(held(&world, Mode::Test, "engine-a").await, [c]);
    assert_eq!(held(&world, Mode::Live, "engine-a").await, nothing);
    assert_eq!(held(&world, Mode::Live, "engine-b").await, ["engine-a 1"]);
    // A settled trade is no longer open.
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    world.report(&member.who, trade.id, delivered()).await;
    assert_eq!(held(&world, Mode::Test, "engine-b").await, [a, c]);
}

// rule: pools.engine.returnable
pub async fn trades_of_other_engines_are_counted_until_return_window_ends(
    world: World<impl Fixture>,
) {
    let (member, other) = (world.rich("acme").await, world.rich("other").await);
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    world.fund(&live.who, amount("5", eur()), "start").await;
    let counted = async |world: &World<_>, mode, engine| {
        let engines = [UpstreamName::built_in(engine)];
        let figures = &world.ports().figures;
        let in_slices = async |slice| {
            let counted = figures.trades_returnable_elsewhere(mode, &engines, slice);
            counted.await.unwrap()
        };
        let counted = in_slices(100).await;
        for slice in [1, 2] {
            assert_eq!(in_slices(slice).await, counted, "in slices of {slice}");
        }
        counted
    };
    let settle = async |member: &Member| {
        let trade = world.trade(member, Side::OnRamp, ONE).await;
        world.report(&member.who, trade.id, delivered()).await;
        trade.id
    };
    let of_a = |trades: u64| vec![(Some(UpstreamName::built_in("engine-a")), trades)];
    settle(&member).await;
    world.clock().advance(Duration::from_secs(60));
    for member in [&member, &other, &live] {
        settle(member).await;
    }
    let returned = settle(&other).await;
    // Neither a reserved trade nor a failed one can be returned.
    world.trade(&member, Side::OnRamp, ONE).await;
    let failed = world.trade(&member, Side::OnRamp, ONE).await;
    world.report(&member.who, failed.id, CannotComplete).await;
    assert_eq!(counted(&world, Mode::Test, "engine-b").await, of_a(4));
    assert_eq!(counted(&world, Mode::Live, "engine-b").await, of_a(1));
    assert_eq!(counted(&world, Mode::Test, "engine-a").await, []);
    world.report(&other.who, returned, Reversed(None)).await;
    assert_eq!(counted(&world, Mode::Test, "engine-b").await, of_a(3));
    // The engine is not asked at the end of the window.
    world
        .clock()
        .advance(RETURN_WINDOW - Duration::from_secs(60));
    assert_eq!(counted(&world, Mode::Test, "engine-b").await, of_a(2));
    // Trades of an earlier release name no engine.
    let forget = "UPDATE trades SET engine = NULL WHERE partner_id = 'other'";
    world.fixture.damage(forget).await;
    let unnamed = [(None, 1), (Some(UpstreamName::built_in("engine-a")), 1)];
    assert_eq!(counted(&world, Mode::Test, "engine-b").await, unnamed);
    assert_eq!(counted(&world, Mode::Test, "engine-a").await, unnamed[..1]);
    world.clock().advance(Duration::from_secs(60));
    assert_eq!(counted(&world, Mode::Test, "engine-b").await, []);
}

/// Trades of an earlier release name no engine. The first engine that starts claims them.
// rule: pools.engine.which
pub async fn reserved_trades_without_engine_are_claimed_once(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    world.fund(&live.who, amount("5", eur()), "start").await;
    for member in [&member, &member, &live] {
        world.trade(member, Side::OnRamp, ONE).await;
    }
    let settled = world.trade(&member, Side::OnRamp, ONE).await;
    world.report(&member.who, settled.id, delivered()).await;
    let damage = "UPDATE trades SET engine = NULL";
    world.fixture.damage(damage).await;
    let figures = &world.ports().figures;
    let (first, second) = (
        UpstreamName::built_in("engine-a"),
        UpstreamName::built_in("engine-b"),
    );
    for (engine, claimed) in [(&first, 2), (&second, 0)] {
        assert_eq!(
            figures.trades_claim(Mode::Test, engine).await.unwrap(),
            claimed
        );
    }
    let held = figures.trades_held_elsewhere(Mode::Test, &[second]).await;
    assert_eq!(held.unwrap(), [(first, 2)]);
    world.assert_clean().await;
}
