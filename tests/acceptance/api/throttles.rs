//! Request limits: what is counted, per key or address, and the response headers.

use std::net::IpAddr;
use std::time::Duration;

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, ACME_SECRET_2, Answer, Call, RIVAL_SECRET, World,
};
use partner_core::throttle::Tier;

use crate::routes;

pub(crate) fn tier(name: &'static str, limit: u32, seconds: u64) -> Tier {
    Tier {
        name,
        limit,
        per: Duration::from_secs(seconds),
    }
}

async fn limited(short: u32, medium: u32) -> World {
    World::with(|setup| {
        setup.tiers = Some(vec![tier("short", short, 1), tier("medium", medium, 60)])
    })
    .await
}

async fn ask(world: &World, key: &str) -> Answer {
    world.send(Call::get("/v1/pools").bearer(key)).await
}

/// Limit, remaining and reset of a tier.
pub(crate) fn tier_status(answer: &Answer, tier: &str) -> (u64, u64, u64) {
    let number = |part: &str| answer.number(&format!("x-ratelimit-{part}-{tier}"));
    (number("limit"), number("remaining"), number("reset"))
}

// rule: throttle.headers, throttle.window, throttle.exact
#[tokio::test]
async fn every_response_shows_the_tier_status() {
    let world = limited(3, 5).await;
    for (remaining, medium) in [(2, 4), (1, 3), (0, 2)] {
        let answer = ask(&world, ACME_SECRET).await;
        assert_eq!(tier_status(&answer, "short"), (3, remaining, 1));
        assert_eq!(tier_status(&answer, "medium"), (5, medium, 60));
        assert_eq!(
            (
                answer.header("retry-after"),
                answer.header("retry-after-short")
            ),
            (None, None)
        );
        answer.ok();
    }
    world.finish().await;
}

// rule: throttle.refusal, throttle.exact
#[tokio::test]
async fn short_tier_refuses_and_opens_again() {
    let world = limited(3, 100).await;
    for _ in 0..3 {
        ask(&world, ACME_SECRET).await.ok();
    }
    world.after(400);
    for _ in 0..5 {
        let answer = ask(&world, ACME_SECRET).await.refused(429, "rate_limited");
        assert_eq!(tier_status(&answer, "short"), (3, 0, 1));
        assert_eq!(
            tier_status(&answer, "medium"),
            (100, 97, 60),
            "refusals do not count in any tier"
        );
        assert_eq!(
            (
                answer.number("retry-after"),
                answer.number("retry-after-short")
            ),
            (1, 1)
        );
        assert_eq!(answer.header("retry-after-medium"), None);
    }
    world.after(599);
    ask(&world, ACME_SECRET).await.refused(429, "rate_limited");
    world.after(1);
    let answer = ask(&world, ACME_SECRET).await;
    assert_eq!(tier_status(&answer, "short"), (3, 2, 1));
    answer.ok();
    world.finish().await;
}

// rule: throttle.window, throttle.refusal
#[tokio::test]
async fn medium_tier_refuses_until_its_own_window_closes() {
    let world = limited(10, 4).await;
    for _ in 0..4 {
        ask(&world, ACME_SECRET).await.ok();
        world.after(1_000);
    }
    let answer = ask(&world, ACME_SECRET).await.refused(429, "rate_limited");
    assert_eq!(
        (
            tier_status(&answer, "medium"),
            tier_status(&answer, "short")
        ),
        ((4, 0, 56), (10, 10, 1))
    );
    // Clients read `Retry-After-short`, whichever tier is exhausted.
    for name in ["retry-after", "retry-after-medium", "retry-after-short"] {
        assert_eq!(answer.number(name), 56, "{name}");
    }
    // A fixed window: it closes a minute after its first request, not after its last.
    world.after(55_999);
    ask(&world, ACME_SECRET).await.refused(429, "rate_limited");
    world.after(1);
    ask(&world, ACME_SECRET).await.ok();
    world.finish().await;
}

// rule: throttle.per-credential
#[tokio::test]
async fn each_key_has_a_window_of_its_own_over_all_routes() {
    let world = limited(12, 100).await;
    let acme = world.acme();
    let refused = |answer: &Answer| answer["code"] == "rate_limited";
    for (operation, call) in routes::all(None) {
        let answer = world.send(call.bearer(ACME_SECRET)).await;
        assert!(!refused(&answer), "{}", operation.id);
    }
    for (_, call) in routes::all(None) {
        world
            .send(call.bearer(ACME_SECRET))
            .await
            .refused(429, "rate_limited");
    }
    // The partner's other key, other partners and the address are still below their limits.
    for key in [ACME_SECRET_2, ACME_PUBLISHABLE, RIVAL_SECRET] {
        ask(&world, key).await.ok();
    }
    let elsewhere = Call::get("/v1/pools")
        .bearer(ACME_SECRET)
        .from([203, 0, 113, 9]);
    world.send(elsewhere).await.refused(429, "rate_limited");
    world.after(1_000);
    acme.get("/v1/pools").await.ok();
    world.finish().await;
}

// rule: throttle.refusal
#[tokio::test]
async fn throttled_request_has_no_effect() {
    let world = limited(4, 100).await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100").await;
    for _ in 0..3 {
        ask(&world, ACME_SECRET).await.ok();
    }
    world.engine().asked();
    let before = world.database().digest().await;
    acme.transact("EUR-USDT", &quote, "k")
        .await
        .refused(429, "rate_limited");
    acme.reject(&quote).await.refused(429, "rate_limited");
    acme.ask("EUR-USDT", &acceptance::purchase("EUR-USDT", "10"))
        .await
        .refused(429, "rate_limited");
    assert_eq!(
        (world.database().digest().await, world.engine().asked()),
        (before, vec![])
    );
    world.after(1_000);
    assert_eq!(
        acme.transact("EUR-USDT", &quote, "k").await.ok()["idempotent"],
        false
    );
    world.finish().await;
}

// rule: auth.failures-counted
#[tokio::test]
async fn guesses_are_counted_against_the_address() {
    let world = limited(5, 100).await;
    let guess = |peer: [u8; 4], at: usize| {
        let call = match at % 3 {
            0 => Call::get("/v1/pools"),
            1 => Call::get("/v1/pools/trades").bearer("sk_test_NobodyNobodyNobodyNobodyNobody99"),
            _ => Call::post("/v1/pools/EUR-USDT/quote").query("k=sk_test_x"),
        };
        call.from(peer)
    };
    let (one, other) = ([203, 0, 113, 1], [203, 0, 113, 2]);
    for at in 0..5_usize {
        let answer = world.send(guess(one, at)).await;
        assert_eq!(
            (answer.status, tier_status(&answer, "short").1),
            (401, 4 - at as u64)
        );
    }
    for at in 0..6 {
        let answer = world
            .send(guess(one, at))
            .await
            .refused(429, "rate_limited");
        assert_eq!(answer.number("retry-after"), 1);
    }
    assert_eq!(world.send(guess(other, 0)).await.status, 401);
    // A good key from the same address is served, because it is counted separately.
    world
        .send(Call::get("/v1/pools").bearer(ACME_SECRET).from(one))
        .await
        .ok();
    world.after(1_000);
    assert_eq!(world.send(guess(one, 0)).await.status, 401);
    world.finish().await;
}

// rule: auth.failures-counted, throttle.network
#[tokio::test]
async fn guesses_of_one_ipv6_network_are_counted_together() {
    let world = limited(5, 100).await;
    let guess = async |address: String| {
        let address: IpAddr = address.parse().unwrap();
        world.send(Call::get("/v1/pools").from(address)).await
    };
    for at in 0..5 {
        let answer = guess(format!("2001:db8:0:1::{at:x}")).await;
        assert_eq!(
            (answer.status, tier_status(&answer, "short").1),
            (401, 4 - at)
        );
    }
    let refused = guess("2001:db8:0:1:1:2:3:4".to_owned()).await;
    refused.refused(429, "rate_limited");
    assert_eq!(guess("2001:db8:0:2::1".to_owned()).await.status, 401);
    world.finish().await;
}

// rule: throttle.spoofed-forwarding
#[tokio::test]
async fn untrusted_client_cannot_set_its_own_address() {
    let world = limited(2, 100).await;
    for at in 0..4 {
        let call = Call::get("/v1/pools").header("x-forwarded-for", &format!("198.51.100.{at}"));
        let call = call
            .header("forwarded", "for=198.51.100.7")
            .header("x-real-ip", "198.51.100.8");
        assert_eq!(
            world.send(call).await.status,
            if at < 2 { 401 } else { 429 }
        );
    }
    world.finish().await;
}

// rule: throttle.client-address
#[tokio::test]
async fn rightmost_untrusted_address_is_the_client_behind_a_proxy() {
    let world = World::with(|setup| {
        setup.tiers = Some(vec![tier("short", 1, 1)]);
        setup.proxies = vec!["10.0.0.0/8".to_owned()];
    })
    .await;
    let status = async |forwarded: &str| {
        let call = Call::get("/v1/pools")
            .from([10, 1, 2, 3])
            .header("x-forwarded-for", forwarded);
        world.send(call).await.status
    };
    assert_eq!(status("198.51.100.1").await, 401);
    assert_eq!(status("198.51.100.2, 10.9.9.9").await, 401);
    // The client's own entries on the left are ignored.
    assert_eq!(status("198.51.100.77, 198.51.100.1").await, 429);
    assert_eq!(
        status("198.51.100.78, 198.51.100.2, 10.9.9.9, 10.1.1.1").await,
        429
    );
    assert_eq!(status("198.51.100.3").await, 401);
    world.finish().await;
}

// rule: throttle.exempt
#[tokio::test]
async fn pages_and_probes_are_never_throttled() {
    let world = limited(1, 1).await;
    ask(&world, ACME_SECRET).await.ok();
    world
        .send(Call::get("/v1/pools"))
        .await
        .refused(401, "unauthorized");
    world
        .send(Call::get("/v1/pools"))
        .await
        .refused(429, "rate_limited");
    for path in [
        "/health",
        "/health/ready",
        "/openapi/pools-v1.yaml",
        "/openapi/pools-v1.json",
        "/docs",
        "/",
    ] {
        for _ in 0..3 {
            let answer = world.send(Call::get(path)).await;
            let status = if path == "/" { 307 } else { 200 };
            assert_eq!(
                (answer.status, answer.header("x-ratelimit-limit-short")),
                (status, None),
                "{path}"
            );
        }
    }
    world.finish().await;
}

// rule: throttle.headers, access.order
#[tokio::test]
async fn refusals_of_known_keys_show_the_tier_status_and_count_nothing() {
    let world = limited(5, 50).await;
    world
        .operator()
        .change(ACME, |profile| profile.enabled = false)
        .await;
    for _ in 0..10 {
        let answer = world
            .acme()
            .get("/v1/pools/EUR-USDT/balance")
            .await
            .refused(403, "pools_not_enabled");
        assert_eq!(tier_status(&answer, "medium"), (50, 50, 60));
    }
    world.finish().await;
}

// rule: auth.failures-counted, auth.other-mode
#[tokio::test]
async fn key_of_other_mode_or_unavailable_store_counts_as_no_guess() {
    let world = limited(5, 50).await;
    let replica = world.replica().await;
    replica.operator().close_store().await;
    let live = ACME_SECRET.replacen("_test_", "_live_", 1);
    for _ in 0..10 {
        let answer = ask(&world, &live).await.refused(403, "key_mode_mismatch");
        assert_eq!(tier_status(&answer, "medium"), (50, 50, 60));
        let answer = ask(&replica, ACME_SECRET).await;
        assert_eq!(answer.status, 503);
        assert_eq!(tier_status(&answer, "medium"), (50, 50, 60));
    }
    replica.close().await;
    world.finish().await;
}

// rule: throttle.per-credential
#[tokio::test]
async fn disabled_throttles_send_no_limit_and_no_header() {
    let world = World::with(|setup| setup.tiers = None).await;
    for at in 0..20 {
        let key = if at % 2 == 0 {
            ACME_SECRET
        } else {
            "sk_test_NobodyNobodyNobodyNobodyNobody99"
        };
        let answer = ask(&world, key).await;
        assert_eq!(answer.status, if at % 2 == 0 { 200 } else { 401 });
        let told = answer
            .headers
            .keys()
            .any(|name| name.as_str().contains("ratelimit"));
        assert!(!told, "{:?}", answer.headers);
    }
    world.finish().await;
}

// rule: throttle.exact, throttle.per-credential
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_are_admitted_exactly_up_to_the_limit() {
    let world = limited(100, 3_000).await;
    let storm = (0..400).map(|_| {
        let world = world.clone();
        tokio::spawn(async move { ask(&world, ACME_SECRET).await.status })
    });
    let mut admitted = 0;
    for answer in storm.collect::<Vec<_>>() {
        match answer.await.unwrap() {
            // On a busy machine, an admitted request may wait too long for the database.
            200 | 503 => admitted += 1,
            status => assert_eq!(status, 429),
        }
    }
    assert_eq!(admitted, 100);
    world.finish().await;
}
