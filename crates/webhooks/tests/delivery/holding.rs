//! Claims that a worker keeps, releases, or loses to another worker.

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
use crate::world::{World, millis, succeeded};

// rule: webhook.hand-back
#[tokio::test]
async fn stopping_worker_finishes_attempts_within_grace_and_releases_others() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(30);
    world.setup.grace = Duration::from_secs(10);
    let released = Arc::new(AtomicBool::new(false));
    let quick = Receiver::start([Reply::Held(Arc::clone(&released), 200)]).await;
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
    tokio::time::sleep(millis(500)).await;
    world.emit(&to_quick, "late", "late").await;
    released.store(true, Ordering::SeqCst);
    stopping.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(25));
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
async fn delivery_of_killed_worker_arrives_after_lease_expiry() {
    let world = World::new(&[60_000]).await;
    let (receiver, listener) = world.receiver("acme", [Reply::Silence]).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    receiver.wait_for(1).await;
    worker.kill();
    let worker = world.start();
    tokio::time::sleep(millis(250)).await;
    assert_eq!(receiver.received().len(), 1, "the lease has not expired");
    world.clock.advance(Duration::from_secs(81));
    let record = world.closed(&listener, "o").await;
    assert_eq!(record.progress.attempts, 1);
    assert_eq!(receiver.events(), ["e", "e"]);
    worker.stop().await;
}

/// The first worker's attempt outlasts its lease, so its report is ignored.
// rule: webhook.one-holder
#[tokio::test]
async fn late_report_changes_nothing_when_another_worker_delivered() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(30);
    world.setup.grace = Duration::from_secs(30);
    let released = Arc::new(AtomicBool::new(false));
    let script = [Reply::Held(Arc::clone(&released), 500), Reply::Status(200)];
    let (receiver, listener) = world.receiver("acme", script).await;
    let slow = world.start();
    world.emit(&listener, "o", "e").await;
    receiver.wait_for(1).await;
    world.clock.advance(Duration::from_secs(51));
    let other = world.start();
    let record = world.closed(&listener, "o").await;
    assert!(succeeded(&record));
    released.store(true, Ordering::SeqCst);
    // Reports its attempt first.
    slow.stop().await;
    assert_eq!(world.delivery(&listener, "o").await, record);
    other.stop().await;
}

/// Panics at the first look-up, and returns one address afterwards.
#[derive(Default)]
struct Panics(AtomicBool);

#[async_trait]
impl Resolve for Panics {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        assert!(self.0.swap(true, Ordering::SeqCst), "injected panic");
        Ok(vec![IpAddr::from([127, 0, 0, 1])])
    }
}

/// The delivery waits for the expiry of its lease. The worker continues.
// rule: webhook.lease, webhook.at-least-once
#[tokio::test]
async fn panicked_attempt_is_repeated_after_lease_expiry() {
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
    world.conclude(&listener, "second", "second").await;
    assert_eq!(receiver.events(), ["second"]);
    world.clock.advance(Duration::from_secs(81));
    world.closed(&listener, "first").await;
    assert_eq!(receiver.events(), ["second", "first"]);
    worker.stop().await;
}

/// The outcome is recorded once the store is back, and the worker retries with a backoff.
// rule: webhook.at-least-once
#[tokio::test]
async fn worker_backs_off_when_store_is_unavailable() {
    let mut world = World::new(&[60_000]).await;
    let queue = Queue::over(&world);
    queue.is_unavailable.store(true, Ordering::SeqCst);
    world.setup.deliveries = queue.clone();
    let (receiver, listener) = world.receiver("acme", []).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    while queue.records.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(millis(5)).await;
    }
    tokio::time::sleep(millis(500)).await;
    let asked = queue.records.load(Ordering::SeqCst);
    assert!((1..=8).contains(&asked), "{asked} calls");
    queue.is_unavailable.store(false, Ordering::SeqCst);
    let record = world.closed(&listener, "o").await;
    assert_eq!(
        (record.progress.attempts, receiver.received().len()),
        (1, 1)
    );
    worker.stop().await;
}

/// The outcome of a locked delivery waits for the lock. Other partners' outcomes are recorded meanwhile, and nothing is sent again.
// rule: background.isolated, webhook.isolation
#[tokio::test]
async fn locked_delivery_delays_no_other_partner() {
    let mut world = World::new(&[60_000]).await;
    let queue = Queue::over(&world);
    queue.has_locks.store(true, Ordering::SeqCst);
    world.setup.deliveries = queue.clone();
    let (receiver, locked) = world.receiver("locked", []).await;
    let free = world.listener("free", &receiver.url()).await;
    let worker = world.start();
    world.emit(&locked, "l", "l").await;
    receiver.wait_for(1).await;
    for id in ["e1", "e2", "e3"] {
        world.conclude(&free, id, id).await;
    }
    let waiting = world.delivery(&locked, "l").await.progress;
    assert!(
        matches!(waiting.state, DeliveryState::InFlight(_)),
        "{waiting:?}"
    );
    queue.has_locks.store(false, Ordering::SeqCst);
    let record = world.closed(&locked, "l").await;
    assert_eq!(record.progress.attempts, 1);
    assert_eq!(receiver.events(), ["l", "e1", "e2", "e3"]);
    worker.stop().await;
}

/// Counting a long queue takes time.
// rule: webhook.isolation, webhook.hand-back
#[tokio::test]
async fn deliveries_and_shutdown_do_not_wait_when_queue_is_counted() {
    let mut world = World::new(&[60_000]).await;
    let queue = Queue::over(&world);
    queue.is_slow_to_count.store(true, Ordering::SeqCst);
    world.setup.deliveries = queue;
    let (_receiver, listener) = world.receiver("acme", []).await;
    let worker = world.start();
    let began = tokio::time::Instant::now();
    for id in ["e1", "e2"] {
        world.conclude(&listener, id, id).await;
    }
    worker.stop().await;
    assert!(began.elapsed() < Duration::from_secs(15));
}

/// Only the clock of the store decides when a delivery is due.
// rule: webhook.schedule
#[tokio::test]
async fn retry_is_on_time_when_clock_of_process_is_behind() {
    let mut world = World::new(&[40]).await;
    world.clock.advance(Duration::from_secs(3600));
    world.setup.clock = Arc::new(world.clock.set_back(Duration::from_secs(3600)));
    let (_receiver, listener) = world.receiver("acme", [Reply::Status(500)]).await;
    let worker = world.start();
    let record = world.conclude(&listener, "o", "e").await;
    assert_eq!(record.progress.attempts, 2);
    worker.stop().await;
}
