//! A gate service in this process, with a clock that the test sets, and calls of its API.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use gate_core::profile::GateProfile;
use gate_core::session::SessionId;
use kernel::{Clock, Entropy, Mode, Timestamp};
use partner_core::key::{KeyKind, NewKey};
use partner_core::origin::AllowedDomain;
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use runtime::{Config, Ports, Runtime, Sources};
use test_support::http::{json, send};
use tokio::task::JoinHandle;

const KEY: &str = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001";
/// The instant that the clock of most tests shows at first.
const START_MS: i64 = 1_779_710_400_000;
/// A step of the clock. A service refuses to write after its clock has jumped far.
const STEP_MS: i64 = 1_000;

/// A clock that changes only when the test sets it.
pub(crate) struct StoppedClock(AtomicI64);

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// Random bytes that never repeat.
pub(crate) struct CountingEntropy(pub(crate) AtomicU64);

impl Entropy for CountingEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let next = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst);
            chunk.copy_from_slice(&next.to_be_bytes()[..chunk.len()]);
        }
    }
}

/// The settings of the tests, and more.
pub(crate) fn config_with(folder: &Path, more: &[(&str, &str)]) -> Config {
    let database = format!("sqlite://{}/penstock.db", folder.display());
    let given = [
        ("DATABASE_URL", database.as_str()),
        ("GATE_LISTEN", "127.0.0.1:0"),
        ("WIDGET_LISTEN", "127.0.0.1:0"),
        ("SESSION_SWEEP", "10ms"),
    ];
    let given = [&given[..], more].concat();
    let variable = |(name, text): (&str, &str)| (format!("PENSTOCK_{name}").into(), text.into());
    let sources = Sources {
        environment: given.into_iter().map(variable).collect(),
        ..Sources::default()
    };
    Config::load(&sources).unwrap().config
}

pub(crate) async fn provision(runtime: &Runtime) -> Tenant {
    let base = &runtime.base;
    let who = Tenant {
        partner: PartnerId::parse("acme").unwrap(),
        mode: Mode::Test,
    };
    let partner = Partner {
        id: who.partner.clone(),
        name: "Acme".to_owned(),
        status: PartnerStatus::Active,
    };
    let profile = GateProfile {
        enabled: true,
        allowed_domains: [AllowedDomain::stored("https://shop.example").unwrap()].into(),
        rails: true,
        ..GateProfile::default()
    };
    let now = base.clock.now();
    let key = NewKey::literal(KeyKind::Secret, now, &*base.entropy, KEY).unwrap();
    let mut tx = base.store.provision_begin("test").await.unwrap();
    tx.partner_put(Mode::Test, &partner).await.unwrap();
    tx.gate_profile_put(&who, &profile).await.unwrap();
    tx.key_insert(&who, &key).await.unwrap();
    tx.config_version_raise().await.unwrap();
    tx.commit().await.unwrap();
    who
}

/// Creates an object over HTTP, and returns its id.
pub(crate) fn make(address: &str, path: &str, body: &str) -> String {
    let response = post(address, path, body);
    assert!(response.starts_with("HTTP/1.1 201"), "{response}");
    json(&response)["id"].as_str().unwrap().to_owned()
}

/// Sends a request under an idempotency key of its own, and returns the response.
pub(crate) fn post(address: &str, path: &str, body: &str) -> String {
    static KEYS: AtomicU64 = AtomicU64::new(0);
    let key = format!("key-{}", KEYS.fetch_add(1, Ordering::SeqCst));
    let bearer = format!("Bearer {KEY}");
    let headers = [("Authorization", &*bearer), ("Idempotency-Key", &*key)];
    send(address, &format!("POST {path}"), &headers, body)
}

pub(crate) fn create(address: &str) -> String {
    let body = r#"{"amount":"100","currency":"EUR","return_url":"https://shop.example/done"}"#;
    make(address, "/v1/gate_sessions", body)
}

/// Creates a pay-in with its own session, and returns both ids.
pub(crate) fn redeem(address: &str) -> [String; 2] {
    let (body, session) = redemption(address);
    [make(address, "/v1/rails/pay_ins", &body), session]
}

/// The body that redeems a new quote for a new session, and the session's id.
pub(crate) fn redemption(address: &str) -> (String, String) {
    let order = r#"{"currency":"EUR","asset":"USDT","amount":"100","side":"on_ramp","payment_method":"sepa"}"#;
    let quote = make(address, "/v1/quotes", order);
    let session = create(address);
    let body = format!(r#"{{"quote_id":"{quote}","session_id":"{session}"}}"#);
    (body, session)
}

/// The types of the object's events when there are at least `events` of them. Returns an empty list after a minute.
pub(crate) async fn event_types(
    runtime: &Runtime,
    who: &Tenant,
    object: &str,
    events: usize,
) -> Vec<String> {
    for _ in 0..6_000 {
        let found = runtime.base.store.events_of(who, object).await.unwrap();
        if found.len() >= events {
            return found.into_iter().map(|event| event.kind).collect();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Vec::new()
}

/// Creates a session whose user must be verified.
pub(crate) fn session_to_verify(address: &str) -> SessionId {
    let body = r#"{"amount":"10.61","currency":"EUR","return_url":"https://shop.example/done"}"#;
    SessionId::parse(&make(address, "/v1/gate_sessions", body)).unwrap()
}

/// A gate service in this process.
pub(crate) struct Gate {
    pub(crate) runtime: Runtime,
    pub(crate) who: Tenant,
    clock: Arc<StoppedClock>,
    pub(crate) address: String,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Gate {
    /// Starts the service with these settings in addition to those of all tests.
    pub(crate) async fn start(folder: &Path, settings: &[(&str, &str)]) -> Self {
        Self::start_at(START_MS, folder, settings).await
    }

    /// Starts the service with a clock that shows the present until the test moves it.
    pub(crate) async fn start_now(folder: &Path, settings: &[(&str, &str)]) -> Self {
        let now = Ports::of_machine().clock.now().millis();
        Self::start_at(now, folder, settings).await
    }

    async fn start_at(millis: i64, folder: &Path, settings: &[(&str, &str)]) -> Self {
        let clock = Arc::new(StoppedClock(AtomicI64::new(millis)));
        let ports = Ports {
            clock: clock.clone(),
            entropy: Arc::new(CountingEntropy(AtomicU64::new(1))),
        };
        let runtime = Runtime::open(config_with(folder, settings), ports);
        let runtime = runtime.await.unwrap();
        let who = provision(&runtime).await;
        let listening = gate_service::start(&runtime).await.unwrap();
        let address = listening.address().to_string();
        let serving = tokio::spawn(listening.run());
        Self {
            runtime,
            who,
            clock,
            address,
            serving,
        }
    }

    /// Runs a function that calls the service and blocks.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        calling: impl FnOnce(&str) -> T + Send + 'static,
    ) -> T {
        let address = self.address.clone();
        let calling = tokio::task::spawn_blocking(move || calling(&address));
        calling.await.unwrap()
    }

    pub(crate) async fn events(&self, object: &str, count: usize) -> Vec<String> {
        event_types(&self.runtime, &self.who, object, count).await
    }

    /// Moves the clock by one step.
    pub(crate) fn step(&self) {
        self.pass(STEP_MS);
    }

    /// Moves the clock by this many milliseconds.
    pub(crate) fn pass(&self, millis: i64) {
        self.clock.0.fetch_add(millis, Ordering::SeqCst);
    }

    /// Lets time pass until a condition holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..3_000 {
            if holds().await {
                return;
            }
            self.step();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{what}");
    }

    pub(crate) async fn end(self) {
        self.runtime.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
        self.runtime.close().await;
    }
}
