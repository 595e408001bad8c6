//! Keys in flight: detects the concurrent twin of a write before it reaches the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use partner_core::idempotency::Scope;
use partner_core::ports::{InFlight, Ticket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The scopes in flight. A scope's semaphore has one permit, which its holder takes. A scope stays in the map while a request
/// holds it or waits for it.
type Scopes = Arc<Mutex<HashMap<Arc<Scope>, Entry>>>;

struct Entry {
    permit: Arc<Semaphore>,
    /// Requests that hold the scope or wait for it.
    requests: usize,
}

/// The scopes that are in flight in this process.
#[derive(Default)]
pub struct MemoryInFlight {
    scopes: Scopes,
}

kernel::debug_as_text!(MemoryInFlight, "MemoryInFlight");

impl MemoryInFlight {
    /// No scope is in flight.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Joins the requests of a scope. Returns `None` if `alone` is set and the scope has requests.
    fn join(&self, scope: &Scope, alone: bool) -> Option<(Joined, Arc<Semaphore>)> {
        let mut scopes = self.scopes.lock();
        let present = scopes.get_key_value(scope).map(|(key, _)| Arc::clone(key));
        if alone && present.is_some() {
            return None;
        }
        let scope = present.unwrap_or_else(|| Arc::new(scope.clone()));
        let entry = scopes.entry(Arc::clone(&scope)).or_insert_with(|| Entry {
            permit: Arc::new(Semaphore::new(1)),
            requests: 0,
        });
        entry.requests = entry.requests.saturating_add(1);
        let permit = Arc::clone(&entry.permit);
        let scopes = Arc::clone(&self.scopes);
        Some((Joined { scopes, scope }, permit))
    }
}

#[async_trait]
impl InFlight for MemoryInFlight {
    async fn enter(&self, scope: &Scope) -> Option<Ticket> {
        let (joined, permit) = self.join(scope, true)?;
        Some(held(permit.try_acquire_owned().ok()?, joined))
    }

    /// Requests enter in the order of their arrival.
    async fn enter_within(&self, scope: &Scope, timeout: Duration) -> Option<Ticket> {
        let (joined, permit) = self.join(scope, false)?;
        let entered = tokio::time::timeout(timeout, permit.acquire_owned()).await;
        Some(held(entered.ok()?.ok()?, joined))
    }
}

/// The permit is released first, so that the next request enters before the scope is removed.
fn held(permit: OwnedSemaphorePermit, joined: Joined) -> Ticket {
    Ticket(Box::new((permit, joined)))
}

/// One request of a scope. It leaves the scope when it is dropped, whatever its result.
struct Joined {
    scopes: Scopes,
    scope: Arc<Scope>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut scopes = self.scopes.lock();
        if let Some(entry) = scopes.get_mut(&self.scope) {
            entry.requests = entry.requests.saturating_sub(1);
            if entry.requests == 0 {
                scopes.remove(&self.scope);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use kernel::Mode;
    use partner_core::idempotency::IdempotencyKey;
    use partner_core::{PartnerId, Tenant};

    use super::*;

    pub(crate) fn scope(partner: &str, key: &str) -> Scope {
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
    async fn twin_is_refused_until_ticket_is_dropped() {
        let in_flight = MemoryInFlight::new();
        let ticket = in_flight.enter(&scope("acme", "k")).await;
        assert!(ticket.is_some());
        assert!(in_flight.enter(&scope("acme", "k")).await.is_none());
        assert!(in_flight.enter(&scope("acme", "k")).await.is_none());
        drop(ticket);
        assert!(in_flight.enter(&scope("acme", "k")).await.is_some());
    }

    #[tokio::test]
    async fn other_scopes_are_free() {
        let in_flight = MemoryInFlight::new();
        let _ticket = in_flight.enter(&scope("acme", "k")).await;
        assert!(in_flight.enter(&scope("acme", "l")).await.is_some());
        assert!(in_flight.enter(&scope("other", "k")).await.is_some());
    }

    #[tokio::test]
    async fn panic_frees_scope() {
        let in_flight = Arc::new(MemoryInFlight::new());
        let inside = in_flight.clone();
        let panicked = tokio::spawn(async move {
            let _ticket = inside.enter(&scope("acme", "k")).await;
            panic!("in the middle of a request");
        });
        assert!(panicked.await.is_err());
        assert!(in_flight.enter(&scope("acme", "k")).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn request_enters_after_holder_leaves() {
        let in_flight = Arc::new(MemoryInFlight::new());
        let timeout = Duration::from_secs(4);
        let ticket = in_flight.enter_within(&scope("acme", "k"), timeout).await;
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let in_flight = Arc::clone(&in_flight);
            waiting.push(tokio::spawn(async move {
                in_flight.enter_within(&scope("acme", "k"), timeout).await
            }));
            tokio::task::yield_now().await;
        }
        assert!(in_flight.enter(&scope("acme", "k")).await.is_none());
        drop(ticket);
        let second = waiting.remove(0).await.unwrap();
        assert!(second.is_some());
        assert!(!waiting[0].is_finished());
        // The third request waits no longer than its own timeout.
        assert!(waiting.remove(0).await.unwrap().is_none());
        drop(second);
        assert!(in_flight.enter(&scope("acme", "k")).await.is_some());
        assert!(in_flight.scopes.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn request_that_gave_up_leaves_no_entry() {
        let in_flight = MemoryInFlight::new();
        let ticket = in_flight.enter(&scope("acme", "k")).await;
        let timeout = Duration::from_millis(10);
        let refused = in_flight.enter_within(&scope("acme", "k"), timeout).await;
        assert!(refused.is_none());
        drop(ticket);
        assert!(in_flight.scopes.lock().is_empty());
    }
}
