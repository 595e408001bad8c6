//! What is claimed ahead of its turn, for an endpoint that answers quickly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use partner_core::events::Endpoint;
use partner_core::ports::Deliveries;
use webhooks::WorkerConfig;

use crate::receiver::{Receiver, Reply};
use crate::rotation::signed_by;
use crate::world::{Listener, NEWER, Running, World, millis};

/// Attempts under way at one endpoint.
const AT_ONCE: usize = 32;
/// A receiver answers so many, and falls silent.
const TAKEN: usize = 16;
const CROWD: usize = 300;

/// A worker has a crowd's first in hand: sixteen were taken at once, so that more were claimed than
/// can be under way, and those that are under way are answered like this.
struct Fallen {
    world: World,
    receiver: Receiver,
    listener: Listener,
    worker: Running,
}

impl Fallen {
    /// On a machine that has much else to do the sixteen may have been taken too slowly to claim
    /// ahead for: then once more.
    async fn with(reply: Reply) -> Self {
        for _ in 0..10 {
            let fallen = Self::once(&reply).await;
            if is_held(&fallen.world, |held| held > 100).await.is_ok() {
                return fallen;
            }
        }
        panic!("nothing is claimed ahead");
    }

    async fn once(reply: &Reply) -> Self {
        let mut world = World::new(&[60_000]).await;
        world.setup.timeout = Duration::from_secs(60);
        world.setup.grace = Duration::from_secs(60);
        let taken = std::iter::repeat_n(Reply::Status(200), TAKEN);
        let fallen = std::iter::repeat_n(reply.clone(), AT_ONCE);
        let receiver = Receiver::start(taken.chain(fallen)).await;
        let listener = world.listener("acme", &receiver.url()).await;
        world.emit_crowd(&listener, CROWD).await;
        let worker = world.start();
        receiver.wait_for(TAKEN + AT_ONCE).await;
        Self {
            world,
            receiver,
            listener,
            worker,
        }
    }
}

/// Waits until so many deliveries are in flight.
async fn until_held(world: &World, wanted: impl Fn(u64) -> bool) {
    for _ in 0..10 {
        if is_held(world, &wanted).await.is_ok() {
            return;
        }
    }
    panic!("{:?} are in flight", is_held(world, wanted).await);
}

/// Are so many in flight within a second? Otherwise, how many are.
async fn is_held(world: &World, wanted: impl Fn(u64) -> bool) -> Result<(), u64> {
    let mut last = 0;
    for _ in 0..100 {
        last = held(world).await;
        if wanted(last) {
            return Ok(());
        }
        tokio::time::sleep(millis(10)).await;
    }
    Err(last)
}

/// How many deliveries are in flight.
async fn held(world: &World) -> u64 {
    let WorkerConfig { mode, service, .. } = world.setup;
    let standing = world.store.deliveries_standing(mode, service).await;
    standing.unwrap().in_flight
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
    let Fallen {
        world,
        receiver,
        worker,
        ..
    } = Fallen::with(Reply::Silence).await;
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
    let Fallen {
        world,
        receiver,
        worker,
        ..
    } = Fallen::with(Reply::Silence).await;
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

/// It had taken one, and then there was nothing for it for a moment.
// rule: webhook.at-least-once
#[tokio::test]
async fn a_burst_finds_a_quick_endpoint_known() {
    // On a machine that has much else to do the one may have been taken too slowly: then once more.
    for _ in 0..10 {
        let mut world = World::new(&[60_000]).await;
        world.setup.timeout = Duration::from_secs(60);
        world.setup.grace = millis(10);
        let silence = std::iter::repeat_n(Reply::Silence, AT_ONCE);
        let receiver = Receiver::start([Reply::Status(200)].into_iter().chain(silence)).await;
        let listener = world.listener("acme", &receiver.url()).await;
        let worker = world.start();
        world.emit(&listener, "first", "first").await;
        until_delivered(&world, &listener, "first").await;
        assert_eq!(held(&world).await, 0);
        world.emit_crowd(&listener, CROWD).await;
        let known = is_held(&world, |held| held > 100).await;
        drop(worker);
        if known.is_ok() {
            return;
        }
    }
    panic!("no burst is claimed ahead");
}

async fn until_delivered(world: &World, listener: &Listener, event: &str) {
    for _ in 0..1000 {
        if world.delivery(listener, event).await.progress.attempts > 0 {
            return;
        }
        tokio::time::sleep(millis(1)).await;
    }
    panic!("{event} was not delivered");
}

/// Within a second or so it has no more in hand than is under way, and nobody was kept waiting.
// rule: webhook.isolation, webhook.lease
#[tokio::test]
async fn one_that_falls_silent_keeps_nothing_ahead() {
    let Fallen {
        world,
        receiver,
        listener,
        worker,
    } = Fallen::with(Reply::Silence).await;
    let calm = Receiver::start([]).await;
    let other = world.listener("calm", &calm.url()).await;
    for number in 0..20 {
        let id = format!("c{number}");
        world.emit(&other, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    until_held(&world, |held| held == 32).await;
    // What was handed back is not claimed again, as long as nothing is known of it.
    for _ in 0..150 {
        assert_eq!(held(&world).await, 32);
        tokio::time::sleep(millis(10)).await;
    }
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
    assert_in_order(&receiver.events());
    worker.stop().await;
}

/// The three of each object, in their order.
fn assert_in_order(events: &[String]) {
    for object in 0..100 {
        let end = format!("-of-{object}");
        let arrived: Vec<&String> = events.iter().filter(|id| id.ends_with(&end)).collect();
        let expected = [1, 2, 3].map(|number| format!("{number}{end}"));
        assert!(arrived.into_iter().eq(&expected), "{object}: {events:?}");
    }
}

/// The ones under way are answered late. What waited behind them is as old as the secret and the
/// address it was claimed with, and is not sent with them.
// rule: webhook.rotation-seen
#[tokio::test]
async fn what_waits_is_not_sent_under_old_terms() {
    let Fallen {
        world,
        receiver: old,
        listener,
        worker,
    } = Fallen::with(Reply::Slow(millis(2500), 200)).await;
    let new = Receiver::start([]).await;
    let rotated = Endpoint {
        url: new.url(),
        secrets: vec![world.secret(listener.endpoint.id, NEWER, None)],
        ..listener.endpoint.clone()
    };
    world.change(&listener, &rotated).await;
    new.wait_for(CROWD - TAKEN - AT_ONCE).await;
    until_held(&world, |held| held == 0).await;
    assert_eq!(old.received().len(), TAKEN + AT_ONCE);
    for arrived in new.received() {
        assert_eq!(signed_by(&world, &arrived), [true, false]);
    }
    worker.stop().await;
}

/// Both claim ahead; a hundred objects with three events each.
// rule: webhook.one-holder, webhook.order
#[tokio::test]
async fn two_workers_that_claim_ahead_hold_nothing_twice() {
    let world = World::new(&[60_000]).await;
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let other = world.other_process().await;
    let mut setup = world.setup.clone();
    setup.deliveries = Arc::new(other.clone());
    world.emit_crowd(&listener, CROWD).await;
    for object in 0..100 {
        let ids = [1, 2, 3].map(|number| format!("{number}-of-{object}"));
        let ids = ids.each_ref().map(String::as_str);
        world
            .emit_over(&world.store, &listener, &object.to_string(), &ids)
            .await;
    }
    let workers = [world.start(), Running::start(setup)];
    receiver.wait_for(CROWD + 300).await;
    until_held(&world, |held| held == 0).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD + 300);
    assert!(arrivals.values().all(|times| *times == 1), "{arrivals:?}");
    assert_in_order(&receiver.events());
    for worker in workers {
        worker.stop().await;
    }
    other.close().await;
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
