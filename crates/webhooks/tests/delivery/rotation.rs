//! Changes of endpoints and secrets during deliveries.

use std::sync::Arc;
use std::time::Duration;

use partner_core::events::{Endpoint, Service};
use partner_core::sealing::{MasterKey, Sealer};
use partner_core::webhooks::signing::Message;
use webhooks::WorkerConfig;

use crate::receiver::{Received, Receiver, Reply};
use crate::world::{NEWER, Running, SECRET, World, millis, secret};

/// Whether the newer and the older secret have signed.
pub(crate) fn signed_by(world: &World, arrived: &Received) -> [bool; 2] {
    let message = Message {
        service: Service::Pools,
        event_id: arrived.event(),
        body: &arrived.body,
    };
    let now = kernel::Clock::now(&*world.clock);
    let signature = arrived.header("pools-signature");
    let by = [NEWER, SECRET].map(|text| message.verify(signature, &secret(text), now));
    let count = by.iter().filter(|by| **by).count();
    assert_eq!(signature.matches("v1=").count(), count, "{signature}");
    let standard = arrived.header("webhook-signature");
    assert_eq!(standard.split(' ').count(), count, "{standard}");
    by
}

// rule: webhook.rotation-seen, webhook.overlap
#[tokio::test]
async fn only_new_secret_signs_after_rotation_without_overlap() {
    let world = World::new(&[40]).await;
    let (receiver, listener) = world
        .receiver("acme", [Reply::Status(200), Reply::Status(500)])
        .await;
    let worker = world.start();
    world.emit(&listener, "o", "e1").await;
    let first = receiver.wait_for(1).await.remove(0);
    assert_eq!(signed_by(&world, &first), [false, true]);
    let id = listener.endpoint.id;
    let rotated = Endpoint {
        secrets: vec![world.secret(id, NEWER, None)],
        ..listener.endpoint.clone()
    };
    world.change(&listener, &rotated).await;
    world.emit(&listener, "o", "e2").await;
    for arrived in &receiver.wait_for(3).await[1..] {
        assert_eq!(signed_by(&world, arrived), [true, false]);
    }
    worker.stop().await;
}

/// The attempts of one event continue during the rotation. A receiver with either secret can verify
/// each of them.
// rule: webhook.overlap, webhook.rotation-seen
#[tokio::test]
async fn both_secrets_sign_until_overlap_ends() {
    let world = World::new(&[30; 200]).await;
    let receiver = Receiver::start(vec![Reply::Status(500); 200]).await;
    let listener = world.listener("acme", &receiver.url()).await;
    let id = listener.endpoint.id;
    let now = kernel::Clock::now(&*world.clock);
    let ends = now.plus(Duration::from_secs(3600));
    let rotated = Endpoint {
        secrets: vec![
            world.secret(id, NEWER, None),
            world.secret(id, SECRET, Some(ends)),
        ],
        ..listener.endpoint.clone()
    };
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    let before = receiver.wait_for(1).await.remove(0);
    assert_eq!(signed_by(&world, &before), [false, true]);
    world.change(&listener, &rotated).await;
    // One attempt may have begun before the change.
    let seen = receiver.received().len();
    let during = receiver.wait_for(seen + 2).await.remove(seen + 1);
    assert_eq!(signed_by(&world, &during), [true, true]);
    let signature = during.header("pools-signature");
    let newest = Message {
        service: Service::Pools,
        event_id: "e",
        body: &during.body,
    };
    let [(_, alone), ..] = newest.sign(&[secret(NEWER)], during.signed_at());
    let v1 = alone.split_once(',').unwrap().1;
    assert!(
        signature.contains(&format!(",{v1},v1=")),
        "the newest is not first: {signature}"
    );
    world.clock.advance(Duration::from_secs(3600));
    world.emit(&listener, "later", "later").await;
    let after = receiver.wait_for_event("later").await;
    assert_eq!(signed_by(&world, &after), [true, false]);
    worker.stop().await;
}

#[tokio::test]
async fn delivery_is_not_sent_when_no_secret_is_valid() {
    let world = World::new(&[]).await;
    let (receiver, listener) = world.receiver("acme", []).await;
    let other = world.listener("rival", &receiver.url()).await;
    let now = kernel::Clock::now(&*world.clock);
    let id = listener.endpoint.id;
    let worker = world.start();
    for (object, secrets, error) in [
        ("none", vec![], "no signing secret"),
        (
            "ended",
            vec![world.secret(id, SECRET, Some(now))],
            "no signing secret",
        ),
        ("moved", other.endpoint.secrets.clone(), "cannot be read"),
        (
            "unknown",
            vec![world.secret(id, "whsec_test", None)],
            "cannot be read",
        ),
    ] {
        let changed = Endpoint {
            secrets,
            ..listener.endpoint.clone()
        };
        world.change(&listener, &changed).await;
        let record = world.conclude(&listener, object, object).await;
        let text = record.last_error.unwrap_or_default();
        assert!(text.contains(error), "{object}: {text}");
    }
    assert_eq!(receiver.connections(), 0);
    worker.stop().await;
}

/// A replica that still has the old key can decrypt nothing, so its attempts would fail.
// rule: base.master-key-rotation
#[tokio::test]
async fn worker_without_the_current_master_key_leaves_deliveries_to_others() {
    let world = World::new(&[40]).await;
    let (receiver, listener) = world.receiver("acme", []).await;
    let older = Sealer::new(&MasterKey::new([8; 32]));
    assert!(!older.use_key(MasterKey::new([7; 32]).fingerprint()));
    let behind = Running::start(WorkerConfig {
        sealer: Arc::new(older),
        ..world.setup.clone()
    });
    world.emit(&listener, "o", "e1").await;
    tokio::time::sleep(millis(600)).await;
    let waiting = world.delivery(&listener, "o").await;
    assert_eq!(waiting.progress.attempts, 0, "{waiting:?}");
    let worker = world.start();
    receiver.wait_for(1).await;
    let delivered = world.delivered(&listener, "o").await;
    assert_eq!(delivered[0].progress.attempts, 1, "{delivered:?}");
    worker.stop().await;
    behind.stop().await;
}
