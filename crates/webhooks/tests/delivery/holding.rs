//! Claims: kept, handed back, and taken over.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use partner_core::webhooks::delivery::DeliveryState;
use webhooks::Resolve;

use crate::queue::Queue;
use crate::receiver::{Receiver, Reply};
use crate::world::{World, millis};

// rule: webhook.hand-back
#[tokio::test]
async fn a_worker_that_stops_finishes_what_it_can_and_hands_back_the_rest() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(30);
    let quick = Receiver::start([Reply::Slow(millis(80), 200)]).await;
    let silent = Receiver::start([Reply::Silence]).await;
    let to_quick = world.listener("quick", &quick.url()).await;
    let to_silent = world.listener("silent", &silent.url()).await;
    let worker = world.start();
    world.emit(&to_quick, "q", "q").await;
    world.emit(&to_silent, "s", "s").await;
    quick.wait_for(1).await;
    silent.wait_for(1).await;
    let began = tokio::time::Instant::now();
    let stopping = tokio::spawn(worker.stop());
    tokio::time::sleep(millis(20)).await;
    world.emit(&to_quick, "late", "late").await;
    stopping.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
    let done = world.delivery(&to_quick, "q").await.progress;
    assert!(
        matches!(done.state, DeliveryState::Succeeded { .. }),
        "{done:?}"
    );
    let now = kernel::Clock::now(&*world.clock);
    for (listener, object) in [(&to_silent, "s"), (&to_quick, "late")] {
        let left = world.delivery(listener, object).await.progress;
        assert_eq!(left.attempts, 0, "{object}");
        let due = matches!(left.state, DeliveryState::Pending { due } if due <= now);
        assert!(due, "{object}: {left:?}");
    }
    let worker = world.start();
    silent.wait_for(2).await;
    quick.wait_for(2).await;
    assert_eq!(silent.events(), ["s", "s"]);
    worker.stop().await;
}

// rule: webhook.lease, webhook.at-least-once
#[tokio::test]
async fn a_worker_that_dies_loses_nothing() {
    let world = World::new(&[60_000]).await;
    let receiver = Receiver::start([Reply::Silence]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    receiver.wait_for(1).await;
    worker.kill();
    let worker = world.start();
    tokio::time::sleep(millis(250)).await;
    assert_eq!(receiver.received().len(), 1, "the claim is still another's");
    world.clock.advance(Duration::from_secs(21));
    let record = world.closed(&listener, "o").await;
    assert_eq!(record.progress.attempts, 1);
    assert_eq!(receiver.events(), ["e", "e"]);
    worker.stop().await;
}

/// The first worker's attempt outlasts its lease; what it reports then is nobody's.
// rule: webhook.one-holder
#[tokio::test]
async fn a_worker_that_is_late_changes_nothing() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(30);
    let script = [Reply::Slow(millis(300), 500), Reply::Status(200)];
    let receiver = Receiver::start(script).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let slow = world.start();
    world.emit(&listener, "o", "e").await;
    receiver.wait_for(1).await;
    world.clock.advance(Duration::from_secs(51));
    let other = world.start();
    let record = world.closed(&listener, "o").await;
    assert!(matches!(
        record.progress.state,
        DeliveryState::Succeeded { .. }
    ));
    tokio::time::sleep(millis(350)).await;
    assert_eq!(world.delivery(&listener, "o").await, record);
    slow.stop().await;
    other.stop().await;
}

/// Panics where it is asked for the first time, and knows one address from then on.
#[derive(Default)]
struct Panics(AtomicBool);

#[async_trait]
impl Resolve for Panics {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        assert!(self.0.swap(true, Ordering::SeqCst), "this one panics");
        Ok(vec![IpAddr::from([127, 0, 0, 1])])
    }
}

/// It costs its own delivery a lease, and the worker nothing.
// rule: webhook.lease, webhook.at-least-once
#[tokio::test]
async fn an_attempt_that_panics_is_made_again_once_its_lease_is_over() {
    let mut world = World::new(&[60_000]).await;
    let panics = Arc::new(Panics::default());
    world.setup.resolver = panics.clone();
    let receiver = Receiver::start([]).await;
    let url = format!("http://name.test:{}/", receiver.address.port());
    let listener = world.listener("acme", &url).await;
    let worker = world.start();
    world.emit(&listener, "first", "first").await;
    while !panics.0.load(Ordering::SeqCst) {
        tokio::time::sleep(millis(5)).await;
    }
    world.emit(&listener, "second", "second").await;
    world.closed(&listener, "second").await;
    assert_eq!(receiver.events(), ["second"]);
    world.clock.advance(Duration::from_secs(21));
    world.closed(&listener, "first").await;
    assert_eq!(receiver.events(), ["second", "first"]);
    worker.stop().await;
}

/// What was delivered while the store was away is recorded when it is back, and it is not asked
/// over and over.
// rule: webhook.at-least-once
#[tokio::test]
async fn a_store_that_is_away_is_asked_gently() {
    let mut world = World::new(&[60_000]).await;
    let queue = Queue::over(&world);
    queue.is_away.store(true, Ordering::SeqCst);
    world.setup.deliveries = queue.clone();
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    receiver.wait_for(1).await;
    tokio::time::sleep(millis(500)).await;
    let asked = queue.records.load(Ordering::SeqCst);
    assert!((1..=8).contains(&asked), "asked {asked} times");
    queue.is_away.store(false, Ordering::SeqCst);
    let record = world.closed(&listener, "o").await;
    assert_eq!(
        (record.progress.attempts, receiver.received().len()),
        (1, 1)
    );
    worker.stop().await;
}

/// Counting a queue takes as long as the queue is.
// rule: webhook.isolation, webhook.hand-back
#[tokio::test]
async fn nobody_waits_until_the_queue_is_counted() {
    let mut world = World::new(&[60_000]).await;
    let queue = Queue::over(&world);
    queue.is_long.store(true, Ordering::SeqCst);
    world.setup.deliveries = queue;
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    let began = tokio::time::Instant::now();
    for id in ["e1", "e2"] {
        world.emit(&listener, id, id).await;
        world.closed(&listener, id).await;
    }
    worker.stop().await;
    assert!(began.elapsed() < Duration::from_secs(15));
}

/// When something is due is a matter of the store's clock alone.
// rule: webhook.schedule
#[tokio::test]
async fn a_process_whose_clock_is_behind_tries_again_in_time() {
    let mut world = World::new(&[40]).await;
    world.clock.advance(Duration::from_secs(3600));
    world.setup.clock = Arc::new(world.clock.set_back(Duration::from_secs(3600)));
    let receiver = Receiver::start([Reply::Status(500)]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    let record = world.closed(&listener, "o").await;
    assert_eq!(record.progress.attempts, 2);
    worker.stop().await;
}
