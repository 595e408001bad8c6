//! The request of a delivery.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use http::HeaderMap;
use kernel::{Clock, TraceParent};
use partner_core::events::{Endpoint, Service};
use partner_core::webhooks::signing::Message;
use pools_core::ports::PoolsStore;
use standardwebhooks::Webhook;

use crate::receiver::{Receiver, Reply};
use crate::world::{NEWER, SECRET, World, body, secret};

// rule: webhook.traceparent
#[tokio::test]
async fn attempts_carry_the_trace_parent_of_the_event() {
    let world = World::new(&[40]).await;
    let (receiver, listener) = world.receiver("acme", [Reply::Status(500)]).await;
    let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut tx = world.store.begin("emit").await.unwrap();
    tx.caused_by(TraceParent::parse(text.as_bytes()));
    let event = world.event(&listener.who, "o", "caused");
    tx.event_insert(&event).await.unwrap();
    tx.commit().await.unwrap();
    let worker = world.start();
    world.delivered(&listener, "o").await;
    world.conclude(&listener, "p", "uncaused").await;
    let received = receiver.wait_for(3).await;
    let found = received.iter().map(|one| one.headers.get("traceparent"));
    let found: Vec<Option<&str>> = found.map(|it| it.map(String::as_str)).collect();
    assert_eq!(found, [Some(text), Some(text), None]);
    worker.stop().await;
}

// rule: webhook.signature, webhook.standard-headers, webhook.fresh
#[tokio::test]
async fn attempts_have_new_signatures_over_same_bytes() {
    let world = World::new(&[60_000; 2]).await;
    let (receiver, listener) = world
        .receiver("acme", [Reply::Status(500), Reply::Status(500)])
        .await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    let mut times = BTreeSet::new();
    for count in 1..=3 {
        let arrived = receiver.wait_for(count).await.remove(count - 1);
        assert_eq!(arrived.line, "POST /hooks?a=b HTTP/1.1");
        assert_eq!(arrived.body, body("e"));
        assert_eq!(arrived.header("content-type"), "application/json");
        assert_eq!(arrived.header("host"), receiver.address.to_string());
        assert!(arrived.header("user-agent").starts_with("Penstock/"));
        assert_eq!(arrived.event(), "e");
        let message = Message {
            service: Service::Pools,
            event_id: "e",
            body: &arrived.body,
        };
        let signature = arrived.header("pools-signature");
        let now = kernel::Clock::now(&*world.clock);
        assert!(
            message.verify(signature, &secret(SECRET), now),
            "{signature}"
        );
        let signed = message.sign(&[secret(SECRET)], arrived.signed_at());
        assert_eq!(arrived.header("webhook-signature"), signed[3].1);
        assert_eq!(signature.matches("v1=").count(), 1);
        let time = arrived.header("webhook-timestamp").to_owned();
        assert!(signature.starts_with(&format!("t={time},v1=")));
        assert!(times.insert(time), "already signed at {times:?}");
        let unwanted = [
            "cookie",
            "authorization",
            "accept-encoding",
            "transfer-encoding",
        ];
        for name in unwanted {
            assert!(!arrived.headers.contains_key(name), "{name}");
        }
        let recorded = world.until(&listener, "o", |record| {
            record.progress.attempts as usize == count
        });
        recorded.await;
        world.clock.advance(Duration::from_secs(70));
    }
    let record = world.closed(&listener, "o").await;
    assert_eq!(record.progress.attempts, 3);
    worker.stop().await;
}

// rule: webhook.signature, webhook.standard-headers, webhook.own-service
#[tokio::test]
async fn service_delivers_own_events_under_own_header() {
    let mut world = World::new(&[]).await;
    let (for_pools, for_gate) = (Receiver::start([]).await, Receiver::start([]).await);
    let pools = world.listener("acme", &for_pools.url()).await;
    world.emit(&pools, "trade", "of-pools").await;
    world.setup.service = Service::Gate;
    let gate = world.listener("acme", &for_gate.url()).await;
    world.emit(&gate, "session", "of-gate").await;

    let worker = world.start();
    let arrived = for_gate.wait_for(1).await.remove(0);
    world.closed(&gate, "session").await;
    worker.stop().await;
    assert_eq!(arrived.event(), "of-gate");
    assert!(!arrived.headers.contains_key("pools-signature"));
    let message = Message {
        service: Service::Gate,
        event_id: "of-gate",
        body: &arrived.body,
    };
    let (signature, now) = (arrived.header("gate-signature"), world.clock.now());
    assert!(message.verify(signature, &secret(SECRET), now));
    let waiting = world.delivery(&pools, "trade").await;
    assert_eq!(
        waiting.progress.attempts, 0,
        "the worker of the gate sent it"
    );
    assert!(for_pools.received().is_empty());

    world.setup.service = Service::Pools;
    let worker = world.start();
    let arrived = for_pools.wait_for(1).await.remove(0);
    assert!(arrived.headers.contains_key("pools-signature"));
    assert!(!arrived.headers.contains_key("gate-signature"));
    worker.stop().await;
    assert_eq!(for_gate.received().len(), 1);
}

/// An independent library verifies a body with unusual characters.
// rule: webhook.standard-headers, webhook.overlap
#[tokio::test]
async fn standard_library_verifies_delivery_with_either_secret() {
    let world = World::new(&[]).await;
    world.clock.catch_up();
    let (receiver, listener) = world.receiver("acme", []).await;
    let id = listener.endpoint.id;
    let ends = world.clock.now().plus(Duration::from_secs(3600));
    let rotated = Endpoint {
        secrets: vec![
            world.secret(id, NEWER, None),
            world.secret(id, SECRET, Some(ends)),
        ],
        ..listener.endpoint.clone()
    };
    world.change(&listener, &rotated).await;
    let worker = world.start();
    world.emit(&listener, "o", "e").await;
    let arrived = receiver.wait_for(1).await.remove(0);
    let headers: HashMap<String, String> = arrived.headers.clone().into_iter().collect();
    let headers = HeaderMap::try_from(&headers).unwrap();
    for text in [SECRET, NEWER] {
        let library = Webhook::new(text).unwrap();
        library.verify(&arrived.body, &headers).unwrap();
        assert!(library.verify(b"{}", &headers).is_err());
    }
    worker.stop().await;
}

// rule: webhook.no-environment
#[tokio::test]
async fn cookies_are_not_kept() {
    let world = World::new(&[]).await;
    let cookie = "HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n";
    let (receiver, listener) = world.receiver("acme", [Reply::Raw(cookie)]).await;
    let worker = world.start();
    for id in ["e1", "e2"] {
        world.conclude(&listener, id, id).await;
    }
    let received = receiver.received();
    assert!(
        received
            .iter()
            .all(|one| !one.headers.contains_key("cookie"))
    );
    worker.stop().await;
}

/// Runs another test of this file in a child process, with proxies in the environment.
// rule: webhook.no-environment
#[tokio::test]
async fn proxies_of_the_environment_are_not_used() {
    let proxy = Receiver::start([]).await;
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "signing::cookies_are_not_kept"]);
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ] {
        child.env(name, format!("http://{}", proxy.address));
    }
    let ended = tokio::task::spawn_blocking(move || child.output());
    let ended = ended.await.unwrap().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && output.contains("1 passed"),
        "{output}"
    );
    assert_eq!(proxy.connections(), 0);
}
