//! Events: one per end of a trade, with a delivery where somebody listens.

use kernel::{Mode, StoreError};
use partner_core::events::Service;
use pools_core::quote::Side;
use pools_core::trade::{EngineReport, TradeEvent};

use crate::fixture::Fixture;
use crate::world::{ONE, World, profile};

pub async fn an_end_is_reported_once(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let object = trade.id.to_string();
    let events = &world.ports().events;
    assert!(
        events
            .events_of(&member.who, &object)
            .await
            .unwrap()
            .is_empty()
    );
    world
        .report(
            &member.who,
            trade.id,
            EngineReport::Delivered("fill".to_owned()),
        )
        .await;
    let found = events.events_of(&member.who, &object).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, TradeEvent::Settled.as_str());
    assert_eq!(
        (found[0].body.0.as_slice(), found[0].created_at),
        (&b"sealed"[..], world.now())
    );
    world
        .report(&member.who, trade.id, EngineReport::Reversed)
        .await;
    assert_eq!(
        events.events_of(&member.who, &object).await.unwrap().len(),
        1
    );

    let mut tx = world.ports().store.begin("twice").await.unwrap();
    let again = world.event(
        &member.who,
        &trade,
        TradeEvent::Settled.as_str(),
        "another id",
        world.now(),
    );
    let refused = tx.event_insert(&again).await;
    assert!(matches!(refused, Err(StoreError::Guard(_))), "{refused:?}");
    drop(tx);
    world.assert_clean().await;
}

pub async fn a_foreign_event_is_absent(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let other = world.member("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    world
        .report(&member.who, trade.id, EngineReport::LetGo)
        .await;
    for who in [&other.who, &live.who] {
        let found = world
            .ports()
            .events
            .events_of(who, &trade.id.to_string())
            .await
            .unwrap();
        assert!(found.is_empty());
    }
}

/// The endpoint of the event's own service, mode and partner, as of the event.
pub async fn a_delivery_needs_an_endpoint(store: impl Fixture) {
    let world = World::new(store);
    let member = world.funded("acme").await;
    let other = world.funded("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let end = async |member| {
        let before = world.figure("deliveries").await;
        let trade = world.trade(member, Side::OnRamp, ONE).await;
        world
            .report(&member.who, trade.id, EngineReport::LetGo)
            .await;
        world.figure("deliveries").await - before
    };
    assert_eq!(end(&member).await, 0);
    world
        .set_endpoint(
            &member,
            &world.endpoint(Mode::Test, Service::Gate, "https://gate.example"),
        )
        .await;
    world
        .set_endpoint(
            &live,
            &world.endpoint(Mode::Live, Service::Pools, "https://live.example"),
        )
        .await;
    assert_eq!(end(&member).await, 0);
    world
        .set_endpoint(
            &member,
            &world.endpoint(Mode::Test, Service::Pools, "https://acme.example"),
        )
        .await;
    assert_eq!(end(&member).await, 1);
    assert_eq!(end(&other).await, 0);
    world.assert_clean().await;
}

impl<F: Fixture> World<F> {
    async fn figure(&self, name: &str) -> u64 {
        let figures = self.audit().await.figures;
        let (_, figure) = figures
            .iter()
            .find(|(figure, _)| *figure == name)
            .expect("a figure");
        figure.parse().unwrap()
    }
}
