//! Graceful shutdown on SIGTERM, SIGINT and SIGHUP.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Time from the start of a shutdown until the store is no longer waited for. The last 2.5 s of the 25 s are for the spans and the
/// log.
const STORE_LIMIT: Duration = Duration::from_millis(22_400);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(4);

/// Cancels a token on the first SIGTERM, SIGINT or SIGHUP, which a terminal sends when it is closed.
///
/// # Errors
/// If the process may not handle signals.
pub fn on_signal(shutdown: &CancellationToken) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hang_up.recv() => "SIGHUP",
            () = shutdown.cancelled() => return,
        };
        tracing::info!(process.signal = name, "Stopping");
        shutdown.cancel();
    });
    Ok(())
}

/// Serves until the shutdown, then closes the store, so that both end in time whatever hangs.
pub async fn serve_and_close<T>(
    shutdown: &CancellationToken,
    serving: impl Future<Output = T>,
    close: impl Future<Output = ()>,
) -> T {
    let cancelled = shutdown.clone();
    let begin = tokio::spawn(async move {
        cancelled.cancelled().await;
        Instant::now()
    });
    let ended = serving.await;
    shutdown.cancel();
    let now = Instant::now();
    let begin = begin.await.unwrap_or(now);
    let end = (begin + STORE_LIMIT).min(now + CLOSE_TIMEOUT);
    if timeout_at(end, close).await.is_err() {
        tracing::warn!("Shut down before the store had closed");
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::time::sleep;

    /// The time from the signal to the end of a service whose requests take this long and whose store never closes.
    async fn time_to_stop(requests: Duration) -> Duration {
        let shutdown = CancellationToken::new();
        let serving = async {
            sleep(Duration::from_secs(3600)).await;
            shutdown.cancel();
            sleep(requests).await;
            Instant::now() - requests
        };
        serve_and_close(&shutdown, serving, pending())
            .await
            .elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn hung_store_gets_what_requests_have_left_of_time() {
        let seconds = Duration::from_secs;
        assert_eq!(time_to_stop(seconds(0)).await, CLOSE_TIMEOUT);
        assert_eq!(time_to_stop(seconds(10)).await, seconds(10) + CLOSE_TIMEOUT);
        assert_eq!(time_to_stop(seconds(20)).await, STORE_LIMIT);
    }
}
