mod stopping;

use std::sync::atomic::{AtomicU32, Ordering};

use axum::routing::{get, post};
use partner_core::events::Service;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;
use crate::json::Json;
use crate::request_layer::finish;
use crate::service_info::testing::site;

/// The deadline that a test waits for.
const SHORT: Duration = Duration::from_millis(150);
/// Every other deadline: a test that reaches it has failed.
const LONG: Duration = Duration::from_secs(60);

/// How often the handlers that take time were called, and have completed.
#[derive(Default)]
struct Calls {
    begun: AtomicU32,
    done: AtomicU32,
}

#[derive(Deserialize)]
struct Thing {
    name: String,
}

fn routes(calls: Arc<Calls>) -> Router {
    let stuck = Arc::clone(&calls);
    Router::new()
        .route("/fast", get(async || "fast"))
        .route("/health", get(async || "alive"))
        .route(
            "/slow",
            get(async move || {
                calls.begun.fetch_add(1, Ordering::SeqCst);
                sleep(3 * SHORT).await;
                calls.done.fetch_add(1, Ordering::SeqCst);
                "slow"
            }),
        )
        .route(
            "/stuck",
            get(async move || -> &'static str {
                stuck.begun.fetch_add(1, Ordering::SeqCst);
                std::future::pending().await
            }),
        )
        .route(
            "/panic",
            get(async || -> &'static str { panic!("deliberate") }),
        )
        .route(
            "/late-panic",
            get(async || -> &'static str {
                sleep(Duration::from_millis(5)).await;
                panic!("deliberate")
            }),
        )
        .route("/echo", post(async |Json(thing): Json<Thing>| thing.name))
        .route("/ignore", post(async || "ignored"))
        .route("/big", get(async || vec![b'x'; 32 * 1024 * 1024]))
}

struct Server {
    at: SocketAddr,
    stop: CancellationToken,
    calls: Arc<Calls>,
    task: JoinHandle<io::Result<()>>,
}

/// Starts a server with deadlines of [`LONG`], changed by the test.
async fn start(change: impl FnOnce(&mut Options)) -> Server {
    let mut options = Options::new(site());
    options.deadlines = Deadlines {
        first_byte: LONG,
        header: LONG,
        body: LONG,
        idle: LONG,
        write: LONG,
        shutdown: LONG,
    };
    change(&mut options);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let calls = Arc::<Calls>::default();
    let router = finish(routes(Arc::clone(&calls)), Service::Pools, site());
    let task = tokio::spawn(serve(listener, router, options, stop.clone()));
    Server {
        at,
        stop,
        calls,
        task,
    }
}

/// Waits until this many calls are counted.
async fn counted(calls: &AtomicU32, wanted: u32) {
    let counting = async {
        while calls.load(Ordering::SeqCst) < wanted {
            sleep(SHORT / 30).await;
        }
    };
    timeout(LONG / 2, counting).await.expect("the calls");
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.at).await.unwrap()
}

/// Connects and sends bytes before the server accepts the connection, because it runs on the test's thread. So no pause of the
/// machine makes the first byte late. The system must be able to buffer the bytes.
fn connect_with(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = std::net::TcpStream::connect(server.at).unwrap();
    io::Write::write_all(&mut stream, bytes).unwrap();
    stream.set_nonblocking(true).unwrap();
    TcpStream::from_std(stream).unwrap()
}

/// Sends bytes and reads until the server closes the connection.
async fn exchange(server: &Server, bytes: &[u8]) -> String {
    let (first, rest) = bytes.split_at(bytes.len().min(1024));
    let mut stream = connect_with(server, first);
    stream.write_all(rest).await.unwrap();
    read_to_end(&mut stream).await
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    timeout(LONG / 2, stream.read_to_end(&mut response))
        .await
        .expect("the server closes the connection")
        .unwrap();
    String::from_utf8(response).unwrap()
}

/// Reads one response with a length and leaves the connection open.
async fn read_answer(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&response);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = header_of(head, "content-length").parse().unwrap();
            if body.len() >= length {
                return text.into_owned();
            }
        }
        let mut part = [0; 1024];
        let read = stream.read(&mut part).await.unwrap();
        assert_ne!(
            read,
            0,
            "closed early: {}",
            String::from_utf8_lossy(&response)
        );
        response.extend_from_slice(&part[..read]);
    }
}

fn header_of<'a>(head: &'a str, name: &str) -> &'a str {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map_or("", |(_, value)| value)
}

fn assert_envelope(response: &str, status: u16, code: &str) {
    let (head, body) = response.split_once("\r\n\r\n").expect(response);
    assert!(
        head.starts_with(&format!("HTTP/1.1 {status} ")),
        "{response}"
    );
    let value: Value = serde_json::from_str(body).expect(response);
    assert_eq!(value["code"], code, "{response}");
    assert_eq!(value["statusCode"], status);
    assert_eq!(value["request_id"], header_of(head, "x-request-id"));
    assert_eq!(header_of(head, "content-length"), body.len().to_string());
    assert_eq!(header_of(head, "content-type"), "application/json");
}

fn assert_closes(response: &str) {
    assert_eq!(header_of(response, "connection"), "close", "{response}");
}

#[tokio::test]
async fn pipelined_requests_get_responses_in_order() {
    let server = start(|_| {}).await;
    let response = exchange(
        &server,
        b"GET /fast HTTP/1.1\r\n\r\nGET /slow HTTP/1.1\r\n\r\nGET /panic HTTP/1.1\r\nConnection: close\r\n\r\n",
    )
    .await;
    let order: Vec<&str> = response.matches("HTTP/1.1 ").collect();
    assert_eq!(order.len(), 3, "{response}");
    assert!(response.find("fast") < response.find("slow"));
    assert!(response.find("slow") < response.find("internal_error"));
}

#[tokio::test]
async fn slow_head_times_out_with_envelope() {
    let server = start(|options| options.deadlines.header = SHORT).await;
    let mut stream = connect(&server).await;
    for part in [&b"GET /fast"[..], b" HTTP/1.1\r\n", b"X: y\r\n"] {
        // On a busy machine the server may have closed the connection already.
        let _ = stream.write_all(part).await;
        sleep(SHORT / 5).await;
    }
    // The last part may arrive after the end of the connection, which then ends with a reset.
    let mut response = Vec::new();
    let read = timeout(LONG / 2, stream.read_to_end(&mut response)).await;
    drop(read.expect("the server closes the connection"));
    let response = String::from_utf8(response).unwrap();
    assert_envelope(&response, 408, "request_timeout");
    assert_closes(&response);
}

#[tokio::test]
async fn idle_connection_outlives_head_deadline_and_is_closed_silently() {
    let server = start(|options| options.deadlines.header = SHORT).await;
    let mut stream = connect(&server).await;
    sleep(2 * SHORT).await;
    stream
        .write_all(b"GET /fast HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    assert!(read_answer(&mut stream).await.ends_with("fast"));
    sleep(2 * SHORT).await;
    stream
        .write_all(b"GET /fast HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    assert!(read_answer(&mut stream).await.ends_with("fast"));
    let server = start(|options| options.deadlines.idle = SHORT).await;
    let mut idle = served(&server).await;
    assert_eq!(read_to_end(&mut idle).await, "");
}

#[tokio::test]
async fn slow_body_times_out() {
    let server = start(|options| options.deadlines.body = SHORT).await;
    let response = exchange(
        &server,
        b"POST /echo HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"na",
    )
    .await;
    assert_envelope(&response, 408, "request_timeout");
    assert_closes(&response);
}

#[tokio::test]
async fn incomplete_body_is_refused() {
    let server = start(|_| {}).await;
    let mut stream = connect(&server).await;
    stream
        .write_all(b"POST /echo HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    assert_envelope(&read_to_end(&mut stream).await, 400, "invalid_request");
    let response = exchange(
        &server,
        b"POST /echo HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    )
    .await;
    assert_envelope(&response, 400, "invalid_request");
}

#[tokio::test]
async fn large_body_is_refused_without_losing_response() {
    let server = start(|_| {}).await;
    let mut request =
        b"POST /echo HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
            .to_vec();
    request.resize(request.len() + 900_000, b'x');
    let response = exchange(&server, &request).await;
    assert_envelope(&response, 413, "body_too_large");
    assert_closes(&response);
}

#[tokio::test]
async fn unread_body_does_not_affect_next_request() {
    let server = start(|_| {}).await;
    let mut stream = connect(&server).await;
    for _ in 0..2 {
        stream
            .write_all(b"POST /ignore HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
            .await
            .unwrap();
        assert!(read_answer(&mut stream).await.ends_with("ignored"));
    }
}

#[tokio::test]
async fn panic_returns_internal_error() {
    let server = start(|_| {}).await;
    let mut stream = connect(&server).await;
    for path in ["/panic", "/late-panic"] {
        let request = format!("GET {path} HTTP/1.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_envelope(&read_answer(&mut stream).await, 500, "internal_error");
    }
}

#[tokio::test]
async fn disconnect_does_not_cancel_request() {
    let server = start(|_| {}).await;
    let mut stream = connect(&server).await;
    stream
        .write_all(b"GET /slow HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    counted(&server.calls.begun, 1).await;
    drop(stream);
    counted(&server.calls.done, 1).await;
}

#[tokio::test]
async fn half_closed_client_gets_response() {
    let server = start(|_| {}).await;
    let mut stream = connect(&server).await;
    stream
        .write_all(b"GET /slow HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    assert!(read_to_end(&mut stream).await.ends_with("slow"));
}

// rule: error.headers-too-large
#[tokio::test]
async fn too_large_head_returns_envelope() {
    let server = start(|_| {}).await;
    let large = format!("GET /fast HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(17 * 1024));
    let huge = format!(
        "GET /fast HTTP/1.1\r\nX: {}\r\n\r\n",
        "y".repeat(900 * 1024)
    );
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(70 * 1024));
    let fields = |count: usize| {
        format!(
            "GET /fast HTTP/1.1\r\n{}Connection: close\r\n\r\n",
            "X: y\r\n".repeat(count - 1)
        )
    };
    for request in [large, huge, path, fields(101)] {
        let response = exchange(&server, request.as_bytes()).await;
        assert_envelope(&response, 431, "headers_too_large");
        assert_closes(&response);
    }
    assert!(
        exchange(&server, fields(100).as_bytes())
            .await
            .ends_with("fast")
    );
    let fits = format!(
        "GET /fast HTTP/1.1\r\nConnection: close\r\nX: {}\r\n\r\n",
        "y".repeat(15 * 1024)
    );
    assert!(exchange(&server, fits.as_bytes()).await.ends_with("fast"));
}

#[tokio::test]
async fn invalid_http_returns_envelope() {
    let server = start(|_| {}).await;
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GET / HTTP/3.7\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nX : y\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n{}",
        b"POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n{}",
    ] {
        let response = exchange(&server, garbage).await;
        assert_envelope(&response, 400, "invalid_request");
        assert_closes(&response);
    }
    let second = exchange(&server, b"GET /fast HTTP/1.1\r\n\r\nnonsense\r\n\r\n").await;
    let (first, second) = second.split_at(second.find("fast").unwrap() + 4);
    assert!(first.starts_with("HTTP/1.1 200"));
    assert_envelope(second, 400, "invalid_request");
}

#[tokio::test]
async fn unread_response_is_abandoned() {
    let server = start(|options| options.deadlines.write = SHORT).await;
    let mut stream = connect(&server).await;
    stream
        .write_all(b"GET /big HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    stream.read_u8().await.unwrap();
    server.stop.cancel();
    let ended = timeout(LONG / 2, server.task).await;
    ended.expect("the response is abandoned").unwrap().unwrap();
    let mut response = Vec::new();
    let end = stream.read_to_end(&mut response).await;
    assert!(end.is_err() || response.len() < 32 * 1024 * 1024);
}

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\n\r\n";

/// A connection that has a slot of the full share, as its first response shows.
async fn served(server: &Server) -> TcpStream {
    let mut stream = connect_with(server, b"GET /fast HTTP/1.1\r\n\r\n");
    assert!(read_answer(&mut stream).await.ends_with("fast"));
    stream
}

#[tokio::test]
async fn connections_are_bounded() {
    let server = start(|options| options.bounds.connections = 1).await;
    let first = served(&server).await;
    let response = exchange(&server, b"GET /fast HTTP/1.1\r\n\r\n").await;
    assert_envelope(&response, 503, "overloaded");
    assert_closes(&response);
    drop(first);
    // The server may notice the end of the first connection later.
    let admitted = async {
        let request = b"GET /fast HTTP/1.1\r\nConnection: close\r\n\r\n";
        while !exchange(&server, request).await.ends_with("fast") {
            sleep(SHORT / 3).await;
        }
    };
    timeout(LONG / 2, admitted).await.expect("the slot is free");
}

// rule: health.reserved, base.connections
#[tokio::test]
async fn connection_over_a_bound_is_served_health_only() {
    let server = start(|options| options.bounds.per_network = 1).await;
    let mut first = served(&server).await;
    for _ in 0..10 {
        let response = exchange(&server, HEALTH).await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(response.ends_with("alive"), "{response}");
        assert_closes(&response);
    }
    // The second request of such a connection is not read.
    let twice = [HEALTH, b"GET /fast HTTP/1.1\r\n\r\n"].concat();
    assert!(exchange(&server, &twice).await.ends_with("alive"));
    let post =
        b"POST /echo HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    assert_envelope(&exchange(&server, post).await, 503, "overloaded");
    first.write_all(HEALTH).await.unwrap();
    assert!(read_answer(&mut first).await.ends_with("alive"));
}

#[tokio::test]
async fn connection_without_any_place_is_turned_away() {
    let server = start(|options| {
        options.bounds.per_network = 1;
        options.bounds.reserved = 0;
    })
    .await;
    let first = served(&server).await;
    for _ in 0..3 {
        let response = exchange(&server, HEALTH).await;
        assert_envelope(&response, 503, "overloaded");
        assert_closes(&response);
    }
    drop(first);
}

// rule: base.deadlines
#[test]
fn service_outlasts_the_kept_connections_of_usual_balancers() {
    assert_eq!(Deadlines::default().idle, Duration::from_secs(75));
}

// rule: base.deadlines
#[tokio::test]
async fn silent_connection_ends_at_the_first_byte_deadline() {
    let server = start(|options| options.deadlines.first_byte = 6 * SHORT).await;
    let begun = Instant::now();
    let mut silent = connect(&server).await;
    assert_eq!(read_to_end(&mut silent).await, "");
    assert!(begun.elapsed() >= 5 * SHORT);
    // After its first response a connection may idle for longer.
    let mut known = served(&server).await;
    sleep(7 * SHORT).await;
    known.write_all(HEALTH).await.unwrap();
    assert!(read_answer(&mut known).await.ends_with("alive"));
}

// rule: base.connections
#[tokio::test]
async fn silent_connections_of_one_network_block_no_other_network() {
    let server = start(|options| {
        options.bounds.connections = 40;
        options.bounds.per_network = 20;
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        silent.push(socket.connect(server.at).await.unwrap());
    }
    let serving = async {
        let mut other = served(&server).await;
        other.write_all(HEALTH).await.unwrap();
        assert!(read_answer(&mut other).await.ends_with("alive"));
    };
    let ended = timeout(LONG / 2, serving).await;
    ended.expect("the other network is served");
}
