//! Deliveries of an endpoint that was down and accepts deliveries again.

use std::collections::BTreeSet;
use std::time::Duration;

use kernel::Cas;
use partner_core::Tenant;
use partner_core::events::Endpoint;
use partner_core::ports::ClaimedDelivery;
use partner_core::webhooks::delivery::AttemptOutcome::{Delivered, GivenUp, RetryAfter};
use partner_core::webhooks::delivery::{DeliveryInput, DeliveryState, MIN_OUTAGE, Progress};

use crate::contract::fixture::Fixture;
use crate::contract::world::{MILLI, World};

const HOUR: Duration = Duration::from_secs(60 * 60);
const ALL: u32 = 1_000;

impl<F: Fixture> World<F> {
    /// Hastens at most `limit` deliveries. Returns their number.
    async fn hasten(&self, who: &Tenant, endpoint: &Endpoint, limit: u32) -> u64 {
        let port = &self.ports().deliveries;
        let hastened = port.deliveries_hasten(who, endpoint.id, limit);
        hastened.await.unwrap()
    }

    /// Claims everything that is due, and records that it failed. Returns the number of attempts.
    async fn fail_all(&self) -> usize {
        let claimed = self.claim_all().await;
        for (token, one) in &claimed {
            let failed = RetryAfter(HOUR);
            assert_eq!(self.conclude(*token, one, failed).await, Cas::Won);
        }
        claimed.len()
    }

    async fn progress(&self, who: &Tenant, object: &str) -> Progress {
        self.deliveries(who, object).await[0].progress
    }
}

fn events(claimed: &[(u64, ClaimedDelivery)]) -> BTreeSet<&str> {
    let events = claimed.iter().map(|(_, one)| one.event.id.as_str());
    events.collect()
}

// rule: webhook.drain, webhook.isolation
pub async fn only_waiting_deliveries_of_endpoint_are_hastened(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    let (rival, _) = world.listener("rival").await;
    for (who, event) in [(&acme.who, "a1"), (&acme.who, "a2"), (&rival.who, "r")] {
        world.emit(who, event, event).await;
    }
    assert_eq!(world.fail_all().await, 3);
    world.clock().advance(MIN_OUTAGE + MILLI);
    let before = world.progress(&acme.who, "a1").await;
    let waits = world.progress(&rival.who, "r").await;
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 2);
    let hastened = before.advance(DeliveryInput::Hasten, world.now()).unwrap();
    for event in ["a1", "a2"] {
        assert_eq!(world.progress(&acme.who, event).await, hastened);
    }
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 0);
    assert_eq!(world.hasten(&rival.who, &endpoint, ALL).await, 0);
    assert_eq!(world.progress(&rival.who, "r").await, waits);
    assert_eq!(
        events(&world.claim_all().await),
        BTreeSet::from(["a1", "a2"])
    );
    world.assert_clean().await;
}

// rule: webhook.drain
pub async fn failed_hastened_attempt_uses_none_of_the_schedule(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    for event in ["retried", "last", "accepted"] {
        world.emit(&acme.who, event, event).await;
    }
    world.fail_all().await;
    let before = world.progress(&acme.who, "last").await;
    world.clock().advance(MIN_OUTAGE + MILLI);
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 3);
    for (token, one) in world.claim_all().await {
        let DeliveryState::Pending { due } = before.state else {
            panic!("{before:?}")
        };
        assert_eq!((one.attempts, one.former), (1, Some(due)));
        let outcome = match one.event.id.as_str() {
            "retried" => RetryAfter(HOUR * 9),
            "last" => GivenUp,
            _ => Delivered,
        };
        assert_eq!(world.conclude(token, &one, outcome).await, Cas::Won);
    }
    for event in ["retried", "last"] {
        assert_eq!(world.progress(&acme.who, event).await, before);
    }
    let state = DeliveryState::Succeeded { at: world.now() };
    let accepted = world.progress(&acme.who, "accepted").await;
    assert_eq!(accepted, Progress::new(state, 2));
    let failed = world.deliveries(&acme.who, "retried").await.remove(0);
    assert_eq!(failed.last_response_status, Some(503), "it is recorded");
    assert!(world.claim_all().await.is_empty());
    // The attempt of the schedule counts again.
    world.clock().advance(HOUR);
    assert_eq!(world.fail_all().await, 2);
    let retried = world.progress(&acme.who, "retried").await;
    assert_eq!((retried.attempts, retried.former), (2, None));
    world.assert_clean().await;
}

// rule: webhook.drain, webhook.lease
pub async fn hastened_delivery_keeps_former_instant_after_its_lease(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e").await;
    world.fail_all().await;
    let before = world.progress(&acme.who, "o").await;
    world.clock().advance(MIN_OUTAGE + MILLI);
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 1);
    assert_eq!(world.claim_all().await.len(), 1);
    world.clock().advance(MIN_OUTAGE);
    assert_eq!(world.fail_all().await, 1, "the lease has expired");
    assert_eq!(world.progress(&acme.who, "o").await, before);
    world.assert_clean().await;
}

// rule: webhook.drain
pub async fn nothing_is_hastened_within_a_minute_or_without_failure(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    let (calm, at_calm) = world.listener("calm").await;
    world.emit(&acme.who, "o", "e").await;
    world.fail_all().await;
    world.emit(&calm.who, "o", "untried").await;
    world.clock().advance(MIN_OUTAGE);
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 0);
    world.clock().advance(MILLI);
    assert_eq!(world.hasten(&calm.who, &at_calm, ALL).await, 0);
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 1);
    world.assert_clean().await;
}

// rule: webhook.drain, webhook.order
pub async fn hastened_deliveries_of_object_keep_their_order(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    for event in ["e1", "e2"] {
        world.emit(&acme.who, "o", event).await;
    }
    assert_eq!(world.fail_all().await, 1);
    let waits = world.progress(&acme.who, "o").await.state;
    world.clock().advance(MIN_OUTAGE + MILLI);
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 2);
    assert_eq!(world.fail_all().await, 1);
    // The second event is behind the first one again.
    let both = world.deliveries(&acme.who, "o").await;
    let both: Vec<Progress> = both.iter().map(|one| one.progress).collect();
    assert_eq!(both, [Progress::new(waits, 1), Progress::new(waits, 0)]);
    assert!(world.claim_all().await.is_empty());
    assert_eq!(world.hasten(&acme.who, &endpoint, ALL).await, 2);
    for event in ["e1", "e2"] {
        let claimed = world.claim_all().await;
        assert_eq!(events(&claimed), BTreeSet::from([event]));
        let (token, one) = &claimed[0];
        assert_eq!(world.conclude(*token, one, Delivered).await, Cas::Won);
    }
    world.assert_clean().await;
}

/// The deliveries that are due first.
// rule: webhook.drain
pub async fn hastening_moves_no_more_than_its_limit(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    for event in ["a", "b", "c"] {
        world.emit(&acme.who, event, event).await;
    }
    for (token, one) in world.claim_all().await {
        let wait = match one.event.id.as_str() {
            "a" => HOUR * 3,
            "b" => HOUR,
            _ => HOUR * 2,
        };
        let failed = RetryAfter(wait);
        assert_eq!(world.conclude(token, &one, failed).await, Cas::Won);
    }
    world.clock().advance(MIN_OUTAGE + MILLI);
    assert_eq!(world.hasten(&acme.who, &endpoint, 2).await, 2);
    assert_eq!(events(&world.claim_all().await), BTreeSet::from(["b", "c"]));
    assert_eq!(world.hasten(&acme.who, &endpoint, 2).await, 1);
    assert_eq!(events(&world.claim_all().await), BTreeSet::from(["a"]));
    world.assert_clean().await;
}
