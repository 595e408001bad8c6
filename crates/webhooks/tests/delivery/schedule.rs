//! Days without a receiver, on a test clock.

use std::time::Duration;

use kernel::{Clock, Mode};
use partner_core::events::Service;
use partner_core::ports::Deliveries;
use partner_core::webhooks::delivery::DeliveryState;
use partner_core::webhooks::schedule::Schedule;
use tokio::net::TcpSocket;

use crate::receiver::{Receiver, Reply};
use crate::world::{World, body, millis};

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
        let tried =
            |record: &partner_core::ports::DeliveryRecord| record.progress.attempts == failed;
        let record = world.until(&listener, "o", tried).await;
        let DeliveryState::Pending { due } = record.progress.state else {
            panic!("{record:?}");
        };
        let left = due.since(world.clock.now());
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
