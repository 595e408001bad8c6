//! What an operator watches: how the trades of a mode stand.

use std::time::Duration;

use kernel::Mode;
use pools_core::ports::TradesStanding;
use pools_core::quote::Side;
use pools_core::trade::{EngineReport, TradeStatus};

use crate::fixture::{Fixture, WINDOW};
use crate::world::{ONE, World, amount, eur, profile};

impl<F: Fixture> World<F> {
    async fn trades_standing(&self, mode: Mode) -> TradesStanding {
        let port = &self.ports().figures;
        port.trades_standing(mode).await.unwrap()
    }
}

fn standing(counts: [u64; 5], oldest_reserved: Option<u64>) -> TradesStanding {
    let mut counts = counts.into_iter();
    TradesStanding {
        by_status: TradeStatus::ALL.map(|status| (status, counts.next().unwrap_or_default())),
        oldest_reserved: oldest_reserved.map(Duration::from_secs),
    }
}

pub async fn trades_are_counted_by_where_they_stand(store: impl Fixture) {
    let mut world = World::new(store);
    let (member, other) = (world.rich("acme").await, world.rich("other").await);
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    world.fund(&live.who, amount("5", eur()), "start").await;
    let nothing = standing([0; 5], None);
    assert_eq!(world.trades_standing(Mode::Test).await, nothing);
    let first = world.trade(&member, Side::OnRamp, ONE).await;
    world.clock().advance(Duration::from_secs(7));
    world.trade(&live, Side::OnRamp, ONE).await;
    let second = world.trade(&other, Side::OffRamp, ONE).await;
    world.clock().advance(Duration::from_secs(3));
    let both = standing([2, 0, 0, 0, 0], Some(10));
    assert_eq!(world.trades_standing(Mode::Test).await, both);

    let delivered = EngineReport::Delivered("fill".to_owned());
    world.report(&member.who, first.id, delivered).await;
    let one = standing([1, 1, 0, 0, 0], Some(3));
    assert_eq!(world.trades_standing(Mode::Test).await, one);
    world
        .report(&other.who, second.id, EngineReport::LetGo)
        .await;
    let third = world.trade(&other, Side::OnRamp, ONE).await;
    world
        .report(&other.who, third.id, EngineReport::CannotComplete)
        .await;
    world
        .report(&member.who, first.id, EngineReport::Reversed)
        .await;
    let ended = standing([0, 0, 1, 1, 1], None);
    assert_eq!(world.trades_standing(Mode::Test).await, ended);
    assert_eq!(
        world.trades_standing(Mode::Test).await,
        ended,
        "asked again"
    );
    let other_mode = standing([1, 0, 0, 0, 0], Some(3));
    assert_eq!(world.trades_standing(Mode::Live).await, other_mode);
    world.fixture.reopen(WINDOW).await;
    assert_eq!(world.trades_standing(Mode::Test).await, ended);
}
