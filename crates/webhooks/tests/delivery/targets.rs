//! Addresses that must not be reached.

use std::sync::atomic::Ordering;

use kernel::Mode;
use partner_core::webhooks::delivery::DeliveryState;
use partner_core::webhooks::target::AllowPrivate;

use crate::receiver::{Receiver, Reply};
use crate::world::World;

/// Delivers one event to each URL, and expects each to fail with this text.
async fn all_refused(world: &World, urls: &[String], words: &str) {
    let worker = world.start();
    let mut listeners = Vec::new();
    for (number, url) in urls.iter().enumerate() {
        let name = format!("p{number}");
        let listener = world.listener(&name, url).await;
        world.emit(&listener, &name, &name).await;
        listeners.push((name, url, listener));
    }
    for (name, url, listener) in listeners {
        let record = world.closed(&listener, &name).await;
        assert_eq!(record.progress.state, DeliveryState::DeadLettered, "{url}");
        let error = record.last_error.unwrap_or_default();
        assert!(error.contains(words), "{url}: {error}");
        assert_eq!(record.last_response_status, None);
    }
    worker.stop().await;
}

// rule: webhook.forbidden-targets
#[tokio::test]
async fn private_address_gets_no_connection_in_any_notation() {
    let mut world = World::new(&[]).await;
    world.setup.allow_private = AllowPrivate::None;
    let canary = Receiver::start([]).await;
    let port = canary.address.port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "127.255.255.254",
        "0.0.0.0",
        "0",
        "%31%32%37.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "localhost",
        "LOCALHOST.",
        "ｌｏｃａｌｈｏｓｔ",
        "a.localhost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[100::1]",
        "[2001:db8::1]",
        "[2001::1]",
        "[3fff::1]",
        "[5f00::1]",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
    ];
    let urls = hosts.map(|host| format!("http://{host}:{port}/"));
    all_refused(&world, &urls, "webhooks may reach").await;
    assert_eq!(canary.connections(), 0);
    assert_eq!(world.names.asked.load(Ordering::SeqCst), 0, "look-ups");
}

// rule: webhook.forbidden-targets, webhook.https-only
#[tokio::test]
async fn invalid_target_gets_no_connection() {
    let mut world = World::new(&[]).await;
    let canary = Receiver::start([]).await;
    let at = canary.address;
    let bad = [
        format!("ftp://{at}/"),
        format!("file://{at}/etc/passwd"),
        format!("gopher://{at}/"),
        format!("http://user:pass@{at}/"),
        format!("http://{at}/ x"),
        "http://127.0.0.1:22/".to_owned(),
        "http://127.0.0.1:6379/".to_owned(),
        "not a url".to_owned(),
        String::new(),
    ];
    all_refused(&world, &bad, "cannot be used").await;
    world.setup.mode = Mode::Live;
    let plain = [format!("http://{at}/")];
    all_refused(&world, &plain, "https URL in live mode").await;
    assert_eq!(canary.connections(), 0);
}

/// A control of the other tests: an allowed receiver is reached.
// rule: webhook.forbidden-targets
#[tokio::test]
async fn private_address_is_reached_when_operator_allows_it() {
    for (allow, host) in [
        (AllowPrivate::Loopback, "127.1"),
        (AllowPrivate::Loopback, "[::ffff:7f00:1]"),
        (AllowPrivate::All, "hooks.example"),
    ] {
        let mut world = World::new(&[]).await;
        world.setup.allow_private = allow;
        world.names.set("hooks.example", &[&["127.0.0.1"]]);
        let canary = Receiver::start([]).await;
        let url = format!("http://{host}:{}/", canary.address.port());
        let listener = world.listener("acme", &url).await;
        let worker = world.start();
        world.emit(&listener, "o", "e").await;
        canary.wait_for(1).await;
        worker.stop().await;
    }
}

// rule: webhook.non-2xx, webhook.errors-say-what-to-do
#[tokio::test]
async fn redirects_are_not_followed() {
    let world = World::new(&[]).await;
    let canary = Receiver::start([]).await;
    let worker = world.start();
    for status in [301, 302, 303, 307, 308] {
        let name = format!("p{status}");
        let (_receiver, listener) = world
            .receiver(&name, [Reply::Redirect(status, canary.url())])
            .await;
        let record = world.conclude(&listener, &name, &name).await;
        assert_eq!(record.progress.state, DeliveryState::DeadLettered);
        assert_eq!(record.last_response_status, Some(status));
        let error = record.last_error.unwrap_or_default();
        assert_eq!(
            error,
            format!("answered {status}; redirects are not followed")
        );
    }
    assert_eq!(canary.connections(), 0);
    worker.stop().await;
}
