//! The queue of deliveries.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kernel::{Cas, Mode, Timestamp};
use partner_core::Tenant;
use partner_core::events::{
    DeliveryId, Endpoint, EndpointId, EndpointSecret, NewEvent, Service, event_place, secret_place,
};
use partner_core::ports::{
    ClaimRequest, ClaimedDelivery, ConcludedDelivery, DeliveryRecord, QueueStats, QueueWaker,
};
use partner_core::webhooks::delivery::AttemptOutcome::{
    self, Delivered, GivenUp, Released, RetryAfter,
};
use partner_core::webhooks::delivery::{DeliveryState, Progress};
use partner_core::webhooks::fairness::{ClaimCapacity, EndpointHealth, EndpointLoad};

use crate::contract::fixture::Fixture;
use crate::contract::world::{MILLI, Member, World, body_text, profile, sealer};

const LEASE: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(5);

impl<F: Fixture> World<F> {
    /// A partner with an endpoint for pools events.
    pub(crate) async fn listener(&self, name: &str) -> (Member, Endpoint) {
        let member = self.member(name).await;
        let url = format!("https://{name}.example/");
        let endpoint = self.listen(&member, Service::Pools, &url).await;
        (member, endpoint)
    }

    fn event_about(&self, who: &Tenant, object: &str, id: &str) -> NewEvent {
        self.event_of_kind(who, object, "pool.transaction.settled", id)
    }

    fn event_of_kind(&self, who: &Tenant, object: &str, kind: &str, id: &str) -> NewEvent {
        NewEvent {
            tenant: who.clone(),
            id: id.to_owned(),
            service: Service::Pools,
            kind: kind.to_owned(),
            object_id: object.to_owned(),
            body: self.body(who, object, kind, id),
            created_at: self.now(),
            delivery: DeliveryId::new(who.mode, self.now(), &self.entropy),
        }
    }

    /// Emits an event with a type of its own, so that an object can have several.
    pub(crate) async fn emit(&self, who: &Tenant, object: &str, id: &str) {
        let event = self.event_of_kind(who, object, id, id);
        self.write(event).await;
    }

    async fn write(&self, event: NewEvent) {
        let mut tx = self.ports().store.begin("emit").await.unwrap();
        tx.event_insert(&event).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) fn order(&self, total: u32) -> ClaimRequest {
        ClaimRequest {
            mode: Mode::Test,
            service: Service::Pools,
            capacity: ClaimCapacity {
                total,
                max_per_endpoint: 64,
                ..ClaimCapacity::default()
            },
            token: self.entropy.next(),
            lease: LEASE,
        }
    }

    /// The same, for the gate's events.
    pub(crate) fn gate_order(&self) -> ClaimRequest {
        ClaimRequest {
            service: Service::Gate,
            ..self.order(64)
        }
    }

    /// Claims as much as capacity allows. Returns the events' ids.
    pub(crate) async fn claim_all(&self) -> Vec<(u64, ClaimedDelivery)> {
        let order = self.order(64);
        let claimed = self.claim_by(&order).await;
        claimed.into_iter().map(|one| (order.token, one)).collect()
    }

    pub(crate) async fn claim_by(&self, order: &ClaimRequest) -> Vec<ClaimedDelivery> {
        let port = &self.ports().deliveries;
        port.deliveries_claim(order).await.unwrap()
    }

    pub(crate) async fn conclude(
        &self,
        token: u64,
        claimed: &ClaimedDelivery,
        outcome: AttemptOutcome,
    ) -> Cas {
        let port = &self.ports().deliveries;
        let batch = [concluded(token, claimed, outcome)];
        for _ in 0..1_000 {
            let outcomes = port.deliveries_conclude(&batch).await.unwrap();
            assert_eq!(outcomes.len(), 1);
            if let Some(outcome) = outcomes[0] {
                return outcome;
            }
            // Another transaction was dropped, and has not been rolled back yet.
            tokio::time::sleep(MILLI).await;
        }
        panic!("the delivery stays locked")
    }

    pub(crate) async fn deliveries(&self, who: &Tenant, object: &str) -> Vec<DeliveryRecord> {
        let port = &self.ports().deliveries;
        port.deliveries_of(who, object).await.unwrap()
    }

    /// Time until a delivery is due or a lease expires.
    async fn next_delivery(&self) -> Option<Duration> {
        let port = &self.ports().deliveries;
        port.deliveries_next(Mode::Test, Service::Pools)
            .await
            .unwrap()
    }
}

/// The report of an attempt, with the response of its endpoint.
fn concluded(token: u64, claimed: &ClaimedDelivery, outcome: AttemptOutcome) -> ConcludedDelivery {
    let (response_status, error) = match outcome {
        Delivered => (Some(204), None),
        RetryAfter(_) => (Some(503), Some("status 503".to_owned())),
        GivenUp => (None, Some("connection refused".to_owned())),
        Released => (None, None),
    };
    ConcludedDelivery {
        tenant: claimed.tenant.clone(),
        id: claimed.id,
        token,
        outcome,
        response_status,
        error,
    }
}

fn events(claimed: &[(u64, ClaimedDelivery)]) -> Vec<&str> {
    claimed
        .iter()
        .map(|(_, one)| one.event.id.as_str())
        .collect()
}

// rule: webhook.delivery-per-endpoint
pub async fn claim_returns_data_of_attempt(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    let nobody = world.member("nobody").await;
    world.emit(&nobody.who, "o", "unheard").await;
    world.emit(&acme.who, "o", "e").await;
    assert_eq!(world.next_delivery().await, Some(Duration::ZERO));
    let claimed = world.claim_all().await;
    assert_eq!(claimed.len(), 1, "an event without an endpoint stays");
    let (_, one) = &claimed[0];
    assert_eq!((&one.tenant, one.attempts), (&acme.who, 0));
    assert_eq!((one.event.id.as_str(), one.event.kind.as_str()), ("e", "e"));
    let place = event_place(&acme.who, "e");
    let body = sealer().open(&place, &one.event.body).unwrap();
    assert_eq!(body, body_text("o", "e", "e").as_bytes());
    assert_eq!(one.event.created_at, world.now());
    assert_eq!(*one.endpoint, endpoint);
    assert_eq!(world.deliveries(&acme.who, "o").await[0].id, one.id);
    world.assert_clean().await;
}

// rule: webhook.lease
pub async fn lease_hides_delivery_until_expiry(mut world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e").await;
    let first = world.claim_all().await;
    assert_eq!(events(&first), ["e"]);
    assert!(world.claim_all().await.is_empty());
    assert_eq!(world.next_delivery().await, Some(LEASE));
    world.fixture.reopen(crate::contract::WINDOW).await;
    world.clock().advance(LEASE - MILLI);
    assert!(world.claim_all().await.is_empty());
    world.clock().advance(MILLI);
    let second = world.claim_all().await;
    assert_eq!(events(&second), ["e"]);
    assert_eq!(second[0].1.attempts, 0, "no attempt was concluded");
    world.assert_clean().await;
}

// rule: webhook.one-holder
pub async fn stale_token_changes_nothing(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e").await;
    let (old, claimed) = world.claim_all().await.remove(0);
    world.clock().advance(LEASE);
    let (new, _) = world.claim_all().await.remove(0);
    assert_eq!(world.conclude(old, &claimed, Delivered).await, Cas::Lost);
    let held = world.deliveries(&acme.who, "o").await.remove(0);
    assert!(matches!(held.progress.state, DeliveryState::InFlight(lease) if lease.token == new));
    assert_eq!(held.last_response_status, None);
    assert_eq!(world.conclude(new, &claimed, Delivered).await, Cas::Won);
    for token in [old, new] {
        assert_eq!(world.conclude(token, &claimed, GivenUp).await, Cas::Lost);
    }
    let done = world.deliveries(&acme.who, "o").await.remove(0);
    let state = DeliveryState::Succeeded { at: world.now() };
    assert_eq!(done.progress, Progress::new(state, 1));
    world.assert_clean().await;
}

/// Workers record many attempts in one call. Each report changes its own delivery only.
// rule: webhook.one-holder
pub async fn batch_of_reports_has_outcomes_in_its_order(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    let (rival, _) = world.listener("rival").await;
    for (member, event) in [(&acme, "a"), (&rival, "b"), (&acme, "c"), (&rival, "d")] {
        world.emit(&member.who, event, event).await;
    }
    let claimed = world.claim_all().await;
    let (token, stale) = (claimed[0].0, world.entropy.next());
    let report = |event: &str, token: u64, outcome: AttemptOutcome| {
        let of_event = claimed.iter().find(|(_, one)| one.event.id == event);
        concluded(token, &of_event.unwrap().1, outcome)
    };
    let batch = [
        report("d", token, GivenUp),
        report("a", token, Delivered),
        report("c", stale, Delivered),
        report("b", token, RetryAfter(WAIT)),
    ];
    let port = &world.ports().deliveries;
    let outcomes = port.deliveries_conclude(&batch).await.unwrap();
    let expected = [Cas::Won, Cas::Won, Cas::Lost, Cas::Won].map(Some);
    assert_eq!(outcomes, expected);
    let delivered = DeliveryState::Succeeded { at: world.now() };
    let due = world.now().plus(WAIT);
    let waits = DeliveryState::Pending { due };
    let dead = DeliveryState::DeadLettered;
    for (who, event, state, status, error) in [
        (&acme.who, "a", delivered, Some(204), None),
        (&rival.who, "b", waits, Some(503), Some("status 503")),
        (&rival.who, "d", dead, None, Some("connection refused")),
    ] {
        let stored = world.deliveries(who, event).await.remove(0);
        assert_eq!(stored.progress, Progress::new(state, 1), "{event}");
        assert_eq!(stored.last_response_status, status, "{event}");
        assert_eq!(stored.last_error.as_deref(), error, "{event}");
    }
    let held = world.deliveries(&acme.who, "c").await.remove(0);
    assert!(matches!(held.progress.state, DeliveryState::InFlight(lease) if lease.token == token));
    world.assert_clean().await;
}

// rule: webhook.lease
pub async fn late_report_counts_until_next_claim(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e").await;
    let (token, claimed) = world.claim_all().await.remove(0);
    world.clock().advance(LEASE * 2);
    assert_eq!(world.conclude(token, &claimed, Delivered).await, Cas::Won);
    assert_eq!(world.next_delivery().await, None);
    assert!(world.claim_all().await.is_empty());
}

pub async fn failure_is_recorded_with_retry_time(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e").await;
    let (token, claimed) = world.claim_all().await.remove(0);
    let failed = RetryAfter(WAIT);
    world.conclude(token, &claimed, failed).await.won().unwrap();
    let due = world.now().plus(WAIT);
    let waiting = world.deliveries(&acme.who, "o").await.remove(0);
    let state = DeliveryState::Pending { due };
    assert_eq!(waiting.progress, Progress::new(state, 1));
    assert_eq!(waiting.last_response_status, Some(503));
    assert_eq!(waiting.last_error.as_deref(), Some("status 503"));
    assert_eq!(world.next_delivery().await, Some(WAIT));
    world.clock().advance(WAIT - MILLI);
    assert!(world.claim_all().await.is_empty());
    world.clock().advance(MILLI);
    let (token, again) = world.claim_all().await.remove(0);
    assert_eq!(again.attempts, 1);
    assert_eq!(world.conclude(token, &again, Delivered).await, Cas::Won);
    let done = world.deliveries(&acme.who, "o").await.remove(0);
    assert_eq!(
        (done.progress.attempts, done.last_response_status),
        (2, Some(204))
    );
    assert_eq!(done.last_error, None);
    world.assert_clean().await;
}

// rule: webhook.order
pub async fn object_events_are_delivered_in_order(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    for id in ["e1", "e2"] {
        world.emit(&acme.who, "o", id).await;
    }
    world.emit(&acme.who, "other", "x").await;
    let claimed = world.claim_all().await;
    assert_eq!(events(&claimed), ["e1", "x"]);
    let (token, first) = &claimed[0];
    let failed = RetryAfter(WAIT);
    world.conclude(*token, first, failed).await.won().unwrap();
    world.emit(&acme.who, "o", "e3").await;
    let due = DeliveryState::Pending {
        due: world.now().plus(WAIT),
    };
    for record in world.deliveries(&acme.who, "o").await {
        assert_eq!(
            record.progress.state, due,
            "a blocked delivery is not due earlier"
        );
    }
    assert!(world.claim_all().await.is_empty());
    world.clock().advance(WAIT);
    for expected in ["e1", "e2", "e3"] {
        let claimed = world.claim_all().await;
        assert_eq!(events(&claimed), [expected]);
        assert!(world.claim_all().await.is_empty());
        let (token, one) = &claimed[0];
        assert_eq!(world.conclude(*token, one, Delivered).await, Cas::Won);
    }
    world.assert_clean().await;
}

// rule: webhook.dead-letter
pub async fn dead_letter_unblocks_later_events(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e1").await;
    let (token, first) = world.claim_all().await.remove(0);
    let failed = RetryAfter(WAIT);
    world.conclude(token, &first, failed).await.won().unwrap();
    world.emit(&acme.who, "o", "e2").await;
    world.clock().advance(WAIT);
    let (token, first) = world.claim_all().await.remove(0);
    world.conclude(token, &first, GivenUp).await.won().unwrap();
    let dead = world.deliveries(&acme.who, "o").await.remove(0);
    let state = DeliveryState::DeadLettered;
    assert_eq!(dead.progress, Progress::new(state, 2));
    assert_eq!(dead.last_response_status, None);
    assert_eq!(dead.last_error.as_deref(), Some("connection refused"));
    assert_eq!(events(&world.claim_all().await), ["e2"]);
    world.clock().advance(Duration::from_secs(7 * 24 * 60 * 60));
    assert_eq!(
        events(&world.claim_all().await),
        ["e2"],
        "a dead letter stays dead"
    );
    world.assert_clean().await;
}

// rule: webhook.order
pub async fn failed_delivery_keeps_own_retry_time(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e1").await;
    let (token, first) = world.claim_all().await.remove(0);
    world.conclude(token, &first, GivenUp).await.won().unwrap();
    world.emit(&acme.who, "o", "e2").await;
    let (token, second) = world.claim_all().await.remove(0);
    let longer = RetryAfter(WAIT * 10);
    world.conclude(token, &second, longer).await.won().unwrap();
    world.emit(&acme.who, "o", "e3").await;
    assert_eq!(world.next_delivery().await, Some(WAIT * 10));
    world.clock().advance(WAIT * 10);
    assert_eq!(events(&world.claim_all().await), ["e2"]);
}

// rule: webhook.fair, webhook.isolation
pub async fn busy_endpoint_leaves_capacity_for_others(world: World<impl Fixture>) {
    let (busy, at_busy) = world.listener("busy").await;
    let (calm, _) = world.listener("calm").await;
    for number in 0..30 {
        let name = format!("b{number}");
        world.emit(&busy.who, &name, &name).await;
    }
    world.clock().advance(MILLI);
    for name in ["c1", "c2"] {
        world.emit(&calm.who, name, name).await;
    }
    let mut order = world.order(22);
    let claimed = world.claim_by(&order).await;
    let ids: Vec<&str> = claimed.iter().map(|one| one.event.id.as_str()).collect();
    assert_eq!(ids, ["b0", "c1", "b1", "c2", "b2", "b3"]);
    order.token = world.entropy.next();
    order.capacity.total = 1_000;
    let load = |deliveries, health| [(at_busy.id, EndpointLoad { deliveries, health })].into();
    order.capacity.in_flight = load(62, EndpointHealth::Slow);
    assert_eq!(world.claim_by(&order).await.len(), 2);
    order.capacity.in_flight = load(64, EndpointHealth::Slow);
    assert!(world.claim_by(&order).await.is_empty());
    order.capacity.in_flight.clear();
    order.capacity.max_per_endpoint = 5;
    assert_eq!(world.claim_by(&order).await.len(), 5);
    order.capacity.in_flight = load(5 + 217, EndpointHealth::Fast);
    assert_eq!(world.claim_by(&order).await.len(), 7);
    world.assert_clean().await;
}

pub async fn queue_stats_count_deliveries(world: World<impl Fixture>) {
    let port = &world.ports().deliveries;
    let standing = || port.queue_stats(Mode::Test, Service::Pools);
    assert_eq!(standing().await.unwrap(), QueueStats::default());
    let (acme, _) = world.listener("acme").await;
    let url = "https://gate.example/";
    world.listen(&acme, Service::Gate, url).await;
    world
        .write(NewEvent {
            service: Service::Gate,
            ..world.event_about(&acme.who, "gate", "gate")
        })
        .await;
    for id in ["held", "failed", "due", "later"] {
        world.emit(&acme.who, id, id).await;
    }
    let mut order = world.order(64);
    order.capacity.max_per_endpoint = 2;
    let claimed = world.claim_by(&order).await;
    let failed = RetryAfter(WAIT);
    let won = world.conclude(order.token, &claimed[1], failed).await;
    assert_eq!(won, Cas::Won);
    world.clock().advance(MILLI * 7);
    let counted = QueueStats {
        due: 2,
        scheduled: 1,
        in_flight: 1,
        oldest_due: Some(MILLI * 7),
    };
    assert_eq!(standing().await.unwrap(), counted);
    order.token = world.entropy.next();
    order.service = Service::Gate;
    assert_eq!(world.claim_by(&order).await.len(), 1);
    assert_eq!(standing().await.unwrap(), counted);
}

// rule: webhook.one-holder
pub async fn delivery_is_leased_to_one_worker(world: World<impl Fixture>) {
    for name in ["acme", "rival"] {
        let (member, _) = world.listener(name).await;
        for number in 0..40 {
            let id = format!("{name}{number}");
            world.emit(&member.who, &id, &id).await;
        }
    }
    let orders: Vec<ClaimRequest> = (0..8).map(|_| world.order(64)).collect();
    let (a, b, c, d) = tokio::join!(
        world.claim_by(&orders[0]),
        world.claim_by(&orders[1]),
        world.claim_by(&orders[2]),
        world.claim_by(&orders[3]),
    );
    let mut claimed: Vec<ClaimedDelivery> = [a, b, c, d].into_iter().flatten().collect();
    for order in &orders[4..] {
        claimed.extend(world.claim_by(order).await);
    }
    let ids: BTreeSet<String> = claimed.iter().map(|one| one.id.to_string()).collect();
    assert_eq!((claimed.len(), ids.len()), (80, 80));
    world.assert_clean().await;
}

// rule: webhook.hand-back
pub async fn released_delivery_is_due_immediately(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e").await;
    let (token, claimed) = world.claim_all().await.remove(0);
    let failed = RetryAfter(WAIT);
    world.conclude(token, &claimed, failed).await.won().unwrap();
    world.clock().advance(WAIT);
    let (token, claimed) = world.claim_all().await.remove(0);
    assert_eq!(world.conclude(token, &claimed, Released).await, Cas::Won);
    let waiting = world.deliveries(&acme.who, "o").await.remove(0);
    let state = DeliveryState::Pending { due: world.now() };
    assert_eq!(waiting.progress, Progress::new(state, 1));
    assert_eq!(waiting.last_response_status, Some(503), "unchanged");
    assert_eq!(events(&world.claim_all().await), ["e"]);
    world.assert_clean().await;
}

// rule: webhook.rotation-seen
pub async fn claim_returns_current_endpoint(world: World<impl Fixture>) {
    let (acme, endpoint) = world.listener("acme").await;
    world.emit(&acme.who, "o", "e").await;
    let place = secret_place(endpoint.id);
    let secret = |byte: u8, expires_at: Option<Timestamp>| EndpointSecret {
        sealed: sealer().seal(&place, &[byte], &world.entropy).unwrap(),
        created_at: world.now(),
        expires_at,
    };
    let ends = world.now().plus(LEASE * 2);
    let rotated = Endpoint {
        url: "https://moved.example/".to_owned(),
        secrets: vec![secret(9, None), secret(8, Some(ends))],
        ..endpoint
    };
    world.set_endpoint(&acme, &rotated).await;
    let (_, first) = world.claim_all().await.remove(0);
    assert_eq!(*first.endpoint, rotated);
    world.clock().advance(LEASE * 2 - MILLI);
    let (_, second) = world.claim_all().await.remove(0);
    assert_eq!(second.endpoint.secrets.len(), 2);
    world.clock().advance(MILLI + LEASE);
    let (_, third) = world.claim_all().await.remove(0);
    assert_eq!(third.endpoint.secrets, rotated.secrets[..1]);
    world.assert_clean().await;
}

// rule: webhook.no-crossing
pub async fn modes_and_services_have_separate_queues(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let [pools, gate] = [Service::Pools, Service::Gate];
    let endpoint = world.listen(&live, pools, "https://live.example/").await;
    let gate = world.listen(&acme, gate, "https://gate.example/").await;
    world.emit(&live.who, "o", "live").await;
    world
        .write(NewEvent {
            service: Service::Gate,
            ..world.event_about(&acme.who, "o", "gate")
        })
        .await;
    assert_eq!(world.next_delivery().await, None);
    assert!(world.claim_all().await.is_empty());
    let mut order = world.order(8);
    order.mode = Mode::Live;
    let claimed = world.claim_by(&order).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(
        (&claimed[0].tenant, &*claimed[0].endpoint),
        (&live.who, &endpoint)
    );
    order.mode = Mode::Test;
    order.service = Service::Gate;
    let claimed = world.claim_by(&order).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(
        (&claimed[0].tenant, &*claimed[0].endpoint),
        (&acme.who, &gate)
    );
    world.assert_clean().await;
}

/// Counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicUsize);

impl QueueWaker for Bell {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

// rule: webhook.woken
pub async fn commit_with_delivery_wakes_worker(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    let nobody = world.member("nobody").await;
    let bell = Arc::new(Bell::default());
    let rung = || bell.0.load(Ordering::SeqCst);
    world.ports().deliveries.deliveries_watch(bell.clone());
    world.emit(&nobody.who, "o", "unheard").await;
    let mut tx = world.ports().store.begin("dropped").await.unwrap();
    let dropped = world.event_about(&acme.who, "o", "dropped");
    tx.event_insert(&dropped).await.unwrap();
    drop(tx);
    assert_eq!(rung(), 0);
    world.emit(&acme.who, "o", "e").await;
    assert_eq!(rung(), 1);
    world.claim_all().await;
    assert_eq!(rung(), 1);
}

pub async fn concluding_absent_delivery_changes_nothing(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    let rival = world.member("rival").await;
    world.emit(&acme.who, "o", "e").await;
    let (token, claimed) = world.claim_all().await.remove(0);
    let foreign = ClaimedDelivery {
        tenant: rival.who.clone(),
        ..claimed.clone()
    };
    assert_eq!(world.conclude(token, &foreign, Delivered).await, Cas::Lost);
    let port = &world.ports().deliveries;
    assert!(port.deliveries_conclude(&[]).await.unwrap().is_empty());
    assert!(world.deliveries(&rival.who, "o").await.is_empty());
    let unknown = EndpointId::new(Mode::Test, world.now(), &world.entropy);
    let mut order = world.order(8);
    order.capacity.in_flight = [(unknown, EndpointLoad::default())].into();
    assert!(world.claim_by(&order).await.is_empty());
}
