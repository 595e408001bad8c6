//! Which endpoints get how much of a worker's room.
//!
//! The room for attempts is divided between the endpoints that have something due, so that one
//! with a million deliveries waiting, or one that never answers, takes the place of no other. What
//! a worker takes on ahead, to wait its turn, comes on top of that and takes nobody's room.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Timestamp;

use crate::PartnerId;
use crate::events::EndpointId;

/// An endpoint is given no more where it has as much in hand as this part of what is left free: so
/// however many are busy, and for however long, there is room for the next one.
const SPARE: u32 = 4;

/// What a worker can take on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimCapacity {
    /// Deliveries in all that are begun at once.
    pub total: u32,
    /// Those to one endpoint.
    pub each: u32,
    /// The endpoints that have less room than that, and how much.
    pub less: BTreeMap<EndpointId, u32>,
    /// How much of the room the endpoints have that have some.
    pub held: BTreeMap<EndpointId, u32>,
    /// The endpoints that have failed last, and how much of the room they are given together.
    pub failing: BTreeSet<EndpointId>,
    /// See there.
    pub total_failing: u32,
    /// What may be taken on ahead, beyond what is begun at once, by endpoint.
    pub ahead: BTreeMap<EndpointId, u32>,
    /// And by all of them together.
    pub total_ahead: u32,
}

impl ClaimCapacity {
    /// How much of an endpoint's can be begun at once.
    #[must_use]
    pub fn at_once(&self, endpoint: EndpointId) -> u32 {
        self.less
            .get(&endpoint)
            .map_or(self.each, |less| self.each.min(*less))
    }

    fn held(&self, endpoint: EndpointId) -> u32 {
        self.held.get(&endpoint).copied().unwrap_or_default()
    }

    fn ahead(&self, endpoint: EndpointId) -> u32 {
        self.ahead.get(&endpoint).copied().unwrap_or_default()
    }
}

/// An endpoint that has something due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueEndpoint {
    /// Whose endpoint it is.
    pub partner: PartnerId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Since when the first of its deliveries is due.
    pub since: Timestamp,
}

/// How many deliveries each endpoint gets. The room goes one by one to whoever has least in hand,
/// and of those to who has waited longest; what one endpoint has no room for goes to the others.
/// Those who get all they can begin share what may be had ahead.
#[must_use]
pub fn allocate(queues: Vec<DueEndpoint>, room: &ClaimCapacity) -> Vec<(DueEndpoint, u32)> {
    let mut takes = divide(&queues, room);
    for (endpoint, ahead) in divide_ahead(&queues, &takes, room) {
        let take = takes.entry(endpoint).or_default();
        *take = take.saturating_add(ahead);
    }
    let allotted = queues.into_iter().map(|queue| {
        let take = takes.get(&queue.endpoint).copied().unwrap_or_default();
        (queue, take)
    });
    allotted.filter(|(_, take)| *take > 0).collect()
}

/// Divides what may be had ahead: evenly, but what one may not have goes to the others.
fn divide_ahead(
    queues: &[DueEndpoint],
    takes: &BTreeMap<EndpointId, u32>,
    room: &ClaimCapacity,
) -> Vec<(EndpointId, u32)> {
    let take = |endpoint| takes.get(&endpoint).copied().unwrap_or_default();
    let endpoints = queues.iter().map(|queue| queue.endpoint);
    let mut asking: Vec<(u32, EndpointId)> = endpoints
        .filter(|endpoint| take(*endpoint) == room.at_once(*endpoint))
        .map(|endpoint| (room.ahead(endpoint), endpoint))
        .collect();
    // Who may have least comes first, so the others' shares are known to be used.
    asking.sort_unstable();
    let mut left = room.total_ahead;
    let mut others = u32::try_from(asking.len()).unwrap_or(u32::MAX);
    let shares = asking.into_iter().map(|(most, endpoint)| {
        let share = most.min(left.checked_div(others).unwrap_or_default());
        left = left.saturating_sub(share);
        others = others.saturating_sub(1);
        (endpoint, share)
    });
    shares.collect()
}

/// Divides the room for what is begun at once.
fn divide(queues: &[DueEndpoint], room: &ClaimCapacity) -> BTreeMap<EndpointId, u32> {
    let open = queues.iter().filter(|it| room.at_once(it.endpoint) > 0);
    let mut asking: BTreeSet<(u32, Timestamp, EndpointId)> = open
        .map(|queue| (room.held(queue.endpoint), queue.since, queue.endpoint))
        .collect();
    let mut left = room.total;
    let mut left_failing = room.total_failing;
    let mut takes: BTreeMap<EndpointId, u32> = BTreeMap::new();
    while let Some((held, since, endpoint)) = asking.pop_first() {
        // The others have as much in hand, or more.
        if left == 0 || (held > 0 && held >= left / SPARE) {
            break;
        }
        if room.failing.contains(&endpoint) {
            if left_failing == 0 {
                continue;
            }
            left_failing = left_failing.saturating_sub(1);
        }
        left = left.saturating_sub(1);
        let take = takes.entry(endpoint).or_default();
        *take = take.saturating_add(1);
        if *take < room.at_once(endpoint) {
            asking.insert((held.saturating_add(1), since, endpoint));
        }
    }
    takes
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
    fn queue(number: u8, since: i64) -> DueEndpoint {
        DueEndpoint {
            partner: PartnerId::parse("acme").unwrap(),
            endpoint: endpoint(number),
            since: Timestamp::from_millis(since).unwrap(),
        }
    }

    fn by_endpoint(rooms: &[(u8, u32)]) -> BTreeMap<EndpointId, u32> {
        let rooms = rooms.iter();
        rooms.map(|(it, room)| (endpoint(*it), *room)).collect()
    }

    fn room(total: u32, each: u32, less: &[(u8, u32)]) -> ClaimCapacity {
        ClaimCapacity {
            total,
            each,
            less: by_endpoint(less),
            ..ClaimCapacity::default()
        }
    }

    fn takes(queues: &[(u8, i64)], room: &ClaimCapacity) -> Vec<(u8, u32)> {
        let list = queues.iter().map(|(number, since)| queue(*number, *since));
        let mut takes: Vec<(u8, u32)> = allocate(list.collect(), room)
            .into_iter()
            .map(|(queue, take)| {
                let known = queues.iter().map(|(number, _)| *number);
                let number = known.clone().find(|one| endpoint(*one) == queue.endpoint);
                (number.unwrap(), take)
            })
            .collect();
        takes.sort_unstable();
        takes
    }

    // rule: webhook.fair
    #[test]
    fn the_room_is_divided_evenly() {
        let both = [(1, 5), (2, 9)];
        assert_eq!(takes(&both, &room(200, 32, &[])), [(1, 32), (2, 32)]);
        assert_eq!(takes(&both, &room(200, 32, &[(1, 2)])), [(1, 2), (2, 32)]);
        assert_eq!(takes(&both, &room(200, 32, &[(1, 0)])), [(2, 32)]);
        assert_eq!(takes(&both, &room(60, 32, &[])), [(1, 10), (2, 10)]);
        assert_eq!(takes(&both, &room(60, 32, &[(1, 2)])), [(1, 2), (2, 11)]);
        assert_eq!(takes(&both, &room(0, 32, &[])), []);
        assert_eq!(takes(&[], &room(10, 32, &[])), []);
    }

    // rule: webhook.fair
    #[test]
    fn short_of_room_who_has_waited_longest_is_served() {
        let three = [(1, 9), (2, 5), (3, 7)];
        assert_eq!(takes(&three, &room(2, 32, &[])), [(2, 1), (3, 1)]);
    }

    /// However long the others have waited, and however much is due for them.
    // rule: webhook.fair, webhook.isolation
    #[test]
    fn who_has_nothing_in_hand_comes_first() {
        let three = [(1, 5), (2, 7), (3, 9)];
        let mut room = room(2, 32, &[(1, 2), (2, 2)]);
        room.held = by_endpoint(&[(1, 30), (2, 30)]);
        assert_eq!(takes(&three, &room), [(3, 1)]);
        room.total = 0;
        assert_eq!(takes(&three, &room), []);
    }

    /// They come again and again, and find nothing more.
    // rule: webhook.fair, webhook.isolation
    #[test]
    fn the_busy_leave_room_for_the_next() {
        let busy: Vec<(u8, i64)> = (0..100).map(|number| (number, 5)).collect();
        let mut room = room(512, 32, &[]);
        for turn in 0..3 {
            for (number, take) in takes(&busy, &room) {
                assert_eq!((turn, take), (0, 4 + u32::from(number < 93)));
                room.total -= take;
                room.held.insert(endpoint(number), take);
                room.less.insert(endpoint(number), 32 - take);
            }
            assert_eq!(room.total, 19);
        }
        assert_eq!(takes(&[(0, 5), (200, 9)], &room), [(200, 4)]);
    }

    /// However many of them are due at once.
    // rule: webhook.isolation
    #[test]
    fn the_failing_get_no_more_than_their_part() {
        let many: Vec<(u8, i64)> = (0..100).map(|number| (number, 5)).collect();
        let mut room = room(512, 1, &[]);
        room.failing = (10..100).map(endpoint).collect();
        room.total_failing = 30;
        let takes = takes(&many, &room);
        assert_eq!(takes.len(), 40);
        assert!(
            takes
                .iter()
                .take(10)
                .eq(&(0..10).map(|it| (it, 1)).collect::<Vec<_>>())
        );
    }

    // rule: webhook.fair
    #[test]
    fn what_is_ahead_takes_nobodys_room() {
        let three = [(1, 5), (2, 7), (3, 9)];
        let ahead = by_endpoint(&[(1, 40), (2, 40), (4, 40)]);
        let mut room = room(60, 32, &[(1, 0)]);
        (room.ahead, room.total_ahead) = (ahead, 512);
        let takes_of = |room: &ClaimCapacity| takes(&three, room);
        assert_eq!(takes_of(&room), [(1, 40), (2, 10), (3, 10)]);
        room.total = 200;
        assert_eq!(takes_of(&room), [(1, 40), (2, 72), (3, 32)]);
        room.total = 0;
        assert_eq!(takes_of(&room), [(1, 40)]);
    }

    /// Those that have nothing due, or have not got all they can begin, have no part in it.
    // rule: webhook.fair
    #[test]
    fn what_may_be_had_ahead_is_shared_by_those_who_can_use_it() {
        let mut room = room(200, 32, &[(1, 0), (2, 0)]);
        let quick: Vec<(u8, u32)> = (1..=20).map(|number| (number, 40)).collect();
        (room.ahead, room.total_ahead) = (by_endpoint(&quick), 51);
        let three = [(1, 5), (2, 7), (3, 9)];
        assert_eq!(takes(&three, &room), [(1, 17), (2, 17), (3, 32 + 17)]);
        room.ahead.insert(endpoint(1), 5);
        assert_eq!(takes(&three, &room), [(1, 5), (2, 23), (3, 32 + 23)]);
        room.total = 0;
        assert_eq!(takes(&three, &room), [(1, 5), (2, 40)]);
        room.total_ahead = 1;
        assert_eq!(takes(&three, &room), [(2, 1)]);
    }

    proptest! {
        #[test]
        fn never_more_than_there_is_and_never_nobody(
            total in 0_u32..200,
            each in 1_u32..40,
            less in proptest::collection::vec((0_u32..50, 0_u32..40), 0..20),
            ahead in proptest::collection::vec(0_u32..300, 0..30),
            total_ahead in 0_u32..600,
        ) {
            let (less, held): (Vec<u32>, Vec<u32>) = less.into_iter().unzip();
            let less: Vec<(u8, u32)> = (0_u8..).zip(less).collect();
            let held: Vec<(u8, u32)> = (0_u8..).zip(held).collect();
            let mut room = room(total, each, &less);
            room.held = by_endpoint(&held);
            let queues: Vec<DueEndpoint> = (0..30).map(|number| queue(number, i64::from(number))).collect();
            let idle = queues.iter().filter(|it| room.held(it.endpoint) == 0 && room.at_once(it.endpoint) > 0);
            let idle: Vec<EndpointId> = idle.map(|queue| queue.endpoint).collect();
            let at_once = allocate(queues.clone(), &room);
            let taken: u32 = at_once.iter().map(|(_, take)| take).sum();
            prop_assert!(taken <= total);
            let mut served = 0;
            for (queue, take) in &at_once {
                prop_assert!((1..=room.at_once(queue.endpoint)).contains(take));
                let holds = room.held(queue.endpoint) + take;
                prop_assert!(holds == 1 || holds <= (total - taken + 1) / SPARE);
                served += usize::from(idle.contains(&queue.endpoint));
            }
            prop_assert_eq!(served, idle.len().min(usize::try_from(total).unwrap()));

            let ahead: Vec<(u8, u32)> = (0_u8..).zip(ahead).collect();
            (room.ahead, room.total_ahead) = (by_endpoint(&ahead), total_ahead);
            let began: BTreeMap<EndpointId, u32> = at_once.into_iter().map(|(queue, take)| (queue.endpoint, take)).collect();
            let (mut given, mut wanted) = (0, 0);
            let with_ahead: BTreeMap<EndpointId, u32> = allocate(queues.clone(), &room).into_iter().map(|(queue, take)| (queue.endpoint, take)).collect();
            for queue in &queues {
                let of = |takes: &BTreeMap<EndpointId, u32>| takes.get(&queue.endpoint).copied().unwrap_or_default();
                let more = of(&with_ahead) - of(&began);
                let may = if of(&began) == room.at_once(queue.endpoint) { room.ahead(queue.endpoint) } else { 0 };
                prop_assert!(more <= may);
                given += more;
                wanted += may;
            }
            prop_assert_eq!(given, wanted.min(total_ahead), "all that is wanted and there");
        }
    }
}
