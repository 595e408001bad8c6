//! The gate's tables other than sessions: stored responses, tallies, branding, profiles, and the queue as partners see it.

use std::cmp::Reverse;
use std::time::Duration;

use gate_core::branding::Branding;
use gate_core::merchant::Merchant;
use gate_core::profile::{GateProfile, create_session_limit};
use gate_core::quota::{Month, Tally};
use kernel::{Cas, Mode, Timestamp};
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::origin::AllowedDomain;
use partner_core::ports::{DeliveryFilter, KeySweep};
use partner_core::sealing::Sealed;
use partner_core::stored_response::StoredResponse;
use partner_core::webhooks::delivery::AttemptOutcome::{Delivered, GivenUp, Released};
use partner_core::webhooks::delivery::DeliveryState;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::DAY;
use crate::contract::world::{MILLI, World, expired_keys, profile};

// rule: idempotency.gate-replay, idempotency.scope, idempotency.kept
pub async fn stored_response_is_overwritten_after_expiry(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let scope = |tenant: &Tenant, route: &str| Scope {
        tenant: tenant.clone(),
        route: route.to_owned(),
        key: IdempotencyKey::parse(b"key").unwrap(),
    };
    let kept = |byte: u8, at: Timestamp| StoredResponse {
        fingerprint: Fingerprint([byte; 32]),
        sealed: Sealed(vec![byte; 40]),
        created_at: at,
        expires_at: at.plus(DAY),
    };
    let (scope_a, first) = (scope(&who, "POST /a"), kept(1, world.now()));
    let put = async |scope: &Scope, kept: &StoredResponse, expired: Option<Timestamp>| {
        let mut tx = world.gate_begin().await;
        let outcome = tx.response_put(scope, kept, expired).await.unwrap();
        tx.commit().await.unwrap();
        outcome
    };
    let get = async |scope: &Scope| {
        let store = &world.fixture.gate().store;
        let seen = store.response_get(scope).await.unwrap();
        assert_eq!(seen.at, world.now());
        seen.value
    };
    assert_eq!(get(&scope_a).await, None);
    assert_eq!(put(&scope_a, &first, None).await, Cas::Won);
    world.clock().advance(DAY);
    let second = kept(2, world.now());
    assert_eq!(put(&scope_a, &second, None).await, Cas::Lost);
    let expired = Some(second.created_at);
    assert_eq!(put(&scope_a, &second, expired).await, Cas::Lost);
    assert_eq!(get(&scope_a).await, Some(first.clone()));
    let expired = Some(first.created_at);
    assert_eq!(put(&scope_a, &second, expired).await, Cas::Won);
    for elsewhere in [scope(&who, "POST /b"), scope(&other, "POST /a")] {
        assert_eq!(get(&elsewhere).await, None);
    }
    assert_eq!(get(&scope_a).await, Some(second.clone()));
    let gate = expired_keys(Service::Gate);
    world.clock().set(second.expires_at.minus(MILLI));
    assert_eq!(world.sweep_keys(gate, 10).await.deleted, 0);
    world.clock().advance(MILLI);
    for foreign in [
        expired_keys(Service::Pools),
        KeySweep {
            mode: Mode::Live,
            ..gate
        },
    ] {
        assert_eq!(
            world.sweep_keys(foreign, 10).await.deleted,
            0,
            "{foreign:?}"
        );
    }
    assert_eq!(get(&scope_a).await, Some(second));
    assert_eq!(world.sweep_keys(gate, 10).await.deleted, 1);
    assert_eq!(get(&scope_a).await, None);
    // A row written by a release without the expiry column counts for one day.
    for held in ["NULL", "created_at"] {
        let again = kept(3, world.now());
        assert_eq!(put(&scope_a, &again, None).await, Cas::Won);
        let sql = format!("UPDATE answers SET expires_at = {held}");
        world.fixture.damage(&sql).await;
        assert_eq!(get(&scope_a).await, Some(again));
        world.clock().advance(DAY);
        assert_eq!(world.sweep_keys(gate, 10).await.deleted, 1, "{held}");
    }
}

// rule: gate.quota.exact
pub async fn changed_tally_is_not_overwritten(world: World<impl GateFixture>) {
    let who = world.member_with("acme", Mode::Live, &profile()).await.who;
    let tally = |month: &str, created| Tally {
        month: Month::parse(month).unwrap(),
        created,
    };
    let put = async |before: Option<&Tally>, after: &Tally| {
        let mut tx = world.gate_begin().await;
        let outcome = tx.tally_put(&who, before, after).await.unwrap();
        tx.commit().await.unwrap();
        outcome
    };
    let (first, second, june) = (
        tally("2026-05", 1),
        tally("2026-05", 2),
        tally("2026-06", 1),
    );
    assert_eq!(put(None, &first).await, Cas::Won);
    assert_eq!(put(None, &first).await, Cas::Lost);
    assert_eq!(put(Some(&first), &second).await, Cas::Won);
    assert_eq!(put(Some(&first), &second).await, Cas::Lost);
    assert_eq!(put(Some(&second), &june).await, Cas::Won);
    let seen = world.fixture.gate().store.tally_get(&who).await.unwrap();
    assert_eq!(seen.value, Some(june));
}

// rule: gate.branding.no-lost-update, gate.branding.fields
pub async fn stale_branding_revision_is_refused(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let put = async |branding: &Branding| {
        let mut tx = world.gate_begin().await;
        let outcome = tx.branding_put(&who, branding).await.unwrap();
        tx.commit().await.unwrap();
        outcome
    };
    let gate = world.fixture.gate().store.clone();
    let absent = gate.branding_get(&who).await.unwrap().value;
    assert_eq!(absent, Branding::default());
    let mut branding = Branding {
        logo_url: Some("https://cdn.example/l".to_owned()),
        primary_color: Some("#111111".to_owned()),
        secondary_color: None,
        accent_color: Some("#333333".to_owned()),
        brand_name: Some("<Acme>".to_owned()),
        revision: 2,
    };
    assert_eq!(put(&branding).await, Cas::Lost);
    branding.revision = 1;
    assert_eq!(put(&branding).await, Cas::Won);
    assert_eq!(put(&branding).await, Cas::Lost);
    branding.revision = 2;
    branding.logo_url = None;
    assert_eq!(put(&branding).await, Cas::Won);
    assert_eq!(gate.branding_get(&who).await.unwrap().value, branding);
}

// rule: gate.session.access-again, tenancy.nothing-crosses
pub async fn key_lookup_returns_gate_profile(world: World<impl GateFixture>) {
    let member = world.member("acme").await;
    let other = world.member("other").await;
    let find = async || {
        let found = world
            .ports()
            .gate_directory
            .access_find(Mode::Test, &member.hash);
        found.await.unwrap().unwrap().profile.clone()
    };
    assert_eq!(find().await, GateProfile::default());
    let full = GateProfile {
        enabled: true,
        allowed_domains: [
            "https://bücher.example",
            "http://localhost:3000",
            "http://127.0.0.1:*",
        ]
        .iter()
        .map(|text| AllowedDomain::parse(text, Mode::Test).unwrap())
        .collect(),
        flow_sessions: true,
        kyc_trusted: false,
        rails: true,
        preview_locks: false,
        live_session_quota: Some(1_000),
        create_session_limit: create_session_limit("90/45s"),
        merchant: Merchant {
            legal_name: Some("Bücher & Söhne GmbH".to_owned()),
            support_url: Some("https://bücher.example/help".to_owned()),
            terms_url: Some("https://bücher.example/terms".to_owned()),
            privacy_url: None,
        },
    };
    let mut tx = world.provision_begin("gate").await;
    assert_eq!(tx.gate_profile_get(&member.who).await.unwrap(), None);
    tx.gate_profile_put(&member.who, &full).await.unwrap();
    let stored = tx.gate_profile_get(&member.who).await.unwrap();
    assert_eq!(stored.as_ref(), Some(&full));
    tx.commit().await.unwrap();
    assert_eq!(find().await, full);
    let mut tx = world.gate_begin().await;
    let within = tx.access_get(&member.who, member.key).await;
    let within = within.unwrap().unwrap();
    assert_eq!((&within.profile, &within.tenant), (&full, &member.who));
    let foreign = tx.access_get(&member.who, other.key).await;
    assert!(foreign.unwrap().is_none());
    let is_set = tx.endpoint_is_set(&member.who, Service::Gate).await;
    assert!(!is_set.unwrap());
}

// rule: webhook.replay, gate.webhook-tools.list, gate.webhook-tools.replay, tenancy.foreign-is-absent
pub async fn only_dead_letter_is_replayed(world: World<impl GateFixture>) {
    let member = world.member("acme").await;
    let other = world.member("other").await.who;
    let url = "https://shop.example/hooks";
    world.listen(&member, Service::Gate, url).await;
    let who = &member.who;
    let mut said = Vec::new();
    for (object, id) in [("a", "e1"), ("a", "e2"), ("b", "e3")] {
        world.clock().advance(MILLI);
        let event = world.gate_event(who, object, "webhook.test", id);
        world.say(&event).await.unwrap();
        said.push(event);
    }
    let deliveries = world.fixture.gate().deliveries.clone();
    let page = async |status, skip| {
        let filter = DeliveryFilter {
            status,
            skip,
            ..DeliveryFilter::default()
        };
        let page = deliveries
            .deliveries_page(who, Service::Gate, filter, 2)
            .await
            .unwrap();
        page.into_iter()
            .map(|view| view.record.event_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(page(None, 0).await, ["e3", "e2"]);
    assert_eq!(page(None, 2).await, ["e1"]);
    assert_eq!(page(Some("dead_lettered"), 0).await, Vec::<String>::new());
    let replay = async |who: &Tenant, at: usize| {
        deliveries
            .delivery_replay(who, Service::Gate, said[at].delivery)
            .await
            .unwrap()
    };
    assert_eq!(replay(who, 0).await.unwrap().0, Cas::Lost);
    assert!(replay(&other, 0).await.is_none());

    let order = world.gate_order();
    for claimed in world.claim_by(&order).await {
        let given_up = world.conclude(order.token, &claimed, GivenUp).await;
        assert_eq!(given_up, Cas::Won);
    }
    assert_eq!(page(Some("dead_lettered"), 0).await, ["e3", "e1"]);
    world.clock().advance(Duration::from_secs(60));
    let (outcome, view) = replay(who, 0).await.unwrap();
    assert_eq!((outcome, view.target_url.as_str()), (Cas::Won, url));
    let due = DeliveryState::Pending { due: world.now() };
    assert_eq!(
        (view.record.progress.state, view.record.progress.attempts),
        (due, 0)
    );
    let read = deliveries
        .delivery_get(who, Service::Gate, said[0].delivery)
        .await
        .unwrap();
    assert_eq!(read, Some(view));
    let foreign = deliveries.delivery_get(who, Service::Pools, said[0].delivery);
    assert_eq!(foreign.await.unwrap(), None);
    assert_eq!(replay(who, 0).await.unwrap().0, Cas::Lost);
    // The replay comes before the later event of its object, under its original event id.
    let claimed = world.claim_by(&order).await;
    let ids: Vec<&str> = claimed
        .iter()
        .map(|claimed| claimed.event.id.as_str())
        .collect();
    assert_eq!(ids, ["e1"]);
}

// rule: gate.webhook-tools.list, tenancy.foreign-is-absent
pub async fn delivery_pages_are_contiguous_for_every_status(world: World<impl GateFixture>) {
    let (acme, other) = (world.member("acme").await, world.member("other").await);
    for member in [&acme, &other] {
        let url = "https://shop.example/hooks";
        world.listen(member, Service::Gate, url).await;
    }
    let mut events = Vec::new();
    for number in 0..8_u32 {
        // Two events of a partner have the same instant.
        if number.is_multiple_of(2) {
            world.clock().advance(MILLI);
        }
        for member in [&other, &acme] {
            let (object, id) = (format!("o{number}"), format!("e{number}"));
            let event = world.gate_event(&member.who, &object, "webhook.test", &id);
            world.say(&event).await.unwrap();
            events.push(event);
        }
    }
    let request = world.gate_order();
    for claimed in world.claim_by(&request).await {
        let outcome = match claimed.event.id.as_str() {
            "e0" | "e3" => Delivered,
            "e1" | "e4" => GivenUp,
            "e2" | "e5" => Released,
            _ => continue,
        };
        let concluded = world.conclude(request.token, &claimed, outcome).await;
        assert_eq!(concluded, Cas::Won);
    }
    events.retain(|event| event.tenant == acme.who);
    events.sort_by_key(|event| Reverse((event.created_at, event.delivery)));
    let deliveries = world.fixture.gate().deliveries.clone();
    for (status, ids) in [
        (None, "e0 e1 e2 e3 e4 e5 e6 e7"),
        (Some("succeeded"), "e0 e3"),
        (Some("dead_lettered"), "e1 e4"),
        (Some("pending"), "e2 e5"),
        (Some("in_flight"), "e6 e7"),
    ] {
        let listed = events.iter().map(|event| event.id.as_str());
        let listed: Vec<&str> = listed.filter(|id| ids.contains(*id)).collect();
        for limit in 1..=3 {
            let mut read = Vec::new();
            loop {
                let skip = u32::try_from(read.len()).unwrap();
                let filter = DeliveryFilter {
                    status,
                    skip,
                    ..DeliveryFilter::default()
                };
                let page = deliveries.deliveries_page(&acme.who, Service::Gate, filter, limit);
                let page = page.await.unwrap();
                if page.is_empty() {
                    break;
                }
                read.extend(page.into_iter().map(|view| view.record.event_id));
            }
            assert_eq!(read, listed, "{status:?}, {limit}");
            let (mut read, mut after) = (Vec::new(), None);
            loop {
                let filter = DeliveryFilter {
                    status,
                    after,
                    ..DeliveryFilter::default()
                };
                let page = deliveries.deliveries_page(&acme.who, Service::Gate, filter, limit);
                let page = page.await.unwrap();
                let Some(last) = page.last() else {
                    break;
                };
                after = Some(last.record.id);
                read.extend(page.into_iter().map(|view| view.record.event_id));
            }
            assert_eq!(read, listed, "after the last one, {status:?}, {limit}");
        }
        let filter = DeliveryFilter {
            status,
            ..DeliveryFilter::default()
        };
        let pools = deliveries.deliveries_page(&acme.who, Service::Pools, filter, 3);
        assert!(pools.await.unwrap().is_empty());
    }
}

// rule: webhook.replay, webhook.one-holder
pub async fn replay_with_concurrent_workers_is_delivered_once(world: World<impl GateFixture>) {
    let member = world.member("acme").await;
    let url = "https://shop.example/hooks";
    world.listen(&member, Service::Gate, url).await;
    let who = &member.who;
    let event = world.gate_event(who, "a", "webhook.test", "e1");
    world.say(&event).await.unwrap();
    let deliveries = world.fixture.gate().deliveries.clone();
    let replay = async || {
        let replayed = deliveries.delivery_replay(who, Service::Gate, event.delivery);
        replayed.await.unwrap().unwrap().0
    };
    for _ in 0..8 {
        let first = world.gate_order();
        let given_up = world.claim_by(&first).await.remove(0);
        let concluded = world.conclude(first.token, &given_up, GivenUp);
        assert_eq!(concluded.await, Cas::Won);
        let orders = [(); 3].map(|()| world.gate_order());
        // Two workers claim during two concurrent replays; a third worker claims after both.
        let (one, two, soon, later) = tokio::join!(
            replay(),
            replay(),
            world.claim_by(&orders[0]),
            world.claim_by(&orders[1]),
        );
        let last = world.claim_by(&orders[2]).await;
        let won = [one, two].into_iter().filter(|asked| *asked == Cas::Won);
        assert_eq!(won.count(), 1);
        let held: Vec<_> = orders
            .iter()
            .zip([soon, later, last])
            .flat_map(|(order, claimed)| claimed.into_iter().map(|it| (order.token, it)))
            .collect();
        let [(token, claimed)] = &held[..] else {
            panic!("{} hold it", held.len())
        };
        // The worker that recorded the dead letter can no longer conclude the delivery.
        let late = world.conclude(first.token, &given_up, Delivered).await;
        assert_eq!(late, Cas::Lost);
        let back = world.conclude(*token, claimed, Released).await;
        assert_eq!(back, Cas::Won);
    }
}
