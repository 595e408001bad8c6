//! In order per object, to the right endpoint, woken in time.

use crate::receiver::{Receiver, Reply};
use crate::world::{Running, World, millis};

// rule: webhook.order
#[tokio::test]
async fn an_objects_events_arrive_in_order() {
    let world = World::new(&[60, 60, 60]).await;
    let script = [
        Reply::Slow(millis(40), 500),
        Reply::HangUp,
        Reply::Slow(millis(40), 200),
        Reply::Status(200),
        Reply::Status(500),
    ];
    let receiver = Receiver::start(script).await;
    let listener = world.listener("acme", &receiver.url()).await;
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
async fn a_dead_letter_lets_the_next_one_go() {
    let world = World::new(&[20]).await;
    let script = [Reply::Status(500), Reply::Status(500)];
    let receiver = Receiver::start(script).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    world
        .emit_over(&world.store, &listener, "o", &["e1", "e2"])
        .await;
    receiver.wait_for(3).await;
    assert_eq!(receiver.events(), ["e1", "e1", "e2"]);
    worker.stop().await;
}

/// Two partners with the same names for their objects and events.
// rule: webhook.no-crossing
#[tokio::test]
async fn no_event_goes_to_another_partner() {
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

// rule: webhook.woken
#[tokio::test]
async fn commits_are_noticed_whoever_makes_them() {
    let world = World::new(&[]).await;
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    world.emit(&listener, "warm", "warm").await;
    receiver.wait_for(1).await;
    // Over and over: a poll alone would take a second for these.
    let began = tokio::time::Instant::now();
    for number in 2..12 {
        let id = format!("e{number}");
        world.emit(&listener, &id, &id).await;
        receiver.wait_for(number).await;
    }
    assert!(began.elapsed() < millis(800), "{:?}", began.elapsed());
    let other = world.other_process().await;
    let began = tokio::time::Instant::now();
    world.emit_over(&other, &listener, "o", &["theirs"]).await;
    let arrived = receiver.wait_for(12).await.remove(11);
    assert_eq!(arrived.event(), "theirs");
    let took = arrived.at.duration_since(began);
    assert!(took < millis(600), "{took:?}");
    worker.stop().await;
    other.close().await;
}

// rule: webhook.one-holder
#[tokio::test]
async fn two_workers_share_the_work() {
    let world = World::new(&[]).await;
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let other = world.other_process().await;
    let mut setup = world.setup.clone();
    setup.deliveries = std::sync::Arc::new(other.clone());
    let workers = [world.start(), Running::start(setup)];
    for number in 0..60 {
        let id = format!("e{number}");
        world.emit(&listener, &id, &id).await;
    }
    for number in 0..60 {
        world.closed(&listener, &format!("e{number}")).await;
    }
    let mut events = receiver.events();
    events.sort_unstable();
    events.dedup();
    assert_eq!((events.len(), receiver.received().len()), (60, 60));
    for worker in workers {
        worker.stop().await;
    }
    other.close().await;
}
