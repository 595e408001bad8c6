//! Replicas over a real Redis, which is emptied, filled, killed, paused and started again.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use kernel::{Clock, Timestamp};
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::ports::{InFlight as _, Throttle as _};
use partner_core::throttle::{CountScope, ThrottleDecision, Tier};
use partner_core::{PartnerId, Tenant};
use redis::TlsCertificates;
use test_support::servers::Redis as Server;
use tokio::task::{JoinHandle, JoinSet};

use super::*;
use crate::throttle::MemoryThrottle;
use crate::throttle::suite::{self, TestClock, ThrottleFixture, bucket, figures, tier};

/// Enough for a machine that does much else: where a test is about exact counts, Redis is not to
/// be given up on.
const PATIENT: RedisTimeouts = RedisTimeouts {
    answer: Duration::from_secs(20),
    connection: Duration::from_secs(20),
    claim: Duration::from_secs(20),
};
/// How long a test waits for what has to happen by itself.
const BY_ITSELF: Duration = Duration::from_secs(30);

struct Random;

impl Entropy for Random {
    fn fill(&self, buffer: &mut [u8]) {
        fastrand::fill(buffer);
    }
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0).unwrap()
    }
}

/// One replica of a service, with its background.
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
            throttle: RedisThrottle::new(Arc::clone(&shared), MemoryThrottle::new(Arc::new(Still))),
            in_flight: RedisInFlight::start(Arc::clone(&shared)),
            background: tokio::spawn(async move { keeper.keep(std::future::pending()).await }),
            shared,
        }
    }

    async fn ask(&self, tier: &Tier) -> ThrottleDecision {
        let tiers = std::slice::from_ref(tier);
        self.throttle.take(&bucket("a"), tiers).await
    }

    async fn take(&self, tier: &Tier) -> Vec<(u32, u128, bool)> {
        figures(&self.ask(tier).await)
    }

    /// How many of so many requests are admitted.
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
        let waited = timeout(BY_ITSELF, reached).await;
        waited.unwrap_or_else(|_| panic!("not {counting:?} within {BY_ITSELF:?}"));
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.background.abort();
    }
}

/// Says a command to a server, on a connection of its own.
fn say<T: redis::FromRedisValue>(server: &Server, words: &[&str]) -> T {
    let client = Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let (command, arguments) = words.split_first().unwrap();
    redis::cmd(command)
        .arg(arguments)
        .query(&mut connection)
        .unwrap()
}

fn scope(partner: &str, key: &str) -> Scope {
    Scope {
        tenant: Tenant {
            partner: PartnerId::parse(partner).unwrap(),
            mode: Mode::Test,
        },
        route: "POST /v1/pools/EUR-USDT/transact".to_owned(),
        key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
    }
}

/// The time of a test's windows stands in a key of its own, and so do its windows.
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
    let mut shared = RedisConnection::of(client, Mode::Test, Arc::new(Random), PATIENT, &now);
    shared.prefix = format!("rig-{rig}");
    shared.connect().await;
    assert!(shared.is_up());
    let alone = MemoryThrottle::new(Arc::new(Still));
    ThrottleFixture {
        throttle: Arc::new(RedisThrottle::new(Arc::new(shared), alone)),
        clock: Box::new(clock),
    }
}

#[tokio::test]
async fn a_full_tier_refuses_and_counts_in_no_other() {
    let server = Server::start().unwrap();
    suite::a_full_tier_refuses_and_counts_in_no_other(rig(&server).await).await;
}

#[tokio::test]
async fn a_look_counts_nothing_and_tells_what_a_request_would_meet() {
    let server = Server::start().unwrap();
    let rig = rig(&server).await;
    suite::a_look_counts_nothing_and_tells_what_a_request_would_meet(rig).await;
}

// rule: throttle.window
#[tokio::test]
async fn a_window_opens_with_its_first_request_and_not_by_the_clock() {
    let server = Server::start().unwrap();
    let rig = rig(&server).await;
    suite::a_window_opens_with_its_first_request_and_not_by_the_clock(rig).await;
}

#[tokio::test]
async fn a_clock_set_back_locks_nobody_out_for_hours() {
    let server = Server::start().unwrap();
    suite::a_clock_set_back_locks_nobody_out_for_hours(rig(&server).await).await;
}

// rule: throttle.network
#[tokio::test]
async fn addresses_of_one_ipv6_network_share_a_bucket() {
    let server = Server::start().unwrap();
    suite::addresses_of_one_ipv6_network_share_a_bucket(rig(&server).await).await;
}

#[tokio::test]
async fn key_with_network_is_counted_apart_from_both() {
    let server = Server::start().unwrap();
    suite::key_with_network_is_counted_apart_from_both(rig(&server).await).await;
}

// rule: throttle.network, throttle.shared-secrets
#[tokio::test]
async fn names_of_networks_expire_with_their_windows() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, PATIENT).await;
    let tiers = [tier("short", 2, 60)];
    for at in 0..50 {
        // Ten networks, five addresses each.
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
async fn many_at_once_are_counted_exactly() {
    let server = Server::start().unwrap();
    suite::many_at_once_are_counted_exactly(rig(&server).await).await;
}

// rule: throttle.window, throttle.exact
#[test]
fn any_steps_are_answered_as_the_model_answers() {
    let server = Server::start().unwrap();
    suite::any_steps_are_answered_as_the_model_answers(64, async || rig(&server).await);
}

// rule: throttle.shared, throttle.exact
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_admit_together_what_one_window_holds() {
    let server = Server::start().unwrap();
    let hundred = tier("short", 100, 60);
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let replica = Arc::new(Replica::of(&server, PATIENT).await);
        for _ in 0..4 {
            let (replica, tier) = (Arc::clone(&replica), hundred.clone());
            tasks.spawn(async move { replica.admitted(&tier, 50).await });
        }
    }
    assert_eq!(tasks.join_all().await.iter().sum::<u32>(), 100);
}

// rule: throttle.window
#[tokio::test]
async fn windows_follow_the_time_of_the_server() {
    let server = Server::start().unwrap();
    let (one, other) = (
        Replica::of(&server, PATIENT).await,
        Replica::of(&server, PATIENT).await,
    );
    let second = tier("short", 1, 1);
    let (left, reset, full) = one.take(&second).await[0];
    assert_eq!((left, reset, full), (0, 1_000, false));
    sleep(Duration::from_millis(10)).await;
    let (_, reset, full) = other.take(&second).await[0];
    assert!(full && reset < 1_000, "{reset}");
    sleep(Duration::from_millis(u64::try_from(reset).unwrap() + 10)).await;
    assert!(!other.take(&second).await[0].2);
}

// rule: throttle.shared
#[tokio::test]
async fn an_emptied_redis_opens_windows_anew_and_nobody_notices() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, PATIENT).await;
    let minute = tier("short", 2, 60);
    assert_eq!(replica.admitted(&minute, 3).await, 2);
    let _: () = say(&server, &["FLUSHALL"]);
    let _: () = say(&server, &["SCRIPT", "FLUSH"]);
    assert_eq!(replica.admitted(&minute, 3).await, 2);
    assert_eq!(replica.throttle.counting(), CountScope::Shared);
}

// rule: throttle.shared
#[tokio::test]
async fn without_redis_each_process_counts_on_from_what_it_admitted() {
    let mut server = Server::start().unwrap();
    let (one, other) = (
        Replica::of(&server, PATIENT).await,
        Replica::of(&server, PATIENT).await,
    );
    let minute = tier("short", 5, 60);
    assert_eq!(one.admitted(&minute, 3).await, 3);
    assert_eq!(other.admitted(&minute, 3).await, 2);
    server.kill().unwrap();
    // Each knows what it has admitted itself; what was refused before has counted nowhere.
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
async fn a_silent_redis_is_asked_once_and_costs_no_request_more_than_its_deadline() {
    let mut server = Server::start().unwrap();
    let replica = Replica::of(&server, RedisTimeouts::default()).await;
    replica.until(CountScope::Shared).await;
    let minute = tier("short", 5, 60);
    server.pause().unwrap();
    let begun = Instant::now();
    assert!(replica.admitted(&minute, 10_000).await <= 5);
    // All of them together: the first has waited, the others were told at once.
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(replica.throttle.counting(), CountScope::Apart);
    server.resume().unwrap();
    replica.until(CountScope::Shared).await;
}

// rule: throttle.shared
#[tokio::test]
async fn a_redis_that_takes_no_writes_is_away_until_it_does() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, PATIENT).await;
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
async fn a_service_starts_without_redis_and_finds_it_later() {
    let mut server = Server::start().unwrap();
    server.kill().unwrap();
    let replica = Replica::of(&server, PATIENT).await;
    assert_eq!(replica.throttle.counting(), CountScope::Apart);
    assert_eq!(replica.admitted(&tier("short", 5, 60), 9).await, 5);
    server.start_again().unwrap();
    replica.until(CountScope::Shared).await;
}

#[tokio::test]
async fn a_password_opens_and_a_wrong_one_is_repeated_nowhere() {
    let server = Server::start().unwrap();
    let _: () = say(&server, &["CONFIG", "SET", "requirepass", "hunter2"]);
    for (password, up) in [("hunter2", true), ("hunter3", false)] {
        let url = format!("redis://:{password}@127.0.0.1:{}", server.port());
        let url = RedisUrl::parse(&url).unwrap();
        let shared = RedisConnection::open(&url, Mode::Test, Arc::new(Random), PATIENT).await;
        assert_eq!(shared.is_up(), up);
        if let Err(fault) = shared.dial().await {
            let told = format!("{} {fault:?} {url:?}", causes(&fault));
            assert!(told.contains("auth") && !told.contains(password), "{told}");
        }
    }
}

#[tokio::test]
async fn tls_is_spoken_with_a_server_that_somebody_vouches_for() {
    let server = Server::start().unwrap();
    let (port, certificate) = speak_tls(&server);
    let url = format!("rediss://127.0.0.1:{port}");
    let distrusted = RedisUrl::parse(&url).unwrap();
    let refused = RedisConnection::open(&distrusted, Mode::Test, Arc::new(Random), PATIENT).await;
    let told = causes(&refused.dial().await.unwrap_err());
    assert!(told.contains("UnknownIssuer"), "{told}");
    let trust = TlsCertificates {
        client_tls: None,
        root_cert: Some(certificate),
    };
    let client = Client::build_with_tls(url, trust).unwrap();
    let entropy = Arc::new(Random);
    let shared = RedisConnection::of(client, Mode::Test, entropy, PATIENT, throttle::SERVER_TIME);
    shared.connect().await;
    assert!(shared.is_up());
}

/// Has a server listen for TLS too; the port, and the certificate it shows.
fn speak_tls(server: &Server) -> (u16, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    // The server runs as somebody else.
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
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let port_text = port.to_string();
    let settings = [
        ["tls-cert-file", &shown],
        ["tls-key-file", &kept],
        ["tls-auth-clients", "no"],
        ["tls-port", &port_text],
    ];
    let command = [&["CONFIG", "SET"], settings.as_flattened()].concat();
    let _: () = say(server, &command);
    (port, certificate.into_bytes())
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
async fn what_redis_holds_names_nobody_and_lapses() {
    let server = Server::start().unwrap();
    let replica = Replica::of(&server, PATIENT).await;
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
async fn a_twin_on_another_replica_waits_outside_until_the_ticket_is_dropped() {
    let server = Server::start().unwrap();
    let (one, other) = (
        Replica::of(&server, PATIENT).await,
        Replica::of(&server, PATIENT).await,
    );
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
async fn who_comes_after_the_answer_is_no_twin() {
    let server = Server::start().unwrap();
    let (one, other) = (
        Replica::of(&server, PATIENT).await,
        Replica::of(&server, PATIENT).await,
    );
    for round in 0..100 {
        for replica in [&one, &other] {
            let ticket = replica.in_flight.enter(&scope("acme", "k")).await;
            assert!(ticket.is_some(), "round {round}");
        }
    }
}

#[tokio::test]
async fn a_claim_that_has_lapsed_is_the_twins() {
    let server = Server::start().unwrap();
    let (one, other) = (
        Replica::of(&server, PATIENT).await,
        Replica::of(&server, PATIENT).await,
    );
    let late = one.in_flight.enter(&scope("acme", "k")).await;
    let keys: Vec<String> = say(&server, &["KEYS", "*:in-flight:*"]);
    let _: () = say(&server, &["DEL", &keys[0]]);
    let _twin = other.in_flight.enter(&scope("acme", "k")).await.unwrap();
    drop(late);
    // What is handed in later is freed later: then the one before has been looked at.
    drop(one.in_flight.enter(&scope("acme", "after")).await);
    let freed = async { while one.in_flight.enter(&scope("acme", "after")).await.is_none() {} };
    timeout(BY_ITSELF, freed).await.unwrap();
    assert!(one.in_flight.enter(&scope("acme", "k")).await.is_none());
}

#[tokio::test]
async fn the_claim_of_a_killed_replica_lapses() {
    let server = Server::start().unwrap();
    let claim = Duration::from_millis(200);
    let killed = Replica::of(&server, RedisTimeouts { claim, ..PATIENT }).await;
    let other = Replica::of(&server, PATIENT).await;
    std::mem::forget(killed.in_flight.enter(&scope("acme", "k")).await);
    let lapsed = async { while other.in_flight.enter(&scope("acme", "k")).await.is_none() {} };
    timeout(BY_ITSELF, lapsed).await.unwrap();
}

#[tokio::test]
async fn without_redis_twins_are_found_in_each_process() {
    let mut server = Server::start().unwrap();
    let (one, other) = (
        Replica::of(&server, PATIENT).await,
        Replica::of(&server, PATIENT).await,
    );
    server.kill().unwrap();
    let _ticket = one.in_flight.enter(&scope("acme", "k")).await.unwrap();
    assert!(one.in_flight.enter(&scope("acme", "k")).await.is_none());
    assert!(other.in_flight.enter(&scope("acme", "k")).await.is_some());
}

#[tokio::test]
async fn a_ticket_dropped_while_redis_was_silent_is_freed_when_it_is_back() {
    let mut server = Server::start().unwrap();
    let replica = Replica::of(&server, PATIENT).await;
    // Long enough to tell a claim that was freed from one that lapsed.
    let ticket = replica.in_flight.enter(&scope("acme", "k")).await.unwrap();
    let keys: Vec<String> = say(&server, &["KEYS", "*:in-flight:*"]);
    let _: () = say(&server, &["PERSIST", &keys[0]]);
    let line = replica.shared.line.borrow().clone();
    server.pause().unwrap();
    let Line::Up(connection) = line else {
        panic!("not up");
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
    timeout(Duration::from_secs(4), freed).await.unwrap();
}
