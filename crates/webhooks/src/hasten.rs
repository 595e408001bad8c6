//! When the worker asks the store to hasten what waits for an endpoint.
//!
//! An endpoint may refuse one delivery forever and accept all others. The pause between requests grows
//! while hastened deliveries fail, so such a delivery is not sent again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use partner_core::Tenant;
use partner_core::events::EndpointId;
use partner_core::ports::ClaimedDelivery;
use partner_core::webhooks::delivery::AttemptOutcome;
use tokio::time::Instant;

/// The pause between two requests for an endpoint. It doubles after each request whose deliveries fail.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10 * 60);
/// How long after its last request an endpoint with a longer pause is remembered.
const MEMORY: Duration = Duration::from_secs(20 * 60);
/// Deliveries that a request hastens.
const MAX_HASTENED: u32 = 1_000;
/// Requests in one turn of the worker, so that claims do not wait for many of them.
const MAX_REQUESTS: usize = 8;

/// The end of an attempt that matters for hastening.
#[derive(Debug, Clone)]
pub(crate) struct AttemptEnd {
    tenant: Tenant,
    endpoint: EndpointId,
    is_hastened: bool,
    is_delivered: bool,
}

impl AttemptEnd {
    /// `None` if the end does not matter: the delivery was not hastened and the endpoint did not
    /// accept it, or no attempt was completed.
    pub(crate) fn of(claimed: &ClaimedDelivery, outcome: AttemptOutcome) -> Option<Self> {
        let is_hastened = claimed.former.is_some();
        let is_delivered = match outcome {
            AttemptOutcome::Delivered => true,
            AttemptOutcome::RetryAfter(_) | AttemptOutcome::GivenUp if is_hastened => false,
            AttemptOutcome::RetryAfter(_) | AttemptOutcome::GivenUp | AttemptOutcome::Released => {
                return None;
            }
        };
        Some(Self {
            tenant: claimed.tenant.clone(),
            endpoint: claimed.endpoint.id,
            is_hastened,
            is_delivered,
        })
    }
}

#[derive(Debug)]
struct EndpointPace {
    tenant: Tenant,
    /// Whether the endpoint has accepted a delivery since the last request.
    has_accepted: bool,
    /// Whether a hastened delivery has failed since the last request.
    has_failed: bool,
    /// Whether the last request hastened as many deliveries as it may.
    has_more: bool,
    /// The last request.
    asked: Option<Instant>,
    pause: Duration,
}

impl EndpointPace {
    const fn new(tenant: Tenant) -> Self {
        Self {
            tenant,
            has_accepted: false,
            has_failed: false,
            has_more: false,
            asked: None,
            pause: MIN_PAUSE,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let has_more = self.has_more && !self.has_failed;
        has_more || (self.has_accepted && self.has_rested(self.pause, now))
    }

    /// Whether the pace would be another one if the endpoint was forgotten.
    fn is_relevant(&self, now: Instant) -> bool {
        let memory = if self.pause > MIN_PAUSE {
            MEMORY
        } else {
            MIN_PAUSE
        };
        self.has_more || self.has_accepted || !self.has_rested(memory, now)
    }

    fn has_rested(&self, pause: Duration, now: Instant) -> bool {
        let asked = self.asked;
        asked.is_none_or(|asked| now.saturating_duration_since(asked) >= pause)
    }
}

/// Decides for which endpoints the worker asks the store, and when.
#[derive(Debug, Default)]
pub(crate) struct HastenPace(BTreeMap<EndpointId, EndpointPace>);

impl HastenPace {
    /// Notes the end of an attempt.
    pub(crate) fn ended(&mut self, end: AttemptEnd, now: Instant) {
        let pace = self.0.entry(end.endpoint);
        let pace = pace.or_insert_with(|| EndpointPace::new(end.tenant));
        pace.has_accepted |= end.is_delivered;
        if !end.is_hastened {
            return;
        }
        if end.is_delivered {
            pace.pause = MIN_PAUSE;
        } else if !pace.has_failed {
            pace.has_failed = true;
            pace.pause = pace.pause.saturating_mul(2).min(MAX_PAUSE);
            // Another worker may have hastened the delivery.
            pace.asked = pace.asked.or(Some(now));
        }
    }

    /// The endpoints to ask the store for now, those of the earliest requests first.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<(EndpointId, Tenant)> {
        self.0.retain(|_, pace| pace.is_relevant(now));
        let due = self.0.iter().filter(|(_, pace)| pace.is_due(now));
        let mut due: Vec<(&EndpointId, &EndpointPace)> = due.collect();
        due.sort_by_key(|(_, pace)| pace.asked);
        due.truncate(MAX_REQUESTS);
        let due = due.into_iter();
        due.map(|(endpoint, pace)| (*endpoint, pace.tenant.clone()))
            .collect()
    }

    /// How many deliveries a request hastens. After hastened deliveries have failed it is one, which
    /// shows whether the endpoint accepts them now. All of them would wait before new ones, and fail.
    pub(crate) fn limit(&self, endpoint: EndpointId) -> u32 {
        match self.0.get(&endpoint) {
            Some(pace) if pace.pause > MIN_PAUSE => 1,
            Some(_) | None => MAX_HASTENED,
        }
    }

    /// Notes a request that hastened this number. After one that hastened as many deliveries as it
    /// may, the next request follows at once.
    pub(crate) fn asked(&mut self, endpoint: EndpointId, hastened: u64, now: Instant) {
        if let Some(pace) = self.0.get_mut(&endpoint) {
            pace.has_accepted = false;
            pace.has_failed = false;
            pace.has_more = hastened >= u64::from(MAX_HASTENED);
            pace.asked = Some(now);
        }
    }

    /// Notes a request that the store has not answered. The next one follows after the pause.
    pub(crate) fn failed(&mut self, endpoint: EndpointId, now: Instant) {
        if let Some(pace) = self.0.get_mut(&endpoint) {
            pace.asked = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Entropy, Mode, Timestamp};
    use partner_core::PartnerId;

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

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

    fn end(number: u32, is_hastened: bool, is_delivered: bool) -> AttemptEnd {
        AttemptEnd {
            tenant: Tenant {
                partner: PartnerId::parse("acme").unwrap(),
                mode: Mode::Test,
            },
            endpoint: endpoint(number),
            is_hastened,
            is_delivered,
        }
    }

    /// Asks for everything that is due. Returns how many endpoints were.
    fn ask(pace: &mut HastenPace, has_more: bool, now: Instant) -> usize {
        let due = pace.due(now);
        let hastened = if has_more { u64::from(MAX_HASTENED) } else { 7 };
        for (endpoint, _) in &due {
            pace.asked(*endpoint, hastened, now);
        }
        due.len()
    }

    // rule: webhook.drain
    #[test]
    fn refused_hastened_delivery_is_followed_by_one_until_that_is_accepted() {
        let (mut pace, now) = (HastenPace::default(), Instant::now());
        pace.ended(end(1, false, true), now);
        assert_eq!(pace.limit(endpoint(1)), MAX_HASTENED);
        assert_eq!(ask(&mut pace, true, now), 1);
        pace.ended(end(1, true, false), now);
        assert_eq!(pace.due(now).len(), 0, "not even if more wait");
        pace.ended(end(1, false, true), now);
        let later = now + 2 * MIN_PAUSE;
        assert_eq!((pace.due(later).len(), pace.limit(endpoint(1))), (1, 1));
        pace.asked(endpoint(1), 1, later);
        pace.ended(end(1, true, true), later);
        assert_eq!(pace.limit(endpoint(1)), MAX_HASTENED);
    }

    // rule: webhook.drain
    #[test]
    fn request_that_the_store_fails_is_made_again() {
        let (mut pace, now) = (HastenPace::default(), Instant::now());
        pace.ended(end(1, false, true), now);
        pace.failed(endpoint(1), now);
        assert_eq!(pace.due(now).len(), 0);
        assert_eq!(pace.due(now + MIN_PAUSE).len(), 1);
    }

    // rule: webhook.drain
    #[test]
    fn accepting_endpoint_is_asked_for_at_once_and_then_once_a_second() {
        let (mut pace, now) = (HastenPace::default(), Instant::now());
        assert_eq!(ask(&mut pace, false, now), 0);
        pace.ended(end(1, false, true), now);
        assert_eq!(ask(&mut pace, false, now), 1);
        assert_eq!(
            ask(&mut pace, false, now + MIN_PAUSE),
            0,
            "it has to accept"
        );
        pace.ended(end(1, false, true), now);
        assert_eq!(ask(&mut pace, false, now), 1);
        pace.ended(end(1, false, true), now);
        assert_eq!(ask(&mut pace, false, now + MIN_PAUSE - MILLI), 0);
        assert_eq!(ask(&mut pace, false, now + MIN_PAUSE), 1);
    }

    // rule: webhook.drain
    #[test]
    fn full_request_is_followed_by_another_one_at_once() {
        let (mut pace, now) = (HastenPace::default(), Instant::now());
        pace.ended(end(1, false, true), now);
        assert_eq!(ask(&mut pace, true, now), 1);
        assert_eq!(ask(&mut pace, false, now), 1);
        assert_eq!(ask(&mut pace, false, now), 0);
    }

    // rule: webhook.drain
    #[test]
    fn pause_doubles_while_hastened_deliveries_fail_and_is_short_after_success() {
        let (mut pace, mut now) = (HastenPace::default(), Instant::now());
        pace.ended(end(1, false, true), now);
        assert_eq!(ask(&mut pace, false, now), 1);
        for pause in [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            let pause = Duration::from_secs(pause);
            for _ in 0..3 {
                pace.ended(end(1, true, false), now);
            }
            pace.ended(end(1, false, true), now);
            assert_eq!(ask(&mut pace, false, now + pause - MILLI), 0, "{pause:?}");
            now += pause;
            assert_eq!(ask(&mut pace, false, now), 1, "{pause:?}");
        }
        pace.ended(end(1, true, true), now);
        assert_eq!(ask(&mut pace, false, now + MIN_PAUSE), 1);
    }

    // rule: webhook.drain
    #[test]
    fn endpoints_are_forgotten_after_their_pauses() {
        let (mut pace, now) = (HastenPace::default(), Instant::now());
        for number in [1, 2] {
            pace.ended(end(number, false, true), now);
        }
        assert_eq!(ask(&mut pace, false, now), 2);
        pace.ended(end(2, true, false), now);
        assert_eq!((pace.due(now).len(), pace.0.len()), (0, 2));
        pace.due(now + MIN_PAUSE);
        assert_eq!(pace.0.keys().copied().collect::<Vec<_>>(), [endpoint(2)]);
        pace.due(now + MEMORY);
        assert!(pace.0.is_empty());
    }

    // rule: webhook.drain, webhook.isolation
    #[test]
    fn turn_has_few_requests_and_starts_with_endpoints_that_waited_longest() {
        let (mut pace, now) = (HastenPace::default(), Instant::now());
        pace.ended(end(0, false, true), now);
        assert_eq!(ask(&mut pace, true, now), 1);
        for number in 1..=8 {
            pace.ended(end(number, false, true), now);
        }
        let due = pace.due(now);
        assert_eq!(due.len(), MAX_REQUESTS);
        assert!(due.iter().all(|(other, _)| *other != endpoint(0)));
    }
}
