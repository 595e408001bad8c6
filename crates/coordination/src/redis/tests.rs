//! Replicas with a real Redis that the tests empty, fill, kill, pause and restart.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use kernel::{Clock, Timestamp};
use partner_core::ports::{InFlight as _, Throttle as _};
use partner_core::throttle::{CountScope, ThrottleDecision, Tier};
use redis::TlsCertificates;
use test_support::servers::Redis as Server;
use tokio::task::{JoinHandle, JoinSet};

use super::*;
use crate::in_flight::tests::scope;
use crate::throttle::MemoryThrottle;
use crate::throttle::suite::{self, TestClock, ThrottleFixture, bucket, figures, tier};

/// Timeouts for a busy machine: a test of exact counts must not lose Redis.
const LONG_TIMEOUTS: RedisTimeouts = RedisTimeouts {
    response: Duration::from_secs(20),
    connection: Duration::from_secs(20),
    claim: Duration::from_secs(20),
};
/// Timeout of a test that waits for an asynchronous event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);

struct Random;

impl Entropy for Random {
    fn fill(&self, buffer: &mut [u8]) {
        fastrand::fill(buffer);
    }
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0).unwrap()
    }
}

/// A replica of a service with its background tasks.
struct Replica {
    shared: Arc<RedisConnection>,
    throttle: RedisThrottle,
    in_flight: RedisInFlight,
    background: JoinHandle<()>,
}

impl Replica {
    async fn of(server: &Server, patience: RedisTimeouts) -> Self {
        let url = RedisUrl::parse(&server.url()).unwrap();
        let shared = RedisConnection::open(&url, Mode::Test, Arc::new(Random), patience).await;
        let keeper = Arc::clone(&shared);
        Self {
            throttle: RedisThrottle::new(
                Arc::clone(&shared),
                MemoryThrottle::new(Arc::new(StoppedClock)),
            ),
            in_flight: RedisInFlight::start(Arc::clone(&shared)),
            background: tokio::spawn(async move { keeper.keep(std::future::pending()).await }),
            shared,
        }
    }

    async fn two(server: &Server) -> (Self, Self) {
        let one = Self::of(server, LONG_TIMEOUTS).await;
        (one, Self::of(server, LONG_TIMEOUTS).await)
    }

    async fn ask(&self, tier: &Tier) -> ThrottleDecision {
        let tiers = std::slice::from_ref(tier);
        self.throttle.take(&bucket("a"), tiers).await
    }

    async fn take(&self, tier: &Tier) -> Vec<(u32, u128, bool)> {
        figures(&self.ask(tier).await)
    }

    /// Sends requests, and returns the number of admitted ones.
    async fn admitted(&self, tier: &Tier, requests: u32) -> u32 {
        let mut admitted = 0;
        for _ in 0..requests {
            admitted += u32::from(self.ask(tier).await.admitted());
        }
        admitted
    }

    async fn until(&self, counting: CountScope) {
        let reached = async {
            while self.throttle.counting() != counting {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(EVENT_TIMEOUT, reached).await;
        waited.unwrap_or_else(|_| panic!("not {counting:?} within {EVENT_TIMEOUT:?}"));
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.background.abort();
    }
}

/// Sends a command to a server on a new connection.
fn say<T: redis::FromRedisValue>(server: &Server, words: &[&str]) -> T {
    try_say(server, words).unwrap()
}

fn try_say<T: redis::FromRedisValue>(server: &Server, words: &[&str]) -> redis::RedisResult<T> {
    let client = Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let (command, arguments) = words.split_first().unwrap();
    redis::cmd(command).arg(arguments).query(&mut connection)
}

/// A throttle whose time and windows are in separate keys.
struct Kept {
    url: String,
    key: String,
}

impl TestClock for Kept {
    fn wait(&self, millis: i64) {
        let client = Client::open(self.url.as_str()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let moved: i64 = redis::cmd("INCRBY")
            .arg(&self.key)
            .arg(millis)
            .query(&mut connection)
            .unwrap();
        assert!(moved > 0);
    }
}

async fn rig(server: &Server) -> ThrottleFixture {
    static RIGS: AtomicU64 = AtomicU64::new(0);
    let rig = RIGS.fetch_add(1, Ordering::Relaxed);
    let clock = Kept {
        url: server.url(),
        key: format!("clock-{rig}"),
    };
    clock.wait(1_000_000);
    let now = format!("local now = tonumber(redis.call('GET', '{}'))\n", clock.key);
    let client = RedisUrl::parse(&server.url()).unwrap().client();
    let mut shared = RedisConnection::of(client, Mode::Test, Arc::new(Random), LONG_TIMEOUTS, &now);
    shared.prefix = format!("rig-{rig}");
    shared.connect().await;
    assert!(shared.is_up());
    let alone = MemoryThrottle::new(Arc::new(StoppedClock));
    ThrottleFixture {
        throttle: Arc::new(RedisThrottle::new(Arc::new(shared), alone)),
        clock: Box::new(clock),
    }
}

// rule: throttle.network
#[tokio::test]
async fn throttle_decides_fixed_requests() {
    let server = Server::start().unwrap();
    suite::throttle_decides_fixed_requests(async || rig(&server).await).await;
}

// rule: throttle.network, throttle.shared-secrets
#[tokio::test]
async fn network_key_expires_with_its_window() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, LONG_TIMEOUTS).await;
    let tiers = [tier("short", 2, 60)];
    for at in 0..50 {
        // Ten networks with five addresses each.
        let bucket = suite::network_bucket(&format!("2001:db8:0:{:x}::{:x}", at / 5, at % 5));
        replica.throttle.take(&bucket, &tiers).await;
    }
    let names: Vec<String> = say(&server, &["KEYS", "*:throttle:*"]);
    assert_eq!(names.len(), 10, "{names:?}");
    for name in names {
        let expires_in: i64 = say(&server, &["PTTL", &name]);
        assert!((1..=60_000).contains(&expires_in), "{name}: {expires_in}");
    }
}

// rule: throttle.exact
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_are_counted_exactly() {
    let server = Server::start().unwrap();
    suite::concurrent_requests_are_counted_exactly(rig(&server).await).await;
}

// rule: throttle.window, throttle.exact
#[test]
fn throttle_equals_model_for_random_steps() {
    let server = Server::start().unwrap();
    suite::throttle_equals_model_for_random_steps(64, async || rig(&server).await);
}

// rule: throttle.shared, throttle.exact
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_share_one_window() {
    let server = Server::start().unwrap();
    let hundred = tier("short", 100, 60);
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let replica = Arc::new(Replica::of(&server, LONG_TIMEOUTS).await);
        for _ in 0..4 {
            let (replica, tier) = (Arc::clone(&replica), hundred.clone());
            tasks.spawn(async move { replica.admitted(&tier, 50).await });
        }
    }
    assert_eq!(tasks.join_all().await.iter().sum::<u32>(), 100);
}

// rule: throttle.window
#[tokio::test]
async fn window_uses_time_of_redis_server() {
    let server = Server::start().unwrap();
    let (one, other) = Replica::two(&server).await;
    let second = tier("short", 1, 1);
    // On a busy machine the window may end before the other replica asks, which then opens a new one.
    for _ in 0..10 {
        let (left, reset, full) = one.take(&second).await[0];
        assert_eq!((left, reset, full), (0, 1_000, false));
        sleep(Duration::from_millis(10)).await;
        let (_, reset, full) = other.take(&second).await[0];
        sleep(Duration::from_millis(u64::try_from(reset).unwrap() + 10)).await;
        if full {
            assert!(reset < 1_000, "{reset}");
            assert!(!other.take(&second).await[0].2);
            return;
        }
    }
    panic!("the other replica never found the window full");
}

// rule: throttle.shared
#[tokio::test]
async fn emptied_redis_reopens_windows_without_errors() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, LONG_TIMEOUTS).await;
    let minute = tier("short", 2, 60);
    assert_eq!(replica.admitted(&minute, 3).await, 2);
    let _: () = say(&server, &["FLUSHALL"]);
    let _: () = say(&server, &["SCRIPT", "FLUSH"]);
    assert_eq!(replica.admitted(&minute, 3).await, 2);
    assert_eq!(replica.throttle.counting(), CountScope::Shared);
}

// rule: throttle.shared
#[tokio::test]
async fn process_keeps_counting_when_redis_is_unavailable() {
    let mut server = Server::start().unwrap();
    let (one, other) = Replica::two(&server).await;
    let minute = tier("short", 5, 60);
    assert_eq!(one.admitted(&minute, 3).await, 3);
    assert_eq!(other.admitted(&minute, 3).await, 2);
    server.kill().unwrap();
    // Each replica counts the requests that it admitted itself. Refused requests count nowhere.
    assert_eq!(one.admitted(&minute, 9).await, 2);
    assert_eq!(other.admitted(&minute, 9).await, 3);
    for replica in [&one, &other] {
        assert_eq!(replica.throttle.counting(), CountScope::Apart);
    }
    server.start_again().unwrap();
    one.until(CountScope::Shared).await;
    other.until(CountScope::Shared).await;
    assert_eq!(one.admitted(&minute, 4).await, 4);
    assert_eq!(other.admitted(&minute, 4).await, 1);
}

// rule: throttle.shared
#[tokio::test]
async fn silent_redis_is_called_once_and_delays_requests_by_one_timeout() {
    let mut server = Server::start().unwrap();
    let replica = Replica::of(&server, RedisTimeouts::default()).await;
    replica.until(CountScope::Shared).await;
    let minute = tier("short", 5, 60);
    server.pause().unwrap();
    let begun = Instant::now();
    assert!(replica.admitted(&minute, 1_000).await <= 5);
    // The first request waited for its timeout; the others decided immediately. With a timeout for each it would be 50 s.
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(replica.throttle.counting(), CountScope::Apart);
    server.resume().unwrap();
    replica.until(CountScope::Shared).await;
}

// rule: throttle.shared
#[tokio::test]
async fn redis_without_writes_is_unavailable_until_it_accepts_writes() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, LONG_TIMEOUTS).await;
    let minute = tier("short", 5, 60);
    for (obstacle, remedy) in [
        (["maxmemory", "1"], ["maxmemory", "0"]),
        (
            ["min-replicas-to-write", "1"],
            ["min-replicas-to-write", "0"],
        ),
    ] {
        let _: () = say(&server, &["CONFIG", "SET", obstacle[0], obstacle[1]]);
        replica.take(&minute).await;
        let mut line = replica.shared.line.subscribe();
        let risen = timeout(Duration::from_secs(2), line.changed()).await;
        assert!(risen.is_err() && !replica.shared.is_up(), "{obstacle:?}");
        let _: () = say(&server, &["CONFIG", "SET", remedy[0], remedy[1]]);
        replica.until(CountScope::Shared).await;
    }
}

#[tokio::test]
async fn service_starts_without_redis_and_connects_later() {
    let mut server = Server::start().unwrap();
    server.kill().unwrap();
    let replica = Replica::of(&server, LONG_TIMEOUTS).await;
    assert_eq!(replica.throttle.counting(), CountScope::Apart);
    assert_eq!(replica.admitted(&tier("short", 5, 60), 9).await, 5);
    server.start_again().unwrap();
    replica.until(CountScope::Shared).await;
}

#[tokio::test]
async fn password_connects_and_wrong_password_is_not_logged() {
    let server = Server::start().unwrap();
    let _: () = say(&server, &["CONFIG", "SET", "requirepass", "hunter2"]);
    for (password, up) in [("hunter2", true), ("hunter3", false)] {
        let url = format!("redis://:{password}@127.0.0.1:{}", server.port());
        let url = RedisUrl::parse(&url).unwrap();
        let shared = RedisConnection::open(&url, Mode::Test, Arc::new(Random), LONG_TIMEOUTS).await;
        assert_eq!(shared.is_up(), up);
        if let Err(error) = shared.dial().await {
            let error = format!("{} {error:?} {url:?}", causes(&error));
            assert!(
                error.contains("auth") && !error.contains(password),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn tls_requires_server_with_trusted_certificate() {
    let server = Server::start().unwrap();
    let (port, certificate) = speak_tls(&server);
    let url = format!("rediss://127.0.0.1:{port}");
    let distrusted = RedisUrl::parse(&url).unwrap();
    let refused =
        RedisConnection::open(&distrusted, Mode::Test, Arc::new(Random), LONG_TIMEOUTS).await;
    let error = causes(&refused.dial().await.unwrap_err());
    assert!(error.contains("UnknownIssuer"), "{error}");
    let trust = TlsCertificates {
        client_tls: None,
        root_cert: Some(certificate),
    };
    let client = Client::build_with_tls(url, trust).unwrap();
    let entropy = Arc::new(Random);
    let shared = RedisConnection::of(
        client,
        Mode::Test,
        entropy,
        LONG_TIMEOUTS,
        throttle::SERVER_TIME,
    );
    shared.connect().await;
    assert!(shared.is_up());
}

/// Enables TLS on a server. Returns the port and the server's certificate.
fn speak_tls(server: &Server) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    // The server runs as another user.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = pem("CERTIFICATE", made.cert.der());
    let key = pem("PRIVATE KEY", &made.signing_key.serialize_der());
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (shown, kept) = (file("certificate", &certificate), file("key", &key));
    let mut refused = None;
    // Another program may have the port.
    for _ in 0..20 {
        let port = test_support::http::nowhere().port().to_string();
        let settings = [
            ["tls-cert-file", &shown],
            ["tls-key-file", &kept],
            ["tls-auth-clients", "no"],
            ["tls-port", &port],
        ];
        let command = [&["CONFIG", "SET"], settings.as_flattened()].concat();
        match try_say::<()>(server, &command) {
            Ok(()) => return (port, certificate.into_bytes()),
            Err(error) => refused = Some(error),
        }
    }
    panic!("no port for TLS: {refused:?}")
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let text = lines.join("\n");
    format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
}

// rule: throttle.shared-secrets
#[tokio::test]
async fn redis_keys_name_no_partner_and_expire() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, LONG_TIMEOUTS).await;
    let secret = bucket("canary-198.51.100.7");
    replica.throttle.take(&secret, &suite::tiers()).await;
    let ticket = replica
        .in_flight
        .enter(&scope("canary", "canary-key"))
        .await;
    let keys: Vec<String> = say(&server, &["KEYS", "*"]);
    assert_eq!(keys.len(), 3, "{keys:?}");
    for key in keys {
        assert!(
            key.starts_with("penstock:test:") && !key.contains("canary"),
            "{key}"
        );
        let lapses: i64 = say(&server, &["PTTL", &key]);
        assert!((1..=3_600_000).contains(&lapses), "{key} {lapses}");
        let dump: Vec<u8> = say(&server, &["DUMP", &key]);
        assert!(!String::from_utf8_lossy(&dump).contains("canary"), "{key}");
    }
    drop(ticket);
}

// rule: idempotency.in-flight
#[tokio::test]
async fn twin_on_another_replica_is_refused_until_ticket_is_dropped() {
    let server = Server::start().unwrap();
    let (one, other) = Replica::two(&server).await;
    let ticket = one.in_flight.enter(&scope("acme", "k")).await;
    assert!(ticket.is_some());
    assert!(other.in_flight.enter(&scope("acme", "k")).await.is_none());
    assert!(one.in_flight.enter(&scope("acme", "k")).await.is_none());
    assert!(other.in_flight.enter(&scope("acme", "l")).await.is_some());
    assert!(other.in_flight.enter(&scope("rival", "k")).await.is_some());
    drop(ticket);
    assert!(other.in_flight.enter(&scope("acme", "k")).await.is_some());
}

// rule: idempotency.in-flight
#[tokio::test]
async fn request_after_response_is_no_twin() {
    let server = Server::start().unwrap();
    let (one, other) = Replica::two(&server).await;
    for round in 0..100 {
        for replica in [&one, &other] {
            let ticket = replica.in_flight.enter(&scope("acme", "k")).await;
            assert!(ticket.is_some(), "round {round}");
        }
    }
}

#[tokio::test]
async fn lapsed_claim_is_free_for_twin() {
    let server = Server::start().unwrap();
    let (one, other) = Replica::two(&server).await;
    let late = one.in_flight.enter(&scope("acme", "k")).await;
    let keys: Vec<String> = say(&server, &["KEYS", "*:in-flight:*"]);
    let _: () = say(&server, &["DEL", &keys[0]]);
    let _twin = other.in_flight.enter(&scope("acme", "k")).await.unwrap();
    drop(late);
    // Claims are released in order: after a later claim is free, the earlier one was processed.
    drop(one.in_flight.enter(&scope("acme", "after")).await);
    let freed = async { while one.in_flight.enter(&scope("acme", "after")).await.is_none() {} };
    timeout(EVENT_TIMEOUT, freed).await.unwrap();
    assert!(one.in_flight.enter(&scope("acme", "k")).await.is_none());
}

#[tokio::test]
async fn claim_of_killed_replica_lapses() {
    let server = Server::start().unwrap();
    let claim = Duration::from_millis(200);
    let killed = Replica::of(
        &server,
        RedisTimeouts {
            claim,
            ..LONG_TIMEOUTS
        },
    )
    .await;
    let other = Replica::of(&server, LONG_TIMEOUTS).await;
    std::mem::forget(killed.in_flight.enter(&scope("acme", "k")).await);
    let lapsed = async { while other.in_flight.enter(&scope("acme", "k")).await.is_none() {} };
    timeout(EVENT_TIMEOUT, lapsed).await.unwrap();
}

#[tokio::test]
async fn twins_are_detected_per_process_when_redis_is_unavailable() {
    let mut server = Server::start().unwrap();
    let (one, other) = Replica::two(&server).await;
    server.kill().unwrap();
    let _ticket = one.in_flight.enter(&scope("acme", "k")).await.unwrap();
    assert!(one.in_flight.enter(&scope("acme", "k")).await.is_none());
    assert!(other.in_flight.enter(&scope("acme", "k")).await.is_some());
}

#[tokio::test]
async fn ticket_dropped_while_redis_is_silent_is_released_on_reconnect() {
    let mut server = Server::start().unwrap();
    let replica = Replica::of(&server, LONG_TIMEOUTS).await;
    // Long enough to distinguish a released claim from a lapsed one.
    let ticket = replica.in_flight.enter(&scope("acme", "k")).await.unwrap();
    let keys: Vec<String> = say(&server, &["KEYS", "*:in-flight:*"]);
    let _: () = say(&server, &["PERSIST", &keys[0]]);
    let line = replica.shared.line.borrow().clone();
    server.pause().unwrap();
    let Line::Up(connection) = line else {
        panic!("Redis should be available");
    };
    replica
        .shared
        .fall(Some(&connection), &ConnectionError::Late(Duration::ZERO));
    drop(ticket);
    server.resume().unwrap();
    replica.until(CountScope::Shared).await;
    let freed = async {
        while say::<bool>(&server, &["EXISTS", &keys[0]]) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(EVENT_TIMEOUT, freed).await.unwrap();
}
