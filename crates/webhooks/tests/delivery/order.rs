//! In order per object, to the right endpoint, woken in time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::queue::Queue;
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

/// What became of its trades is still told to a partner that may begin no more.
// rule: webhook.at-least-once
#[tokio::test]
async fn a_suspended_partner_hears_of_what_it_had_begun() {
    let world = World::new(&[]).await;
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    world.suspend(&listener).await;
    world.emit(&listener, "o", "e").await;
    world.closed(&listener, "o").await;
    assert_eq!(receiver.events(), ["e"]);
    worker.stop().await;
}

/// Either the commits of its own process alone tell it, or its own looks alone.
// rule: webhook.woken
#[tokio::test]
async fn commits_are_noticed_whoever_makes_them() {
    for is_told in [true, false] {
        let mut world = World::new(&[]).await;
        let queue = Queue::over(&world);
        queue.is_blind.store(is_told, Ordering::SeqCst);
        queue.is_deaf.store(!is_told, Ordering::SeqCst);
        world.setup.deliveries = queue;
        let receiver = Receiver::start([]).await;
        let listener = world.listener("acme", &receiver.url()).await;
        let worker = world.start();
        for number in 0..5 {
            let id = format!("e{number}");
            world.emit(&listener, &id, &id).await;
            world.closed(&listener, &id).await;
        }
        assert_eq!(receiver.received().len(), 5);
        worker.stop().await;
    }
}

// rule: webhook.woken
#[tokio::test]
async fn what_another_process_commits_is_found() {
    let world = World::new(&[]).await;
    let receiver = Receiver::start([]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    let other = world.other_process().await;
    world.emit_over(&other, &listener, "o", &["theirs"]).await;
    assert_eq!(receiver.wait_for(1).await[0].event(), "theirs");
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
    setup.deliveries = Arc::new(other.clone());
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
