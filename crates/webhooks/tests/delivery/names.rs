//! Names whose addresses change, from a test name server.

use std::sync::Arc;
use std::time::Duration;

use partner_core::webhooks::delivery::DeliveryState;
use partner_core::webhooks::target::AllowPrivate;
use tokio::net::UdpSocket;
use webhooks::{NameServer, Resolve, SystemResolver};

use crate::dns::Dns;
use crate::receiver::Receiver;
use crate::world::{World, millis};

/// In the public range, but unassigned: a connection to it reaches no host.
const UNASSIGNED: &str = "3000::1";

/// A world that uses this name server, with two attempts for each delivery. An attempt to reach [`UNASSIGNED`] fails at once or times
/// out, depending on the network.
async fn world_with(dns: &Dns, allow: AllowPrivate) -> World {
    let mut world = World::new(&[20]).await;
    world.setup.timeout = Duration::from_secs(3);
    world.setup.resolver = Arc::new(NameServer(dns.address));
    world.setup.allow_private = allow;
    world
}

// rule: webhook.rebinding, webhook.forbidden-targets
#[tokio::test]
async fn name_gets_no_connection_when_it_resolves_to_private_address() {
    let dns = Dns::start().await;
    let world = world_with(&dns, AllowPrivate::None).await;
    let canary = Receiver::start([]).await;
    let names: [(&str, &[&[&'static str]]); 10] = [
        ("private", &[&["127.0.0.1"]]),
        ("both-private", &[&["127.0.0.1", "::1"]]),
        ("turning", &[&[UNASSIGNED], &["127.0.0.1"]]),
        ("mixed", &[&["127.0.0.1", UNASSIGNED, "::1"]]),
        ("mapped", &[&["::ffff:127.0.0.1"]]),
        ("translated", &[&["64:ff9b::7f00:1"]]),
        ("tunnelled", &[&["2002:7f00:1::1"]]),
        ("metadata", &[&["169.254.169.254"]]),
        ("alias", &[&["second.alias.example"]]),
        ("to-localhost", &[&["localhost"]]),
    ];
    for (name, lookups) in names {
        dns.set(&format!("{name}.example"), lookups);
    }
    dns.set("second.alias.example", &[&["third.alias.example"]]);
    dns.set("third.alias.example", &[&["127.0.0.1"]]);
    dns.set("localhost", &[&["127.0.0.1", "::1"]]);
    let worker = world.start();
    for (name, lookups) in names {
        let host = format!("{name}.example");
        let url = format!("http://{host}:{}/", canary.address.port());
        let listener = world.listener(name, &url).await;
        let record = world.conclude(&listener, name, name).await;
        assert_eq!(record.progress.state, DeliveryState::DeadLettered, "{name}");
        let error = record.last_error.unwrap_or_default();
        let tried_unassigned = lookups.last().unwrap().contains(&UNASSIGNED);
        assert_eq!(
            error.contains("which webhooks may not reach"),
            !tried_unassigned,
            "{name}: {error}"
        );
        assert_eq!(dns.asked(&host), 2, "{name}: look-ups of two attempts");
    }
    assert_eq!(canary.connections(), 0);
    worker.stop().await;
}

/// The connection goes only to the allowed one of several addresses.
// rule: webhook.rebinding
#[tokio::test]
async fn connection_goes_only_to_allowed_address_of_name() {
    let dns = Dns::start().await;
    let world = world_with(&dns, AllowPrivate::Loopback).await;
    dns.set("direct.example", &[&["10.0.0.1", "127.0.0.1", "fc00::1"]]);
    dns.set("alias.example", &[&["direct.example"]]);
    let worker = world.start();
    for name in ["direct", "alias"] {
        let receiver = Receiver::start([]).await;
        let url = format!("http://{name}.example:{}/", receiver.address.port());
        let listener = world.listener(name, &url).await;
        world.conclude(&listener, name, name).await;
        let received = receiver.received();
        assert_eq!((received.len(), receiver.connections()), (1, 1), "{name}");
        let host = format!("{name}.example:{}", receiver.address.port());
        assert_eq!(received[0].header("host"), host);
    }
    worker.stop().await;
}

/// Each new connection resolves the name again.
// rule: webhook.rebinding
#[tokio::test]
async fn connection_goes_to_new_address_when_name_moves() {
    let dns = Dns::start().await;
    let world = world_with(&dns, AllowPrivate::Loopback).await;
    dns.set("moving.example", &[&[UNASSIGNED], &["127.0.0.1"]]);
    let receiver = Receiver::start([]).await;
    let url = format!("http://moving.example:{}/", receiver.address.port());
    let listener = world.listener("acme", &url).await;
    let worker = world.start();
    let record = world.conclude(&listener, "o", "e").await;
    assert_eq!(
        (record.progress.attempts, receiver.received().len()),
        (2, 1)
    );
    worker.stop().await;
}

/// A silent name server fails the attempt of its own endpoint, and delays no other.
// rule: webhook.timeout, webhook.isolation
#[tokio::test]
async fn attempt_times_out_when_name_server_is_silent() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut world = World::new(&[]).await;
    world.setup.timeout = millis(300);
    world.setup.resolver = Arc::new(NameServer(silent.local_addr().unwrap()));
    let receiver = Receiver::start([]).await;
    let worker = world.start();
    let lost = world.listener("lost", "http://lost.example/").await;
    let calm = world.listener("calm", &receiver.url()).await;
    world.emit(&lost, "l", "l").await;
    world.emit(&calm, "c", "c").await;
    receiver.wait_for(1).await;
    let record = world.closed(&lost, "l").await;
    assert_eq!(record.last_error.unwrap(), "no answer within 300ms");
    worker.stop().await;
}

#[tokio::test]
async fn attempt_fails_when_name_is_unknown() {
    let dns = Dns::start().await;
    let world = world_with(&dns, AllowPrivate::Loopback).await;
    dns.set("empty.example", &[&[]]);
    let worker = world.start();
    for name in ["unknown", "empty"] {
        let listener = world
            .listener(name, &format!("http://{name}.example/"))
            .await;
        let error = world
            .conclude(&listener, name, name)
            .await
            .last_error
            .unwrap();
        assert_eq!(error, "the host name cannot be resolved", "{name}");
    }
    worker.stop().await;
}

/// The hosts file needs no name server.
#[tokio::test]
async fn system_resolver_resolves_localhost() {
    let found = tokio::time::timeout(Duration::from_secs(30), SystemResolver.resolve("localhost"));
    let found = found.await.unwrap().unwrap();
    assert!(!found.is_empty() && found.iter().all(|one| one.is_loopback()));
}
