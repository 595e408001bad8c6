//! The gate's limits: documented routes per key, all other requests and refused keys per address.

use std::net::IpAddr;

use acceptance::{
    ACME, ACME_SECRET, ACME_SECRET_2, Call, Gate, RIVAL_SECRET, SHOP, Setup, limits, session,
};
use gate_core::limits::Group;

use crate::throttles::{tier, tier_status};

const UNKNOWN: &str = "gs_test_01HF7YAT00408104G208104081";

/// The documented limits.
fn documented(setup: &mut Setup) {
    let own = |limit| vec![tier("short", limit, 60)];
    setup.gate_limits = Some(limits(|group| match group {
        Group::CreateSession | Group::EmbedQuotes => own(10),
        Group::CancelSession | Group::Preview | Group::Bootstrap => own(30),
        Group::ListSessions | Group::ListTransactions | Group::Capabilities | Group::Embed => {
            own(60)
        }
        Group::BootstrapCeiling => vec![tier("medium", 6_000, 60)],
        Group::EmbedPayments => own(5),
        Group::Global => vec![
            tier("short", 10, 10),
            tier("medium", 60, 60),
            tier("long", 300, 3600),
        ],
    }));
}

// rule: throttle.gate-routes, throttle.preview, throttle.headers, throttle.window, throttle.refusal
#[tokio::test]
async fn route_limit_counts_each_key() {
    let gate = Gate::with(documented).await;
    let cancel = format!("/v1/gate_sessions/{UNKNOWN}/cancel");
    for (method, path, limit) in [
        ("POST", "/v1/gate_sessions", 10),
        ("POST", cancel.as_str(), 30),
        ("GET", "/v1/gate_sessions", 60),
        ("GET", "/v1/transactions", 60),
        ("GET", "/v1/capabilities/eligibility", 60),
        ("POST", "/v1/quotes/preview", 30),
    ] {
        let call = |key: &str| Call::new(method, path).bearer(key);
        for at in 1..=limit {
            let answer = gate.send(call(ACME_SECRET)).await;
            assert!(answer.status != 429, "{path} {at}");
            assert_eq!(tier_status(&answer, "short"), (limit, limit - at, 60));
            assert_eq!(answer.header("x-ratelimit-limit-medium"), None);
        }
        gate.world().after(1_500);
        let elsewhere = call(ACME_SECRET).from([203, 0, 113, 9]);
        let refused = gate.send(elsewhere).await.refused(429, "rate_limited");
        assert_eq!(tier_status(&refused, "short"), (limit, 0, 59));
        let waits = (
            refused.number("retry-after"),
            refused.number("retry-after-short"),
        );
        assert_eq!(waits, (59, 59));
        // Another key, also of the same partner, has its own limit.
        for key in [ACME_SECRET_2, RIVAL_SECRET] {
            assert_eq!(
                tier_status(&gate.send(call(key)).await, "short").1,
                limit - 1
            );
        }
        gate.world().after(58_500);
        let again = gate.send(call(ACME_SECRET)).await;
        assert_eq!(tier_status(&again, "short"), (limit, limit - 1, 60));
    }
    gate.finish().await;
}

// rule: throttle.create-session-of-partner, throttle.gate-routes, throttle.headers
#[tokio::test]
async fn partner_has_its_own_limit_of_creates() {
    let gate = Gate::with(documented).await;
    let own = gate_core::profile::create_session_limit("12/90s");
    let operator = gate.world().operator();
    operator
        .change_gate(ACME, |gate| gate.create_session_limit = own)
        .await;
    let call = |key: &str| Call::post("/v1/gate_sessions").bearer(key);
    for at in 1..=12 {
        let answer = gate.send(call(ACME_SECRET)).await;
        assert_eq!(tier_status(&answer, "short"), (12, 12 - at, 90));
    }
    let refused = gate.send(call(ACME_SECRET)).await;
    let refused = refused.refused(429, "rate_limited");
    assert_eq!(refused.number("retry-after-short"), 90);
    // Each of the partner's keys is counted, and other partners keep the service's limit.
    let other_key = gate.send(call(ACME_SECRET_2)).await;
    assert_eq!(tier_status(&other_key, "short"), (12, 11, 90));
    let rival = gate.send(call(RIVAL_SECRET)).await;
    assert_eq!(tier_status(&rival, "short"), (10, 9, 60));
    // Other routes are unaffected.
    let list = Call::get("/v1/gate_sessions").bearer(ACME_SECRET);
    assert_eq!(tier_status(&gate.send(list).await, "short"), (60, 59, 60));
    gate.finish().await;
}

// rule: throttle.capabilities
#[tokio::test]
async fn capabilities_share_one_limit_of_a_key() {
    let gate = Gate::with(documented).await;
    let paths = [
        "countries",
        "currencies",
        "assets",
        "assets/USDT",
        "payment-methods",
        "payout-methods",
        "eligibility",
    ];
    for (at, path) in paths.into_iter().enumerate() {
        let answer = gate.acme().get(&format!("/v1/capabilities/{path}")).await;
        let left = 59 - at as u64;
        assert_eq!(tier_status(&answer, "short"), (60, left, 60), "{path}");
    }
    gate.finish().await;
}

// rule: throttle.gate-global, throttle.headers, throttle.refusal
#[tokio::test]
async fn every_other_route_is_under_three_tiers_by_address() {
    let gate = Gate::with(documented).await;
    let one = [203, 0, 113, 1];
    let calls = || {
        [
            Call::get("/v1/branding").bearer(ACME_SECRET),
            Call::get(&format!("/v1/gate_sessions/{UNKNOWN}")).bearer(ACME_SECRET_2),
            Call::get("/v1/transactions/x").bearer(RIVAL_SECRET),
            Call::new("PATCH", "/v1/branding").bearer(RIVAL_SECRET),
            Call::post(&format!("/v1/test_helpers/sessions/{UNKNOWN}/fail")).bearer(ACME_SECRET),
        ]
        .map(|call| call.from(one))
    };
    for (at, call) in calls().into_iter().chain(calls()).enumerate() {
        let answer = gate.send(call).await;
        let at = at as u64 + 1;
        assert_eq!(tier_status(&answer, "short"), (10, 10 - at, 10));
        assert_eq!(tier_status(&answer, "medium"), (60, 60 - at, 60));
        assert_eq!(tier_status(&answer, "long"), (300, 300 - at, 3600));
    }
    for call in calls() {
        let refused = gate.send(call).await.refused(429, "rate_limited");
        let waits = (
            refused.number("retry-after"),
            refused.number("retry-after-short"),
        );
        assert_eq!(waits, (10, 10));
        assert_eq!(refused.header("retry-after-medium"), None);
        assert_eq!(
            tier_status(&refused, "medium").1,
            50,
            "refusals do not count in any tier"
        );
    }
    // The limit is checked before the key, so a guess learns nothing about the key.
    let strange = Call::get("/v1/branding").bearer("nonsense").from(one);
    gate.send(strange).await.refused(429, "rate_limited");
    // Another address is counted separately, and a route with its own limit is not under the tiers.
    let other = Call::get("/v1/branding")
        .bearer(ACME_SECRET)
        .from([203, 0, 113, 2]);
    gate.send(other).await.ok();
    let list = Call::get("/v1/gate_sessions").bearer(ACME_SECRET).from(one);
    gate.send(list).await.ok();
    gate.world().after(10_000);
    let [call, ..] = calls();
    let answer = gate.send(call).await;
    assert_eq!(tier_status(&answer, "short"), (10, 9, 10));
    assert_eq!(tier_status(&answer, "medium"), (60, 49, 50));
    gate.finish().await;
}

// rule: throttle.gate-global
#[tokio::test]
async fn medium_and_long_tiers_refuse() {
    let gate = Gate::with(|setup| {
        let tiers = [("short", 2, 10), ("medium", 6, 60), ("long", 12, 3600)];
        let tiers = tiers.map(|(name, limit, seconds)| tier(name, limit, seconds));
        let limits = setup.gate_limits.as_mut().unwrap();
        limits.set(Group::Global, tiers.into());
    })
    .await;
    let ask = || gate.send(Call::get("/v1/branding").bearer(ACME_SECRET));
    let mut sent = 0;
    let mut waits = Vec::new();
    while sent < 12 {
        let answer = ask().await;
        if answer.status == 200 {
            sent += 1;
            continue;
        }
        let answer = answer.refused(429, "rate_limited");
        let wait = answer.number("retry-after-short");
        assert_eq!(answer.number("retry-after"), wait);
        waits.push(wait);
        gate.world().after(wait * 1_000);
    }
    assert_eq!(waits, [10, 10, 40, 10, 10], "the minute's third ten");
    let long = ask().await.refused(429, "rate_limited");
    let hour = long.number("retry-after-long");
    assert_eq!((hour, long.number("retry-after")), (3_520, hour));
    assert_eq!(long.number("retry-after-short"), hour);
    gate.world().after(hour * 1_000);
    ask().await.ok();
    gate.finish().await;
}

// rule: auth.failures-counted, throttle.gate-global
#[tokio::test]
async fn guessed_key_counts_against_its_address_on_every_route() {
    let gate = Gate::with(documented).await;
    let one = [203, 0, 113, 1];
    let guess = |at: usize| {
        let call = match at % 4 {
            0 => Call::get("/v1/gate_sessions"),
            1 => Call::post("/v1/gate_sessions").json(&session(SHOP)),
            2 => Call::get("/v1/branding"),
            _ => Call::get("/v1/transactions").query(&format!("k={ACME_SECRET}")),
        };
        call.bearer("sk_test_NobodyNobodyNobodyNobodyNobody99")
            .from(one)
    };
    for at in 0..10_usize {
        let answer = gate.send(guess(at)).await;
        assert_eq!(answer.status, 401);
        assert_eq!(tier_status(&answer, "short").1, 9 - at as u64);
        assert_eq!(tier_status(&answer, "long").1, 299 - at as u64);
    }
    for at in 0..4 {
        let answer = gate.send(guess(at)).await.refused(429, "rate_limited");
        assert_eq!(answer.number("retry-after-short"), 10);
    }
    // A good key from the same address is served on routes that count each key.
    let good = Call::get("/v1/gate_sessions").bearer(ACME_SECRET).from(one);
    gate.send(good).await.ok();
    let global = Call::get("/v1/branding").bearer(ACME_SECRET).from(one);
    gate.send(global).await.refused(429, "rate_limited");
    gate.finish().await;
}

// rule: throttle.refusal, idempotency.gate-replay
#[tokio::test]
async fn refused_create_has_no_effect_and_a_repeat_counts() {
    let gate = Gate::with(documented).await;
    let acme = gate.acme();
    let id = acme.open_id("k").await;
    for _ in 0..9 {
        assert_eq!(acme.open_id("k").await, id);
    }
    let refused = acme.create(&session(SHOP), "k").await;
    refused.refused(429, "rate_limited");
    acme.create(&session(SHOP), "l")
        .await
        .refused(429, "rate_limited");
    assert_eq!(gate.world().database().count("sessions").await, 1);
    gate.world().after(60_000);
    // The first response, with current throttle headers.
    let again = acme.create(&session(SHOP), "k").await;
    assert_eq!(tier_status(&again, "short"), (10, 9, 60));
    assert_eq!(again.created()["id"], id);
    gate.notice(ACME, &id).await;
    gate.finish().await;
}

// rule: throttle.network, throttle.gate-global
#[tokio::test]
async fn addresses_of_one_ipv6_network_share_the_tiers() {
    let gate = Gate::with(documented).await;
    let ask = async |address: &str, forwarded: Option<&str>| {
        let address: IpAddr = address.parse().unwrap();
        let call = Call::get("/v1/branding").from(address);
        let call = match forwarded {
            Some(client) => call.header("x-forwarded-for", client),
            None => call,
        };
        gate.send(call).await
    };
    for at in 1..=10 {
        let answer = ask(&format!("2001:db8:0:1::{at:x}"), None).await;
        assert_eq!(answer.status, 401);
        assert_eq!(tier_status(&answer, "short"), (10, 10 - at, 10));
    }
    let refused = ask("2001:db8:0:1:ffff::1", None).await;
    refused.refused(429, "rate_limited");
    assert_eq!(ask("2001:db8:0:2::1", None).await.status, 401);
    // An IPv4-mapped IPv6 address counts as IPv4.
    assert_eq!(tier_status(&ask("203.0.113.1", None).await, "short").1, 9);
    let mapped = ask("::ffff:203.0.113.1", None).await;
    assert_eq!(tier_status(&mapped, "short").1, 8);
    gate.finish().await;
}

// rule: throttle.network, throttle.client-address
#[tokio::test]
async fn forwarded_addresses_of_one_ipv6_network_share_the_tiers() {
    let gate = Gate::with(|setup| {
        documented(setup);
        setup.proxies = vec!["10.0.0.0/8".to_owned()];
    })
    .await;
    let remaining = async |client: &str| {
        let call = Call::get("/v1/branding").from([10, 1, 2, 3]);
        let answer = gate.send(call.header("x-forwarded-for", client)).await;
        tier_status(&answer, "short").1
    };
    assert_eq!(remaining("2001:db8:0:1::1").await, 9);
    assert_eq!(remaining("[2001:db8:0:1::2]:443").await, 8);
    assert_eq!(remaining("::ffff:198.51.100.1").await, 9);
    assert_eq!(remaining("198.51.100.1").await, 8);
    gate.finish().await;
}

// rule: throttle.exempt, health.alive, health.ready
#[tokio::test]
async fn pages_and_probes_are_never_throttled() {
    let gate = Gate::with(|setup| {
        documented(setup);
        if let Some(limits) = &mut setup.gate_limits {
            let narrow = ["short", "medium", "long"].map(|name| tier(name, 1, 10));
            limits.set(Group::Global, narrow.into());
        }
    })
    .await;
    let ask = || gate.send(Call::get("/v1/branding"));
    assert_eq!(ask().await.status, 401);
    assert_eq!(ask().await.status, 429);
    for path in ["/health", "/health/ready", "/openapi/gate-v1.yaml", "/docs"] {
        for _ in 0..3 {
            let answer = gate.send(Call::get(path)).await;
            let found = (answer.status, answer.header("x-ratelimit-limit-short"));
            assert_eq!(found, (200, None), "{path}");
        }
    }
    gate.finish().await;
}

// rule: throttle.gate-routes, throttle.gate-global
#[tokio::test]
async fn disabled_throttles_send_no_limit_and_no_header() {
    let gate = Gate::with(|setup| setup.gate_limits = None).await;
    for at in 0..40 {
        let path = ["/v1/branding", "/v1/gate_sessions"][at % 2];
        let answer = gate.acme().get(path).await;
        let told = answer
            .headers
            .keys()
            .any(|it| it.as_str().contains("ratelimit"));
        assert!(!told && answer.status == 200);
    }
    gate.finish().await;
}
