//! The store's clock: never backwards, not even over a restart.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock as _, Mode, StoreError, Timestamp};
use partner_core::events::Service;
use pools_core::books::decide_batch;
use pools_core::ports::CLOCK_TOLERANCE;
use pools_core::quote::Side;
use pools_core::trade::EngineReport;

use crate::fixture::{Fixture, ManualClock, WINDOW};
use crate::world::{Member, ONE, World, amount, eur, terms};

const HOUR: Duration = Duration::from_secs(3600);
const MILLI: Duration = Duration::from_millis(1);

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
                self.fund(&member.who, amount("1", eur()), "later").await;
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
    world.clock().set(quote.expires_at.minus(CLOCK_TOLERANCE));
    let next = world.buy(&member, 1).await;
    assert_eq!(next.created_at, quote.expires_at);
}

/// A program whose clock is ahead credits: whoever writes next goes on from there.
// rule: base.clock-forward, pools.ledger.order
pub async fn no_process_precedes_another(store: impl Fixture) {
    let world = World::new(store);
    let member = world.rich("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let quote = world.buy(&member, 1).await;
    let ahead = Arc::new(ManualClock::default());
    let beside = world.fixture.beside(Arc::clone(&ahead)).await;
    for round in 0..3 {
        ahead.set(world.now().plus(CLOCK_TOLERANCE));
        let reference = format!("beside-{round}");
        let one = amount("1", eur());
        world.fund_over(&beside, &member.who, one, &reference).await;
        match round {
            0 => {
                world.fund(&member.who, one, "after").await;
            }
            1 => {
                let command = world.command(&member, quote.id);
                world.transact_one(command).await.unwrap();
                let next = world.buy(&member, 1).await;
                assert_eq!(next.created_at, ahead.now());
            }
            _ => {
                world
                    .report(&member.who, trade.id, EngineReport::LetGo)
                    .await;
            }
        }
        let entries = world.entries(&member.who, eur()).await;
        assert_eq!(entries[0].created_at, ahead.now(), "round {round}");
        assert!(
            entries
                .windows(2)
                .all(|pair| pair[1].created_at <= pair[0].created_at),
            "{entries:?}"
        );
        world.clock().advance(MILLI);
    }
    world.assert_clean().await;
}

/// On a clock that stands still a quote would live too long.
// rule: base.clock-standing
pub async fn nothing_is_traded_on_a_clock_that_stands_still(store: impl Fixture) {
    let world = World::new(store);
    let member = world.rich("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let settled = world.trade(&member, Side::OnRamp, ONE).await;
    let quote = world.buy(&member, 1).await;
    let before = world.standing(&member.who).await;
    world.clock().go_back(CLOCK_TOLERANCE + MILLI);

    let new = world.new_quote(&member.who, terms(Side::OnRamp, ONE));
    let refused = world.ports().quotes.quotes_open(&[new]).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    let command = world.command(&member, quote.id);
    let transact = &world.ports().transact;
    let refused = transact.transact(&[command], decide_batch).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    assert_eq!(world.standing(&member.who).await, before);

    // What was begun is brought to its end, and money comes in.
    world
        .report(&member.who, trade.id, EngineReport::LetGo)
        .await;
    let delivered = EngineReport::Delivered("fill".to_owned());
    world.report(&member.who, settled.id, delivered).await;
    world
        .fund(&member.who, amount("1", eur()), "meanwhile")
        .await;
    let rejected = world.reject(&member.who, quote.id).await;
    rejected.won().unwrap();

    world.clock().advance(MILLI);
    let quote = world.buy(&member, 1).await;
    let command = world.command(&member, quote.id);
    world.transact_one(command).await.unwrap();
    world.assert_clean().await;
}
