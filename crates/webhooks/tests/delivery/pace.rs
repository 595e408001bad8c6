//! Nobody waits for another partner's endpoint.

use std::time::Duration;

use crate::receiver::{Receiver, Reply};
use crate::world::World;

/// What one endpoint is given at once.
const SHARE: usize = 32;

/// Endpoints that accept and never answer, and one with a crowd of events: the calm one gets fifty
/// events one after another while not a single attempt at the silent ones has ended.
// rule: webhook.isolation, webhook.fair
#[tokio::test]
async fn the_dead_and_the_busy_delay_nobody() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(120);
    let mut dead = Vec::new();
    for number in 0..6 {
        let name = format!("dead{number}");
        let receiver = Receiver::start(vec![Reply::Silence; 100]).await;
        let listener = world.listener(&name, &receiver.url()).await;
        world.emit_crowd(&listener, SHARE + 20).await;
        dead.push((name, listener, receiver));
    }
    let busy = Receiver::start([]).await;
    let listener = world.listener("busy", &busy.url()).await;
    world.emit_crowd(&listener, 300).await;
    let calm = Receiver::start([]).await;
    let listener = world.listener("calm", &calm.url()).await;
    world.emit(&listener, "c0", "c0").await;
    let worker = world.start();
    calm.wait_for(1).await;
    assert!(
        busy.received().len() < 300,
        "the one did not wait for the many"
    );
    for number in 1..50 {
        let id = format!("c{number}");
        world.emit(&listener, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    busy.wait_for(300).await;
    for (name, listener, receiver) in &dead {
        assert_eq!(
            receiver.received().len(),
            SHARE,
            "{name} has its share and no more"
        );
        let first = world.delivery(listener, "crowd-0").await;
        assert_eq!(first.progress.attempts, 0, "{name}");
    }
    drop(worker);
}

/// More than can be served at once, each with a crowd that has long been due, and each slow to
/// answer: another's event does not wait until they are through.
// rule: webhook.isolation, webhook.fair
#[tokio::test]
async fn many_slow_ones_with_much_to_do_delay_nobody() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(120);
    let mut slow = Vec::new();
    for number in 0..24 {
        let name = format!("slow{number}");
        let late = Reply::Slow(Duration::from_millis(1500), 200);
        let receiver = Receiver::start(vec![late; 200]).await;
        let listener = world.listener(&name, &receiver.url()).await;
        world.emit_crowd(&listener, 120).await;
        slow.push((name, receiver));
    }
    let worker = world.start();
    for (_, receiver) in &slow {
        receiver.wait_for(8).await;
    }
    let calm = Receiver::start([]).await;
    let listener = world.listener("calm", &calm.url()).await;
    for number in 0..3 {
        let id = format!("c{number}");
        world.emit(&listener, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    let most = slow.iter().map(|(_, it)| it.received().len()).max();
    assert!(most < Some(60), "{most:?} of 120 went first");
    drop(worker);
}

/// Once an attempt has failed, an endpoint is tried one by one until it takes something.
// rule: webhook.isolation
#[tokio::test]
async fn one_that_has_failed_is_tried_one_by_one() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(120);
    let receiver = Receiver::start([Reply::Status(500), Reply::Silence]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    world.emit(&listener, "first", "first").await;
    let worker = world.start();
    world
        .until(&listener, "first", |record| record.progress.attempts == 1)
        .await;
    world.emit_crowd(&listener, 20).await;
    receiver.wait_for(2).await;
    let calm = Receiver::start([]).await;
    let other = world.listener("calm", &calm.url()).await;
    for number in 0..10 {
        let id = format!("c{number}");
        world.emit(&other, &id, &id).await;
        calm.wait_for(number + 1).await;
    }
    assert_eq!(receiver.received().len(), 2);
    drop(worker);
}
