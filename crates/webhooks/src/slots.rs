//! What a worker has in hand, and for whom: attempts under way, and behind those of an endpoint
//! that answers quickly some deliveries that wait their turn.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use partner_core::events::EndpointId;
use partner_core::webhooks::fairness::ClaimCapacity;
use tokio::time::Instant;

/// Attempts under way at once: in all, for an endpoint that answers, and for one that does not.
const MAX_IN_FLIGHT: usize = 512;
const MAX_PER_ENDPOINT: usize = 32;
const MAX_PER_FAILING_ENDPOINT: usize = 1;
/// However many endpoints fail, the others keep half of the room.
const MAX_FAILING: usize = MAX_IN_FLIGHT / 2;
/// Deliveries that wait their turn: for one quick endpoint, and for all of them together.
const MAX_PREFETCHED_PER_ENDPOINT: usize = 224;
const MAX_PREFETCHED: usize = 512;
/// How long one may wait its turn. Its endpoint and secrets are as old as that.
const PREFETCH_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an endpoint with nothing in hand is known to be quick. What comes next is often claimed
/// when the last has just ended.
const HEALTH_MEMORY: Duration = Duration::from_secs(1);

/// How an endpoint took the last attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointHealth {
    /// At once.
    Quick,
    /// In the end.
    Slow,
    /// Not at all.
    Failed,
}

impl EndpointHealth {
    const fn at_once(self) -> usize {
        match self {
            Self::Quick | Self::Slow => MAX_PER_ENDPOINT,
            Self::Failed => MAX_PER_FAILING_ENDPOINT,
        }
    }
}

/// Deliveries in hand, by endpoint, and how each endpoint has taken its last.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    standings: BTreeMap<EndpointId, EndpointState<T>>,
    in_hand: usize,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self {
            standings: BTreeMap::new(),
            in_hand: 0,
        }
    }
}

/// Of one endpoint.
#[derive(Debug)]
struct EndpointState<T> {
    manner: EndpointHealth,
    /// When its last attempt has ended, if one has.
    ended: Option<Instant>,
    under_way: usize,
    /// The one that was claimed first stands first; each is to begin before its time is over, or
    /// never.
    waiting: VecDeque<(Instant, T)>,
}

impl<T> EndpointState<T> {
    /// Of an endpoint that nothing is known of.
    const fn new() -> Self {
        Self {
            manner: EndpointHealth::Slow,
            ended: None,
            under_way: 0,
            waiting: VecDeque::new(),
        }
    }

    fn in_hand(&self) -> usize {
        self.under_way.saturating_add(self.waiting.len())
    }

    /// How much of the room for attempts it takes.
    fn taken(&self) -> usize {
        self.in_hand().min(MAX_PER_ENDPOINT)
    }

    /// How much it has beyond that.
    fn ahead(&self) -> usize {
        self.in_hand().saturating_sub(MAX_PER_ENDPOINT)
    }

    /// Is there anything to remember it for?
    fn is_of_use(&self, now: Instant) -> bool {
        let is_recent = |ended| now.saturating_duration_since(ended) < HEALTH_MEMORY;
        self.in_hand() > 0
            || match self.manner {
                EndpointHealth::Quick => self.ended.is_some_and(is_recent),
                EndpointHealth::Slow => false,
                EndpointHealth::Failed => true,
            }
    }

    /// Begins the next that waits, if there is room; one that has waited too long never is.
    fn begin(&mut self, now: Instant) -> Option<T> {
        if self.under_way >= self.manner.at_once() || self.is_stale(now) {
            return None;
        }
        let (_, next) = self.waiting.pop_front()?;
        self.under_way = self.under_way.saturating_add(1);
        Some(next)
    }

    fn is_stale(&self, now: Instant) -> bool {
        let first = self.waiting.front();
        first.is_some_and(|(until, _)| *until <= now)
    }
}

impl<T> InFlight<T> {
    /// Deliveries in hand.
    pub(crate) const fn in_hand(&self) -> usize {
        self.in_hand
    }

    /// Takes one on that is to begin until then, and soon; the first of its endpoint's that can be
    /// begun now.
    pub(crate) fn take(
        &mut self,
        endpoint: EndpointId,
        it: T,
        now: Instant,
        until: Instant,
    ) -> Option<T> {
        let standing = self
            .standings
            .entry(endpoint)
            .or_insert_with(EndpointState::new);
        let until = until.min(now + PREFETCH_TIMEOUT);
        standing.waiting.push_back((until, it));
        self.in_hand = self.in_hand.saturating_add(1);
        standing.begin(now)
    }

    /// One that was under way has ended, in this manner where anything was learnt of it.
    pub(crate) fn free(
        &mut self,
        endpoint: EndpointId,
        manner: Option<EndpointHealth>,
        now: Instant,
    ) {
        let Some(standing) = self.standings.get_mut(&endpoint) else {
            return;
        };
        standing.manner = manner.unwrap_or(standing.manner);
        standing.ended = Some(now);
        standing.under_way = standing.under_way.saturating_sub(1);
        self.in_hand = self.in_hand.saturating_sub(1);
        if !standing.is_of_use(now) {
            self.standings.remove(&endpoint);
        }
    }

    /// Begins the next of an endpoint's.
    pub(crate) fn begin_at(&mut self, endpoint: EndpointId, now: Instant) -> Option<T> {
        self.standings.get_mut(&endpoint)?.begin(now)
    }

    /// Begins the next of anybody's: an endpoint may have recovered.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<T> {
        self.standings.values_mut().find_map(|it| it.begin(now))
    }

    /// Gives up what has waited too long, and forgets whom there is nothing to remember for. Whoever
    /// has let it wait is not quick, until the next attempt shows that it is.
    pub(crate) fn give_up_stale(&mut self, now: Instant) -> Vec<T> {
        for standing in self.standings.values_mut() {
            if standing.manner == EndpointHealth::Quick && standing.is_stale(now) {
                standing.manner = EndpointHealth::Slow;
            }
        }
        let given_up = self.give_up(|standing| standing.is_stale(now));
        self.standings.retain(|_, standing| standing.is_of_use(now));
        given_up
    }

    /// Gives up everything that waits.
    pub(crate) fn give_up_all(&mut self) -> Vec<T> {
        self.give_up(|_| true)
    }

    fn give_up(&mut self, wanted: impl Fn(&EndpointState<T>) -> bool) -> Vec<T> {
        let mut given_up = Vec::new();
        for standing in self.standings.values_mut() {
            while wanted(standing)
                && let Some((_, it)) = standing.waiting.pop_front()
            {
                given_up.push(it);
            }
        }
        self.in_hand = self.in_hand.saturating_sub(given_up.len());
        given_up
    }

    /// What can be taken on.
    pub(crate) fn room(&self) -> ClaimCapacity {
        let (mut taken, mut taken_failing, mut ahead) = (0_usize, 0_usize, 0_usize);
        let mut room = ClaimCapacity {
            each: count(MAX_PER_ENDPOINT),
            ..ClaimCapacity::default()
        };
        for (endpoint, standing) in &self.standings {
            let at_once = standing.manner.at_once();
            let less = at_once.saturating_sub(standing.in_hand());
            room.less.insert(*endpoint, count(less));
            room.held.insert(*endpoint, count(standing.taken()));
            taken = taken.saturating_add(standing.taken());
            ahead = ahead.saturating_add(standing.ahead());
            match standing.manner {
                EndpointHealth::Quick => {
                    let more = MAX_PREFETCHED_PER_ENDPOINT.saturating_sub(standing.ahead());
                    room.ahead.insert(*endpoint, count(more));
                }
                EndpointHealth::Slow => {}
                EndpointHealth::Failed => {
                    room.failing.insert(*endpoint);
                    taken_failing = taken_failing.saturating_add(standing.taken());
                }
            }
        }
        room.total = count(MAX_IN_FLIGHT.saturating_sub(taken));
        room.total_failing = count(MAX_FAILING.saturating_sub(taken_failing));
        room.total_ahead = count(MAX_PREFETCHED.saturating_sub(ahead));
        room
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
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

    fn less(slots: &InFlight<u32>, number: u32) -> Option<u32> {
        slots.room().less.get(&endpoint(number)).copied()
    }

    fn ahead(slots: &InFlight<u32>, number: u32) -> Option<u32> {
        slots.room().ahead.get(&endpoint(number)).copied()
    }

    /// Takes on so many for an endpoint, and says which begin.
    fn take(slots: &mut InFlight<u32>, number: u32, many: u32) -> Vec<u32> {
        let now = Instant::now();
        let later = now + PREFETCH_TIMEOUT * 20;
        let taken = (0..many).filter_map(|it| slots.take(endpoint(number), it, now, later));
        taken.collect()
    }

    /// One ends in this manner; the one that begins instead.
    fn end(slots: &mut InFlight<u32>, number: u32, manner: EndpointHealth) -> Option<u32> {
        let now = Instant::now();
        slots.free(endpoint(number), Some(manner), now);
        slots.begin_at(endpoint(number), now)
    }

    // rule: webhook.isolation
    #[test]
    fn an_endpoint_has_a_bounded_share() {
        let mut slots = InFlight::default();
        assert_eq!((slots.room().total, slots.room().each), (512, 32));
        assert_eq!(take(&mut slots, 1, 32).len(), 32);
        assert_eq!((slots.room().total, less(&slots, 1)), (480, Some(0)));
        assert_eq!(end(&mut slots, 1, EndpointHealth::Slow), None);
        assert_eq!((slots.room().total, less(&slots, 1)), (481, Some(1)));
        assert_eq!((less(&slots, 2), ahead(&slots, 1)), (None, None));
        for _ in 0..40 {
            end(&mut slots, 1, EndpointHealth::Slow);
        }
        assert_eq!(
            (slots.room(), slots.in_hand()),
            (InFlight::<u32>::default().room(), 0)
        );
    }

    // rule: webhook.isolation
    #[test]
    fn one_that_fails_is_tried_one_by_one_until_it_takes_something() {
        let mut slots = InFlight::default();
        take(&mut slots, 1, 1);
        end(&mut slots, 1, EndpointHealth::Failed);
        assert_eq!(less(&slots, 1), Some(1));
        assert_eq!(take(&mut slots, 1, 3), [0], "two wait");
        assert_eq!((less(&slots, 1), ahead(&slots, 1)), (Some(0), None));
        assert_eq!(end(&mut slots, 1, EndpointHealth::Failed), Some(1));
        assert_eq!(slots.begin(Instant::now()), None);
        take(&mut slots, 1, 2);
        assert_eq!(end(&mut slots, 1, EndpointHealth::Quick), Some(2));
        assert_eq!(slots.begin(Instant::now()), Some(0), "the rest may begin");
        assert_eq!(slots.begin(Instant::now()), Some(1));
        assert_eq!(less(&slots, 1), Some(29));
    }

    // rule: webhook.isolation
    #[test]
    fn those_that_fail_leave_half_to_the_others() {
        let mut slots = InFlight::default();
        for number in 0..300 {
            take(&mut slots, number, 1);
            end(&mut slots, number, EndpointHealth::Failed);
        }
        let room = slots.room();
        assert_eq!((room.total, room.total_failing), (512, 256));
        assert_eq!(room.failing.len(), 300);
        for number in 0..256 {
            assert_eq!(less(&slots, number), Some(1));
            take(&mut slots, number, 1);
        }
        let room = slots.room();
        assert_eq!((room.total, room.total_failing), (256, 0));
        assert_eq!((less(&slots, 299), less(&slots, 300)), (Some(1), None));
        end(&mut slots, 0, EndpointHealth::Failed);
        assert_eq!(slots.room().total_failing, 1);
    }

    // rule: webhook.isolation
    #[test]
    fn only_a_quick_one_has_some_wait_their_turn() {
        let mut slots = InFlight::default();
        take(&mut slots, 1, 2);
        end(&mut slots, 1, EndpointHealth::Quick);
        assert_eq!((less(&slots, 1), ahead(&slots, 1)), (Some(31), Some(224)));
        assert_eq!(take(&mut slots, 1, 255).len(), 31);
        assert_eq!((less(&slots, 1), ahead(&slots, 1)), (Some(0), Some(0)));
        assert_eq!((slots.room().total, slots.in_hand()), (480, 256));
        assert_eq!(
            end(&mut slots, 1, EndpointHealth::Slow),
            Some(31),
            "in their order"
        );
        assert_eq!((less(&slots, 1), ahead(&slots, 1)), (Some(0), None));
    }

    // rule: webhook.fair
    #[test]
    fn what_waits_is_counted_for_all_together() {
        let mut slots = InFlight::default();
        for number in 0..16 {
            take(&mut slots, number, 2);
            end(&mut slots, number, EndpointHealth::Quick);
        }
        assert_eq!(slots.room().total_ahead, 512);
        assert_eq!(ahead(&slots, 15), Some(224));
        for number in 0..16 {
            take(&mut slots, number, 63);
        }
        let room = slots.room();
        assert_eq!((room.total, room.total_ahead), (0, 0));
        assert_eq!(ahead(&slots, 15), Some(192));
        assert_eq!(slots.in_hand(), 1024);
    }

    /// Each takes what it may have as it turns out to be quick; the last find little left.
    // rule: webhook.isolation
    #[test]
    fn what_waits_is_bounded_however_many_are_quick() {
        let mut slots = InFlight::default();
        for number in 0..100 {
            take(&mut slots, number, 1);
            end(&mut slots, number, EndpointHealth::Quick);
            take(&mut slots, number, 32);
            end(&mut slots, number, EndpointHealth::Quick);
            let may = ahead(&slots, number).unwrap();
            let may = may.min(slots.room().total_ahead);
            take(&mut slots, number, 1 + may);
        }
        assert!(slots.in_hand() <= 100 * 32 + 512, "{}", slots.in_hand());
        assert_eq!(slots.room().total_ahead, 0);
    }

    /// Between two claims of a burst everything may have ended.
    // rule: webhook.isolation
    #[test]
    fn a_quick_one_is_known_for_a_while_with_nothing_in_hand() {
        let mut slots = InFlight::default();
        let now = Instant::now();
        for (number, manner) in [
            (1, EndpointHealth::Quick),
            (2, EndpointHealth::Slow),
            (3, EndpointHealth::Failed),
        ] {
            take(&mut slots, number, 1);
            slots.free(endpoint(number), Some(manner), now);
        }
        assert_eq!((slots.in_hand(), less(&slots, 1)), (0, Some(32)));
        assert_eq!(ahead(&slots, 1), Some(224));
        assert_eq!((less(&slots, 2), less(&slots, 3)), (None, Some(1)));
        assert!(slots.give_up_stale(now + HEALTH_MEMORY / 2).is_empty());
        assert_eq!(ahead(&slots, 1), Some(224));
        assert!(slots.give_up_stale(now + HEALTH_MEMORY).is_empty());
        assert_eq!((less(&slots, 1), ahead(&slots, 1)), (None, None));
        assert_eq!(less(&slots, 3), Some(1));
    }

    /// It was quick, and falls silent: nothing more is taken on ahead for it.
    // rule: webhook.isolation
    #[test]
    fn one_that_lets_something_wait_too_long_is_not_quick() {
        let mut slots = InFlight::default();
        take(&mut slots, 1, 1);
        end(&mut slots, 1, EndpointHealth::Quick);
        assert_eq!(take(&mut slots, 1, 40).len(), 32);
        assert_eq!(ahead(&slots, 1), Some(216));
        assert_eq!(
            slots.give_up_stale(Instant::now() + PREFETCH_TIMEOUT).len(),
            8
        );
        assert_eq!((less(&slots, 1), ahead(&slots, 1)), (Some(0), None));
        end(&mut slots, 1, EndpointHealth::Quick);
        assert_eq!((less(&slots, 1), ahead(&slots, 1)), (Some(1), Some(224)));
    }

    /// A store that took its time over the claim has used up the lease.
    // rule: webhook.lease
    #[test]
    fn what_comes_too_late_is_never_begun() {
        let mut slots = InFlight::default();
        let now = Instant::now();
        assert_eq!(slots.take(endpoint(1), 1, now, now), None);
        assert_eq!((slots.begin(now), slots.in_hand()), (None, 1));
        assert_eq!(slots.give_up_stale(now), [1]);
        let soon = now + Duration::from_millis(1);
        assert_eq!(slots.take(endpoint(1), 2, now, soon), Some(2));
    }

    // rule: webhook.lease, webhook.isolation
    #[test]
    fn what_has_waited_too_long_is_given_up_and_never_begun() {
        let mut slots = InFlight::default();
        let claimed = Instant::now();
        assert_eq!(take(&mut slots, 1, 40).len(), 32);
        slots.free(endpoint(1), None, claimed);
        let waits = claimed + PREFETCH_TIMEOUT - Duration::from_millis(100);
        assert!(slots.give_up_stale(waits).is_empty());
        assert_eq!(slots.begin_at(endpoint(1), waits), Some(32));
        slots.free(endpoint(1), None, claimed);
        let waited = Instant::now() + PREFETCH_TIMEOUT;
        assert_eq!(slots.begin_at(endpoint(1), waited), None);
        assert_eq!(slots.begin(waited), None);
        let given_up = slots.give_up_stale(waited);
        assert_eq!(given_up, (33..40).collect::<Vec<_>>());
        assert_eq!((slots.in_hand(), less(&slots, 1)), (31, Some(1)));
    }

    // rule: webhook.hand-back
    #[test]
    fn everything_that_waits_can_be_given_up() {
        let mut slots = InFlight::default();
        take(&mut slots, 1, 40);
        take(&mut slots, 2, 33);
        assert_eq!(slots.give_up_all().len(), 9);
        assert_eq!((slots.in_hand(), slots.begin(Instant::now())), (64, None));
    }
}
