//! Which endpoints get how much of a worker's room.
//!
//! The room for attempts is divided between the endpoints that have something due, so that one
//! with a million deliveries waiting, or one that never answers, takes the place of no other. What
//! a worker takes on ahead, to wait its turn, comes on top of that and takes nobody's room.

use std::collections::BTreeMap;

use kernel::Timestamp;

use crate::PartnerId;
use crate::events::EndpointId;

/// What a worker can take on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// Deliveries in all that are begun at once.
    pub total: u32,
    /// Those to one endpoint.
    pub each: u32,
    /// The endpoints that have less room than that, and how much.
    pub less: BTreeMap<EndpointId, u32>,
    /// What may be taken on ahead, beyond what is begun at once, by endpoint.
    pub ahead: BTreeMap<EndpointId, u32>,
}

impl Room {
    /// The most that one endpoint can be given.
    #[must_use]
    pub fn most(&self, endpoint: EndpointId) -> u32 {
        self.at_once(endpoint).saturating_add(self.ahead(endpoint))
    }

    fn at_once(&self, endpoint: EndpointId) -> u32 {
        self.less
            .get(&endpoint)
            .map_or(self.each, |less| self.each.min(*less))
    }

    fn ahead(&self, endpoint: EndpointId) -> u32 {
        self.ahead.get(&endpoint).copied().unwrap_or_default()
    }
}

/// An endpoint that has something due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Whose endpoint it is.
    pub partner: PartnerId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Since when the first of its deliveries is due.
    pub since: Timestamp,
}

/// How many deliveries each endpoint gets. With less room than endpoints, those that have waited
/// longest get one each; with more, the room goes round evenly, and what one endpoint has no room
/// for goes to the others. Who gets all it can begin gets what it may have ahead too.
#[must_use]
pub fn allot(queues: Vec<Queue>, room: &Room) -> Vec<(Queue, u32)> {
    let (open, full): (Vec<Queue>, Vec<Queue>) = queues
        .into_iter()
        .partition(|queue| room.at_once(queue.endpoint) > 0);
    let mut allotted = divide(open, room);
    allotted.extend(full.into_iter().map(|queue| (queue, 0)));
    for (queue, take) in &mut allotted {
        if *take == room.at_once(queue.endpoint) {
            *take = take.saturating_add(room.ahead(queue.endpoint));
        }
    }
    allotted.retain(|(_, take)| *take > 0);
    allotted
}

/// Divides the room for what is begun at once; each of the queues has some of its own.
fn divide(mut queues: Vec<Queue>, room: &Room) -> Vec<(Queue, u32)> {
    queues.sort_by_key(|queue| (queue.since, queue.endpoint));
    queues.truncate(usize::try_from(room.total).unwrap_or(usize::MAX));
    queues.sort_by_key(|queue| room.at_once(queue.endpoint));
    let mut left = room.total;
    let mut queues_left = u32::try_from(queues.len()).unwrap_or(u32::MAX);
    let mut divided = Vec::with_capacity(queues.len());
    for queue in queues {
        let share = left.checked_div(queues_left).unwrap_or(left);
        let take = share.min(room.at_once(queue.endpoint));
        left = left.saturating_sub(take);
        queues_left = queues_left.saturating_sub(1);
        divided.push((queue, take));
    }
    divided
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
    fn queue(number: u8, since: i64) -> Queue {
        Queue {
            partner: PartnerId::parse("acme").unwrap(),
            endpoint: endpoint(number),
            since: Timestamp::from_millis(since).unwrap(),
        }
    }

    fn by_endpoint(rooms: &[(u8, u32)]) -> BTreeMap<EndpointId, u32> {
        let rooms = rooms.iter();
        rooms.map(|(it, room)| (endpoint(*it), *room)).collect()
    }

    fn room(total: u32, each: u32, less: &[(u8, u32)]) -> Room {
        Room {
            total,
            each,
            less: by_endpoint(less),
            ..Room::default()
        }
    }

    fn takes(queues: &[(u8, i64)], room: &Room) -> Vec<(u8, u32)> {
        let list = queues.iter().map(|(number, since)| queue(*number, *since));
        let mut takes: Vec<(u8, u32)> = allot(list.collect(), room)
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
    fn the_room_is_divided_evenly_and_used_up() {
        let both = [(1, 5), (2, 9)];
        assert_eq!(takes(&both, &room(10, 32, &[])), [(1, 5), (2, 5)]);
        assert_eq!(takes(&both, &room(10, 32, &[(1, 2)])), [(1, 2), (2, 8)]);
        assert_eq!(takes(&both, &room(10, 32, &[(1, 0)])), [(2, 10)]);
        assert_eq!(takes(&both, &room(100, 32, &[])), [(1, 32), (2, 32)]);
        assert_eq!(takes(&both, &room(0, 32, &[])), []);
        assert_eq!(takes(&[], &room(10, 32, &[])), []);
    }

    // rule: webhook.fair
    #[test]
    fn short_of_room_who_has_waited_longest_is_served() {
        let three = [(1, 9), (2, 5), (3, 7)];
        assert_eq!(takes(&three, &room(2, 32, &[])), [(2, 1), (3, 1)]);
    }

    // rule: webhook.fair
    #[test]
    fn what_is_ahead_takes_nobodys_room() {
        let three = [(1, 5), (2, 7), (3, 9)];
        let ahead = by_endpoint(&[(1, 40), (2, 40), (4, 40)]);
        let mut room = room(40, 32, &[(1, 0)]);
        room.ahead = ahead;
        let takes_of = |room: &Room| takes(&three, room);
        assert_eq!(takes_of(&room), [(1, 40), (2, 20), (3, 20)]);
        assert_eq!((room.most(endpoint(1)), room.most(endpoint(2))), (40, 72));
        room.total = 64;
        assert_eq!(takes_of(&room), [(1, 40), (2, 72), (3, 32)]);
        room.total = 0;
        assert_eq!(takes_of(&room), [(1, 40)]);
    }

    proptest! {
        #[test]
        fn never_more_than_there_is_and_never_less_than_can_be(
            total in 0_u32..200,
            each in 1_u32..40,
            less in proptest::collection::vec(0_u32..50, 0..20),
        ) {
            let less: Vec<(u8, u32)> = (0_u8..).zip(less).collect();
            let room = room(total, each, &less);
            let queues: Vec<Queue> = (0..30).map(|number| queue(number, i64::from(number))).collect();
            let could: u32 = queues.iter().map(|queue| room.at_once(queue.endpoint)).sum();
            let allotted = allot(queues, &room);
            let taken: u32 = allotted.iter().map(|(_, take)| take).sum();
            prop_assert_eq!(taken, could.min(total));
            for (queue, take) in &allotted {
                prop_assert!((1..=room.at_once(queue.endpoint)).contains(take));
            }
        }
    }
}
