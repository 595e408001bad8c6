//! Graceful shutdown on SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels a token on the first SIGTERM or SIGINT.
///
/// # Errors
/// If the process may not handle signals.
pub fn on_signal(shutdown: &CancellationToken) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = shutdown.cancelled() => return,
        };
        tracing::info!(process.signal = name, "Stopping");
        shutdown.cancel();
    });
    Ok(())
}
