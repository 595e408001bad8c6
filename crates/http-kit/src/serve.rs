//! The listener: accepts connections, limits their number and shuts down in order.
//!
//! It never stops accepting while it runs, because a backlog of silent connections would keep every
//! other client waiting. A connection over a limit is refused; see `admission`. The accept loop is
//! our own because axum's has no header timeout: a client could hold a connection forever by
//! sending its head one byte at a time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use instruments::http::{self, Connection};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::{Admission, Bounds, REFUSALS, Share};
use crate::connection::{Shared, drive, turn_away};
use crate::deadlines::Deadlines;
use crate::service_info::ServiceInfo;

/// How a listener serves.
#[derive(Debug, Clone)]
pub struct Options {
    /// The listener's name in metrics.
    pub name: &'static str,
    pub site: ServiceInfo,
    /// How long each step of a connection may take.
    pub deadlines: Deadlines,
    /// How many connections are served at once.
    pub bounds: Bounds,
}

impl Options {
    /// A public listener with the documented deadlines and bounds.
    #[must_use]
    pub fn new(site: ServiceInfo) -> Self {
        Self {
            name: "public",
            site,
            deadlines: Deadlines::default(),
            bounds: Bounds::default(),
        }
    }
}

/// Serves HTTP/1.1 until `shutdown` is cancelled, then finishes requests in flight and returns.
///
/// Connections in the backlog, and silent and idle connections, have a short time to send one more
/// request, so that a stop loses none.
///
/// A request runs to its end even after its client has disconnected.
///
/// # Errors
/// [`io::Error`] if the listener is unusable.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    options: Options,
    shutdown: CancellationToken,
) -> io::Result<()> {
    listener.local_addr()?;
    http::listening(options.name);
    let shared = Arc::new(Shared {
        router: router.with_state(()),
        site: options.site,
        deadlines: options.deadlines,
        requests: TaskTracker::new(),
        name: options.name,
    });
    let connections = TaskTracker::new();
    let mut acceptor = Acceptor {
        shared: Arc::clone(&shared),
        connections: connections.clone(),
        shutdown: shutdown.clone(),
        admission: Admission::new(options.bounds),
        refusals: Arc::new(Semaphore::new(REFUSALS)),
        bound_warnings: Warnings::default(),
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = acceptor.accept(&listener) => {}
    }
    acceptor.accept_backlog(listener);
    connections.close();
    shared.requests.close();
    let finished = async {
        connections.wait().await;
        shared.requests.wait().await;
    };
    if timeout(options.deadlines.shutdown, finished).await.is_err() {
        tracing::warn!(
            http.connections = connections.len(),
            http.requests = shared.requests.len(),
            "Shut down with requests still in flight"
        );
    }
    Ok(())
}

/// The most connections that are accepted from the backlog when the listener closes. Linux limits a backlog to
/// `net.core.somaxconn`, which is 4,096 by default.
const MAX_BACKLOG: usize = 4096;

/// Admits connections and starts their tasks.
struct Acceptor {
    shared: Arc<Shared>,
    connections: TaskTracker,
    shutdown: CancellationToken,
    admission: Arc<Admission>,
    refusals: Arc<Semaphore>,
    bound_warnings: Warnings,
}

impl Acceptor {
    async fn accept(&mut self, listener: &TcpListener) {
        let mut failure_warnings = Warnings::default();
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    // File descriptors or memory are exhausted. The pause lets other requests finish.
                    http::unaccepted(self.shared.name);
                    if failure_warnings.is_due() {
                        warn_of_failure(&error);
                    }
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Accepts the connections in the backlog, then closes the listener. The system resets a connection that is still in
    /// the backlog then, although its client may have sent a request. The runtime sees a connection only after it has
    /// polled the system, so this function asks the system itself.
    fn accept_backlog(&mut self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else {
            return;
        };
        for _ in 0..MAX_BACKLOG {
            match listener.accept() {
                Ok((stream, peer)) => {
                    if stream.set_nonblocking(true).is_ok()
                        && let Ok(stream) = TcpStream::from_std(stream)
                    {
                        self.admit(stream, peer);
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                // The backlog is empty, or file descriptors or memory are exhausted.
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        // Responses are small and complete, so waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let slot = self.admission.admit(peer.ip());
        if slot.as_ref().map(|slot| slot.share) != Some(Share::Full) {
            http::over_bound(self.shared.name);
            if self.bound_warnings.is_due() {
                warn_of_bounds();
            }
        }
        let shared = Arc::clone(&self.shared);
        let Some(slot) = slot else {
            // If too many refusals are in flight, the connection is closed without a response.
            if let Ok(refusal) = Arc::clone(&self.refusals).try_acquire_owned() {
                self.connections.spawn(async move {
                    turn_away(stream, shared.site.clone()).await;
                    drop(refusal);
                });
            }
            return;
        };
        let shutdown = self.shutdown.clone();
        let counted = Connection::accepted(shared.name);
        self.connections.spawn(async move {
            drive(stream, peer, slot.share, shared, shutdown).await;
            drop((slot, counted));
        });
    }
}

/// Pause between two warnings of one kind.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// Limits the warnings of one kind to one per interval, because a client can cause any number.
#[derive(Debug, Default)]
struct Warnings {
    last: Option<Instant>,
}

impl Warnings {
    /// Whether a warning is due. If so, the interval starts now.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self
            .last
            .is_none_or(|last| now.duration_since(last) >= WARN_INTERVAL);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

fn warn_of_bounds() {
    tracing::warn!(
        "Connections are over a bound. They are served health checks only. See PENSTOCK_CONNECTIONS and PENSTOCK_CONNECTIONS_PER_ADDRESS"
    );
}

fn warn_of_failure(error: &io::Error) {
    tracing::warn!(
        error.chain = %error,
        "Failed to accept a connection. Raise the limit of open files, or lower PENSTOCK_CONNECTIONS. Further failures are logged once a minute"
    );
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
