//! Receivers that misbehave.

use partner_core::webhooks::delivery::DeliveryState;
use tokio::net::{TcpSocket, TcpStream};

use crate::receiver::{Receiver, Reply};
use crate::world::{World, body, millis, succeeded};

/// A failure, and what is recorded: a status, and a part of the error text.
struct Fault {
    name: &'static str,
    reply: Reply,
    status: Option<u16>,
    error: String,
}

/// The text of a reply that a test builds.
fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The receiver responds with a refusal.
fn refusals() -> impl Iterator<Item = Fault> {
    let long = format!("HTTP/1.1 500 No\r\n{}\r\n", "x: y\r\n".repeat(101));
    let elsewhere = |status| Reply::Redirect(status, "http://127.0.0.1:1/".to_owned());
    let switching = "HTTP/1.1 101 So\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    [
        ("switching", Reply::Raw(switching), 101),
        ("moved", elsewhere(301), 301),
        ("found", elsewhere(302), 302),
        ("not-modified", Reply::Status(304), 304),
        ("temporary", elsewhere(307), 307),
        ("permanent", elsewhere(308), 308),
        ("bad-request", Reply::Status(400), 400),
        ("gone", Reply::Status(410), 410),
        ("teapot", Reply::Status(418), 418),
        ("too-many", Reply::Status(429), 429),
        ("error", Reply::Status(500), 500),
        ("long-error", Reply::Raw(leaked(long)), 500),
        ("away", Reply::StatusAndHangUp(503), 503),
        ("unknown", Reply::Status(999), 999),
    ]
    .into_iter()
    .map(|(name, reply, status)| Fault {
        error: match reply {
            Reply::Redirect(..) => format!("answered {status}; redirects are not followed"),
            _ => format!("answered {status}"),
        },
        name,
        reply,
        status: Some(status),
    })
}

/// The receiver accepts the connection but is too slow.
fn delays() -> impl Iterator<Item = Fault> {
    [
        ("silent", Reply::Silence),
        ("slow", Reply::Slow(millis(5000), 200)),
        ("stalled", Reply::Stall("HTTP/1.1 200 OK\r\nconte")),
        ("dribbling", Reply::Dribble("HTTP/1.1 200 OK\r\nx: ")),
        ("hints-alone", Reply::Stall("HTTP/1.1 103 Early\r\n\r\n")),
    ]
    .into_iter()
    .map(|(name, reply)| Fault {
        name,
        reply,
        status: None,
        error: "no answer within 300ms".to_owned(),
    })
}

/// The receiver sends no valid response.
fn breaks() -> impl Iterator<Item = Fault> {
    let lengths = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok";
    let broken = "the connection broke before an answer: ";
    let hints = Reply::Flood("", "HTTP/1.1 103 Early\r\n\r\n");
    [
        ("hang-up", Reply::HangUp, broken),
        ("half-close", Reply::HalfClose, broken),
        ("reset-at-once", Reply::ResetAtOnce, "connect"),
        ("reset", Reply::Reset(""), "connection reset"),
        (
            "reset-in-head",
            Reply::Reset("HTTP/1.1 200 OK\r\nconte"),
            broken,
        ),
        (
            "cut-in-head",
            Reply::Raw("HTTP/1.1 200 OK\r\nconte"),
            broken,
        ),
        (
            "cut-hints",
            Reply::Raw("HTTP/1.1 103 Early\r\n\r\n"),
            broken,
        ),
        ("endless-hints", hints, "longer than 64 KiB"),
        (
            "endless-head",
            Reply::Flood("HTTP/1.1 200 OK\r\nx: ", "x"),
            "longer than 64 KiB",
        ),
        (
            "endless-headers",
            Reply::Flood("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
            "longer than 64 KiB",
        ),
        ("two-lengths", Reply::Raw(lengths), "content-length"),
        ("garbage", Reply::Raw("hello\r\n\r\n"), broken),
        ("binary", Reply::Raw("\u{0}\u{1}\u{2}\u{3}\r\n\r\n"), broken),
        ("other-http", Reply::Raw("HTTP/2.0 200 OK\r\n\r\n"), broken),
        ("mail", Reply::Raw("220 mail.example ESMTP\r\n\r\n"), broken),
    ]
    .into_iter()
    .map(|(name, reply, error)| Fault {
        name,
        reply,
        status: None,
        error: error.to_owned(),
    })
}

/// The faults that end an attempt at once, and those that end it at its timeout, each with a world.
async fn faults(waits: &[u64]) -> [(World, Vec<Fault>); 2] {
    let patient = World::new(waits).await;
    let mut hasty = World::new(waits).await;
    hasty.setup.timeout = millis(300);
    [
        (patient, refusals().chain(breaks()).collect()),
        (hasty, delays().collect()),
    ]
}

/// Each receiver fails four times, on five events about two objects, then recovers. All partners of a
/// world run concurrently, so that a delay of one by another would show.
// rule: webhook.at-least-once, webhook.fresh, webhook.order, webhook.non-2xx, webhook.timeout
#[tokio::test]
async fn deliveries_arrive_in_order_when_receiver_recovers() {
    for (world, faults) in faults(&[40; 40]).await {
        let mut partners = Vec::new();
        for Fault { name, reply, .. } in faults {
            let receiver = Receiver::start(vec![reply; 4]).await;
            let listener = world.listener(name, &receiver.url()).await;
            for (object, events) in [("a", ["a1", "a2", "a3"].as_slice()), ("b", &["b1", "b2"])] {
                world
                    .emit_over(&world.store, &listener, object, events)
                    .await;
            }
            partners.push((name, listener, receiver));
        }
        let worker = world.start();
        for (name, listener, receiver) in &partners {
            for (object, count) in [("a", 3), ("b", 2)] {
                let delivered = world.delivered(listener, object).await;
                assert_eq!(delivered.len(), count, "{name}");
            }
            let received = receiver.received();
            for one in &received {
                assert_eq!(one.body, body(one.event()), "{name}");
            }
            for (object, events) in [("a", ["a1", "a2", "a3"].as_slice()), ("b", &["b1", "b2"])] {
                let mut arrived: Vec<&str> = received.iter().map(|one| one.event()).collect();
                arrived.retain(|id| id.starts_with(object));
                assert!(arrived.is_sorted(), "{name}: {arrived:?}");
                arrived.dedup();
                assert_eq!(arrived, events, "{name}");
            }
        }
        worker.stop().await;
    }
}

// rule: webhook.dead-letter, webhook.non-2xx, webhook.timeout, webhook.answer-bound
#[tokio::test]
async fn failed_attempt_is_recorded_with_status_and_error() {
    for (world, faults) in faults(&[]).await {
        let mut partners = Vec::new();
        for fault in faults {
            let receiver = Receiver::start([fault.reply.clone()]).await;
            let listener = world.listener(fault.name, &receiver.url()).await;
            world.emit(&listener, "o", "e").await;
            partners.push((fault, listener, receiver));
        }
        let worker = world.start();
        for (fault, listener, receiver) in &partners {
            let name = fault.name;
            let record = world.closed(listener, "o").await;
            assert_eq!(record.progress.state, DeliveryState::DeadLettered, "{name}");
            assert_eq!(record.last_response_status, fault.status, "{name}");
            let error = record.last_error.unwrap_or_default();
            assert!(error.contains(&fault.error), "{name}: {error}");
            // The buffers of the two sockets are not limited here, only the bytes read.
            assert!(receiver.flooded() < 16 << 20, "{name}");
        }
        worker.stop().await;
    }
}

// rule: webhook.answer-bound
#[tokio::test]
async fn delivery_succeeds_by_status_when_body_is_malformed() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let packed = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 999999999\r\n\r\n";
    let twice = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 No\r\n\r\n";
    let hinted = "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let world = World::new(&[]).await;
    let mut partners = Vec::new();
    for (name, reply) in [
        ("endless", Reply::Stall(chunked)),
        ("dribbling", Reply::Dribble("HTTP/1.1 200 OK\r\n\r\n")),
        ("packed", Reply::Flood(packed, "\u{1f}")),
        ("chunks", Reply::Flood(chunked, "1\r\nx\r\n")),
        ("extended", Reply::Flood(chunked, "1;x=y\r\nx\r\n")),
        ("trailers", Reply::Flood(chunked, "0\r\nx: y\r\n")),
        (
            "cut",
            Reply::Raw("HTTP/1.1 202 So\r\ncontent-length: 99\r\n\r\no"),
        ),
        (
            "reset",
            Reply::Reset("HTTP/1.1 202 So\r\ncontent-length: 99\r\n\r\no"),
        ),
        ("old", Reply::Raw("HTTP/1.0 200 OK\r\n\r\nok")),
        ("no-content", Reply::Raw("HTTP/1.1 204 So\r\n\r\n")),
        ("twice", Reply::Raw(twice)),
        ("hinted", Reply::Raw(hinted)),
    ] {
        let (receiver, listener) = world.receiver(name, [reply]).await;
        world.emit(&listener, "o", "e").await;
        partners.push((name, listener, receiver));
    }
    let worker = world.start();
    for (name, listener, _) in &partners {
        let record = world.closed(listener, "o").await;
        assert!(succeeded(&record), "{name}: {record:?}");
    }
    // The last response does not affect the next event.
    for (name, listener, receiver) in &partners {
        let record = world.conclude(listener, "o2", "e2").await;
        assert!(
            succeeded(&record) && receiver.events() == ["e", "e2"],
            "{name}: {record:?}"
        );
        assert!(receiver.flooded() < 16 << 20, "{name}");
    }
    worker.stop().await;
}

/// Each receiver keeps the connection open after its long head, or closes it.
// rule: webhook.answer-head
#[tokio::test]
async fn delivery_succeeds_by_status_when_head_is_long() {
    let ok = |headers: &str| format!("HTTP/1.1 200 OK\r\n{headers}content-length: 2\r\n\r\nok");
    let lines = |count| "x-trace: 1\r\n".repeat(count);
    let one_line = |length| ok(&format!("x: {}\r\n", "y".repeat(length)));
    let hints = format!("HTTP/1.1 103 Early\r\n{}\r\n", lines(500));
    let reason = "o".repeat(20_000);
    let world = World::new(&[]).await;
    let mut partners = Vec::new();
    for (name, text) in [
        ("lines-101", ok(&lines(101))),
        ("lines-5000", ok(&lines(5_000))),
        ("lines-16000", ok(&"a:\r\n".repeat(16_000))),
        ("line-feeds", ok(&lines(101)).replace('\r', "")),
        ("line-20000", one_line(20_000)),
        ("line-65000", one_line(65_000)),
        ("reason", format!("HTTP/1.1 200 {reason}\r\n\r\nok")),
        ("hints", hints + &ok(&lines(101))),
    ] {
        let text = leaked(text);
        for (manner, reply) in [("open", Reply::Stall(text)), ("closed", Reply::Raw(text))] {
            let receiver = Receiver::start([reply]).await;
            let name = format!("{name}-{manner}");
            let listener = world.listener(&name, &receiver.url()).await;
            world.emit(&listener, "o", "e").await;
            partners.push((name, listener, receiver));
        }
    }
    let worker = world.start();
    for (name, listener, receiver) in &partners {
        for (object, event) in [("o", "e"), ("o2", "e2")] {
            if object != "o" {
                world.emit(listener, object, event).await;
            }
            let record = world.closed(listener, object).await;
            assert!(succeeded(&record), "{name}: {record:?}");
            assert_eq!(record.progress.attempts, 1, "{name}");
            assert_eq!(record.last_response_status, Some(200), "{name}");
        }
        assert_eq!(receiver.events(), ["e", "e2"], "{name}");
    }
    worker.stop().await;
}

/// The receiver's queue of connections is full, so a new connection waits.
// rule: webhook.timeout, webhook.at-least-once
#[tokio::test]
async fn delivery_arrives_when_receiver_accepts_connections_again() {
    let mut world = World::new(&[50; 60]).await;
    world.setup.timeout = millis(300);
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = tokio::time::timeout(millis(200), TcpStream::connect(address)).await {
        queue.push(stream.unwrap());
        assert!(queue.len() < 100, "the queue never filled");
    }
    let url = format!("http://{address}/hooks?a=b");
    let partner = world.listener("acme", &url).await;
    world.emit(&partner, "o", "e").await;
    let worker = world.start();
    let waiting = world.until(&partner, "o", |record| record.progress.attempts >= 2);
    assert_eq!(waiting.await.last_error.unwrap(), "no answer within 300ms");
    drop(queue);
    let receiver = Receiver::start_on(listener, [], |stream| async { Some(stream) });
    world.closed(&partner, "o").await;
    assert_eq!(receiver.received()[0].body, body("e"));
    worker.stop().await;
}

// rule: webhook.at-least-once
#[tokio::test]
async fn connections_are_reused_and_replaced_when_closed() {
    let world = World::new(&[]).await;
    // The receiver has closed the idle connection of the third request.
    let script = [
        Reply::Status(200),
        Reply::Status(200),
        Reply::HangUp,
        Reply::StatusAndHangUp(200),
    ];
    let (receiver, listener) = world.receiver("acme", script).await;
    let worker = world.start();
    for (number, connections) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
        let id = format!("e{number}");
        let record = world.conclude(&listener, &id, &id).await;
        assert!(
            succeeded(&record) && record.progress.attempts == 1,
            "{record:?}"
        );
        assert_eq!(receiver.connections(), connections, "{id}");
    }
    assert_eq!(receiver.events(), ["e0", "e1", "e2", "e2", "e3"]);
    worker.stop().await;
}
