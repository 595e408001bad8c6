//! Calls to far ends of the operator's own: one request, one answer of bounded length, by a deadline.
//!
//! No redirects, no proxies, no cookies, no compression: the client has none of them. Addresses are
//! not judged, because the operator chose them; most are private.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::header::{HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kernel::causes;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;

const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("Penstock/", env!("CARGO_PKG_VERSION")));
/// The head of an answer is at most this long.
const HEAD: usize = 64 * 1024;
/// How long a connection may wait for its next request: servers commonly close theirs after 5
/// seconds or more.
const WAITS: Duration = Duration::from_secs(4);
/// How long connecting may go on when nobody waits for it any more.
const CONNECTS: Duration = Duration::from_secs(5);
/// Connections that wait, of one far end.
const IDLE: usize = 64;
/// Calls at once; the next waits for one of them, within its own deadline.
const AT_ONCE: usize = 256;

/// Makes calls.
pub(crate) struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
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
pub(crate) enum CallFault {
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
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECTS));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(roots)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(WAITS)
            .pool_max_idle_per_host(IDLE)
            .http1_max_buf_size(HEAD)
            .build(connector);
        Ok(Self {
            client,
            permits: Semaphore::new(AT_ONCE),
            longest,
        })
    }

    /// Sends a request and reads the whole answer, both before the deadline.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Answer, CallFault> {
        let answered = tokio::time::timeout(within, self.exchange(request));
        answered.await.unwrap_or(Err(CallFault::Late(within)))
    }

    async fn exchange(&self, mut request: Request<Full<Bytes>>) -> Result<Answer, CallFault> {
        request.headers_mut().insert(USER_AGENT, AGENT);
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let answer = self.client.request(request).await;
        let (head, body) = answer.map_err(CallFault::Failed)?.into_parts();
        let body = Limited::new(body, self.longest).collect().await;
        let body = body.map_err(|fault| {
            if fault.is::<LengthLimitError>() {
                CallFault::TooLong(self.longest)
            } else {
                CallFault::Broken(fault)
            }
        })?;
        Ok(Answer {
            status: head.status,
            body: body.to_bytes(),
        })
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
    use std::io::{Read, Write};
    use std::net::TcpListener;

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

    async fn get(client: &HttpClient, host: &str, port: u16) -> Result<Answer, CallFault> {
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
}
