//! Keys in flight: detects the concurrent twin of a write before it reaches the database.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use partner_core::idempotency::Scope;
use partner_core::ports::{InFlight, Ticket};

type Scopes = Arc<Mutex<HashSet<Arc<Scope>>>>;

/// The scopes that are in flight in this process.
#[derive(Debug, Default)]
pub struct MemoryInFlight {
    scopes: Scopes,
}

impl MemoryInFlight {
    /// Nothing in flight.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl InFlight for MemoryInFlight {
    async fn enter(&self, scope: &Scope) -> Option<Ticket> {
        let scope = Arc::new(scope.clone());
        let entered = self.scopes.lock().insert(Arc::clone(&scope));
        // Only the one that entered may hold it: dropping what it holds frees the scope.
        entered.then(|| {
            Ticket(Box::new(Held {
                scopes: Arc::clone(&self.scopes),
                scope,
            }))
        })
    }
}

/// Frees its scope when it is dropped, however the request ended.
struct Held {
    scopes: Scopes,
    scope: Arc<Scope>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.scopes.lock().remove(&self.scope);
    }
}

#[cfg(test)]
mod tests {
    use kernel::Mode;
    use partner_core::idempotency::IdempotencyKey;
    use partner_core::{PartnerId, Tenant};

    use super::*;

    fn scope(partner: &str, key: &str) -> Scope {
        Scope {
            tenant: Tenant {
                partner: PartnerId::parse(partner).unwrap(),
                mode: Mode::Test,
            },
            route: "POST /v1/pools/EUR-USDT/transact".to_owned(),
            key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
        }
    }

    #[tokio::test]
    async fn a_twin_waits_outside_until_the_ticket_is_dropped() {
        let in_flight = MemoryInFlight::new();
        let ticket = in_flight.enter(&scope("acme", "k")).await;
        assert!(ticket.is_some());
        assert!(in_flight.enter(&scope("acme", "k")).await.is_none());
        assert!(in_flight.enter(&scope("acme", "k")).await.is_none());
        drop(ticket);
        assert!(in_flight.enter(&scope("acme", "k")).await.is_some());
    }

    #[tokio::test]
    async fn scopes_of_others_are_free() {
        let in_flight = MemoryInFlight::new();
        let _ticket = in_flight.enter(&scope("acme", "k")).await;
        assert!(in_flight.enter(&scope("acme", "l")).await.is_some());
        assert!(in_flight.enter(&scope("other", "k")).await.is_some());
    }

    #[tokio::test]
    async fn a_panic_frees_the_scope() {
        let in_flight = Arc::new(MemoryInFlight::new());
        let inside = in_flight.clone();
        let panicked = tokio::spawn(async move {
            let _ticket = inside.enter(&scope("acme", "k")).await;
            panic!("in the middle of a request");
        });
        assert!(panicked.await.is_err());
        assert!(in_flight.enter(&scope("acme", "k")).await.is_some());
    }
}
