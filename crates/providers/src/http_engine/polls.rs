//! The permits of polls. They are few per partner, so that one partner's slow reports do not use up those of other partners.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use partner_core::PartnerId;

/// Polls that may ask the engine at the same time.
const MAX_POLLS: usize = 64;
/// Polls of one partner among them.
const MAX_POLLS_PER_PARTNER: usize = 4;

/// The number of permits in use, per partner.
#[derive(Debug, Default)]
pub(super) struct PollPermits(Mutex<BTreeMap<PartnerId, usize>>);

/// The permit of a poll, until it is dropped.
#[derive(Debug)]
pub(super) struct PollPermit {
    permits: Arc<PollPermits>,
    partner: PartnerId,
}

impl PollPermits {
    /// A permit, if the partner and all partners together have one left.
    pub(super) fn take(self: &Arc<Self>, partner: &PartnerId) -> Option<PollPermit> {
        let mut in_use = self.0.lock();
        let own = in_use.get(partner).copied().unwrap_or_default();
        let all: usize = in_use.values().sum();
        if own >= MAX_POLLS_PER_PARTNER || all >= MAX_POLLS {
            return None;
        }
        in_use.insert(partner.clone(), own + 1);
        Some(PollPermit {
            permits: Arc::clone(self),
            partner: partner.clone(),
        })
    }
}

impl Drop for PollPermit {
    fn drop(&mut self) {
        let mut in_use = self.permits.0.lock();
        let left = in_use
            .get(&self.partner)
            .map_or(0, |own| own.saturating_sub(1));
        if left == 0 {
            in_use.remove(&self.partner);
        } else {
            in_use.insert(self.partner.clone(), left);
        }
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
        let permits = Arc::<PollPermits>::default();
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
        assert!(permits.0.lock().is_empty());
    }

    // rule: pools.poll.permits
    #[test]
    fn partners_together_have_64_permits() {
        let permits = Arc::<PollPermits>::default();
        let partners: Vec<_> = (0..17).map(|n| partner(&format!("p{n}"))).collect();
        let each = partners.iter().cycle().take(17 * 4);
        let mut taken: Vec<_> = each.filter_map(|one| permits.take(one)).collect();
        assert_eq!(taken.len(), 64);
        taken.pop();
        assert!(permits.take(&partner("another")).is_some());
    }
}
