//! An endpoint that was down accepts deliveries again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use partner_core::webhooks::delivery::MIN_OUTAGE;
use tokio::time::Instant;

use crate::queue::Queue;
use crate::receiver::Reply;
use crate::world::{Listener, World, millis, succeeded};

const HOUR: u64 = 60 * 60 * 1000;

/// Waits until the only attempt of an object's first delivery has failed.
async fn until_failed(world: &World, listener: &Listener, object: &str) {
    world
        .until(listener, object, |record| record.progress.attempts == 1)
        .await;
}

/// Nothing but the new event would be due within an hour.
// rule: webhook.drain, webhook.at-least-once, webhook.order
#[tokio::test]
async fn waiting_deliveries_arrive_when_endpoint_accepts_again() {
    let world = World::new(&[HOUR, HOUR]).await;
    let script = vec![Reply::Status(503); 201];
    let (receiver, listener) = world.receiver("acme", script).await;
    let worker = world.start();
    world.emit_crowd(&listener, 200).await;
    world
        .emit_over(&world.store, &listener, "o", &["e1", "e2"])
        .await;
    receiver.wait_for(201).await;
    for number in 0..200 {
        until_failed(&world, &listener, &format!("crowd-{number}")).await;
    }
    until_failed(&world, &listener, "o").await;
    world.clock.advance(MIN_OUTAGE + millis(1));
    let began = Instant::now();
    world.conclude(&listener, "fresh", "fresh").await;
    receiver.wait_for(201 + 1 + 202).await;
    assert!(began.elapsed() < Duration::from_secs(20));
    for number in 0..200 {
        let object = format!("crowd-{number}");
        let record = world.closed(&listener, &object).await;
        assert!(succeeded(&record) && record.progress.attempts == 2);
    }
    world.delivered(&listener, "o").await;
    let mut events = receiver.events();
    events.retain(|id| id.starts_with('e'));
    assert_eq!(events, ["e1", "e1", "e2"]);
    worker.stop().await;
}

/// An endpoint refuses one delivery and accepts all others.
// rule: webhook.drain
#[tokio::test]
async fn refused_delivery_keeps_its_schedule_and_is_hastened_ever_less_often() {
    let world = World::new(&[HOUR, HOUR]).await;
    let script = [503, 200, 503].map(Reply::Status);
    let (receiver, listener) = world.receiver("acme", script).await;
    let worker = world.start();
    world.emit(&listener, "o", "refused").await;
    until_failed(&world, &listener, "o").await;
    let before = world.delivery(&listener, "o").await.progress;
    world.clock.advance(MIN_OUTAGE + millis(1));
    let began = Instant::now();
    world.conclude(&listener, "first", "first").await;
    receiver.wait_for(3).await;
    world
        .until(&listener, "o", |record| record.progress == before)
        .await;
    assert_eq!(receiver.events(), ["refused", "first", "refused"]);
    world.conclude(&listener, "second", "second").await;
    receiver.wait_for(5).await;
    assert!(
        began.elapsed() >= Duration::from_secs(2),
        "the pause is doubled"
    );
    assert_eq!(receiver.events()[3..], ["second", "refused"]);
    let record = world.closed(&listener, "o").await;
    assert_eq!(record.progress.attempts, 2);
    worker.stop().await;
}

// rule: webhook.drain
#[tokio::test]
async fn deliveries_continue_when_store_does_not_hasten() {
    let mut world = World::new(&[HOUR, HOUR]).await;
    let queue = Queue::over(&world);
    queue.is_unable_to_hasten.store(true, Ordering::SeqCst);
    world.setup.deliveries = queue.clone();
    let (receiver, listener) = world.receiver("acme", [Reply::Status(503)]).await;
    let worker = world.start();
    world.emit(&listener, "o", "waits").await;
    until_failed(&world, &listener, "o").await;
    world.clock.advance(MIN_OUTAGE + millis(1));
    for id in ["first", "second"] {
        assert!(succeeded(&world.conclude(&listener, id, id).await));
    }
    assert!(queue.hastens.load(Ordering::SeqCst) > 0);
    assert_eq!(receiver.events(), ["waits", "first", "second"]);
    queue.is_unable_to_hasten.store(false, Ordering::SeqCst);
    world.conclude(&listener, "third", "third").await;
    assert!(succeeded(&world.closed(&listener, "o").await));
    worker.stop().await;
}
