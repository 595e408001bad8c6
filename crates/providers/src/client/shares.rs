//! The shares of partners in an upstream's calls or polls. A partner whose calls hang occupies its own share, so that other partners find a
//! permit.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use partner_core::PartnerId;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Above this number of partners, those without a call are removed from memory.
const MAX_PARTNERS: usize = 1024;

/// The permits of each partner for calls or polls.
#[derive(Debug)]
pub(crate) struct PartnerShares {
    of_each: usize,
    partners: Mutex<HashMap<PartnerId, Weak<Semaphore>>>,
}

impl PartnerShares {
    /// Shares of this many calls, at least one.
    pub(crate) fn new(of_each: usize) -> Self {
        Self {
            of_each: of_each.max(1),
            partners: Mutex::default(),
        }
    }

    /// A place in the partner's share, until it is dropped. Waits until the partner has a free place.
    pub(super) async fn take(
        &self,
        partner: &PartnerId,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.of(partner).acquire_owned().await
    }

    /// The share of a partner. It counts until the last of its permits, and of the values returned here, is dropped.
    pub(crate) fn of(&self, partner: &PartnerId) -> Arc<Semaphore> {
        let mut partners = self.partners.lock();
        if let Some(share) = partners.get(partner).and_then(Weak::upgrade) {
            return share;
        }
        if partners.len() >= MAX_PARTNERS {
            partners.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.of_each));
        partners.insert(partner.clone(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn partner(number: usize) -> PartnerId {
        PartnerId::parse(&format!("p{number}")).unwrap()
    }

    async fn soon(shares: &PartnerShares, number: usize) -> Option<OwnedSemaphorePermit> {
        let taking = async { shares.take(&partner(number)).await };
        let taken = timeout(Duration::from_millis(10), taking).await;
        taken.ok().map(Result::unwrap)
    }

    // rule: pools.engine.share, rail.http.share, verifier.http.share
    #[tokio::test(start_paused = true)]
    async fn partner_waits_for_its_own_share_alone() {
        let shares = PartnerShares::new(2);
        let first = soon(&shares, 1).await.unwrap();
        let second = soon(&shares, 1).await.unwrap();
        assert!(soon(&shares, 1).await.is_none());
        let others = [soon(&shares, 2).await, soon(&shares, 2).await];
        assert!(others.iter().all(Option::is_some));
        drop(first);
        let again = soon(&shares, 1).await;
        assert!(again.is_some());
        assert!(soon(&shares, 1).await.is_none());
        drop((second, again));
    }

    #[tokio::test(start_paused = true)]
    async fn share_is_at_least_one_call() {
        let shares = PartnerShares::new(0);
        let only = soon(&shares, 1).await;
        assert!(only.is_some());
        assert!(soon(&shares, 1).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn partners_without_a_call_are_forgotten() {
        let shares = PartnerShares::new(1);
        let held = soon(&shares, 0).await.unwrap();
        for number in 1..=MAX_PARTNERS + 1 {
            drop(soon(&shares, number).await);
        }
        assert!(shares.partners.lock().len() < MAX_PARTNERS);
        assert!(soon(&shares, 0).await.is_none());
        drop(held);
    }
}
