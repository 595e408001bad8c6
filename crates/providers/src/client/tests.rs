use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rcgen::generate_simple_self_signed;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, Stream};
use test_support::http::{Reply, Upstream};

use super::*;

/// Responds to every connection over TLS as `localhost`. Returns the port and the certificates to trust.
fn encrypted() -> (u16, RootCertStore) {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            let mut session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = Stream::new(&mut session, &mut tcp);
            // A client that does not trust the certificate closes the connection.
            if stream.read(&mut [0; 1024]).is_ok() {
                let response =
                    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
                stream.write_all(response).unwrap();
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    (port, roots)
}

async fn get(client: &HttpClient, host: &str, port: u16) -> Result<HttpResponse, CallError> {
    let request = Request::get(format!("https://{host}:{port}/"));
    let request = request.body(Full::default()).unwrap();
    client
        .send(Caller::Rates, request, Duration::from_secs(20))
        .await
}

#[tokio::test]
async fn client_sends_no_request_without_verified_certificate() {
    let (port, roots) = encrypted();
    let client = HttpClient::trusting(roots.clone(), 1024).unwrap();
    let response = get(&client, "localhost", port).await.unwrap();
    assert_eq!(
        (response.status, &response.body[..]),
        (StatusCode::OK, &b"{}"[..])
    );
    let another = get(&client, "127.0.0.1", port)
        .await
        .unwrap_err()
        .to_string();
    assert!(another.contains("certificate"), "{another}");
    let (_, others) = encrypted();
    let stranger = HttpClient::trusting(others, 1024).unwrap();
    let unknown = get(&stranger, "localhost", port)
        .await
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("certificate"), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn endless_handshake_times_out() {
    // The system accepts connections, but the test never reads from them.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("https://{}/", mute.local_addr().unwrap());
    let mut connector = ConnectorWithTimeout::trusting(RootCertStore::empty()).unwrap();
    let connected = connector.call(uri.parse().unwrap());
    let connected = tokio::time::timeout(CONNECT_TIMEOUT * 10, connected).await;
    assert!(connected.expect("given up").is_err());
}

/// What a server does with one request.
#[derive(Debug)]
enum Step {
    /// Responds and keeps the connection open.
    Says(String),
    /// Sends this part of a response and closes the connection.
    Closes(&'static str),
    /// Keeps the connection open without a response.
    Waits,
}

fn says(head: &str) -> Step {
    Step::Says(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{head}\r\n{{}}"
    ))
}

/// A server that accepts this many connections and takes the steps of each.
struct ScriptedServer {
    port: u16,
    /// The number of the connection of each request.
    requests: Arc<Mutex<Vec<usize>>>,
}

impl ScriptedServer {
    fn start(connections: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<usize>>>::default();
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for (number, steps) in connections.into_iter().enumerate() {
                let (stream, _) = listener.accept().unwrap();
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    take_steps(stream, steps, || kept.lock().push(number));
                });
            }
        });
        Self { port, requests }
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let request = Request::get(format!("http://127.0.0.1:{}/", self.port));
        request.body(Full::default()).unwrap()
    }

    /// Sends a request, and lets its connection return to the idle ones.
    async fn ask(&self, client: &HttpClient, within: Duration) -> Result<HttpResponse, CallError> {
        let acme = acme();
        let caller = Caller::Partner(&acme);
        let result = client.send(caller, self.request(), within).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        result
    }

    fn requests(&self) -> Vec<usize> {
        self.requests.lock().clone()
    }
}

fn take_steps(mut stream: TcpStream, steps: Vec<Step>, note: impl Fn()) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for step in steps {
        if !reads_head(&mut reader) {
            return;
        }
        note();
        // A client that has seen enough closes the connection.
        match step {
            Step::Says(response) => {
                let _ = stream.write_all(response.as_bytes());
            }
            Step::Closes(part) => {
                let _ = stream.write_all(part.as_bytes());
                return;
            }
            Step::Waits => {}
        }
    }
    // The client closes the connection.
    reads_head(&mut reader);
}

fn reads_head(reader: &mut BufReader<TcpStream>) -> bool {
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line == "\r\n" {
            return true;
        }
        line.clear();
    }
    false
}

fn acme() -> PartnerId {
    PartnerId::parse("acme").unwrap()
}

fn plain_client() -> HttpClient {
    HttpClient::trusting(RootCertStore::empty(), 1024).unwrap()
}

/// Generous timeout for a busy machine.
const PATIENT: Duration = Duration::from_secs(60);

/// Waits for a call that gets no response. Its time limit passes as soon as the server has received the request.
pub(crate) async fn late<T>(is_received: impl Fn() -> bool, call: impl Future<Output = T>) -> T {
    let passing = async {
        for _ in 0..6_000 {
            if is_received() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // When every task waits, a stopped clock goes to the next deadline.
        tokio::time::pause();
    };
    let (result, ()) = tokio::join!(call, passing);
    tokio::time::resume();
    result
}

// rule: engine.http.silence
#[tokio::test]
async fn abandoned_response_is_never_returned_for_another_request() {
    let body = |length: usize, text: &str| {
        Step::Says(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}"
        ))
    };
    for (fault, first, second) in [
        ("late", Step::Waits, body(4, "late")),
        ("half", body(100, "half"), says("")),
        ("long", body(2000, &"x".repeat(2000)), says("")),
    ] {
        let server = ScriptedServer::start(vec![vec![first, second], vec![says("")]]);
        let client = plain_client();
        let given_up = server.ask(&client, Duration::from_millis(100)).await;
        assert!(given_up.is_err(), "{fault}: {given_up:?}");
        let next = server.ask(&client, PATIENT).await.unwrap();
        assert_eq!(&next.body[..], b"{}", "after {fault}");
    }
}

// rule: upstream.http.kept-connection
#[tokio::test]
async fn call_is_sent_again_when_reused_connection_ends_without_response() {
    let first = vec![says(""), says(""), Step::Closes("")];
    let server = ScriptedServer::start(vec![first, vec![says("")]]);
    let client = plain_client();
    for _ in 0..3 {
        let response = server.ask(&client, PATIENT).await.unwrap();
        assert_eq!(&response.body[..], b"{}");
    }
    assert_eq!(server.requests(), [0, 0, 0, 1]);
}

// rule: upstream.http.kept-connection
#[tokio::test]
async fn call_is_sent_at_most_twice_and_never_after_first_byte() {
    let ended = || Step::Closes("");
    for (connections, requests) in [
        // The connection is new.
        (vec![vec![ended()], vec![says("")]], vec![0]),
        // The response has begun.
        (
            vec![vec![says(""), Step::Closes("H")], vec![says("")]],
            vec![0, 0],
        ),
        // The new connection ends too.
        (
            vec![vec![says(""), ended()], vec![ended()], vec![says("")]],
            vec![0, 0, 1],
        ),
    ] {
        let reused = connections[0].len() > 1;
        let server = ScriptedServer::start(connections);
        let client = plain_client();
        if reused {
            server.ask(&client, PATIENT).await.unwrap();
        }
        let failed = server.ask(&client, PATIENT).await.unwrap_err();
        assert!(!failed.is_unsent(), "{failed}");
        assert_eq!(server.requests(), requests);
    }
}

// rule: upstream.http.kept-connection
#[tokio::test]
async fn repeated_call_ends_at_the_time_limit_of_the_call() {
    let first = vec![says(""), Step::Closes("")];
    let server = ScriptedServer::start(vec![first, vec![Step::Waits]]);
    let client = plain_client();
    server.ask(&client, PATIENT).await.unwrap();
    let sent = || server.requests().len() == 3;
    let ended = late(sent, server.ask(&client, PATIENT)).await;
    assert!(matches!(ended, Err(CallError::Late(_))), "{ended:?}");
    assert_eq!(server.requests(), [0, 0, 1]);
}

// rule: pools.engine.unsent
#[tokio::test]
async fn sent_call_is_not_unsent_when_no_new_connection_can_be_opened() {
    let server = ScriptedServer::start(vec![vec![says(""), Step::Closes("")]]);
    let client = plain_client();
    server.ask(&client, PATIENT).await.unwrap();
    let failed = server.ask(&client, PATIENT).await.unwrap_err();
    assert!(!failed.is_unsent(), "{failed}");
    let closed = ScriptedServer {
        port: test_support::http::nowhere().port(),
        requests: Arc::default(),
    };
    let refused = closed.ask(&client, PATIENT).await.unwrap_err();
    assert!(refused.is_unsent(), "{refused}");
}

// rule: pools.engine.unsent
#[tokio::test]
async fn call_that_got_no_permit_is_unsent() {
    let server = ScriptedServer::start(vec![vec![says("")]]);
    let client = plain_client();
    let permits = client.all_permits();
    assert_eq!(permits.len(), MAX_CONCURRENT_CALLS);
    let refused = server.ask(&client, Duration::from_millis(100)).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, CallError::Unsent(_)), "{refused}");
    assert!(refused.is_unsent());
    assert_eq!(server.requests(), [0; 0]);
    // A poll needs no permit.
    let acme = acme();
    let poll = client.send(Caller::Poll(&acme), server.request(), PATIENT);
    poll.await.unwrap();
    drop(permits);
    assert_eq!(server.requests(), [0]);
}

// rule: pools.engine.even-share, pools.engine.unsent, rail.http.even-share, verifier.http.even-share
#[tokio::test]
async fn call_beyond_the_part_of_its_partner_is_unsent_and_delays_no_other_partner() {
    let far = Upstream::start(|_| Reply::json(200, "{}"));
    let client = plain_client();
    let (acme, globex) = (acme(), PartnerId::parse("globex").unwrap());
    let asked = |partner, within| {
        let request = Request::get(far.url());
        let request = request.body(Full::default()).unwrap();
        client.send(Caller::Partner(partner), request, within)
    };
    let mut part: Vec<_> = std::iter::from_fn(|| client.calls.try_acquire(&acme)).collect();
    assert_eq!(part.len(), MAX_CONCURRENT_CALLS / 2);
    let refused = asked(&acme, Duration::from_millis(100)).await.unwrap_err();
    assert!(matches!(refused, CallError::Unsent(_)), "{refused}");
    let mut waiting = Box::pin(asked(&acme, PATIENT));
    let early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(early.is_err());
    asked(&globex, PATIENT).await.unwrap();
    part.pop();
    waiting.await.unwrap();
}

/// Calls and polls are counted separately. An invalid response counts as a response.
// rule: upstream.http.hanging
#[tokio::test]
async fn partner_whose_calls_time_out_hangs_until_one_gets_a_response() {
    let is_silent = Arc::new(AtomicBool::new(true));
    let silent = Arc::clone(&is_silent);
    let far = Upstream::start(move |_| {
        if silent.load(Ordering::SeqCst) {
            Reply::Waits
        } else {
            Reply::broken()
        }
    });
    let (client, acme) = (plain_client(), acme());
    let mut sent = 0;
    for caller in [Caller::Partner(&acme), Caller::Poll(&acme)] {
        let asked = || {
            let request = Request::get(far.url());
            client.send(caller, request.body(Full::default()).unwrap(), PATIENT)
        };
        let hangs = || match caller {
            Caller::Poll(partner) => client.polls_hang(partner),
            _ => client.calls.is_hanging(&acme),
        };
        is_silent.store(true, Ordering::SeqCst);
        while !hangs() {
            sent += 1;
            let ended = late(|| far.received().len() == sent, asked()).await;
            assert!(matches!(ended, Err(CallError::Late(_))), "{ended:?}");
            assert!(sent < 100, "the partner never hangs");
        }
        is_silent.store(false, Ordering::SeqCst);
        sent += 1;
        let ended = asked().await;
        assert!(matches!(ended, Err(CallError::Broken(_))), "{ended:?}");
        assert!(!hangs());
    }
    assert_eq!(sent, 2 * (8 + 1));
    // A call that opens no connection does not hang.
    let nowhere = format!("http://{}/", test_support::http::nowhere());
    for _ in 0..8 {
        let request = Request::get(&nowhere).body(Full::default()).unwrap();
        let refused = client.send(Caller::Partner(&acme), request, PATIENT).await;
        assert!(refused.unwrap_err().is_unsent());
    }
    assert!(!client.calls.is_hanging(&acme));
}

// rule: upstream.http.head
#[tokio::test]
async fn head_of_64_kib_with_thousands_of_lines_is_read() {
    let lines = |count| (0..count).map(|number| format!("x{number}:\r\n"));
    for (head, is_read) in [
        (lines(101).collect::<String>(), true),
        (lines(6_400).collect(), true),
        ("a:\r\n".repeat(6_400), true),
        (format!("x: {}\r\n", "x".repeat(65_000)), true),
        (format!("x: {}\r\n", "x".repeat(200_000)), false),
        ("a:\r\n".repeat(7_000), false),
    ] {
        let server = ScriptedServer::start(vec![vec![says(&head)]]);
        let response = server.ask(&plain_client(), PATIENT).await;
        assert_eq!(response.is_ok(), is_read, "{} bytes", head.len());
    }
}
