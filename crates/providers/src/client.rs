//! Calls to the operator's upstreams: one request, one response of limited length, one deadline.
//!
//! The client has no redirects, proxies, cookies or compression. It calls every address, because the operator chose it; most of
//! these addresses are private.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
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
/// Maximum length of a response's head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long an idle connection is kept. Most servers close an idle connection after 5 seconds or later.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a connection attempt may last after its call has timed out or used another connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle connections per upstream.
const MAX_IDLE: usize = 64;
/// Concurrent calls. Another call waits for one of these to end, within its own deadline.
const MAX_CONCURRENT_CALLS: usize = 256;

/// An HTTP client for one upstream.
pub(crate) struct HttpClient {
    client: Client<ConnectorWithTimeout, Full<Bytes>>,
    permits: Semaphore,
    longest: usize,
}

/// A response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

/// Why a call has no response. After each of these errors it is unknown whether the upstream acted on the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("no response within {0:?}")]
    Late(Duration),
    #[error("the call failed: {}", causes(.0))]
    Failed(#[source] hyper_util::client::legacy::Error),
    #[error("the response was cut off: {0}")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    #[error("the response is longer than {0} bytes")]
    TooLong(usize),
}

impl HttpClient {
    /// A client for responses of at most `longest` bytes. Reads the machine's certificates only if `encrypted`.
    pub(crate) fn new(encrypted: bool, longest: usize) -> io::Result<Self> {
        let roots = if encrypted {
            machine_certificates()?
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
            .build(ConnectorWithTimeout::trusting(roots)?);
        Ok(Self {
            client,
            permits: Semaphore::new(MAX_CONCURRENT_CALLS),
            longest,
        })
    }

    /// Sends a request and reads the whole response before the deadline.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<HttpResponse, CallError> {
        let answered = tokio::time::timeout(within, self.exchange(request));
        answered.await.unwrap_or(Err(CallError::Late(within)))
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<HttpResponse, CallError> {
        request.headers_mut().entry(USER_AGENT).or_insert(AGENT);
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let response = self.client.request(request).await;
        let (mut head, body) = response.map_err(CallError::Failed)?.into_parts();
        let body = Limited::new(body, self.longest).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                CallError::TooLong(self.longest)
            } else {
                CallError::Broken(error)
            }
        })?;
        Ok(HttpResponse {
            status: head.status,
            content_type: head.headers.remove(CONTENT_TYPE),
            body: body.to_bytes(),
        })
    }
}

/// Connects and completes the TLS handshake within [`CONNECT_TIMEOUT`]. The pool continues a connection attempt in the background
/// if another connection became free first, so the attempt needs its own timeout.
#[derive(Clone)]
struct ConnectorWithTimeout(HttpsConnector<HttpConnector>);

impl ConnectorWithTimeout {
    fn trusting(roots: RootCertStore) -> io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        // The timeout is divided among the addresses of a name.
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(roots)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self(connector))
    }
}

impl Service<Uri> for ConnectorWithTimeout {
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

/// The certificates that the machine trusts.
fn machine_certificates() -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // Unreadable certificates are skipped. The remaining ones may still verify the upstream.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::other(
            "the machine trusts no certificate: install CA certificates or name a file of them in SSL_CERT_FILE",
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
        client.send(request, Duration::from_secs(20)).await
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

    /// Responds to each request with its path. The response to `/late` is delayed, to `/half` cut off, and to `/long` too long.
    fn faulty_server() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                std::thread::spawn(move || respond_to_each(tcp));
            }
        });
        port
    }

    fn respond_to_each(mut tcp: TcpStream) {
        let response = |length: usize, body: &str| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let reader = BufReader::new(tcp.try_clone().unwrap());
        let mut lines = reader.lines().map_while(Result::ok);
        let mut pending = String::new();
        while let Some(first) = lines.next() {
            lines
                .by_ref()
                .take_while(|line| !line.is_empty())
                .for_each(drop);
            let path = first.split(' ').nth(1).unwrap();
            pending += &match path {
                "/half" => response(100, path),
                "/long" => response(2000, &"x".repeat(2000)),
                _ => response(path.len(), path),
            };
            if path != "/late" {
                let _ = tcp.write_all(std::mem::take(&mut pending).as_bytes());
            }
        }
    }

    // rule: engine.http.silence
    #[tokio::test]
    async fn abandoned_response_is_never_returned_for_another_request() {
        let port = faulty_server();
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
