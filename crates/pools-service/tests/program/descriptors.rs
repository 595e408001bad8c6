//! The limit of open file descriptors.

use std::io::ErrorKind;
use std::time::Duration;

use test_support::http::try_send;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;

use crate::served::{POOLS, Served, eventually, get};

/// The soft and the hard limit of a process.
fn limits(served: &Served) -> (String, String) {
    let file = format!("/proc/{}/limits", served.id());
    let limits = std::fs::read_to_string(file).unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let mut limits = line.unwrap().split_whitespace().map(str::to_owned);
    (limits.next().unwrap(), limits.next().unwrap())
}

// rule: base.descriptors
#[test]
fn service_raises_soft_limit_of_descriptors_to_hard_limit() {
    let folder = tempfile::tempdir().unwrap();
    let served = POOLS.start_after(folder.path(), "ulimit -Sn 64", &[]);
    let (soft, hard) = limits(&served);
    assert_eq!(soft, hard);
    assert_ne!(soft, "64");
    assert_eq!(served.end("-TERM").0, Some(0));
}

/// Connections from several addresses that send only the first line of their heads.
async fn unfinished_heads(address: &str) -> Vec<std::net::TcpStream> {
    let mut held = Vec::new();
    for network in 2..6 {
        for _ in 0..130 {
            let socket = TcpSocket::new_v4().unwrap();
            let own = format!("127.0.0.{network}:0").parse().unwrap();
            socket.bind(own).unwrap();
            let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
            // The service may have refused the connection already.
            let _ = stream.write_all(b"GET /v1/pools HTTP/1.1\r\n").await;
            held.push(stream.into_std().unwrap());
        }
    }
    held
}

/// Whether the service has neither answered nor closed this connection.
fn is_open(stream: &std::net::TcpStream) -> bool {
    let read = stream.peek(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn is_healthy(address: &str, path: &str) -> bool {
    let response = try_send(address, &format!("GET {path}"), &[], "");
    response.is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
}

// rule: base.descriptors, health.reserved
#[tokio::test]
async fn health_check_is_served_while_clients_hold_more_connections_than_a_low_limit_allows() {
    let folder = tempfile::tempdir().unwrap();
    let served = POOLS.start_after(folder.path(), "ulimit -n 512", &[]);
    // On a busy machine the service may have closed the late connections before the checks ended. Then they prove nothing.
    let mut is_proven = false;
    for _ in 0..10 {
        let held = unfinished_heads(&served.address).await;
        for path in ["/health", "/health/ready"] {
            eventually(|| is_healthy(&served.address, path).then_some(()));
        }
        is_proven = is_open(&held[0]);
        if is_proven {
            break;
        }
    }
    assert!(is_proven, "the checks do not wait for the late heads");
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0), "{logged}");
    let warning = logged
        .lines()
        .find(|line| line.contains("The limit of open files is too low for PENSTOCK_CONNECTIONS"));
    let warning = warning.unwrap_or_else(|| panic!("{logged}"));
    for field in [
        r#""descriptors.limit":512"#,
        r#""descriptors.needed":9416"#,
        r#""http.connections":64"#,
    ] {
        assert!(warning.contains(field), "{field}: {warning}");
    }
    assert!(!logged.contains("Failed to accept"), "{logged}");
}

// rule: base.accept-failures-logged
#[tokio::test]
async fn failed_accepts_are_logged_once_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let served = POOLS.start(folder.path(), &[]);
    // Fewer than the service has open, so that it can open no more.
    served.limit("--nofile=4:");
    let waiting = TcpStream::connect(&served.address).await.unwrap();
    eventually(|| served.logged().contains("Failed to accept").then_some(()));
    sleep(Duration::from_secs(1)).await;
    served.limit("--nofile=1000:");
    eventually(|| {
        let response = get(&served.address, "/health");
        response.starts_with("HTTP/1.1 200").then_some(())
    });
    drop(waiting);
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0), "{logged}");
    assert_eq!(logged.matches("Failed to accept").count(), 1, "{logged}");
}
