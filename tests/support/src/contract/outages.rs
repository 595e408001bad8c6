//! Writes for a store's own tests of an unavailable database.

use std::time::Duration;

use kernel::{Cas, StoreResult};
use partner_core::ports::Readiness;
use partner_core::webhooks::delivery::AttemptOutcome;
use pools_core::batch::TransactCommand;
use pools_core::quote::{Quote, Side};

use crate::contract::fixture::{Fixture, GateFixture};
use crate::contract::gate_world::draft;
use crate::contract::world::{Member, ONE, World, eur, terms};

/// Waits until a store is ready. On a busy machine its probe may be late.
///
/// # Panics
/// If the store is never ready.
pub async fn soon_ready(store: &dyn Readiness) {
    for _ in 0..200 {
        if store.ready().await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    store.ready().await.unwrap();
}

/// A funded partner and its writes.
#[expect(
    missing_debug_implementations,
    reason = "a fixture has no text of its own"
)]
pub struct Writer<F> {
    world: World<F>,
    member: Member,
}

impl<F: Fixture> Writer<F> {
    /// A partner with enough money for every test.
    pub async fn start(fixture: F) -> Self {
        let world = World::new(fixture);
        let member = world.funded("acme").await;
        Self { world, member }
    }

    /// Creates and commits a quote.
    ///
    /// # Errors
    /// The store's error.
    pub async fn quote(&self) -> StoreResult<Quote> {
        let new = self
            .world
            .new_quote(&self.member.who, terms(Side::OnRamp, ONE));
        let mut opened = self.world.ports().quotes.quotes_open(&[new]).await?;
        Ok(opened.remove(0))
    }

    /// Makes the transact of a quote.
    #[must_use]
    pub fn command(&self, quote: &Quote) -> TransactCommand {
        self.world.command(&self.member, quote.id)
    }

    /// Runs a transact.
    ///
    /// # Errors
    /// The store's error.
    pub async fn transact(&self, command: &TransactCommand) -> StoreResult<()> {
        let batch = std::slice::from_ref(command);
        let lane = &self.world.ports().transact;
        let decided = lane.transact(batch).await?;
        assert!(decided[0].is_ok(), "{decided:?}");
        Ok(())
    }

    /// Whether the store reports that it is ready.
    ///
    /// # Errors
    /// The store's error.
    pub async fn ready(&self) -> StoreResult<()> {
        self.world.ports().readiness.ready().await
    }

    /// Waits until the store is ready.
    pub async fn soon_ready(&self) {
        soon_ready(&*self.world.ports().readiness).await;
    }

    /// The partner's balance in whole euros.
    pub async fn euros(&self) -> i64 {
        self.world.available(&self.member.who, eur()).await / ONE
    }
}

impl<F: GateFixture> Writer<F> {
    /// Creates a session of another partner, and records the delivery of its event.
    ///
    /// # Panics
    /// If there is not one delivery.
    pub async fn deliver_session(&self) {
        let gate = self.world.open_listening_gate("shop").await;
        gate.opened("s1", draft("10.63")).await;
        let order = self.world.gate_order();
        let claimed = self.world.claim_by(&order).await;
        assert_eq!(claimed.len(), 1);
        let delivered = AttemptOutcome::Delivered;
        let recorded = self.world.conclude(order.token, &claimed[0], delivered);
        assert_eq!(recorded.await, Cas::Won);
    }
}
