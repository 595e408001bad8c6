//! Many requests over one connection, split at any byte, get the same responses as separate
//! connections.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this whole program is a test"
)]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use http_kit::{ApiError, Options, finish, read_body, serve};
use partner_core::events::Service;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

mod site;
use site::site;

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let site = site();
    let echo = async |body: axum::body::Body| -> Result<Bytes, ApiError> { read_body(body).await };
    let routes = Router::new()
        .route("/echo", post(echo))
        .route("/plain", get(async || "plain"));
    let router = finish(routes, Service::Pools, site.clone());
    tokio::spawn(serve(
        listener,
        router,
        Options::new(site),
        CancellationToken::new(),
    ));
    at
}

/// Sends each piece separately, and reads until the service closes the connection.
async fn say<'p>(at: SocketAddr, pieces: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // The service may have refused the request and closed the connection.
        if stream.write_all(piece).await.is_err() {
            break;
        }
        sleep(Duration::from_micros(200)).await;
    }
    let _ = stream.shutdown().await;
    let mut answers = Vec::new();
    let end = timeout(Duration::from_secs(30), stream.read_to_end(&mut answers)).await;
    end.expect("the service closes the connection").unwrap();
    String::from_utf8(answers).unwrap()
}

/// The status and body of each response.
fn answers(text: &str) -> Vec<(u16, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((head, behind)) = rest.split_once("\r\n\r\n") {
        let status = head.get(9..12).unwrap().parse().unwrap();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let length = header("content-length: ").unwrap().parse().unwrap();
        let (body, next) = behind.split_at(length);
        found.push((status, body.to_owned()));
        rest = next;
    }
    assert_eq!(rest, "");
    found
}

/// A chunk's size in one of the spellings that clients use.
fn size(length: usize, style: u8) -> String {
    match style % 6 {
        0 => format!("{length:x}"),
        1 => format!("{length:X}"),
        2 => format!("000{length:x}"),
        3 => format!("{length:x};a=b"),
        4 => format!("{length:X} ; a ; b=\"c;d\""),
        _ => format!("{length:x}\t;x=\"0\""),
    }
}

fn chunked(chunks: &[(String, u8)], trailers: usize) -> String {
    let mut body = String::new();
    for (data, style) in chunks {
        body += &format!("{}\r\n{data}\r\n", size(data.len(), *style));
    }
    body += &format!("{}\r\n", size(0, trailers as u8));
    for trailer in 0..trailers {
        body += &format!("X-Trailer-{trailer}: Content-Length: 7\r\n");
    }
    body + "\r\n"
}

/// Body data that looks like HTTP framing.
fn data() -> impl Strategy<Value = String> {
    let odd = select(vec![
        "0\r\n\r\n",
        "\r\n",
        "\n",
        "5\r\n",
        "GET /plain HTTP/1.1\r\n\r\n",
        "Content-Length: 3\r\n\r\n",
    ]);
    vec(
        prop_oneof![odd.prop_map(str::to_owned), "[a-z0-9]{1,20}"],
        1..4,
    )
    .prop_map(|parts| parts.concat())
}

/// A well-formed request.
fn request() -> impl Strategy<Value = String> {
    let sized = data().prop_map(|body| {
        let length = body.len();
        format!("POST /echo HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}")
    });
    let coding = select(vec!["chunked", "Chunked", "CHUNKED"]);
    let chunks = vec((data(), any::<u8>()), 0..4);
    let chunked = (coding, chunks, 0..3_usize).prop_map(|(coding, chunks, trailers)| {
        let body = chunked(&chunks, trailers);
        format!("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n{body}")
    });
    let plain = Just("\r\nGET /plain HTTP/1.1\r\nHost: x\r\n\r\n".to_owned());
    prop_oneof![1 => plain, 2 => sized, 4 => chunked]
}

/// Ambiguous or invalid heads, each followed by the start of a smuggled request.
fn malformed() -> impl Strategy<Value = String> {
    const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";
    let heads = [
        format!("{CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n"),
        format!("Content-Length: 5\r\n{CHUNKED}\r\n0\r\n\r\n"),
        "Content-Length: 0\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "Content-Length: 0\r\nContent-Length: 5\r\n\r\n".to_owned(),
        "Content-Length: 0, 0\r\n\r\n".to_owned(),
        "Content-Length: +0\r\n\r\n".to_owned(),
        "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n".to_owned(),
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n".to_owned(),
        format!("{CHUNKED}{CHUNKED}\r\n0\r\n\r\n"),
        format!("Transfer-Encoding: identity\r\n{CHUNKED}\r\n0\r\n\r\n"),
        format!("{CHUNKED}\r\n\r\n0\r\n\r\n"),
        format!("{CHUNKED}\r\n0x0\r\n\r\n"),
        format!("{CHUNKED}\r\n-1\r\n\r\n"),
        format!("{CHUNKED}\r\n1\r\nab\r\n0\r\n\r\n"),
        format!("{CHUNKED}\r\n1\na\r\n0\r\n\r\n"),
        format!("{CHUNKED}\r\nFFFFFFFFFFFFFFFFF\r\n"),
    ];
    select(heads.to_vec()).prop_map(|rest| format!("POST /echo HTTP/1.1\r\n{rest}"))
}

/// Splits a stream of bytes at the given places.
fn cut<'b>(bytes: &'b [u8], places: &[Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|at| at.index(bytes.len())).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(bytes.get(from..place).unwrap());
        from = place;
    }
    pieces
}

/// Checks one property against a new service.
fn check<S: Strategy>(cases: u32, strategy: &S, holds: impl AsyncFn(SocketAddr, S::Value)) {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(start());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(cases));
    let run = runner.run(strategy, |value| {
        runtime.block_on(holds(at, value));
        Ok(())
    });
    if let Err(fault) = run {
        panic!("{fault}");
    }
}

#[test]
fn one_connection_responds_as_many_connections() {
    let strategy = (vec(request(), 1..6), vec(any::<Index>(), 0..12));
    check(200, &strategy, async |at, (requests, places)| {
        let mut wanted = Vec::new();
        for request in &requests {
            wanted.extend(answers(&say(at, [request.as_bytes()]).await));
        }
        assert_eq!(wanted.len(), requests.len());
        assert!(wanted.iter().all(|(status, _)| *status == 200));
        let together = requests.concat();
        let found = say(at, cut(together.as_bytes(), &places)).await;
        assert_eq!(answers(&found), wanted, "{together:?}");
    });
}

#[test]
fn malformed_request_is_refused_and_ends_connection() {
    let strategy = (
        vec(request(), 0..4),
        malformed(),
        vec(any::<Index>(), 0..12),
    );
    check(200, &strategy, async |at, (before, malformed, places)| {
        let sound = before.len();
        let all = before.concat() + &malformed + "GET /plain HTTP/1.1\r\n\r\n";
        let found = say(at, cut(all.as_bytes(), &places)).await;
        let answers = answers(&found);
        let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses.len(), sound + 1, "{found}");
        assert_eq!(statuses.last(), Some(&400), "{found}");
        assert!(!statuses[..sound].contains(&400), "{found}");
    });
}
