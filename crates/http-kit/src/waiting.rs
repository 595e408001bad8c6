//! How long a handler may wait: until its service stops or its client leaves.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Ends the waits of one request. A request goes on without its client, so a handler that only waits must end by itself.
#[derive(Debug, Clone)]
pub struct Waiting(CancellationToken);

impl Waiting {
    /// Waits that end when the token is cancelled.
    #[must_use]
    pub const fn until(token: CancellationToken) -> Self {
        Self(token)
    }

    /// The waits of a request to a listener, which end when `stopping` is cancelled or the guard is dropped.
    pub(crate) fn of_request(stopping: &CancellationToken) -> (Self, DropGuard) {
        let token = stopping.child_token();
        (Self::until(token.clone()), token.drop_guard())
    }

    /// Waits for this long. False if the service began to stop, or the client left, before the end.
    pub async fn sleep(&self, span: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.0.cancelled() => false,
            () = sleep(span) => true,
        }
    }
}

/// The waits of a request that no listener received do not end early.
impl<S: Send + Sync> FromRequestParts<S> for Waiting {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<Self>().cloned();
        Ok(known.unwrap_or_else(|| Self(CancellationToken::new())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleep_ends_early_when_service_stops_or_client_leaves() {
        let stopping = CancellationToken::new();
        let (waiting, client) = Waiting::of_request(&stopping);
        let (other, _client) = Waiting::of_request(&stopping);
        assert!(waiting.sleep(Duration::from_millis(1)).await);
        drop(client);
        assert!(!waiting.sleep(Duration::from_secs(600)).await);
        assert!(other.sleep(Duration::from_millis(1)).await);
        stopping.cancel();
        assert!(!other.sleep(Duration::from_secs(600)).await);
    }
}
