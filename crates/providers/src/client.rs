//! Calls to far ends of the operator's own: one request, one answer of bounded length, by a deadline.
//!
//! No redirects, no proxies, no cookies, no compression: the client has none of them. Addresses are
//! not judged, because the operator chose them; most are private.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::header::{HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kernel::causes;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;
use tower_service::Service;

const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("Penstock/", env!("CARGO_PKG_VERSION")));
/// The head of an answer is at most this long.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long a connection may wait for its next request: servers commonly close theirs after 5
/// seconds or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long connecting may go on when nobody waits for it any more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that wait, of one far end.
const MAX_IDLE: usize = 64;
/// Calls at once; the next waits for one of them, within its own deadline.
const MAX_CONCURRENT_CALLS: usize = 256;

/// Makes calls.
pub(crate) struct HttpClient {
    client: Client<Patient, Full<Bytes>>,
    permits: Semaphore,
    longest: usize,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Why there is no answer. Of none of these can be told whether the request was acted on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the call failed: {}", causes(.0))]
    Failed(#[source] hyper_util::client::legacy::Error),
    #[error("the answer broke off: {0}")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl HttpClient {
    /// A client whose answers are at most `longest` bytes. The machine's certificates are read only
    /// where something is encrypted.
    pub(crate) fn new(encrypted: bool, longest: usize) -> io::Result<Self> {
        let roots = if encrypted {
            of_machine()?
        } else {
            RootCertStore::empty()
        };
        Self::trusting(roots, longest)
    }

    fn trusting(roots: RootCertStore, longest: usize) -> io::Result<Self> {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .build(Patient::trusting(roots)?);
        Ok(Self {
            client,
            permits: Semaphore::new(MAX_CONCURRENT_CALLS),
            longest,
        })
    }

    /// Sends a request and reads the whole answer, both before the deadline.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Answer, CallError> {
        let answered = tokio::time::timeout(within, self.exchange(request));
        answered.await.unwrap_or(Err(CallError::Late(within)))
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Answer, CallError> {
        request.headers_mut().entry(USER_AGENT).or_insert(AGENT);
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let answer = self.client.request(request).await;
        let (head, body) = answer.map_err(CallError::Failed)?.into_parts();
        let body = Limited::new(body, self.longest).collect().await;
        let body = body.map_err(|fault| {
            if fault.is::<LengthLimitError>() {
                CallError::TooLong(self.longest)
            } else {
                CallError::Broken(fault)
            }
        })?;
        Ok(Answer {
            status: head.status,
            body: body.to_bytes(),
        })
    }
}

/// Connects and proves who is there, and gives up in time on both: the pool goes on with it where another
/// connection was free sooner.
#[derive(Clone)]
struct Patient(HttpsConnector<HttpConnector>);

impl Patient {
    fn trusting(roots: RootCertStore) -> io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        // Divided among the addresses of a name.
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(roots)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self(connector))
    }
}

impl Service<Uri> for Patient {
    type Response = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.0.call(to));
        Box::pin(async move { connected.await? })
    }
}

/// The certificates the machine trusts.
fn of_machine() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // What cannot be read is left out; with the rest a far end proves itself or does not.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::other(
            "the machine trusts no certificate: install its CA certificates or name them in SSL_CERT_FILE",
        ));
    }
    Ok(roots)
}

fn tls(roots: RootCertStore) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};

    use rcgen::generate_simple_self_signed;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection, Stream};

    use super::*;

    /// Answers every connection over TLS as `localhost`; its port, and what has to be trusted.
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
                // A client that trusts nobody goes away.
                if stream.read(&mut [0; 1024]).is_ok() {
                    let answer =
                        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
                    stream.write_all(answer).unwrap();
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        (port, roots)
    }

    async fn get(client: &HttpClient, host: &str, port: u16) -> Result<Answer, CallError> {
        let request = Request::get(format!("https://{host}:{port}/"));
        let request = request.body(Full::default()).unwrap();
        client.send(request, Duration::from_secs(20)).await
    }

    #[tokio::test]
    async fn who_is_not_proven_is_not_asked() {
        let (port, roots) = encrypted();
        let client = HttpClient::trusting(roots.clone(), 1024).unwrap();
        let answer = get(&client, "localhost", port).await.unwrap();
        assert_eq!(
            (answer.status, &answer.body[..]),
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
    async fn a_handshake_that_never_ends_is_given_up() {
        // Connections are made by the system; nobody takes them.
        let mute = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("https://{}/", mute.local_addr().unwrap());
        let mut connector = Patient::trusting(RootCertStore::empty()).unwrap();
        let connected = connector.call(uri.parse().unwrap());
        let connected = tokio::time::timeout(CONNECT_TIMEOUT * 10, connected).await;
        assert!(connected.expect("given up").is_err());
    }

    /// Answers each request with its path, but not in time, not wholly, or at length where the path says so.
    fn unwell() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                std::thread::spawn(move || answer_each(tcp));
            }
        });
        port
    }

    fn answer_each(mut tcp: TcpStream) {
        let answer = |length: usize, body: &str| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let reader = BufReader::new(tcp.try_clone().unwrap());
        let mut lines = reader.lines().map_while(Result::ok);
        let mut owed = String::new();
        while let Some(first) = lines.next() {
            lines
                .by_ref()
                .take_while(|line| !line.is_empty())
                .for_each(drop);
            let path = first.split(' ').nth(1).unwrap();
            owed += &match path {
                "/half" => answer(100, path),
                "/long" => answer(2000, &"x".repeat(2000)),
                _ => answer(path.len(), path),
            };
            if path != "/late" {
                let _ = tcp.write_all(std::mem::take(&mut owed).as_bytes());
            }
        }
    }

    // rule: engine.http.silence
    #[tokio::test]
    async fn an_answer_that_was_given_up_is_nobody_elses() {
        let port = unwell();
        let client = HttpClient::trusting(RootCertStore::empty(), 1024).unwrap();
        let asked = |path: &str, within| {
            let request = Request::get(format!("http://127.0.0.1:{port}{path}"));
            client.send(request.body(Full::default()).unwrap(), within)
        };
        for path in ["/late", "/half", "/long"] {
            let given_up = asked(path, Duration::from_millis(100)).await;
            assert!(given_up.is_err(), "{path}: {given_up:?}");
            let next = asked("/next", Duration::from_secs(20)).await.unwrap();
            assert_eq!(&next.body[..], b"/next", "after {path}");
        }
    }
}
