//! The only count of a worker's capacity: running attempts, prefetched deliveries and health, per endpoint.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use partner_core::events::EndpointId;
use partner_core::webhooks::fairness::{ClaimCapacity, EndpointHealth, EndpointLoad};
use tokio::time::Instant;

/// Attempts that may run at a time: in all, and to one endpoint.
const MAX_ATTEMPTS: u32 = 512;
const MAX_PER_ENDPOINT: u32 = 32;
/// How long a delivery may be prefetched. Its endpoint and secrets are as old as that.
const PREFETCH_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an endpoint without deliveries in flight still counts as fast. In a burst, all claimed
/// deliveries have often ended before the next claim.
const HEALTH_MEMORY: Duration = Duration::from_secs(1);

/// The deliveries in flight of each endpoint, and the health of the endpoint.
#[derive(Debug)]
pub(crate) struct InFlight<T>(BTreeMap<EndpointId, EndpointState<T>>);

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[derive(Debug)]
struct EndpointState<T> {
    health: EndpointHealth,
    /// When the last attempt ended.
    ended: Option<Instant>,
    /// Running attempts.
    attempts: u32,
    /// In the order of their claim, each with the instant after which it may not start.
    prefetched: VecDeque<(Instant, T)>,
}

impl<T> Default for EndpointState<T> {
    fn default() -> Self {
        Self {
            health: EndpointHealth::default(),
            ended: None,
            attempts: 0,
            prefetched: VecDeque::new(),
        }
    }
}

impl<T> EndpointState<T> {
    fn load(&self) -> EndpointLoad {
        let prefetched = u32::try_from(self.prefetched.len()).unwrap_or(u32::MAX);
        EndpointLoad {
            deliveries: self.attempts.saturating_add(prefetched),
            health: self.health,
        }
    }

    /// Whether a claim would treat the endpoint differently from an unknown one.
    fn is_relevant(&self, now: Instant) -> bool {
        let is_recent = |ended| now.saturating_duration_since(ended) < HEALTH_MEMORY;
        self.load().deliveries > 0
            || match self.health {
                EndpointHealth::Fast => self.ended.is_some_and(is_recent),
                EndpointHealth::Slow => false,
                EndpointHealth::Failing => true,
            }
    }

    /// Starts the first prefetched delivery if an attempt is free and the delivery is not too old.
    fn start(&mut self, now: Instant) -> Option<T> {
        if self.attempts >= self.health.max_attempts(MAX_PER_ENDPOINT) || self.is_expired(now) {
            return None;
        }
        let (_, next) = self.prefetched.pop_front()?;
        self.attempts = self.attempts.saturating_add(1);
        Some(next)
    }

    fn is_expired(&self, now: Instant) -> bool {
        let first = self.prefetched.front();
        first.is_some_and(|(start_by, _)| *start_by <= now)
    }
}

impl<T> InFlight<T> {
    /// Adds a claimed delivery that may not start after `start_by`. Returns the endpoint's delivery
    /// to start now, if an attempt is free.
    pub(crate) fn add(
        &mut self,
        endpoint: EndpointId,
        delivery: T,
        now: Instant,
        start_by: Instant,
    ) -> Option<T> {
        let state = self.0.entry(endpoint).or_default();
        let start_by = start_by.min(now + PREFETCH_TIMEOUT);
        state.prefetched.push_back((start_by, delivery));
        state.start(now)
    }

    /// Counts an ended attempt. `health` is `None` if the attempt was aborted.
    pub(crate) fn end(
        &mut self,
        endpoint: EndpointId,
        health: Option<EndpointHealth>,
        now: Instant,
    ) {
        if let Some(state) = self.0.get_mut(&endpoint) {
            state.health = health.unwrap_or(state.health);
            state.ended = Some(now);
            state.attempts = state.attempts.saturating_sub(1);
        }
    }

    /// Starts the next prefetched delivery of this endpoint, if an attempt is free.
    pub(crate) fn start_at(&mut self, endpoint: EndpointId, now: Instant) -> Option<T> {
        self.0.get_mut(&endpoint)?.start(now)
    }

    /// Starts the next prefetched delivery of any endpoint: a failing endpoint may have recovered.
    pub(crate) fn start_any(&mut self, now: Instant) -> Option<T> {
        self.0.values_mut().find_map(|state| state.start(now))
    }

    /// Removes the deliveries that are too old to start. An endpoint that let one grow too old is
    /// slow until its next attempt.
    pub(crate) fn remove_expired(&mut self, now: Instant) -> Vec<T> {
        let mut expired = Vec::new();
        for state in self.0.values_mut() {
            while state.is_expired(now) {
                expired.extend(state.prefetched.pop_front().map(|(_, delivery)| delivery));
                if state.health == EndpointHealth::Fast {
                    state.health = EndpointHealth::Slow;
                }
            }
        }
        self.0.retain(|_, state| state.is_relevant(now));
        expired
    }

    /// Removes all deliveries that have not started.
    pub(crate) fn remove_prefetched(&mut self) -> Vec<T> {
        let states = self.0.values_mut();
        let queues = states.flat_map(|state| state.prefetched.drain(..));
        queues.map(|(_, delivery)| delivery).collect()
    }

    /// Whether no delivery is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().all(|state| state.load().deliveries == 0)
    }

    pub(crate) fn capacity(&self) -> ClaimCapacity {
        let states = self.0.iter();
        let loads = states.map(|(endpoint, state)| (*endpoint, state.load()));
        ClaimCapacity {
            total: MAX_ATTEMPTS,
            max_per_endpoint: MAX_PER_ENDPOINT,
            in_flight: loads.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use kernel::{Entropy, Mode, Timestamp};

    use super::*;
    use EndpointHealth::{Failing, Fast, Slow};

    /// The instant of every step that does not say another.
    static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);

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

    fn load(in_flight: &InFlight<u32>, number: u32) -> Option<(u32, EndpointHealth)> {
        let capacity = in_flight.capacity();
        let load = capacity.in_flight.get(&endpoint(number))?;
        Some((load.deliveries, load.health))
    }

    /// Adds this many deliveries for an endpoint. Returns the started ones.
    fn add(in_flight: &mut InFlight<u32>, number: u32, count: u32) -> Vec<u32> {
        let now = *NOW;
        let later = now + PREFETCH_TIMEOUT * 20;
        (0..count)
            .filter_map(|delivery| in_flight.add(endpoint(number), delivery, now, later))
            .collect()
    }

    /// Ends an attempt. Returns the delivery that starts instead.
    fn end(in_flight: &mut InFlight<u32>, number: u32, health: EndpointHealth) -> Option<u32> {
        let now = *NOW;
        in_flight.end(endpoint(number), Some(health), now);
        in_flight.start_at(endpoint(number), now)
    }

    // rule: webhook.isolation
    #[test]
    fn endpoint_has_limited_attempts() {
        let mut in_flight = InFlight::default();
        let capacity = in_flight.capacity();
        assert_eq!((capacity.total, capacity.max_per_endpoint), (512, 32));
        assert_eq!(add(&mut in_flight, 1, 33).len(), 32);
        assert_eq!(load(&in_flight, 1), Some((33, Slow)));
        assert_eq!(end(&mut in_flight, 1, Slow), Some(32));
        assert_eq!(end(&mut in_flight, 1, Slow), None);
        assert_eq!(
            (load(&in_flight, 1), load(&in_flight, 2)),
            (Some((31, Slow)), None)
        );
        for _ in 0..31 {
            end(&mut in_flight, 1, Slow);
        }
        assert!(in_flight.remove_expired(*NOW).is_empty());
        assert_eq!(in_flight.capacity(), InFlight::<u32>::default().capacity());
    }

    // rule: webhook.isolation
    #[test]
    fn failing_endpoint_gets_one_attempt_at_a_time_until_it_accepts_one() {
        let mut in_flight = InFlight::default();
        add(&mut in_flight, 1, 1);
        end(&mut in_flight, 1, Failing);
        assert_eq!(load(&in_flight, 1), Some((0, Failing)));
        assert_eq!(add(&mut in_flight, 1, 3), [0], "two wait");
        assert_eq!(end(&mut in_flight, 1, Failing), Some(1));
        assert_eq!(in_flight.start_any(*NOW), None);
        add(&mut in_flight, 1, 2);
        assert_eq!(end(&mut in_flight, 1, Fast), Some(2));
        assert_eq!(in_flight.start_any(*NOW), Some(0));
        assert_eq!(in_flight.start_any(*NOW), Some(1));
        assert_eq!(load(&in_flight, 1), Some((3, Fast)));
    }

    // rule: webhook.isolation
    #[test]
    fn prefetched_deliveries_start_in_order_when_attempts_end() {
        let mut in_flight = InFlight::default();
        assert_eq!(add(&mut in_flight, 1, 256).len(), 32);
        for next in 32..40 {
            assert_eq!(end(&mut in_flight, 1, Fast), Some(next));
        }
        assert_eq!(load(&in_flight, 1), Some((248, Fast)));
    }

    /// Between two claims of a burst, all deliveries may have ended.
    // rule: webhook.isolation
    #[test]
    fn fast_endpoint_is_remembered_for_a_while_when_nothing_is_in_flight() {
        let mut in_flight = InFlight::default();
        let now = *NOW;
        for (number, health) in [(1, Fast), (2, Slow), (3, Failing)] {
            add(&mut in_flight, number, 1);
            in_flight.end(endpoint(number), Some(health), now);
        }
        assert!(in_flight.remove_expired(now + HEALTH_MEMORY / 2).is_empty());
        assert_eq!(load(&in_flight, 1), Some((0, Fast)));
        assert_eq!(load(&in_flight, 2), None);
        assert!(in_flight.remove_expired(now + HEALTH_MEMORY).is_empty());
        assert_eq!(load(&in_flight, 1), None);
        assert_eq!(load(&in_flight, 3), Some((0, Failing)));
    }

    // rule: webhook.isolation
    #[test]
    fn endpoint_is_no_longer_fast_when_prefetched_delivery_is_late() {
        let mut in_flight = InFlight::default();
        add(&mut in_flight, 1, 1);
        end(&mut in_flight, 1, Fast);
        assert_eq!(add(&mut in_flight, 1, 40).len(), 32);
        assert_eq!(load(&in_flight, 1), Some((40, Fast)));
        let expired = in_flight.remove_expired(*NOW + PREFETCH_TIMEOUT);
        assert_eq!((expired.len(), load(&in_flight, 1)), (8, Some((32, Slow))));
        end(&mut in_flight, 1, Fast);
        assert_eq!(load(&in_flight, 1), Some((31, Fast)));
    }

    /// A slow claim has used up the lease.
    // rule: webhook.lease
    #[test]
    fn delivery_never_starts_when_its_lease_is_too_old() {
        let mut in_flight = InFlight::default();
        let now = *NOW;
        assert_eq!(in_flight.add(endpoint(1), 1, now, now), None);
        assert_eq!(in_flight.start_any(now), None);
        assert_eq!(in_flight.remove_expired(now), [1]);
        let soon = now + Duration::from_millis(1);
        assert_eq!(in_flight.add(endpoint(1), 2, now, soon), Some(2));
    }

    // rule: webhook.lease, webhook.isolation
    #[test]
    fn delivery_never_starts_when_prefetched_for_too_long() {
        let mut in_flight = InFlight::default();
        let claimed = *NOW;
        assert_eq!(add(&mut in_flight, 1, 40).len(), 32);
        in_flight.end(endpoint(1), None, claimed);
        let early = claimed + PREFETCH_TIMEOUT - Duration::from_millis(100);
        assert!(in_flight.remove_expired(early).is_empty());
        assert_eq!(in_flight.start_at(endpoint(1), early), Some(32));
        in_flight.end(endpoint(1), None, claimed);
        let late = *NOW + PREFETCH_TIMEOUT;
        assert_eq!(in_flight.start_at(endpoint(1), late), None);
        assert_eq!(in_flight.start_any(late), None);
        assert_eq!(in_flight.remove_expired(late), (33..40).collect::<Vec<_>>());
        assert_eq!(load(&in_flight, 1), Some((31, Slow)));
    }

    // rule: webhook.hand-back
    #[test]
    fn prefetched_deliveries_are_removed_when_worker_stops() {
        let mut in_flight = InFlight::default();
        add(&mut in_flight, 1, 40);
        add(&mut in_flight, 2, 33);
        assert_eq!(in_flight.remove_prefetched().len(), 9);
        assert_eq!(in_flight.start_any(*NOW), None);
        assert_eq!(
            (load(&in_flight, 1), load(&in_flight, 2)),
            (Some((32, Slow)), Some((32, Slow)))
        );
    }
}
