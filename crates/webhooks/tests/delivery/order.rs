//! The order of deliveries, their endpoint, and how soon the worker notices them.

use std::sync::atomic::Ordering;

use crate::queue::Queue;
use crate::receiver::{Receiver, Reply};
use crate::world::{World, millis};

// rule: webhook.order
#[tokio::test]
async fn events_of_object_arrive_in_order_when_attempts_fail() {
    let world = World::new(&[60, 60, 60]).await;
    let script = [
        Reply::Slow(millis(40), 500),
        Reply::HangUp,
        Reply::Slow(millis(40), 200),
        Reply::Status(200),
        Reply::Status(500),
    ];
    let (receiver, listener) = world.receiver("acme", script).await;
    let worker = world.start();
    world
        .emit_over(&world.store, &listener, "o", &["e1", "e2"])
        .await;
    receiver.wait_for(1).await;
    world.emit(&listener, "o", "e3").await;
    receiver.wait_for(6).await;
    assert_eq!(receiver.events(), ["e1", "e1", "e1", "e2", "e3", "e3"]);
    worker.stop().await;
}

// rule: webhook.dead-letter
#[tokio::test]
async fn next_event_of_object_is_sent_after_dead_letter() {
    let world = World::new(&[20]).await;
    let script = [Reply::Status(500), Reply::Status(500)];
    let (receiver, listener) = world.receiver("acme", script).await;
    let worker = world.start();
    world
        .emit_over(&world.store, &listener, "o", &["e1", "e2"])
        .await;
    receiver.wait_for(3).await;
    assert_eq!(receiver.events(), ["e1", "e1", "e2"]);
    worker.stop().await;
}

/// Two partners have the same number of objects and events.
// rule: webhook.no-crossing
#[tokio::test]
async fn events_never_reach_endpoint_of_another_partner() {
    let world = World::new(&[]).await;
    let (at_acme, at_rival) = (Receiver::start([]).await, Receiver::start([]).await);
    let acme = world.listener("acme", &at_acme.url()).await;
    let rival = world.listener("rival", &at_rival.url()).await;
    let worker = world.start();
    for number in 0..10 {
        let id = format!("a{number}");
        world.emit(&acme, &id, &id).await;
        let id = format!("r{number}");
        world.emit(&rival, &id, &id).await;
    }
    at_acme.wait_for(10).await;
    at_rival.wait_for(10).await;
    assert!(at_acme.events().iter().all(|id| id.starts_with('a')));
    assert!(at_rival.events().iter().all(|id| id.starts_with('r')));
    worker.stop().await;
}

/// A suspended partner still gets the outcomes of its trades.
// rule: webhook.at-least-once
#[tokio::test]
async fn suspended_partner_gets_events_of_earlier_trades() {
    let world = World::new(&[]).await;
    let (receiver, listener) = world.receiver("acme", []).await;
    let worker = world.start();
    world.suspend(&listener).await;
    world.conclude(&listener, "o", "e").await;
    assert_eq!(receiver.events(), ["e"]);
    worker.stop().await;
}

/// Either only the commits of its own process wake the worker, or only its polls find deliveries.
// rule: webhook.woken
#[tokio::test]
async fn worker_delivers_when_only_woken_or_only_polling() {
    for is_woken in [true, false] {
        let mut world = World::new(&[]).await;
        let queue = Queue::over(&world);
        queue.is_blind.store(is_woken, Ordering::SeqCst);
        queue.is_silent.store(!is_woken, Ordering::SeqCst);
        world.setup.deliveries = queue;
        let (receiver, listener) = world.receiver("acme", []).await;
        let worker = world.start();
        for number in 0..5 {
            let id = format!("e{number}");
            world.conclude(&listener, &id, &id).await;
        }
        assert_eq!(receiver.received().len(), 5);
        worker.stop().await;
    }
}

// rule: webhook.woken
#[tokio::test]
async fn worker_delivers_event_that_another_process_commits() {
    let world = World::new(&[]).await;
    let (receiver, listener) = world.receiver("acme", []).await;
    let worker = world.start();
    let other = world.other_process().await;
    world.emit_over(&other, &listener, "o", &["foreign"]).await;
    assert_eq!(receiver.wait_for(1).await[0].event(), "foreign");
    worker.stop().await;
    other.close().await;
}
