//! How much a worker has taken on, and for whom.

use std::collections::{BTreeMap, BTreeSet};

use partner_core::events::EndpointId;
use partner_core::webhooks::fairness::Room;

/// Attempts under way at once: in all, for an endpoint that answers, and for one that does not.
const TOTAL: u32 = 512;
const EACH: u32 = 32;
const EACH_FAILING: u32 = 1;
/// However many endpoints fail, the others keep half of the room.
const TOTAL_FAILING: u32 = TOTAL / 2;

/// The attempts under way, by endpoint, and the endpoints whose last attempt has failed.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    taken: BTreeMap<EndpointId, u32>,
    failing: BTreeSet<EndpointId>,
}

impl Slots {
    pub(crate) fn take(&mut self, endpoint: EndpointId) {
        let taken = self.taken.entry(endpoint).or_default();
        *taken = taken.saturating_add(1);
    }

    pub(crate) fn free(&mut self, endpoint: EndpointId) {
        if let Some(taken) = self.taken.get_mut(&endpoint) {
            *taken = taken.saturating_sub(1);
            if *taken == 0 {
                self.taken.remove(&endpoint);
            }
        }
    }

    /// Remembers whether the endpoint takes deliveries.
    pub(crate) fn judge(&mut self, endpoint: EndpointId, delivered: bool) {
        if delivered {
            self.failing.remove(&endpoint);
        } else {
            self.failing.insert(endpoint);
        }
    }

    /// What can be taken on.
    pub(crate) fn room(&self) -> Room {
        let taken: u32 = self.taken.values().sum();
        let by_failing: u32 = self
            .failing
            .iter()
            .filter_map(|it| self.taken.get(it))
            .sum();
        let each_failing = if by_failing < TOTAL_FAILING {
            EACH_FAILING
        } else {
            0
        };
        let mut less: BTreeMap<EndpointId, u32> = self
            .failing
            .iter()
            .map(|endpoint| (*endpoint, each_failing))
            .collect();
        for (endpoint, taken) in &self.taken {
            let room = less.entry(*endpoint).or_insert(EACH);
            *room = room.saturating_sub(*taken);
        }
        Room {
            total: TOTAL.saturating_sub(taken),
            each: EACH,
            less,
        }
    }
}
