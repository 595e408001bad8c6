//! What is claimed ahead of its turn, for an endpoint that answers quickly.

use std::collections::BTreeMap;
use std::time::Duration;

use partner_core::events::Service;
use partner_core::ports::Deliveries;

use crate::receiver::{Receiver, Reply};
use crate::world::{Listener, Running, World, millis};

/// Attempts under way at one endpoint.
const AT_ONCE: usize = 32;
/// A receiver answers so many, and falls silent.
const TAKEN: usize = 16;
const CROWD: usize = 300;

/// A worker has a crowd's first in hand: sixteen were taken at once, so that more were claimed than
/// can be under way, and of those that are under way none is answered.
async fn fallen_silent(world: &World) -> (Receiver, Listener, Running) {
    let taken = std::iter::repeat_n(Reply::Status(200), TAKEN);
    let silence = std::iter::repeat_n(Reply::Silence, AT_ONCE);
    let receiver = Receiver::start(taken.chain(silence)).await;
    let listener = world.listener("acme", &receiver.url()).await;
    world.emit_crowd(&listener, CROWD).await;
    let worker = world.start();
    receiver.wait_for(TAKEN + AT_ONCE).await;
    until_held(world, |held| held > 100).await;
    (receiver, listener, worker)
}

/// Waits until so many deliveries are in flight.
async fn until_held(world: &World, wanted: impl Fn(u64) -> bool) {
    let mut held = 0;
    for _ in 0..500 {
        let standing = world
            .store
            .deliveries_standing(world.setup.mode, Service::Pools)
            .await;
        held = standing.unwrap().in_flight;
        if wanted(held) {
            return;
        }
        tokio::time::sleep(millis(10)).await;
    }
    panic!("{held} are in flight");
}

/// How often each event has arrived.
fn arrivals(receiver: &Receiver) -> BTreeMap<String, usize> {
    let mut arrivals = BTreeMap::new();
    for event in receiver.events() {
        *arrivals.entry(event).or_default() += 1;
    }
    arrivals
}

// rule: webhook.hand-back
#[tokio::test]
async fn a_worker_that_stops_hands_back_at_once_what_it_has_not_begun() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(60);
    world.setup.grace = Duration::from_secs(60);
    let (receiver, _, worker) = fallen_silent(&world).await;
    let stopping = tokio::spawn(worker.stop());
    until_held(&world, |held| held == 32).await;
    let other = world.start();
    receiver.wait_for(CROWD).await;
    until_held(&world, |held| held == 32).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD);
    assert!(arrivals.values().all(|times| *times == 1), "{arrivals:?}");
    stopping.abort();
    other.stop().await;
}

/// Those under way may have arrived and come again; those that waited come once.
// rule: webhook.lease, webhook.at-least-once
#[tokio::test]
async fn what_a_dead_worker_had_ahead_is_delivered_once_its_leases_are_over() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(60);
    let (receiver, _, worker) = fallen_silent(&world).await;
    worker.kill();
    world.clock.advance(Duration::from_secs(81));
    let worker = world.start();
    receiver.wait_for(CROWD + AT_ONCE).await;
    until_held(&world, |held| held == 0).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD);
    let twice = arrivals.values().filter(|times| **times == 2).count();
    assert_eq!(twice, AT_ONCE);
    worker.stop().await;
}

/// Within a second or so it has no more in hand than is under way, and nobody was kept waiting.
// rule: webhook.isolation, webhook.lease
#[tokio::test]
async fn one_that_falls_silent_keeps_nothing_ahead() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(60);
    let (receiver, listener, worker) = fallen_silent(&world).await;
    let calm = Receiver::start([]).await;
    let other = world.listener("calm", &calm.url()).await;
    for number in 0..20 {
        let id = format!("c{number}");
        world.emit(&other, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    until_held(&world, |held| held == 32).await;
    tokio::time::sleep(millis(500)).await;
    until_held(&world, |held| held == 32).await;
    assert_eq!(receiver.received().len(), TAKEN + AT_ONCE);
    let last = world.delivery(&listener, "crowd-299").await;
    assert_eq!(last.progress.attempts, 0);
    drop(worker);
}

/// A hundred objects with three events each, all due at once.
// rule: webhook.order
#[tokio::test]
async fn an_objects_events_keep_their_order_however_many_are_claimed() {
    let world = World::new(&[60_000]).await;
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    for object in 0..100 {
        let ids = [1, 2, 3].map(|number| format!("{number}-of-{object}"));
        let ids = ids.each_ref().map(String::as_str);
        world
            .emit_over(&world.store, &listener, &object.to_string(), &ids)
            .await;
    }
    let worker = world.start();
    receiver.wait_for(300).await;
    let events = receiver.events();
    for object in 0..100 {
        let end = format!("-of-{object}");
        let arrived: Vec<&String> = events.iter().filter(|id| id.ends_with(&end)).collect();
        let expected = [1, 2, 3].map(|number| format!("{number}{end}"));
        assert!(arrived.into_iter().eq(&expected), "{object}: {events:?}");
    }
    worker.stop().await;
}

/// One of the first is refused: all but that one are delivered without it.
// rule: webhook.isolation
#[tokio::test]
async fn one_failure_costs_the_others_nothing() {
    let world = World::new(&[60_000]).await;
    let mut script = vec![Reply::Status(200); 60];
    script[40] = Reply::Status(500);
    let receiver = Receiver::start(script).await;
    let listener = world.listener("acme", &receiver.url()).await;
    world.emit_crowd(&listener, CROWD).await;
    let worker = world.start();
    receiver.wait_for(CROWD).await;
    until_held(&world, |held| held == 0).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD);
    assert!(arrivals.values().all(|times| *times == 1));
    worker.stop().await;
}
