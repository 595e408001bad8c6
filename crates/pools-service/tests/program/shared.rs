//! Two services with one database and one Redis, which is killed and restarted.

use std::time::{Duration, Instant};

use test_support::servers::Redis;

use crate::served::{POOLS, Served, eventually, file_for_acme, get, json, provision};

const KEY: &str = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001";

fn are_counted(services: [&Served; 2], how: &str) {
    for served in services {
        eventually(|| (limits(served) == how).then_some(()));
    }
}

/// The state of the limits in the readiness response. The service is ready in every such state.
fn limits(served: &Served) -> String {
    let response = served.get("/health/ready");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    json(&response)["checks"]["limits"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn metric(served: &Served, series: &str) -> String {
    let metrics = get(&served.metrics_address(), "/metrics");
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("{series} in\n{metrics}"))
        .to_owned()
}

/// The number of requests that found no Redis.
fn unanswered(served: &Served) -> String {
    metric(
        served,
        r#"penstock_redis_calls_total{call="throttle",answer="none"}"#,
    )
}

/// Whether a request is admitted. Panics if the response takes twenty seconds or longer.
#[expect(
    clippy::disallowed_methods,
    reason = "the test measures the duration of a request"
)]
fn admitted(served: &Served) -> bool {
    let bearer = format!("Bearer {KEY}");
    let begun = Instant::now();
    let response = served.send("GET /v1/pools", &[("Authorization", &bearer)], "");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let status = response.get(9..12).unwrap();
    assert!(["200", "429"].contains(&status), "{response}");
    status == "200"
}

/// The number of admitted requests out of thirty, sent to two services in turn.
fn admitted_of_thirty(services: [&Served; 2]) -> usize {
    let turns = services.iter().cycle().take(30);
    turns.filter(|served| admitted(served)).count()
}

// rule: throttle.shared, throttle.exact, health.limits, idempotency.cache-decides-nothing
#[test]
fn services_share_one_limit_and_continue_without_redis() {
    let mut redis = Redis::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(KEY, None));
    let url = redis.url();
    let variables = [
        ("REDIS_URL", url.as_str()),
        ("METRICS_LISTEN", "127.0.0.1:0"),
        ("THROTTLE_POOLS", "20/1h"),
    ];
    let one = POOLS.start(folder.path(), &variables);
    let other = POOLS.start(folder.path(), &variables);
    let both = [&one, &other];

    // On a busy machine a service may consider Redis unavailable for a moment. The test then repeats the requests with empty
    // windows.
    let undisturbed = (0..10).any(|_| {
        are_counted(both, "shared");
        let before = both.map(unanswered);
        let admitted = admitted_of_thirty(both);
        let undisturbed = both.map(unanswered) == before;
        if undisturbed {
            assert_eq!(admitted, 20);
        } else {
            redis.kill().unwrap();
            redis.start_again().unwrap();
        }
        undisturbed
    });
    assert!(undisturbed);
    let redis_up = || both.map(|served| metric(served, "penstock_redis_up{}"));
    eventually(|| (redis_up() == ["1", "1"]).then_some(()));

    redis.kill().unwrap();
    are_counted(both, "apart");
    eventually(|| (redis_up() == ["0", "0"]).then_some(()));
    // Each service continues with the requests it has admitted itself, which are half of the twenty.
    assert!(admitted_of_thirty(both) <= 20);

    redis.start_again().unwrap();
    are_counted(both, "shared");
    assert!(admitted(&one) && admitted(&other));

    for served in [one, other] {
        let (code, logged) = served.end("-TERM");
        assert_eq!(code, Some(0), "{logged}");
        let changes: Vec<bool> = logged
            .lines()
            .filter(|line| line.contains("Limits are "))
            .map(|line| line.contains("Limits are shared"))
            .collect();
        let once_each = changes.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(once_each && changes.len() >= 3, "{changes:?}");
        assert!(!logged.contains(KEY), "{logged}");
    }
}

// rule: health.limits
#[test]
fn service_starts_while_redis_is_unavailable() {
    let mut redis = Redis::start().unwrap();
    redis.kill().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = redis.url();
    let served = POOLS.start(folder.path(), &[("REDIS_URL", &url)]);
    assert_eq!(limits(&served), "apart");
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0));
    assert!(
        logged.contains("Limits are counted in this process"),
        "{logged}"
    );
    let alone = POOLS.start(folder.path(), &[]);
    assert!(!alone.get("/health/ready").contains("limits"));
    alone.end("-TERM");
}
