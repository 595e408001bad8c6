//! Serves HTTP on a port of this machine.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Pause after a connection could not be accepted.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(super) struct BackgroundTask(JoinHandle<()>);

impl BackgroundTask {
    pub(super) fn start(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts connections and responds to their requests.
pub(super) async fn serve<F>(
    listener: TcpListener,
    respond: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // File descriptors have run out, or the client has disconnected.
            tokio::time::sleep(ACCEPT_BACKOFF).await;
            continue;
        };
        let respond = respond.clone();
        tokio::spawn(async move {
            let responding = service_fn(move |request: Request<Incoming>| {
                let response = respond(request);
                async move { Ok::<_, Infallible>(response.await) }
            });
            // How the client closes the connection does not matter.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), responding)
                .await;
        });
    }
}
