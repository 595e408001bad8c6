//! Receivers that misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use partner_core::webhooks::delivery::DeliveryState;

use crate::receiver::{Receiver, Reply};
use crate::world::{Listener, World, body, millis};

/// What can go wrong, and what is recorded of it: a status, and words of the error.
fn faults() -> Vec<(&'static str, Reply, Option<u16>, &'static str)> {
    let raw = |text: &str| Reply::Raw(text.to_owned());
    let elsewhere = |status| Reply::Redirect(status, "http://127.0.0.1:1/".to_owned());
    vec![
        (
            "not-modified",
            Reply::Status(304),
            Some(304),
            "answered 304",
        ),
        ("bad-request", Reply::Status(400), Some(400), "answered 400"),
        ("gone", Reply::Status(410), Some(410), "answered 410"),
        ("teapot", Reply::Status(418), Some(418), "answered 418"),
        ("too-many", Reply::Status(429), Some(429), "answered 429"),
        ("error", Reply::Status(500), Some(500), "answered 500"),
        (
            "away",
            Reply::StatusAndHangUp(503),
            Some(503),
            "answered 503",
        ),
        ("unknown", Reply::Status(999), Some(999), "answered 999"),
        ("moved", elsewhere(301), Some(301), "answered 301"),
        ("found", elsewhere(302), Some(302), "answered 302"),
        ("temporary", elsewhere(307), Some(307), "answered 307"),
        ("permanent", elsewhere(308), Some(308), "answered 308"),
        ("silent", Reply::Silence, None, "no answer within 300ms"),
        (
            "slow",
            Reply::Slow(millis(5000), 200),
            None,
            "no answer within 300ms",
        ),
        ("hang-up", Reply::HangUp, None, "broke before an answer"),
        ("reset", Reply::ResetInHead, None, "broke before an answer"),
        (
            "garbage",
            raw("hello\r\n\r\n"),
            None,
            "broke before an answer",
        ),
        (
            "other-http",
            raw("HTTP/2.0 200 OK\r\n\r\n"),
            None,
            "broke before an answer",
        ),
        (
            "early-hints",
            raw("HTTP/1.1 103 Early\r\n\r\n"),
            None,
            "broke before an answer",
        ),
        (
            "switching",
            raw("HTTP/1.1 101 So\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
            Some(101),
            "answered 101",
        ),
        (
            "long-head",
            Reply::FloodOfHead,
            None,
            "broke before an answer",
        ),
    ]
}

async fn partner(world: &World, name: &str, script: Vec<Reply>) -> (Listener, Receiver) {
    let receiver = Receiver::start(script).await;
    let listener = world.listener(name, &receiver.url()).await;
    world.emit(&listener, name, name).await;
    (listener, receiver)
}

/// All at once, so that none may wait for another.
// rule: webhook.at-least-once, webhook.fresh, webhook.non-2xx, webhook.timeout
#[tokio::test]
async fn whatever_goes_wrong_passes() {
    let world = World::new(&[60, 90, 120]).await;
    let mut partners = Vec::new();
    for (name, fault, ..) in faults() {
        let script = vec![fault.clone(), fault];
        partners.push((name, partner(&world, name, script).await));
    }
    let worker = world.start();
    for (name, (listener, receiver)) in partners {
        let record = world.closed(&listener, name).await;
        assert!(
            matches!(record.progress.state, DeliveryState::Succeeded { .. }),
            "{name}"
        );
        assert_eq!(
            (record.progress.attempts, record.last_error),
            (3, None),
            "{name}"
        );
        let received = receiver.received();
        assert!(received.len() >= 3, "{name}: {received:#?}");
        for one in &received {
            assert_eq!((one.event(), &one.body), (name, &body(name)));
        }
    }
    worker.stop().await;
}

// rule: webhook.dead-letter, webhook.non-2xx, webhook.timeout
#[tokio::test]
async fn what_went_wrong_is_recorded() {
    let world = World::new(&[]).await;
    let mut partners = Vec::new();
    for (name, fault, status, error) in faults() {
        let partner = partner(&world, name, vec![fault]).await;
        partners.push((name, partner, status, error));
    }
    let worker = world.start();
    for (name, (listener, receiver), status, error) in partners {
        let record = world.closed(&listener, name).await;
        assert_eq!(record.progress.state, DeliveryState::DeadLettered, "{name}");
        assert_eq!(record.last_response_status, status, "{name}");
        let said = record.last_error.unwrap_or_default();
        assert!(said.contains(error), "{name}: {said}");
        assert!(receiver.flooded() < 16 << 20, "{name}");
    }
    worker.stop().await;
}

// rule: webhook.answer-bound
#[tokio::test]
async fn a_body_decides_nothing() {
    let world = World::new(&[]).await;
    let mut partners = Vec::new();
    for (name, reply) in [
        ("endless", Reply::EndlessBody),
        ("flood", Reply::FloodOfBody),
        (
            "cut",
            Reply::Raw("HTTP/1.1 202 So\r\ncontent-length: 99\r\n\r\no".to_owned()),
        ),
        ("old", Reply::Raw("HTTP/1.0 200 OK\r\n\r\nok".to_owned())),
        (
            "no-content",
            Reply::Raw("HTTP/1.1 204 So\r\n\r\n".to_owned()),
        ),
    ] {
        partners.push((name, partner(&world, name, vec![reply]).await));
    }
    let worker = world.start();
    for (name, (listener, receiver)) in partners {
        let record = world.closed(&listener, name).await;
        assert!(
            matches!(record.progress.state, DeliveryState::Succeeded { .. }),
            "{name}"
        );
        tokio::time::sleep(millis(20)).await;
        // What the two sockets hold is beyond anybody's reach; what is read is not.
        assert!(
            receiver.flooded() < 16 << 20,
            "{name}: {}",
            receiver.flooded()
        );
        assert_eq!(receiver.received().len(), 1, "{name}");
    }
    worker.stop().await;
}

// rule: webhook.at-least-once
#[tokio::test]
async fn a_receiver_that_is_down_gets_everything_when_it_is_back() {
    let world = World::new(&[80; 40]).await;
    let gone = Receiver::start([]).await;
    let (address, url) = (gone.address, gone.url());
    drop(gone);
    let listener = world.listener("acme", &url).await;
    for number in 0..20 {
        let id = format!("e{number}");
        world.emit(&listener, &id, &id).await;
    }
    let worker = world.start();
    let refused = world
        .until(&listener, "e0", |record| record.progress.attempts >= 2)
        .await;
    let error = refused.last_error.unwrap_or_default();
    assert_eq!(error, "cannot connect: connection refused");
    let back = at_last(address).await;
    for number in 0..20 {
        world.closed(&listener, &format!("e{number}")).await;
    }
    let mut events = back.events();
    events.sort_unstable();
    events.dedup();
    assert_eq!(events.len(), 20);
    worker.stop().await;
}

/// The port may take a moment to be free again.
async fn at_last(address: SocketAddr) -> Receiver {
    for _ in 0..100 {
        if tokio::net::TcpSocket::new_v4()
            .is_ok_and(|socket| socket.set_reuseaddr(true).is_ok() && socket.bind(address).is_ok())
        {
            break;
        }
        tokio::time::sleep(millis(10)).await;
    }
    Receiver::start_at(address, []).await
}

/// Twenty partners whose servers accept and never answer, and one with a crowd of events; the
/// others keep their pace.
// rule: webhook.isolation
#[tokio::test]
async fn the_dead_and_the_busy_delay_nobody() {
    let mut world = World::new(&[60_000]).await;
    world.setup.timeout = Duration::from_secs(5);
    let mut dead = Vec::new();
    for number in 0..20 {
        let name = format!("dead{number}");
        let receiver = Receiver::start(vec![Reply::Silence; 50]).await;
        let listener = world.listener(&name, &receiver.url()).await;
        for event in 0..20 {
            let id = format!("{name}-{event}");
            world.emit(&listener, &id, &id).await;
        }
        dead.push(receiver);
    }
    let busy = Receiver::start([]).await;
    let crowd = world.listener("busy", &busy.url()).await;
    let ids: Vec<String> = (0..300).map(|number| format!("b{number}")).collect();
    for id in &ids {
        world.emit(&crowd, id, id).await;
    }
    let calm = Receiver::start([]).await;
    let listener = world.listener("calm", &calm.url()).await;
    world.emit(&listener, "first", "first").await;
    let worker = world.start();
    calm.wait_for(1).await;
    assert!(
        busy.received().len() < 300,
        "the one did not wait for the many"
    );
    let began = tokio::time::Instant::now();
    world.emit(&listener, "second", "second").await;
    calm.wait_for(2).await;
    busy.wait_for(300).await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "nobody waited for the dead"
    );
    drop(dead);
    worker.stop().await;
}

// rule: webhook.at-least-once
#[tokio::test]
async fn connections_are_used_again_and_may_be_gone() {
    let world = World::new(&[]).await;
    // The third request finds a kept connection whose other side has gone away meanwhile.
    let script = [
        Reply::Status(200),
        Reply::Status(200),
        Reply::HangUp,
        Reply::StatusAndHangUp(200),
    ];
    let receiver = Receiver::start(script).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let worker = world.start();
    for (number, connections) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
        let id = format!("e{number}");
        world.emit(&listener, &id, &id).await;
        let record = world.closed(&listener, &id).await;
        let delivered = matches!(record.progress.state, DeliveryState::Succeeded { .. });
        assert!(delivered && record.progress.attempts == 1, "{record:?}");
        assert_eq!(receiver.connections(), connections, "{id}");
    }
    assert_eq!(receiver.events(), ["e0", "e1", "e2", "e2", "e3"]);
    worker.stop().await;
}
