//! How a claim divides a worker's capacity among the endpoints that have deliveries due.
//!
//! No endpoint takes the capacity of another: neither one with a million due deliveries, nor one
//! that never responds. Prefetched deliveries have a limit of their own and use no capacity for
//! attempts.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Timestamp;

use crate::PartnerId;
use crate::events::EndpointId;

/// An endpoint gets no further attempt once it has the remaining attempts, divided by this, in flight.
/// Therefore attempts remain for the next endpoint, however many endpoints are busy.
const MAX_SHARE_DIVISOR: u32 = 4;
/// Attempts at a time to an endpoint whose last attempt failed.
const MAX_PER_FAILING_ENDPOINT: u32 = 1;
/// Failing endpoints together get at most all attempts divided by this.
const FAILING_DIVISOR: u32 = 2;
/// Prefetched deliveries: per fast endpoint, and of all endpoints together.
const MAX_PREFETCHED_PER_ENDPOINT: u32 = 224;
const MAX_PREFETCHED: u32 = 512;

/// How an endpoint responded to its last attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointHealth {
    /// It accepted the delivery quickly, so the worker may prefetch for it.
    Fast,
    /// It accepted the delivery, or the worker has not sent it any.
    #[default]
    Slow,
    /// The attempt failed.
    Failing,
}

impl EndpointHealth {
    /// Attempts that an endpoint of this health may have at a time. A healthy endpoint may have
    /// `max_per_endpoint`.
    #[must_use]
    pub fn max_attempts(self, max_per_endpoint: u32) -> u32 {
        match self {
            Self::Fast | Self::Slow => max_per_endpoint,
            Self::Failing => max_per_endpoint.min(MAX_PER_FAILING_ENDPOINT),
        }
    }
}

/// What a worker has in flight to one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointLoad {
    /// Deliveries in flight: running attempts and prefetched deliveries.
    pub deliveries: u32,
    /// How the endpoint responded last.
    pub health: EndpointHealth,
}

/// A worker's limits, and what it has in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimCapacity {
    /// Attempts that may run at a time, in all.
    pub total: u32,
    /// Attempts that may run at a time, to one endpoint.
    pub max_per_endpoint: u32,
    /// The endpoints with deliveries in flight or of known health.
    pub in_flight: BTreeMap<EndpointId, EndpointLoad>,
}

impl ClaimCapacity {
    fn load(&self, endpoint: EndpointId) -> EndpointLoad {
        self.in_flight.get(&endpoint).copied().unwrap_or_default()
    }
}

/// An endpoint that has a delivery due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueEndpoint {
    /// The partner of the endpoint.
    pub partner: PartnerId,
    pub endpoint: EndpointId,
    /// When its first delivery became due.
    pub since: Timestamp,
}

/// The capacity that a claim can still assign.
struct Remaining {
    attempts: u32,
    failing: u32,
    prefetched: u32,
}

impl Remaining {
    fn of(capacity: &ClaimCapacity) -> Self {
        let mut remaining = Self {
            attempts: capacity.total,
            failing: capacity.total / FAILING_DIVISOR,
            prefetched: MAX_PREFETCHED,
        };
        for load in capacity.in_flight.values() {
            let attempts = load.deliveries.min(capacity.max_per_endpoint);
            let prefetched = load.deliveries.saturating_sub(attempts);
            remaining.attempts = remaining.attempts.saturating_sub(attempts);
            remaining.prefetched = remaining.prefetched.saturating_sub(prefetched);
            if load.health == EndpointHealth::Failing {
                remaining.failing = remaining.failing.saturating_sub(attempts);
            }
        }
        remaining
    }

    /// Takes one delivery for an endpoint with this load. Returns `false` if the endpoint gets none.
    fn take(&mut self, load: EndpointLoad, max_per_endpoint: u32) -> bool {
        let in_flight = load.deliveries;
        if in_flight >= load.health.max_attempts(max_per_endpoint) {
            let max = max_per_endpoint.saturating_add(MAX_PREFETCHED_PER_ENDPOINT);
            let may_prefetch = load.health == EndpointHealth::Fast && in_flight < max;
            return may_prefetch && take_one(&mut self.prefetched);
        }
        let has_enough = in_flight > 0 && in_flight >= self.attempts / MAX_SHARE_DIVISOR;
        let is_failing = load.health == EndpointHealth::Failing;
        !has_enough && (!is_failing || take_one(&mut self.failing)) && take_one(&mut self.attempts)
    }
}

fn take_one(remaining: &mut u32) -> bool {
    let is_available = *remaining > 0;
    *remaining = remaining.saturating_sub(1);
    is_available
}

/// Divides a worker's capacity: how many deliveries to claim for each endpoint.
///
/// Assigns one delivery at a time to the endpoint with the fewest in flight, and among equals to the
/// endpoint that has waited longest. A fast endpoint at its maximum of attempts gets prefetched
/// deliveries. Capacity that one endpoint may not use goes to the other endpoints.
#[must_use]
pub fn allocate(due: Vec<DueEndpoint>, capacity: &ClaimCapacity) -> Vec<(DueEndpoint, u32)> {
    let mut remaining = Remaining::of(capacity);
    let mut takes: BTreeMap<EndpointId, u32> = BTreeMap::new();
    let deliveries = |due: &DueEndpoint| capacity.load(due.endpoint).deliveries;
    let waiting = due
        .iter()
        .map(|due| (deliveries(due), due.since, due.endpoint));
    let mut waiting: BTreeSet<(u32, Timestamp, EndpointId)> = waiting.collect();
    while let Some((deliveries, since, endpoint)) = waiting.pop_first() {
        let health = capacity.load(endpoint).health;
        if remaining.take(
            EndpointLoad { deliveries, health },
            capacity.max_per_endpoint,
        ) {
            let take = takes.entry(endpoint).or_default();
            *take = take.saturating_add(1);
            waiting.insert((deliveries.saturating_add(1), since, endpoint));
        }
    }
    let allocated = due.into_iter().filter_map(|due| {
        let take = *takes.get(&due.endpoint)?;
        Some((due, take))
    });
    allocated.collect()
}

#[cfg(test)]
mod tests {
    use kernel::{Entropy, Mode};
    use proptest::prelude::*;

    use super::*;

    struct Number(u8);
    impl Entropy for Number {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(self.0);
        }
    }

    fn endpoint(number: u8) -> EndpointId {
        let at = Timestamp::from_millis(0).unwrap();
        EndpointId::new(Mode::Test, at, &Number(number))
    }

    /// The endpoint of this number, due since this millisecond.
    fn due(number: u8, since: i64) -> DueEndpoint {
        DueEndpoint {
            partner: PartnerId::parse("acme").unwrap(),
            endpoint: endpoint(number),
            since: Timestamp::from_millis(since).unwrap(),
        }
    }

    /// This many deliveries in flight to each of these endpoints, and the health of all of them.
    fn loads(health: EndpointHealth, loads: &[(u8, u32)]) -> BTreeMap<EndpointId, EndpointLoad> {
        let load = |deliveries| EndpointLoad { deliveries, health };
        let loads = loads.iter();
        loads
            .map(|(number, count)| (endpoint(*number), load(*count)))
            .collect()
    }

    fn capacity(total: u32, max_per_endpoint: u32, slow: &[(u8, u32)]) -> ClaimCapacity {
        let in_flight = loads(EndpointHealth::Slow, slow);
        ClaimCapacity {
            total,
            max_per_endpoint,
            in_flight,
        }
    }

    fn takes(list: &[(u8, i64)], capacity: &ClaimCapacity) -> Vec<(u8, u32)> {
        let numbers: BTreeMap<EndpointId, u8> =
            list.iter().map(|it| (endpoint(it.0), it.0)).collect();
        let list = list
            .iter()
            .map(|(number, since)| due(*number, *since))
            .collect();
        let takes = allocate(list, capacity).into_iter();
        let mut takes: Vec<(u8, u32)> = takes
            .map(|(due, take)| (numbers[&due.endpoint], take))
            .collect();
        takes.sort_unstable();
        takes
    }

    // rule: webhook.fair
    #[test]
    fn capacity_is_divided_evenly() {
        let both = [(1, 5), (2, 9)];
        assert_eq!(takes(&both, &capacity(200, 32, &[])), [(1, 32), (2, 32)]);
        assert_eq!(
            takes(&both, &capacity(200, 32, &[(1, 30)])),
            [(1, 2), (2, 32)]
        );
        assert_eq!(takes(&both, &capacity(200, 32, &[(1, 32)])), [(2, 32)]);
        assert_eq!(takes(&both, &capacity(60, 32, &[])), [(1, 10), (2, 10)]);
        assert_eq!(
            takes(&both, &capacity(60, 32, &[(1, 8)])),
            [(1, 2), (2, 10)]
        );
        assert_eq!(takes(&both, &capacity(0, 32, &[])), []);
        assert_eq!(takes(&[], &capacity(10, 32, &[])), []);
    }

    // rule: webhook.fair
    #[test]
    fn scarce_capacity_goes_to_endpoints_that_waited_longest() {
        let three = [(1, 9), (2, 5), (3, 7)];
        assert_eq!(takes(&three, &capacity(2, 32, &[])), [(2, 1), (3, 1)]);
    }

    /// However long the others have waited, and however much they have due.
    // rule: webhook.fair, webhook.isolation
    #[test]
    fn endpoint_without_deliveries_in_flight_comes_first() {
        let three = [(1, 5), (2, 7), (3, 9)];
        let busy = [(1, 30), (2, 30)];
        assert_eq!(takes(&three, &capacity(62, 32, &busy)), [(3, 1)]);
        assert_eq!(takes(&three, &capacity(60, 32, &busy)), []);
    }

    // rule: webhook.fair, webhook.isolation
    #[test]
    fn busy_endpoints_leave_capacity_when_they_claim_again() {
        let busy: Vec<(u8, i64)> = (0..100).map(|number| (number, 5)).collect();
        let mut capacity = capacity(512, 32, &[]);
        let first = takes(&busy, &capacity);
        assert!(
            first
                .iter()
                .all(|(number, take)| *take == 4 + u32::from(*number < 93))
        );
        assert_eq!(first.iter().map(|(_, take)| take).sum::<u32>(), 512 - 19);
        capacity.in_flight = loads(EndpointHealth::Slow, &first);
        assert_eq!(takes(&busy, &capacity), []);
        assert_eq!(takes(&[(0, 5), (200, 9)], &capacity), [(200, 4)]);
    }

    // rule: webhook.isolation
    #[test]
    fn failing_endpoints_get_one_attempt_each_and_half_of_the_capacity() {
        let many: Vec<(u8, i64)> = (0..100).map(|number| (number, 5)).collect();
        let failing: Vec<(u8, u32)> = (10..100).map(|number| (number, 0)).collect();
        let mut capacity = capacity(60, 32, &[]);
        capacity.in_flight = loads(EndpointHealth::Failing, &failing);
        let first = takes(&many, &capacity);
        assert_eq!(first.len(), 40);
        assert!(
            first
                .iter()
                .all(|(number, take)| (*number < 10) == (*take > 1)),
            "{first:?}"
        );
        capacity
            .in_flight
            .extend(loads(EndpointHealth::Failing, &[(10, 1), (11, 2)]));
        let next = takes(&[(10, 5), (11, 5), (12, 5)], &capacity);
        assert_eq!(next, [(12, 1)]);
    }

    // rule: webhook.fair
    #[test]
    fn prefetched_deliveries_use_no_capacity_for_attempts() {
        let three = [(1, 5), (2, 7), (3, 9)];
        let mut capacity = capacity(92, 32, &[]);
        capacity.in_flight = loads(EndpointHealth::Fast, &[(1, 216)]);
        assert_eq!(takes(&three, &capacity), [(1, 40), (2, 10), (3, 10)]);
        capacity.total = 32;
        assert_eq!(takes(&three, &capacity), [(1, 40)]);
        capacity.in_flight = loads(EndpointHealth::Fast, &[(1, 256)]);
        assert_eq!(takes(&three, &capacity), []);
    }

    /// Endpoints that have nothing due, or have not got all their attempts, get no share.
    // rule: webhook.fair
    #[test]
    fn prefetch_limit_is_shared_by_fast_endpoints() {
        let three = [(1, 5), (2, 7), (3, 9)];
        let mut capacity = capacity(1000, 32, &[]);
        capacity.in_flight = loads(EndpointHealth::Fast, &[(1, 32), (2, 32), (3, 0), (4, 493)]);
        assert_eq!(takes(&three, &capacity), [(1, 17), (2, 17), (3, 32 + 17)]);
        capacity
            .in_flight
            .extend(loads(EndpointHealth::Slow, &[(3, 0)]));
        assert_eq!(takes(&three, &capacity), [(1, 26), (2, 25), (3, 32)]);
        capacity
            .in_flight
            .extend(loads(EndpointHealth::Fast, &[(1, 250)]));
        assert_eq!(takes(&three, &capacity), [(3, 32)]);
    }

    proptest! {
        #[test]
        fn allocation_stays_within_limits_and_serves_idle_endpoints_first(
            total in 0_u32..700,
            max_per_endpoint in 1_u32..40,
            list in proptest::collection::vec((0_u32..300, 0_u8..4), 0..30),
        ) {
            let states = [EndpointHealth::Slow, EndpointHealth::Slow, EndpointHealth::Fast, EndpointHealth::Failing];
            let list = (0_u8..).zip(list).map(|(number, (deliveries, health))| {
                (endpoint(number), EndpointLoad { deliveries, health: states[usize::from(health)] })
            });
            let capacity = ClaimCapacity { total, max_per_endpoint, in_flight: list.collect() };
            let all: Vec<DueEndpoint> = (0..30).map(|number| due(number, i64::from(number))).collect();
            let remaining = Remaining::of(&capacity);
            let (mut attempts, mut failing, mut prefetched, mut served) = (0, 0, 0, 0);
            let takes = allocate(all.clone(), &capacity);
            for (due, take) in &takes {
                let load = capacity.load(due.endpoint);
                let began = load.health.max_attempts(max_per_endpoint).saturating_sub(load.deliveries).min(*take);
                let ahead = take - began;
                prop_assert!(*take > 0);
                prop_assert!(ahead == 0 || load.health == EndpointHealth::Fast);
                prop_assert!(ahead == 0 || load.deliveries + take <= max_per_endpoint + MAX_PREFETCHED_PER_ENDPOINT);
                attempts += began;
                prefetched += ahead;
                failing += if load.health == EndpointHealth::Failing { began } else { 0 };
                served += usize::from(load.deliveries == 0);
            }
            prop_assert!(attempts <= remaining.attempts && failing <= remaining.failing && prefetched <= remaining.prefetched);
            let left = remaining.attempts - attempts;
            for (due, take) in &takes {
                let load = capacity.load(due.endpoint);
                let holds = (load.deliveries + take).min(load.health.max_attempts(max_per_endpoint));
                prop_assert!(load.deliveries >= max_per_endpoint || holds == 1 || holds <= (left + 1) / MAX_SHARE_DIVISOR);
            }
            let idle = all.iter().map(|due| capacity.load(due.endpoint)).filter(|load| load.deliveries == 0);
            let (fails, healthy): (Vec<_>, Vec<_>) = idle.partition(|load| load.health == EndpointHealth::Failing);
            let most = healthy.len() + fails.len().min(usize::try_from(remaining.failing).unwrap());
            prop_assert_eq!(served, most.min(usize::try_from(remaining.attempts).unwrap()));
        }
    }
}
