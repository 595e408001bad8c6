//! Days without a receiver, on a test clock.

use std::time::Duration;

use kernel::{Clock, Mode};
use partner_core::events::Service;
use partner_core::ports::{Deliveries, DeliveryRecord};
use partner_core::webhooks::delivery::DeliveryState;
use partner_core::webhooks::schedule::Schedule;
use tokio::net::TcpSocket;

use crate::receiver::{Receiver, Reply};
use crate::world::{Listener, World, body, millis, succeeded};

const HOUR: u64 = 60 * 60;
const WAITS: [u64; 10] = [
    5,
    60,
    5 * 60,
    30 * 60,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];

async fn world() -> World {
    let mut world = World::new(&[]).await;
    let waits = WAITS.map(Duration::from_secs);
    world.setup.schedule = Schedule::new(waits.to_vec());
    world
}

// rule: webhook.schedule, webhook.jitter, webhook.dead-letter
#[tokio::test]
async fn delivery_is_dead_lettered_after_eleven_attempts_in_three_days() {
    let world = world().await;
    let receiver = Receiver::start(vec![Reply::Status(500); 20]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    world.emit(&listener, "o", "e").await;
    let began = world.clock.now();
    let worker = world.start();
    for (failed, wait) in (1..).zip(WAITS) {
        let left = wait_after(&world, &listener, failed).await;
        let wait = Duration::from_secs(wait);
        assert!(left <= wait * 11 / 10, "{left:?} of {wait:?}");
        assert!(
            left + Duration::from_secs(60) > wait * 9 / 10,
            "{left:?} of {wait:?}"
        );
        assert_eq!(receiver.received().len(), failed as usize);
        world.clock.advance(left);
    }
    let record = world.closed(&listener, "o").await;
    assert_eq!(record.progress.state, DeliveryState::DeadLettered);
    assert_eq!(
        (record.progress.attempts, receiver.received().len()),
        (11, 11)
    );
    let took = world.clock.now().since(began).as_secs() / HOUR;
    assert!((68..=84).contains(&took), "{took} hours");
    worker.stop().await;
}

/// Waits for this number of failed attempts. Returns how long the delivery then waits.
async fn wait_after(world: &World, listener: &Listener, failed: u32) -> Duration {
    let tried = |record: &DeliveryRecord| record.progress.attempts == failed;
    let record = world.until(listener, "o", tried).await;
    let DeliveryState::Pending { due } = record.progress.state else {
        panic!("{record:?}");
    };
    due.since(world.clock.now())
}

/// The clock runs on, so less may be left of a wait. Waits that differ are far enough apart.
fn assert_left(left: Duration, wait: u64) {
    let wait = Duration::from_secs(wait);
    let expected = wait / 2..=wait * 11 / 10;
    assert!(expected.contains(&left), "{left:?} of {wait:?}");
}

// rule: webhook.not-yet
#[tokio::test]
async fn receiver_that_does_not_know_the_object_yet_gets_early_attempts() {
    let mut world = World::new(&[]).await;
    world.setup.schedule = Schedule::new(vec![Duration::from_secs(HOUR)]);
    let script = [409, 425, 409, 409].map(Reply::Status);
    let (receiver, listener) = world.receiver("acme", script).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    for failed in 1..=3 {
        receiver.wait_for(failed).await;
        let left = wait_after(&world, &listener, u32::try_from(failed).unwrap()).await;
        assert!(left <= Duration::from_millis(4_400), "{left:?}");
        world.clock.advance(left);
    }
    assert_left(wait_after(&world, &listener, 4).await, HOUR);
    world.clock.advance(Duration::from_secs(2 * HOUR));
    let record = world.closed(&listener, "o").await;
    assert!(succeeded(&record), "{record:?}");
    assert_eq!(record.progress.attempts, 5);
    worker.stop().await;
}

// rule: webhook.retry-after
#[tokio::test]
async fn receiver_sets_next_attempt_with_retry_after() {
    let mut world = World::new(&[]).await;
    // A usual wait of more than an hour stays.
    let waits = [HOUR, HOUR, 24 * HOUR, HOUR, HOUR];
    world.setup.schedule = Schedule::new(waits.map(Duration::from_secs).to_vec());
    let script = [
        "HTTP/1.1 429 So\r\nRetry-After: 120\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 503 So\r\nretry-after: 86400\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 503 So\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 500 So\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 503 So\r\nRETRY-AFTER: 120\r\n\r\n",
    ];
    let (_receiver, listener) = world.receiver("acme", script.map(Reply::Raw)).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    for (failed, wait) in (1..).zip([120, HOUR, 24 * HOUR, HOUR, 120]) {
        assert_left(wait_after(&world, &listener, failed).await, wait);
        world.clock.advance(Duration::from_secs(wait * 2));
    }
    let record = world.closed(&listener, "o").await;
    assert!(succeeded(&record), "{record:?}");
    worker.stop().await;
}

// rule: webhook.gone
#[tokio::test]
async fn endpoint_that_is_gone_gets_the_usual_attempts() {
    let world = world().await;
    let script = [Reply::Status(410), Reply::Status(410)];
    let (_receiver, listener) = world.receiver("acme", script).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    for (failed, wait) in (1..).zip([5, 60]) {
        let left = wait_after(&world, &listener, failed).await;
        assert!(left <= Duration::from_secs(wait) * 11 / 10, "{left:?}");
        world.clock.advance(left);
    }
    let record = world.closed(&listener, "o").await;
    assert!(succeeded(&record), "{record:?}");
    worker.stop().await;
}

/// All events of the day arrive in order.
// rule: webhook.at-least-once, webhook.order
#[tokio::test]
async fn events_of_day_without_receiver_arrive_when_receiver_is_back() {
    let world = world().await;
    // Until it listens, its port refuses connections and nothing else takes it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    let listener = world.listener("acme", &url).await;
    let worker = world.start();
    let mut expected = Vec::new();
    for hour in 0..24 {
        let object = format!("o{}", hour % 6);
        let id = format!("{object}-{hour:02}");
        world.emit(&listener, &object, &id).await;
        expected.push(id);
        until_nothing_is_due(&world).await;
        world.clock.advance(Duration::from_secs(HOUR));
    }
    let refused = world.delivery(&listener, "o0").await.last_error;
    let error = refused.unwrap_or_default();
    assert_eq!(error, "cannot connect: connection refused");
    let bound = socket.listen(64).unwrap();
    let back = Receiver::start_on(bound, [], |stream| async { Some(stream) });
    for object in 0..6 {
        // After a day of failures the next wait is at most 14 hours and a tenth.
        world.clock.advance(Duration::from_secs(16 * HOUR));
        world.delivered(&listener, &format!("o{object}")).await;
        // The next advance would expire the leases of what is in flight.
        until_nothing_is_due(&world).await;
    }
    let received = back.received();
    assert!(received.iter().all(|one| one.body == body(one.event())));
    let mut events = back.events();
    for object in 0..6 {
        let about = events
            .iter()
            .filter(|id| id.starts_with(&format!("o{object}")));
        assert!(about.is_sorted());
    }
    events.sort_unstable();
    expected.sort_unstable();
    assert_eq!(events, expected);
    worker.stop().await;
}

async fn until_nothing_is_due(world: &World) {
    for _ in 0..3000 {
        let queue = world.store.queue_stats(Mode::Test, Service::Pools);
        let queue = queue.await.unwrap();
        if (queue.due, queue.in_flight) == (0, 0) {
            return;
        }
        tokio::time::sleep(millis(10)).await;
    }
    panic!("the queue never became empty");
}
