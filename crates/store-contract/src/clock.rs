//! The store's clock: never backwards, not even over a restart.

use std::time::Duration;

use kernel::{Mode, Timestamp};
use partner_core::events::Service;
use pools_core::quote::Side;
use pools_core::trade::EngineReport;

use crate::fixture::{Fixture, WINDOW};
use crate::world::{Member, ONE, World};

const HOUR: Duration = Duration::from_secs(3600);

impl<F: Fixture> World<F> {
    async fn store_now(&self) -> Timestamp {
        let mut tx = self.ports().store.begin("clock").await.unwrap();
        tx.now().await.unwrap()
    }
}

// rule: base.clock-forward
pub async fn the_clock_never_runs_backwards(store: impl Fixture) {
    let world = World::new(store);
    let used = world.store_now().await;
    assert_eq!(used, world.now());
    world.clock().go_back(HOUR);
    assert_eq!(world.store_now().await, used);
    world.clock().advance(HOUR * 2);
    assert_eq!(world.store_now().await, used.plus(HOUR));
}

/// The newest instant stored, wherever it stands, is where the clock begins again.
// rule: base.clock-forward
pub async fn the_clock_goes_on_where_it_stopped(store: impl Fixture) {
    let mut world = World::new(store);
    let member = world.rich("acme").await;
    for last in 0..9 {
        world.clock().advance(HOUR);
        let stored = world.write_something(&member, last).await;
        world.clock().go_back(HOUR * 100);
        world.fixture.reopen(WINDOW).await;
        assert_eq!(world.store_now().await, stored, "kind {last}");
        world.clock().set(stored);
    }
}

impl<F: Fixture> World<F> {
    /// Writes an instant of a kind; the instant.
    async fn write_something(&self, member: &Member, kind: u32) -> Timestamp {
        match kind {
            0 => {
                self.buy(member, 1).await;
            }
            1 => {
                let quote = self.buy(member, 1).await;
                self.clock().advance(Duration::from_secs(1));
                self.reject(&member.who, quote.id).await.won().unwrap();
            }
            2 => {
                self.trade(member, Side::OnRamp, ONE).await;
            }
            3 => {
                let trade = self.trade(member, Side::OffRamp, ONE).await;
                self.clock().advance(HOUR);
                self.report(&member.who, trade.id, EngineReport::LetGo)
                    .await;
            }
            4 => {
                self.member("new").await;
            }
            5 => {
                self.fund(
                    &member.who,
                    crate::world::amount("1", crate::world::eur()),
                    "later",
                )
                .await;
            }
            6 => {
                let endpoint = self.endpoint(Mode::Test, Service::Pools, "https://a.example/");
                self.set_endpoint(member, &endpoint).await;
            }
            7 => {
                let trade = self.trade(member, Side::OnRamp, ONE).await;
                let delivered = EngineReport::Delivered("fill".to_owned());
                self.report(&member.who, trade.id, delivered).await;
                self.clock().advance(HOUR);
                self.report(&member.who, trade.id, EngineReport::Reversed)
                    .await;
            }
            _ => {
                let mut tx = self
                    .ports()
                    .provision
                    .provision_begin("revoke")
                    .await
                    .unwrap();
                tx.key_revoke(member.key, self.now())
                    .await
                    .unwrap()
                    .won()
                    .unwrap();
                tx.commit().await.unwrap();
            }
        }
        self.now()
    }
}

// rule: base.clock-forward, pools.quote-record.monotone
pub async fn what_has_expired_stays_expired_when_the_clock_is_set_back(store: impl Fixture) {
    let world = World::new(store);
    let member = world.rich("acme").await;
    let quote = world.buy(&member, 1).await;
    world.clock().set(quote.expires_at);
    for _ in 0..2 {
        let seen = world.ports().store.quote_get(&member.who, quote.id).await;
        let seen = seen.unwrap().unwrap();
        assert_eq!(seen.at, quote.expires_at);
        let status = seen.value.status(seen.at);
        assert_eq!(status, pools_core::quote::QuoteStatus::Expired);
        world.clock().go_back(HOUR);
    }
    let next = world.buy(&member, 1).await;
    assert_eq!(next.created_at, quote.expires_at);
}
