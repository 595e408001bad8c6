//! Limits the connections that one partner may occupy for long, while it reads pages or waits for its partner lock. So no partner
//! ever takes every connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use kernel::{StoreError, StoreResult};
use partner_core::Tenant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a request of a service waits for a turn of its partner.
pub const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// Above this number of partners, those without a turn are removed from memory.
const MAX_PARTNERS: usize = 1024;

/// The turns of all partners. A turn ends when it is dropped.
#[derive(Debug)]
pub struct Turns {
    of_each: usize,
    /// How long a caller waits for a turn.
    wait: Duration,
    partners: Mutex<HashMap<Tenant, Weak<Semaphore>>>,
}

impl Turns {
    /// Turns of those that wait for their partner's lock. Each partner has a third of the connections.
    #[must_use]
    pub fn of_locks(connections: u32, wait: Duration) -> Self {
        Self::new(connections / 3, wait)
    }

    /// Turns of pages. Each partner has half of the connections, because a page that waits for no lock is short.
    #[must_use]
    pub fn of_pages(connections: u32, wait: Duration) -> Self {
        Self::new(connections / 2, wait)
    }

    fn new(of_each: u32, wait: Duration) -> Self {
        Self {
            of_each: usize::try_from(of_each.max(1)).unwrap_or(1),
            wait,
            partners: Mutex::default(),
        }
    }

    /// A turn, unless the partner has no free turn.
    pub fn try_take(&self, who: &Tenant) -> Option<OwnedSemaphorePermit> {
        self.of(who).try_acquire_owned().ok()
    }

    /// A turn. Waits until the partner has a free turn.
    pub async fn take(&self, who: &Tenant) -> StoreResult<OwnedSemaphorePermit> {
        let turn = timeout(self.wait, self.of(who).acquire_owned()).await;
        match turn {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(StoreError::unavailable(
                "other requests of the partner are waiting for the database",
            )),
        }
    }

    fn of(&self, who: &Tenant) -> Arc<Semaphore> {
        let mut partners = self.partners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = partners.get(who).and_then(Weak::upgrade) {
            return turns;
        }
        if partners.len() >= MAX_PARTNERS {
            partners.retain(|_, turns| turns.strong_count() > 0);
        }
        let turns = Arc::new(Semaphore::new(self.of_each));
        partners.insert(who.clone(), Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Mode;
    use partner_core::PartnerId;

    fn partner(number: usize) -> Tenant {
        Tenant {
            partner: PartnerId::parse(&format!("p{number}")).unwrap(),
            mode: Mode::Test,
        }
    }

    // rule: base.reads-isolated
    #[tokio::test]
    async fn partner_reads_pages_on_half_of_the_connections_and_others_keep_theirs() {
        let turns = Turns::of_pages(4, Duration::from_millis(10));
        let (one, other) = (partner(1), partner(2));
        let held = (turns.try_take(&one).unwrap(), turns.try_take(&one).unwrap());
        assert!(turns.try_take(&one).is_none());
        assert!(
            turns.take(&one).await.is_err(),
            "waiting for a turn times out"
        );
        assert!(turns.try_take(&other).is_some());
        let (first, second) = held;
        drop(first);
        let again = turns.take(&one).await.unwrap();
        assert!(turns.try_take(&one).is_none());
        drop((second, again));
    }

    #[test]
    fn partners_without_a_turn_are_forgotten() {
        let turns = Turns::of_pages(1, TURN_TIMEOUT);
        let held = turns.try_take(&partner(0)).unwrap();
        for number in 1..=MAX_PARTNERS + 1 {
            drop(turns.try_take(&partner(number)));
        }
        assert!(turns.partners.lock().unwrap().len() < MAX_PARTNERS);
        assert!(turns.try_take(&partner(0)).is_none());
        drop(held);
    }
}
