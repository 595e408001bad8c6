//! Deliveries that are prefetched for a fast endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use partner_core::events::Endpoint;
use partner_core::ports::Deliveries;
use webhooks::WorkerConfig;

use crate::receiver::{Receiver, Reply};
use crate::rotation::signed_by;
use crate::world::{Listener, NEWER, Running, World, millis};

/// Concurrent attempts to one endpoint.
const MAX_ATTEMPTS: usize = 32;
/// Deliveries that the receiver accepts before its behaviour changes.
const ACCEPTED: usize = 16;
const CROWD: usize = 300;

/// A worker with prefetched deliveries. The receiver accepted sixteen immediately, and responds to
/// the running attempts in another way.
struct Prefetched {
    world: World,
    receiver: Receiver,
    listener: Listener,
    worker: Running,
}

impl Prefetched {
    /// Repeats the setup if a busy machine accepted the sixteen too slowly for a prefetch.
    async fn with(reply: Reply) -> Self {
        for _ in 0..10 {
            let prefetched = Self::once(&reply).await;
            let count = reach_in_flight(&prefetched.world, |count| count > 100).await;
            if count.is_ok() {
                return prefetched;
            }
        }
        panic!("nothing was prefetched");
    }

    async fn once(reply: &Reply) -> Self {
        let mut world = World::new(&[60_000]).await;
        world.setup.timeout = Duration::from_secs(60);
        world.setup.grace = Duration::from_secs(60);
        let accepted = std::iter::repeat_n(Reply::Status(200), ACCEPTED);
        let changed = std::iter::repeat_n(reply.clone(), MAX_ATTEMPTS);
        let (receiver, listener) = world.receiver("acme", accepted.chain(changed)).await;
        world.emit_crowd(&listener, CROWD).await;
        let worker = world.start();
        receiver.wait_for(ACCEPTED + MAX_ATTEMPTS).await;
        Self {
            world,
            receiver,
            listener,
            worker,
        }
    }
}

/// Waits for this number of deliveries in flight.
async fn wait_for_in_flight(world: &World, wanted: impl Fn(u64) -> bool) {
    for _ in 0..10 {
        if reach_in_flight(world, &wanted).await.is_ok() {
            return;
        }
    }
    panic!("in flight: {:?}", reach_in_flight(world, wanted).await);
}

/// Waits a second for this number of deliveries in flight. The error is the last count.
async fn reach_in_flight(world: &World, wanted: impl Fn(u64) -> bool) -> Result<(), u64> {
    let mut last = 0;
    for _ in 0..100 {
        last = in_flight(world).await;
        if wanted(last) {
            return Ok(());
        }
        tokio::time::sleep(millis(10)).await;
    }
    Err(last)
}

/// Counts the deliveries in flight.
async fn in_flight(world: &World) -> u64 {
    let WorkerConfig { mode, service, .. } = world.setup;
    let standing = world.store.queue_stats(mode, service).await;
    standing.unwrap().in_flight
}

/// Counts the arrivals of each event.
fn arrivals(receiver: &Receiver) -> BTreeMap<String, usize> {
    let mut arrivals = BTreeMap::new();
    for event in receiver.events() {
        *arrivals.entry(event).or_default() += 1;
    }
    arrivals
}

// rule: webhook.hand-back
#[tokio::test]
async fn stopping_worker_releases_prefetched_deliveries_immediately() {
    let Prefetched {
        world,
        receiver,
        worker,
        ..
    } = Prefetched::with(Reply::Silence).await;
    let stopping = tokio::spawn(worker.stop());
    wait_for_in_flight(&world, |count| count == 32).await;
    let other = world.start();
    receiver.wait_for(CROWD).await;
    wait_for_in_flight(&world, |count| count == 32).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD);
    assert!(arrivals.values().all(|times| *times == 1), "{arrivals:?}");
    stopping.abort();
    other.stop().await;
}

/// Deliveries of running attempts arrive again; prefetched deliveries arrive once.
// rule: webhook.lease, webhook.at-least-once
#[tokio::test]
async fn prefetched_deliveries_of_killed_worker_arrive_after_lease_expiry() {
    let Prefetched {
        world,
        receiver,
        listener,
        worker,
    } = Prefetched::with(Reply::Silence).await;
    for accepted in receiver.events().iter().take(ACCEPTED) {
        world.closed(&listener, accepted).await;
    }
    worker.kill();
    world.clock.advance(Duration::from_secs(81));
    let worker = world.start();
    receiver.wait_for(CROWD + MAX_ATTEMPTS).await;
    wait_for_in_flight(&world, |count| count == 0).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD);
    let twice = arrivals.values().filter(|times| **times == 2).count();
    assert_eq!(twice, MAX_ATTEMPTS);
    worker.stop().await;
}

/// The endpoint accepted one delivery, and then had nothing due for a moment.
// rule: webhook.at-least-once
#[tokio::test]
async fn burst_is_prefetched_when_endpoint_was_fast_a_moment_ago() {
    // Repeats the setup if a busy machine accepted the delivery too slowly.
    for _ in 0..10 {
        let mut world = World::new(&[60_000]).await;
        world.setup.timeout = Duration::from_secs(60);
        world.setup.grace = millis(10);
        let silence = std::iter::repeat_n(Reply::Silence, MAX_ATTEMPTS);
        let (_receiver, listener) = world
            .receiver("acme", [Reply::Status(200)].into_iter().chain(silence))
            .await;
        let worker = world.start();
        world.emit(&listener, "first", "first").await;
        until_delivered(&world, &listener, "first").await;
        assert_eq!(in_flight(&world).await, 0);
        world.emit_crowd(&listener, CROWD).await;
        let prefetched = reach_in_flight(&world, |count| count > 100).await;
        drop(worker);
        if prefetched.is_ok() {
            return;
        }
    }
    panic!("no burst was prefetched");
}

async fn until_delivered(world: &World, listener: &Listener, event: &str) {
    for _ in 0..20_000 {
        if world.delivery(listener, event).await.progress.attempts > 0 {
            return;
        }
        tokio::time::sleep(millis(1)).await;
    }
    panic!("{event} was not delivered");
}

/// After about a second only its running attempts are in flight, and no other endpoint had to wait.
// rule: webhook.isolation, webhook.lease
#[tokio::test]
async fn endpoint_loses_prefetched_deliveries_when_it_stops_responding() {
    let Prefetched {
        world,
        receiver,
        listener,
        worker,
    } = Prefetched::with(Reply::Silence).await;
    let (calm, other) = world.receiver("calm", []).await;
    for number in 0..20 {
        let id = format!("c{number}");
        world.emit(&other, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    wait_for_in_flight(&world, |count| count == 32).await;
    // Released deliveries are not claimed again while the attempts are unfinished.
    for _ in 0..150 {
        assert_eq!(in_flight(&world).await, 32);
        tokio::time::sleep(millis(10)).await;
    }
    assert_eq!(receiver.received().len(), ACCEPTED + MAX_ATTEMPTS);
    let last = world.delivery(&listener, "crowd-299").await;
    assert_eq!(last.progress.attempts, 0);
    drop(worker);
}

/// The three events of each object arrived in order.
fn assert_in_order(events: &[String]) {
    for object in 0..100 {
        let end = format!("-of-{object}");
        let arrived: Vec<&String> = events.iter().filter(|id| id.ends_with(&end)).collect();
        let expected = [1, 2, 3].map(|number| format!("{number}{end}"));
        assert!(arrived.into_iter().eq(&expected), "{object}: {events:?}");
    }
}

/// The running attempts get late responses. The prefetched deliveries have an old address and an
/// old secret by then, and are not sent with them.
// rule: webhook.rotation-seen
#[tokio::test]
async fn prefetched_delivery_is_not_sent_to_old_address_with_old_secret() {
    let released = Arc::new(AtomicBool::new(false));
    let Prefetched {
        world,
        receiver: old,
        listener,
        worker,
    } = Prefetched::with(Reply::Held(Arc::clone(&released), 200)).await;
    let new = Receiver::start([]).await;
    let rotated = Endpoint {
        url: new.url(),
        secrets: vec![world.secret(listener.endpoint.id, NEWER, None)],
        ..listener.endpoint.clone()
    };
    world.change(&listener, &rotated).await;
    // Longer than a delivery may be prefetched.
    tokio::time::sleep(millis(1500)).await;
    released.store(true, Ordering::SeqCst);
    new.wait_for(CROWD - ACCEPTED - MAX_ATTEMPTS).await;
    wait_for_in_flight(&world, |count| count == 0).await;
    assert_eq!(old.received().len(), ACCEPTED + MAX_ATTEMPTS);
    for arrived in new.received() {
        assert_eq!(signed_by(&world, &arrived), [true, false]);
    }
    worker.stop().await;
}

/// Both workers prefetch; a hundred objects have three events each.
// rule: webhook.one-holder, webhook.order
#[tokio::test]
async fn prefetching_workers_never_hold_same_delivery() {
    let world = World::new(&[60_000]).await;
    let (receiver, listener) = world.receiver("acme", []).await;
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
    wait_for_in_flight(&world, |count| count == 0).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD + 300);
    assert!(arrivals.values().all(|times| *times == 1), "{arrivals:?}");
    assert_in_order(&receiver.events());
    for worker in workers {
        worker.stop().await;
    }
    other.close().await;
}

/// The receiver refuses one of the first deliveries, and accepts all others.
// rule: webhook.isolation
#[tokio::test]
async fn other_deliveries_arrive_when_one_attempt_fails() {
    let world = World::new(&[60_000]).await;
    let mut script = vec![Reply::Status(200); 60];
    script[40] = Reply::Status(500);
    let (receiver, listener) = world.receiver("acme", script).await;
    world.emit_crowd(&listener, CROWD).await;
    let worker = world.start();
    receiver.wait_for(CROWD).await;
    wait_for_in_flight(&world, |count| count == 0).await;
    let arrivals = arrivals(&receiver);
    assert_eq!(arrivals.len(), CROWD);
    assert!(arrivals.values().all(|times| *times == 1));
    worker.stop().await;
}
