//! Events: one per end of a trade, with a delivery if an endpoint exists.

use kernel::{Cas, Mode, TraceParent};
use partner_core::events::{Service, event_place};
use partner_core::webhooks::delivery::AttemptOutcome::Delivered;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{CannotComplete, InProgress, Released, Reversed};
use pools_core::trade::TradeEvent;

use crate::contract::fixture::Fixture;
use crate::contract::world::{ONE, World, assert_guarded, body_text, delivered, profile, sealer};

// rule: pools.event.once, pools.event.none-else, pools.event.same-transaction
pub async fn trade_end_emits_one_event(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let object = trade.id.to_string();
    assert!(world.events_of(&member.who, &object).await.is_empty());
    world.report(&member.who, trade.id, delivered()).await;
    let found = world.events_of(&member.who, &object).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, TradeEvent::Settled.as_str());
    let (kind, place) = (&found[0].kind, event_place(&member.who, &found[0].id));
    let body = sealer().open(&place, &found[0].body).unwrap();
    assert_eq!(body, body_text(&object, kind, &found[0].id).as_bytes());
    assert_eq!(found[0].created_at, world.now());
    world.report(&member.who, trade.id, Reversed(None)).await;
    assert_eq!(world.events_of(&member.who, &object).await.len(), 1);

    let mut tx = world.ports().store.begin("twice").await.unwrap();
    let again = world.event(
        &member.who,
        &trade,
        TradeEvent::Settled.as_str(),
        "another id",
        world.now(),
    );
    assert_guarded(tx.event_insert(&again).await);
    drop(tx);
    world.assert_clean().await;
}

// rule: tenancy.nothing-crosses
pub async fn foreign_event_is_absent(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let other = world.member("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    world.report(&member.who, trade.id, Released).await;
    for who in [&other.who, &live.who] {
        let found = world.events_of(who, &trade.id.to_string()).await;
        assert!(found.is_empty());
    }
}

/// The endpoint has the event's service, mode and partner at the time of the event.
// rule: webhook.delivery-per-endpoint, webhook.no-crossing
pub async fn delivery_requires_endpoint(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let other = world.funded("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let end = async |member| {
        let before = world.figure("deliveries").await;
        let trade = world.trade(member, Side::OnRamp, ONE).await;
        world.report(&member.who, trade.id, Released).await;
        world.figure("deliveries").await - before
    };
    assert_eq!(end(&member).await, 0);
    let url = "https://gate.example";
    world.listen(&member, Service::Gate, url).await;
    let url = "https://live.example";
    world.listen(&live, Service::Pools, url).await;
    assert_eq!(end(&member).await, 0);
    let url = "https://acme.example";
    world.listen(&member, Service::Pools, url).await;
    assert_eq!(end(&member).await, 1);
    assert_eq!(end(&other).await, 0);
    world.assert_clean().await;
}

impl<F: Fixture> World<F> {
    async fn figure(&self, name: &str) -> u64 {
        let figures = self.audit().await.figures;
        let (_, figure) = figures
            .iter()
            .find(|(figure, _)| *figure == name)
            .expect("a figure");
        figure.parse().unwrap()
    }
}

// rule: pools.event.once, pools.event.none-else
pub async fn only_trade_ends_emit_events(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let ends = [
        (vec![InProgress], None),
        (vec![delivered()], Some(TradeEvent::Settled)),
        (vec![CannotComplete], Some(TradeEvent::Failed)),
        (vec![Released], Some(TradeEvent::Released)),
        (vec![delivered(), Reversed(None)], Some(TradeEvent::Settled)),
    ];
    for (reports, kind) in &ends {
        let trade = world.trade(&member, Side::OnRamp, ONE).await;
        for report in reports.iter().chain(reports) {
            world.report(&member.who, trade.id, report.clone()).await;
        }
        let found = world.events_of(&member.who, &trade.id.to_string()).await;
        let kinds: Vec<&str> = found.iter().map(|event| event.kind.as_str()).collect();
        let expected: Vec<&str> = kind.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(kinds, expected, "{reports:?}");
    }
    world.assert_clean().await;
}

pub async fn event_id_is_used_once(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    for (kind, taken) in [("one", false), ("two", true)] {
        let event = world.event(&member.who, &trade, kind, "id", world.now());
        let mut tx = world.ports().store.begin("event").await.unwrap();
        let inserted = tx.event_insert(&event).await;
        assert_eq!(inserted.is_err(), taken, "{inserted:?}");
        if !taken {
            tx.commit().await.unwrap();
        }
    }
}

pub async fn events_of_object_are_claimed_in_order(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let ids = ["z", "a", "m", "b"];
    for id in ids {
        let mut event = world.event(&member.who, &trade, id, id, world.now());
        event.body = partner_core::sealing::Sealed(vec![0, 255, 7]);
        let mut tx = world.ports().store.begin("event").await.unwrap();
        tx.event_insert(&event).await.unwrap();
        tx.commit().await.unwrap();
    }
    let found = world.events_of(&member.who, &trade.id.to_string()).await;
    let order: Vec<&str> = found.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(order, ids);
    assert!(found.iter().all(|event| event.body.0 == [0, 255, 7]));
}

// rule: webhook.traceparent
pub async fn claimed_event_has_the_trace_parent_of_its_cause(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    world
        .listen(&member, Service::Pools, "https://a.example/")
        .await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let cause = TraceParent {
        trace_id: 1,
        span_id: u64::MAX,
        sampled: true,
    };
    let causes = [("caused", Some(cause)), ("uncaused", None)];
    for (id, cause) in causes {
        let event = world.event(&member.who, &trade, id, id, world.now());
        let mut tx = world.ports().store.begin("event").await.unwrap();
        tx.caused_by(cause);
        tx.event_insert(&event).await.unwrap();
        tx.commit().await.unwrap();
    }
    let found = world.events_of(&member.who, &trade.id.to_string()).await;
    let found: Vec<Option<TraceParent>> = found.iter().map(|event| event.trace_parent).collect();
    assert_eq!(found, causes.map(|(_, cause)| cause));
    for (id, cause) in causes {
        let (token, claimed) = world.claim_all().await.remove(0);
        assert_eq!(
            (claimed.event.id.as_str(), claimed.event.trace_parent),
            (id, cause)
        );
        let ended = world.conclude(token, &claimed, Delivered).await;
        assert_eq!(ended, Cas::Won);
    }
}

/// A partner that changes its endpoint receives queued events at the new one.
pub async fn endpoint_with_new_id_inherits_queued_deliveries(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let listen = |url| world.listen(&member, Service::Pools, url);
    let first = listen("https://a.example/").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    world.report(&member.who, trade.id, Released).await;
    let second = listen("https://b.example/").await;
    assert_ne!(first.id, second.id);
    let waiting = world.deliveries(&member.who, &trade.id.to_string()).await;
    assert_eq!(waiting.len(), 1);
    let claimed = world.claim_all().await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(*claimed[0].1.endpoint, second);
    world.assert_clean().await;
}
