//! The permits of polls. They are few per partner, so that one partner's slow reports do not use up those of other partners.

use std::sync::Arc;

use partner_core::PartnerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::client::PartnerShares;

/// Polls that may ask the engine at the same time.
const MAX_POLLS: usize = 64;
/// Polls of one partner among them.
const MAX_POLLS_PER_PARTNER: usize = 4;

/// The permits that are left: of each partner, and of all partners together.
#[derive(Debug)]
pub(super) struct PollPermits {
    of_each: PartnerShares,
    of_all: Arc<Semaphore>,
}

impl PollPermits {
    pub(super) fn new() -> Self {
        Self {
            of_each: PartnerShares::new(MAX_POLLS_PER_PARTNER),
            of_all: Arc::new(Semaphore::new(MAX_POLLS)),
        }
    }

    /// The permits of a poll until they are dropped, if the partner and all partners together have one left.
    pub(super) fn take(&self, partner: &PartnerId) -> Option<[OwnedSemaphorePermit; 2]> {
        let own = self.of_each.of(partner).try_acquire_owned().ok()?;
        let of_all = Arc::clone(&self.of_all).try_acquire_owned().ok()?;
        Some([own, of_all])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partner(name: &str) -> PartnerId {
        PartnerId::parse(name).unwrap()
    }

    // rule: pools.poll.permits
    #[test]
    fn partner_has_four_permits_and_leaves_those_of_others() {
        let permits = PollPermits::new();
        let (acme, globex) = (partner("acme"), partner("globex"));
        let mut of_acme: Vec<_> = (0..4).map(|_| permits.take(&acme).unwrap()).collect();
        assert!(permits.take(&acme).is_none());
        let of_globex = permits.take(&globex);
        assert!(of_globex.is_some());
        of_acme.pop();
        let again = permits.take(&acme);
        assert!(again.is_some());
        assert!(permits.take(&acme).is_none());
        drop((of_acme, of_globex, again));
        assert_eq!(permits.of_all.available_permits(), MAX_POLLS);
    }

    // rule: pools.poll.permits
    #[test]
    fn partners_together_have_64_permits() {
        let permits = PollPermits::new();
        let partners: Vec<_> = (0..17).map(|n| partner(&format!("p{n}"))).collect();
        let each = partners.iter().cycle().take(17 * 4);
        let mut taken: Vec<_> = each.filter_map(|one| permits.take(one)).collect();
        assert_eq!(taken.len(), 64);
        taken.pop();
        assert!(permits.take(&partner("another")).is_some());
    }
}
