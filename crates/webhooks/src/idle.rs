//! Idle connections, kept for the next request.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use parking_lot::Mutex;
use partner_core::webhooks::target::Target;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::bounded::ReadBudget;

/// Idle connections kept per origin, and in all.
const MAX_PER_ORIGIN: usize = 32;
const MAX_IDLE: usize = 256;
/// How long a connection may be idle. Servers commonly close idle connections after 5 seconds or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How old a connection may become. A new one uses the current addresses of the host.
const MAX_LIFETIME: Duration = Duration::from_secs(60);

/// The destination of a connection. Targets with the same origin share connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    tls: bool,
    host: String,
    port: u16,
}

impl Origin {
    pub(crate) fn of(target: &Target) -> Self {
        Self {
            tls: target.tls(),
            host: target.host().to_string(),
            port: target.port(),
        }
    }
}

/// An open connection. Drop closes it, also during a request.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    budget: ReadBudget,
    driver: AbortHandle,
    opened: Instant,
}

impl Connection {
    pub(crate) fn new(
        sender: SendRequest<Full<Bytes>>,
        budget: ReadBudget,
        driver: AbortHandle,
    ) -> Self {
        Self {
            sender,
            budget,
            driver,
            opened: Instant::now(),
        }
    }

    /// Sends a request and returns the head of the response.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        self.budget.renew();
        self.sender.send_request(request).await
    }

    /// Waits until the connection can send another request. Returns `false` if it never can.
    pub(crate) async fn ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Whether the connection can send another request.
    fn is_fresh(&self, now: Instant) -> bool {
        self.sender.is_ready() && now.duration_since(self.opened) < MAX_LIFETIME
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The idle connections. The most recently used is taken first.
#[derive(Default)]
pub(crate) struct Idle(Mutex<HashMap<Origin, Vec<(Instant, Connection)>>>);

impl Idle {
    pub(crate) fn take(&self, origin: &Origin) -> Option<Connection> {
        let now = Instant::now();
        let mut idle = self.0.lock();
        let list = idle.get_mut(origin)?;
        while let Some((since, connection)) = list.pop() {
            if now.duration_since(since) < IDLE_TIMEOUT && connection.is_fresh(now) {
                return Some(connection);
            }
        }
        None
    }

    pub(crate) fn put(&self, origin: Origin, connection: Connection) {
        let now = Instant::now();
        let mut idle = self.0.lock();
        let full = idle.values().map(Vec::len).sum::<usize>() >= MAX_IDLE;
        let list = idle.entry(origin).or_default();
        if !full && list.len() < MAX_PER_ORIGIN && connection.is_fresh(now) {
            list.push((now, connection));
        }
    }

    /// Closes connections that were idle for too long.
    pub(crate) fn close_idle(&self) {
        let now = Instant::now();
        self.0.lock().retain(|_, list| {
            list.retain(|(since, connection)| {
                now.duration_since(*since) < IDLE_TIMEOUT && connection.is_fresh(now)
            });
            !list.is_empty()
        });
    }
}
