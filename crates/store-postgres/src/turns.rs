//! How many connections one partner may occupy for long: while it waits for its books on the server, or pages through a long
//! history. So no partner ever takes every connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use kernel::StoreError;
use partner_core::Tenant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Of the connections, one partner may occupy one in so many.
const SHARE: u32 = 3;
/// How long a transaction waits for its turn: as long as for a connection.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// Partners without a waiter are forgotten when this many are known.
const KNOWN: usize = 1024;

/// The turns of all partners. A turn ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turns {
    of_each: usize,
    partners: Mutex<HashMap<Tenant, Weak<Semaphore>>>,
}

impl Turns {
    pub(crate) fn new(connections: u32) -> Self {
        let of_each = (connections / SHARE).max(1);
        Self {
            of_each: usize::try_from(of_each).unwrap_or(1),
            partners: Mutex::default(),
        }
    }

    /// A turn, unless as many of the partner's transactions have one as may.
    pub(crate) fn try_take(&self, who: &Tenant) -> Option<OwnedSemaphorePermit> {
        self.of(who).try_acquire_owned().ok()
    }

    /// A turn, after others of the partner.
    pub(crate) async fn take(&self, who: &Tenant) -> Result<OwnedSemaphorePermit, StoreError> {
        let turn = timeout(TURN_TIMEOUT, self.of(who).acquire_owned()).await;
        match turn {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(StoreError::unavailable(
                "other requests of the partner wait for the database",
            )),
        }
    }

    fn of(&self, who: &Tenant) -> Arc<Semaphore> {
        let mut partners = self.partners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = partners.get(who).and_then(Weak::upgrade) {
            return turns;
        }
        if partners.len() >= KNOWN {
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

    #[tokio::test]
    async fn partner_has_a_third_of_the_connections_and_others_keep_theirs() {
        let turns = Turns::new(6);
        let (one, other) = (partner(1), partner(2));
        let held = (turns.try_take(&one).unwrap(), turns.try_take(&one).unwrap());
        assert!(turns.try_take(&one).is_none());
        assert!(turns.take(&one).await.is_err(), "it waits, and gives up");
        assert!(turns.try_take(&other).is_some());
        let (given, kept) = held;
        drop(given);
        let again = turns.take(&one).await.unwrap();
        assert!(turns.try_take(&one).is_none());
        drop((kept, again));
    }

    #[test]
    fn partners_without_a_waiter_are_forgotten() {
        let turns = Turns::new(1);
        let held = turns.try_take(&partner(0)).unwrap();
        for number in 1..=KNOWN + 1 {
            drop(turns.try_take(&partner(number)));
        }
        assert!(turns.partners.lock().unwrap().len() < KNOWN);
        assert!(turns.try_take(&partner(0)).is_none());
        drop(held);
    }
}
