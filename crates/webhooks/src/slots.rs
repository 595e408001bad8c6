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

    /// Has the endpoint no room left?
    pub(crate) fn is_full(&self, endpoint: EndpointId) -> bool {
        let each = if self.failing.contains(&endpoint) {
            EACH_FAILING
        } else {
            EACH
        };
        let taken = self.taken.get(&endpoint).copied().unwrap_or_default();
        taken >= each
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

#[cfg(test)]
mod tests {
    use kernel::{Entropy, Mode, Timestamp};

    use super::*;

    struct Number(u32);
    impl Entropy for Number {
        fn fill(&self, buffer: &mut [u8]) {
            let (_, end) = buffer.split_at_mut(12);
            end.copy_from_slice(&self.0.to_be_bytes());
        }
    }

    fn endpoint(number: u32) -> EndpointId {
        let at = Timestamp::from_millis(0).unwrap();
        EndpointId::new(Mode::Test, at, &Number(number))
    }

    fn left(slots: &Slots, number: u32) -> Option<u32> {
        slots.room().less.get(&endpoint(number)).copied()
    }

    // rule: webhook.isolation
    #[test]
    fn an_endpoint_has_a_bounded_share() {
        let mut slots = Slots::default();
        assert_eq!((slots.room().total, slots.room().each), (512, 32));
        for _ in 0..32 {
            slots.take(endpoint(1));
        }
        assert_eq!((slots.room().total, left(&slots, 1)), (480, Some(0)));
        slots.free(endpoint(1));
        assert_eq!((slots.room().total, left(&slots, 1)), (481, Some(1)));
        assert_eq!(left(&slots, 2), None);
        for _ in 0..40 {
            slots.free(endpoint(1));
        }
        assert_eq!((slots.room().total, left(&slots, 1)), (512, None));
    }

    // rule: webhook.isolation
    #[test]
    fn one_that_fails_is_tried_one_by_one_until_it_takes_something() {
        let mut slots = Slots::default();
        slots.judge(endpoint(1), false);
        assert_eq!(left(&slots, 1), Some(1));
        slots.take(endpoint(1));
        assert_eq!(left(&slots, 1), Some(0));
        slots.free(endpoint(1));
        slots.judge(endpoint(1), true);
        assert_eq!(left(&slots, 1), None);
    }

    // rule: webhook.isolation
    #[test]
    fn those_that_fail_leave_half_to_the_others() {
        let mut slots = Slots::default();
        for number in 0..300 {
            slots.judge(endpoint(number), false);
        }
        for number in 0..256 {
            assert_eq!(left(&slots, number), Some(1));
            slots.take(endpoint(number));
        }
        assert_eq!(left(&slots, 299), Some(0));
        assert_eq!((slots.room().total, left(&slots, 300)), (256, None));
        slots.free(endpoint(0));
        assert_eq!(left(&slots, 299), Some(1));
    }
}
