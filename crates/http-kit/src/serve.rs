//! The listener: accepts connections, bounds their number, and stops in order.
//!
//! It never stops accepting while it runs, because a backlog full of silent connections would keep
//! every other client waiting. What is over a bound is answered and closed; see `admission`.
//!
//! The accept loop is our own because the stock one installs no timer, so that a client could
//! hold a connection for ever by sending its head one byte at a time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use instruments::http::{self, Connection};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::{Admission, Bounds, Place, Share};
use crate::connection::{Shared, drive, turn_away};
use crate::deadlines::Deadlines;
use crate::service_info::ServiceInfo;

/// How a listener serves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Tells the listener from others of the process in metrics.
    pub name: &'static str,
    /// The service behind the answers.
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

/// Serves HTTP/1.1 until `shutdown` is cancelled, then stops accepting, finishes what is in
/// flight and returns. Requests run to their end even when their client has hung up.
///
/// # Errors
/// Only if the listener itself is unusable.
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
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = accept(&listener, &shared, &connections, &shutdown, options.bounds) => {}
    }
    drop(listener);
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
            "Stopped before everything in flight had finished"
        );
    }
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    shared: &Arc<Shared>,
    connections: &TaskTracker,
    shutdown: &CancellationToken,
    bounds: Bounds,
) {
    let admission = Admission::new(bounds);
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let mut warned = None;
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(fault) if is_of_one_connection(&fault) => continue,
            Err(fault) => {
                // Out of file descriptors or memory: give the others time to finish.
                http::unaccepted(shared.name);
                tracing::warn!(error.chain = %fault, "Failed to accept a connection");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Answers are small and complete: waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let place = admission.admit(peer.ip());
        if place.as_ref().map(Place::share) != Some(Share::Full) {
            http::over_bound(shared.name);
            warn_of_bounds(&mut warned);
        }
        let Some(place) = place else {
            let site = shared.site.clone();
            // If this many are being refused already, the connection is closed without an answer.
            if let Ok(refusal) = Arc::clone(&refusals).try_acquire_owned() {
                connections.spawn(async move {
                    turn_away(stream, site).await;
                    drop(refusal);
                });
            }
            continue;
        };
        let shared = Arc::clone(shared);
        let shutdown = shutdown.clone();
        let counted = Connection::accepted(shared.name);
        connections.spawn(async move {
            drive(stream, peer, place.share(), shared, shutdown).await;
            drop((place, counted));
        });
    }
}

/// How many connections without a place are told so at once.
const REFUSALS: usize = 64;
/// How often the log says that connections are over a bound.
const WARN_EVERY: Duration = Duration::from_secs(60);

fn warn_of_bounds(warned: &mut Option<Instant>) {
    let now = Instant::now();
    if warned.is_none_or(|last| now.duration_since(last) >= WARN_EVERY) {
        *warned = Some(now);
        tracing::warn!(
            "Connections are over a bound. They are served health checks only. See PENSTOCK_CONNECTIONS and PENSTOCK_CONNECTIONS_PER_ADDRESS"
        );
    }
}

fn is_of_one_connection(fault: &io::Error) -> bool {
    matches!(
        fault.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
