//! A receiver of webhooks, as a partner has one: takes what is posted to it, and says yes.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The longest body that is taken; an event has less than a kibibyte.
const LARGEST: usize = 64 * 1024;
/// Deliveries that wait to be looked at.
const WAITING: usize = 8;

/// What was posted.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Listens on a free port of this machine, for as long as it lives.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) url: String,
    deliveries: mpsc::Receiver<Delivery>,
    serving: JoinHandle<()>,
}

impl Receiver {
    pub(super) async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, deliveries) = mpsc::channel(WAITING);
        Ok(Self {
            url: format!("http://{address}/check"),
            deliveries,
            serving: tokio::spawn(serve(listener, sender)),
        })
    }

    /// The next delivery; `None` where none comes in time.
    pub(super) async fn next(&mut self, patience: Duration) -> Option<Delivery> {
        let next = tokio::time::timeout(patience, self.deliveries.recv());
        next.await.ok().flatten()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, sender: mpsc::Sender<Delivery>) {
    while let Ok((stream, _)) = listener.accept().await {
        let sender = sender.clone();
        tokio::spawn(async move {
            let answering = service_fn(|request| answer(request, &sender));
            let connection = http1::Builder::new();
            // How a sender leaves is its own affair.
            let _ = connection
                .serve_connection(TokioIo::new(stream), answering)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    sender: &mpsc::Sender<Delivery>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let mut response = Response::new(Empty::new());
    *response.status_mut() = match Limited::new(body, LARGEST).collect().await {
        Ok(body) => {
            let delivery = Delivery {
                headers: head.headers,
                body: body.to_bytes(),
            };
            match sender.try_send(delivery) {
                Ok(()) => StatusCode::NO_CONTENT,
                Err(_) => StatusCode::SERVICE_UNAVAILABLE,
            }
        }
        Err(_) => StatusCode::BAD_REQUEST,
    };
    Ok(response)
}
