//! An endpoint must prove its identity before anything is sent.

use std::sync::Arc;

use kernel::Mode;
use partner_core::webhooks::delivery::DeliveryState;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use webhooks::Trust;

use crate::receiver::Receiver;
use crate::world::{World, millis, succeeded};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn acceptor(certificate: CertificateDer<'static>, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn receiver(acceptor: TlsAcceptor) -> Receiver {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Receiver::start_on(listener, [], move |stream| {
        let acceptor = acceptor.clone();
        async move { acceptor.accept(stream).await.ok() }
    })
}

// rule: webhook.https-only
#[tokio::test]
async fn delivery_needs_trusted_valid_certificate_of_host() {
    let mut world = World::new(&[]).await;
    let authority = authority();
    world.setup.trust = Trust::Only(vec![authority.der().clone()]);
    let past = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let mut receivers = Vec::new();
    for (name, certified, trusted, expired) in [
        ("good", "good.example", true, false),
        ("other", "elsewhere.example", true, false),
        ("self", "self.example", false, false),
        ("old", "old.example", true, true),
    ] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![certified.to_owned()]).unwrap();
        if expired {
            (params.not_before, params.not_after) = past;
        }
        let signed = if trusted {
            params.signed_by(&key, &authority)
        } else {
            params.self_signed(&key)
        };
        let certificate = signed.unwrap().der().clone();
        let receiver = receiver(acceptor(certificate, &key)).await;
        world
            .names
            .set(&format!("{name}.example"), &[&["127.0.0.1"]]);
        receivers.push((name, receiver));
    }
    let worker = world.start();
    for (name, receiver) in &receivers {
        let url = format!("https://{name}.example:{}/", receiver.address.port());
        let listener = world.listener(name, &url).await;
        let record = world.conclude(&listener, name, name).await;
        if *name == "good" {
            assert!(succeeded(&record), "{record:?}");
            assert_eq!(receiver.events(), ["good"]);
        } else {
            assert_eq!(record.progress.state, DeliveryState::DeadLettered, "{name}");
            let error = record.last_error.unwrap_or_default();
            assert!(
                error.starts_with("the TLS handshake failed: ") && !error.contains("use http"),
                "{name}: {error}"
            );
            assert!(receiver.received().is_empty(), "{name}");
        }
    }
    worker.stop().await;
}

/// A server that speaks plain HTTP at an https address.
// rule: webhook.https-only
#[tokio::test]
async fn https_delivery_is_not_sent_when_server_speaks_plain_http() {
    let mut world = World::new(&[]).await;
    world.setup.mode = Mode::Live;
    world.setup.timeout = millis(300);
    let receiver = Receiver::start([]).await;
    let listener = world
        .listener("acme", &format!("https://{}/", receiver.address))
        .await;
    let worker = world.start();
    let record = world.conclude(&listener, "o", "e").await;
    assert_eq!(record.progress.state, DeliveryState::DeadLettered);
    assert!(receiver.received().is_empty());
    worker.stop().await;
}

/// A server responds to the start of TLS as servers of plain HTTP do.
// rule: webhook.errors-say-what-to-do
#[tokio::test]
async fn plain_response_to_tls_is_named_in_the_error() {
    let world = World::new(&[]).await;
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let mut hello = [0; 512];
            let _ = stream.read(&mut hello).await;
            let _ = stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .await;
            // The client closes the connection.
            while stream.read(&mut hello).await.is_ok_and(|read| read > 0) {}
        }
    });
    let listener = world.listener("acme", &format!("https://{address}/")).await;
    let worker = world.start();
    let record = world.conclude(&listener, "o", "e").await;
    let error = record.last_error.unwrap_or_default();
    assert!(error.starts_with("the TLS handshake failed: "), "{error}");
    assert!(
        error.ends_with("; the server may not speak TLS: use http in mode test, or another port?"),
        "{error}"
    );
    worker.stop().await;
    server.abort();
}
