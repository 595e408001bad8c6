//! No partner waits for the endpoint of another.

use std::time::Duration;

use crate::receiver::{Receiver, Reply};
use crate::world::World;

/// Concurrent attempts to one endpoint.
const MAX_ATTEMPTS: usize = 32;

/// Six endpoints never respond, and one has many events. The calm one gets fifty events one after
/// another before any attempt to the silent ones ends.
// rule: webhook.isolation, webhook.fair
#[tokio::test]
async fn calm_endpoint_is_not_delayed_when_others_are_dead_or_busy() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(120);
    let mut dead = Vec::new();
    for number in 0..6 {
        let name = format!("dead{number}");
        let receiver = Receiver::start(vec![Reply::Silence; 100]).await;
        let listener = world.listener(&name, &receiver.url()).await;
        world.emit_crowd(&listener, MAX_ATTEMPTS + 20).await;
        dead.push((name, listener, receiver));
    }
    let (busy, listener) = world.receiver("busy", []).await;
    world.emit_crowd(&listener, 300).await;
    let (calm, listener) = world.receiver("calm", []).await;
    world.emit(&listener, "c0", "c0").await;
    let worker = world.start();
    calm.wait_for(1).await;
    assert!(
        busy.received().len() < 300,
        "the calm endpoint waited for the busy one"
    );
    for number in 1..50 {
        let id = format!("c{number}");
        world.emit(&listener, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    busy.wait_for(300).await;
    for (name, listener, receiver) in &dead {
        assert_eq!(receiver.received().len(), MAX_ATTEMPTS, "{name}: attempts");
        let first = world.delivery(listener, "crowd-0").await;
        assert_eq!(first.progress.attempts, 0, "{name}");
    }
    drop(worker);
}

/// The slow endpoints have more deliveries due than the worker has capacity. The event of another
/// endpoint does not wait for them.
// rule: webhook.isolation, webhook.fair
#[tokio::test]
async fn calm_endpoint_is_not_delayed_when_slow_ones_have_backlogs() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(120);
    let mut slow = Vec::new();
    for number in 0..24 {
        let name = format!("slow{number}");
        let late = Reply::Slow(Duration::from_secs(100), 200);
        let receiver = Receiver::start(vec![late; 200]).await;
        let listener = world.listener(&name, &receiver.url()).await;
        world.emit_crowd(&listener, 120).await;
        slow.push((name, receiver));
    }
    let worker = world.start();
    for (_, receiver) in &slow {
        receiver.wait_for(8).await;
    }
    let (calm, listener) = world.receiver("calm", []).await;
    for number in 0..3 {
        let id = format!("c{number}");
        world.emit(&listener, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    let most = slow.iter().map(|(_, it)| it.received().len()).max();
    assert!(most < Some(60), "{most:?} of 120 were sent first");
    drop(worker);
}

/// After a failed attempt, an endpoint gets one attempt at a time until it accepts a delivery.
// rule: webhook.isolation
#[tokio::test]
async fn failing_endpoint_gets_one_attempt_at_a_time() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(120);
    let (receiver, listener) = world
        .receiver("acme", [Reply::Status(500), Reply::Silence])
        .await;
    world.emit(&listener, "first", "first").await;
    let worker = world.start();
    world
        .until(&listener, "first", |record| record.progress.attempts == 1)
        .await;
    world.emit_crowd(&listener, 20).await;
    receiver.wait_for(2).await;
    let (calm, other) = world.receiver("calm", []).await;
    for number in 0..10 {
        let id = format!("c{number}");
        world.emit(&other, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    assert_eq!(receiver.received().len(), 2);
    drop(worker);
}
