//! A receiver of webhooks, as a partner runs one: accepts every post, or sends it on to another server.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::forward::Forward;
use super::server::{BackgroundTask, serve};

/// Maximum length of a body, in bytes. An event is shorter than 1 KiB.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Number of deliveries that wait to be read. The response to the next one waits too.
const MAX_WAITING: usize = 8;

/// A delivery as it was posted.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// How the server answered to which it was sent on.
    pub(super) forwarded: Option<String>,
}

/// Listens on a port of this machine until it is dropped.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) url: String,
    pub(super) port: u16,
    deliveries: mpsc::Receiver<Delivery>,
    _serving: BackgroundTask,
}

impl Receiver {
    /// Listens on a free port.
    pub(super) async fn listen() -> io::Result<Self> {
        Self::listen_on(0, None).await
    }

    /// Listens on a port, and sends each delivery on before it accepts it.
    pub(super) async fn listen_on(port: u16, forward: Option<Forward>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let (sender, deliveries) = mpsc::channel(MAX_WAITING);
        let serving = serve(listener, move |request| {
            respond(request, sender.clone(), forward.clone())
        });
        Ok(Self {
            url: format!("http://{address}/check"),
            port: address.port(),
            deliveries,
            _serving: BackgroundTask::start(serving),
        })
    }

    /// The next delivery; `None` if none arrives within `timeout`.
    pub(super) async fn next(&mut self, timeout: Duration) -> Option<Delivery> {
        let next = tokio::time::timeout(timeout, self.deliveries.recv());
        next.await.ok().flatten()
    }
}

async fn respond(
    request: Request<Incoming>,
    sender: mpsc::Sender<Delivery>,
    forward: Option<Forward>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let mut response = Response::new(Full::default());
    let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    let mut delivery = Delivery {
        headers: head.headers,
        body: body.to_bytes(),
        forwarded: None,
    };
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Some(forward) = forward {
        let forwarded = forward.send(&delivery).await;
        *response.status_mut() = forwarded.status;
        let retry_after = forwarded.retry_after.map(|value| (RETRY_AFTER, value));
        response.headers_mut().extend(retry_after);
        delivery.forwarded = Some(forwarded.shown);
    }
    // A refused delivery would come again after a pause, and so would every later event of its object.
    if sender.send(delivery).await.is_err() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    /// Posts a body, and returns the status line of the response.
    async fn post(url: &str, head: &str, body: &[u8]) -> String {
        let address = url.trim_start_matches("http://");
        let address = address.trim_end_matches("/check");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST /check HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response.lines().next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn receiver_returns_posted_bytes_unchanged() {
        let mut receiver = Receiver::listen().await.unwrap();
        let status = post(&receiver.url, "webhook-id: e1\r\n", b" {}\xff").await;
        assert!(status.contains(" 204 "), "{status}");
        let delivery = receiver.next(SOON).await.unwrap();
        assert_eq!(delivery.headers["webhook-id"], "e1");
        assert_eq!(delivery.body.as_ref(), b" {}\xff");
        let nothing = receiver.next(Duration::from_millis(20)).await;
        assert!(nothing.is_none(), "{nothing:?}");
    }

    #[tokio::test]
    async fn post_waits_while_the_queue_is_full() {
        let mut receiver = Receiver::listen().await.unwrap();
        for _ in 0..MAX_WAITING {
            assert!(post(&receiver.url, "", b"{}").await.contains(" 204 "));
        }
        let address = receiver.url.clone();
        let mut waiting = tokio::spawn(async move { post(&address, "", b"{}").await });
        let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(early.is_err(), "{early:?}");
        assert!(receiver.next(SOON).await.is_some());
        assert!(waiting.await.unwrap().contains(" 204 "));
    }

    #[tokio::test]
    async fn body_that_is_too_long_is_refused() {
        let receiver = Receiver::listen().await.unwrap();
        let status = post(&receiver.url, "", &vec![b'x'; MAX_BODY_BYTES + 1]).await;
        assert!(status.contains(" 400 "), "{status}");
    }
}
