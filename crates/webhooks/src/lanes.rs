//! Attempts under way. A lane makes one after another for an endpoint, as long as something waits
//! there; the worker picks up what came of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use partner_core::events::EndpointId;
use partner_core::ports::{ClaimedDelivery, ConcludedDelivery};
use partner_core::webhooks::fairness::ClaimCapacity;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::attempt::{AttemptReport, Attempts, EndpointTarget};
use crate::slots::{EndpointHealth, InFlight};

/// A delivery in hand.
pub(crate) struct InFlightDelivery {
    pub(crate) claimed: ClaimedDelivery,
    /// What goes for every delivery of its claim to the same endpoint; absent, with the reason,
    /// where nothing can be sent there.
    pub(crate) terms: Arc<Result<EndpointTarget, String>>,
    token: u64,
}

impl InFlightDelivery {
    fn concluded(self, made: AttemptReport) -> ConcludedDelivery {
        ConcludedDelivery {
            tenant: self.claimed.tenant,
            id: self.claimed.id,
            token: self.token,
            ending: made.ending,
            response_status: made.status,
            error: made.error,
        }
    }

    fn handed_back(self) -> ConcludedDelivery {
        self.concluded(AttemptReport::HANDED_BACK)
    }
}

/// How much has ended and was not picked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Nothing,
    Some,
    /// As much as is left in hand, or more.
    Half,
    /// Nothing is left in hand.
    All,
}

/// The lanes of a worker, and all that it has in hand.
pub(crate) struct Lanes {
    attempts: Attempts,
    hand: Mutex<Hand>,
    rung: Notify,
}

#[derive(Default)]
struct Hand {
    slots: InFlight<InFlightDelivery>,
    ended: Vec<ConcludedDelivery>,
}

impl Hand {
    fn ended(&self) -> Ended {
        match (self.ended.len(), self.slots.in_hand()) {
            (0, _) => Ended::Nothing,
            (_, 0) => Ended::All,
            (ended, left) if ended >= left => Ended::Half,
            _ => Ended::Some,
        }
    }

    fn give_up_stale(&mut self, now: Instant) {
        let stale = self.slots.give_up_stale(now);
        self.ended
            .extend(stale.into_iter().map(InFlightDelivery::handed_back));
    }

    fn give_up_all(&mut self) {
        let waiting = self.slots.give_up_all();
        self.ended
            .extend(waiting.into_iter().map(InFlightDelivery::handed_back));
    }
}

impl Lanes {
    pub(crate) fn new(attempts: Attempts) -> Arc<Self> {
        Arc::new(Self {
            attempts,
            hand: Mutex::default(),
            rung: Notify::new(),
        })
    }

    pub(crate) fn room(&self) -> ClaimCapacity {
        self.hand.lock().slots.room()
    }

    pub(crate) fn ended(&self) -> Ended {
        self.hand.lock().ended()
    }

    pub(crate) fn are_empty(&self) -> bool {
        self.hand.lock().slots.in_hand() == 0
    }

    /// Waits until [`Self::ended`] may have changed.
    pub(crate) async fn rung(&self) {
        self.rung.notified().await;
    }

    pub(crate) fn pick_up(&self) -> Vec<ConcludedDelivery> {
        std::mem::take(&mut self.hand.lock().ended)
    }

    /// Takes on what was claimed under this token and may begin until then, and begins as much of
    /// it as can begin.
    pub(crate) fn take_on(
        self: &Arc<Self>,
        claimed: Vec<ClaimedDelivery>,
        token: u64,
        until: Instant,
        tasks: &mut JoinSet<()>,
    ) {
        let now = Instant::now();
        let mut terms = BTreeMap::new();
        for claimed in claimed {
            let endpoint = claimed.endpoint.id;
            let terms = terms
                .entry(endpoint)
                .or_insert_with(|| Arc::new(self.attempts.terms(&claimed.endpoint)));
            let held = InFlightDelivery {
                terms: Arc::clone(terms),
                claimed,
                token,
            };
            let first = self.hand.lock().slots.take(endpoint, held, now, until);
            if let Some(first) = first {
                tasks.spawn(self.under_way(first).lane());
            }
        }
    }

    /// Hands back what has waited too long, and begins what has room again.
    pub(crate) fn tidy(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        let now = Instant::now();
        self.hand.lock().give_up_stale(now);
        loop {
            let next = self.hand.lock().slots.begin(now);
            let Some(next) = next else {
                break;
            };
            tasks.spawn(self.under_way(next).lane());
        }
        self.attempts.tidy();
    }

    /// Hands back all that waits.
    pub(crate) fn hand_back(&self) {
        self.hand.lock().give_up_all();
    }

    fn under_way(self: &Arc<Self>, held: InFlightDelivery) -> UnderWay {
        UnderWay {
            lanes: Arc::clone(self),
            endpoint: held.claimed.endpoint.id,
            held: Some(held),
        }
    }

    /// Tells the worker of the first that has ended, and when there is much to be recorded.
    fn ring(&self, hand: &Hand) {
        if hand.ended.len() == 1 || hand.ended() != Ended::Some {
            self.rung.notify_one();
        }
    }
}

/// A delivery of which an attempt is being made.
struct UnderWay {
    lanes: Arc<Lanes>,
    endpoint: EndpointId,
    /// Until the attempt has ended.
    held: Option<InFlightDelivery>,
}

impl UnderWay {
    /// Makes this attempt, then whatever begins in its place, and so on.
    async fn lane(self) {
        let mut next = Some(self);
        while let Some(under_way) = next {
            next = under_way.make().await;
        }
    }

    /// Makes the attempt; what begins in its place.
    async fn make(mut self) -> Option<Self> {
        let (made, manner) = self.lanes.attempts.make(self.held.as_ref()?).await;
        let ended = self.held.take()?.concluded(made);
        let now = Instant::now();
        let mut hand = self.lanes.hand.lock();
        hand.ended.push(ended);
        hand.slots.free(self.endpoint, Some(manner), now);
        let next = hand.slots.begin_at(self.endpoint, now);
        self.lanes.ring(&hand);
        drop(hand);
        next.map(|next| self.lanes.under_way(next))
    }
}

impl Drop for UnderWay {
    /// Broken off, it is handed back. One that has panicked keeps its lease: nothing is known of it,
    /// and at once is no good time to try what has just panicked again.
    fn drop(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        let now = Instant::now();
        let mut hand = self.lanes.hand.lock();
        if thread::panicking() {
            tracing::error!(delivery.id = %held.claimed.id, "An attempt to deliver has panicked");
            hand.slots
                .free(self.endpoint, Some(EndpointHealth::Failed), now);
        } else {
            hand.slots.free(self.endpoint, None, now);
            hand.ended.push(held.handed_back());
        }
        self.lanes.ring(&hand);
    }
}
