//! A store with partners and endpoints, and workers that deliver from it.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Entropy, Mode, Timestamp};
use partner_core::events::{
    Endpoint, EndpointId, EndpointSecret, NewEvent, Service, new_delivery, seal_body, secret_place,
};
use partner_core::ports::{Deliveries, DeliveryRecord, PartnerStore};
use partner_core::sealing::{MasterKey, Sealer};
use partner_core::webhooks::delivery::DeliveryState;
use partner_core::webhooks::schedule::Schedule;
use partner_core::webhooks::signing::SigningSecret;
use partner_core::webhooks::target::AllowPrivate;
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::ports::PoolsStore;
use store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use webhooks::{Resolve, Trust, Worker, WorkerConfig};

use crate::receiver::{Receiver, Reply};

pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
pub(crate) const NEWER: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

pub(crate) fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A clock that runs, and can be moved forward.
pub(crate) struct TestClock {
    began: Instant,
    shift: AtomicI64,
}

impl TestClock {
    pub(crate) fn advance(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).unwrap();
        self.shift.fetch_add(millis, Ordering::SeqCst);
    }
}

impl TestClock {
    /// Another clock that is behind this one.
    pub(crate) fn set_back(&self, span: Duration) -> Self {
        let back = i64::try_from(span.as_millis()).unwrap();
        Self {
            began: self.began,
            shift: AtomicI64::new(self.shift.load(Ordering::SeqCst) - back),
        }
    }

    /// Moves to the machine's time, for libraries that read it.
    pub(crate) fn catch_up(&self) {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let there = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap());
        self.advance(there.unwrap().since(self.now()));
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let start = Timestamp::from_millis(1_779_710_400_000).unwrap();
        let shift = self.shift.load(Ordering::SeqCst);
        start
            .plus(self.began.elapsed())
            .plus(millis(shift.unsigned_abs()))
    }
}

/// SplitMix64.
pub(crate) struct Seeded(AtomicU64);

impl Entropy for Seeded {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let step = 0x9e37_79b9_7f4a_7c15;
            let mut bits = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let bytes = (bits ^ (bits >> 31)).to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// Names, and the addresses that each look-up returns. The last ones repeat.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    pub(crate) asked: AtomicUsize,
}

impl Names {
    pub(crate) fn set(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers
            .iter()
            .map(|list| list.iter().map(|text| text.parse().unwrap()).collect())
            .collect();
        self.answers
            .lock()
            .unwrap()
            .insert(name.to_owned(), answers);
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let left = answers.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(if left.len() > 1 {
            left.remove(0)
        } else {
            left[0].clone()
        })
    }
}

/// A partner with an endpoint.
#[derive(Clone)]
pub(crate) struct Listener {
    pub(crate) who: Tenant,
    pub(crate) endpoint: Endpoint,
}

/// A store, and what its workers share.
pub(crate) struct World {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) names: Arc<Names>,
    pub(crate) setup: WorkerConfig,
    entropy: Arc<Seeded>,
    sealer: Arc<Sealer>,
    folder: TempDir,
}

impl World {
    /// Retries after these waits in milliseconds. Attempts time out after a minute.
    pub(crate) async fn new(waits: &[u64]) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            TempDir::new_in(memory)
        } else {
            TempDir::new()
        };
        let folder = folder.unwrap();
        let clock = Arc::new(TestClock {
            began: Instant::now(),
            shift: AtomicI64::new(0),
        });
        let entropy = Arc::new(Seeded(AtomicU64::new(1)));
        let sealer = Arc::new(Sealer::new(&MasterKey::new([7; 32])));
        let store = Arc::new(open(folder.path(), &clock).await);
        let names = Arc::new(Names::default());
        let setup = WorkerConfig {
            mode: Mode::Test,
            service: Service::Pools,
            deliveries: store.clone(),
            sealer: sealer.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            schedule: Schedule::new(waits.iter().map(|wait| millis(*wait)).collect()),
            timeout: Duration::from_secs(60),
            allow_private: AllowPrivate::Loopback,
            resolver: names.clone(),
            trust: Trust::Only(Vec::new()),
            grace: millis(200),
        };
        Self {
            store,
            clock,
            names,
            setup,
            entropy,
            sealer,
            folder,
        }
    }

    /// The same database, opened by another process.
    pub(crate) async fn other_process(&self) -> SqliteStore {
        open(self.folder.path(), &self.clock).await
    }

    pub(crate) fn start(&self) -> Running {
        Running::start(self.setup.clone())
    }

    /// Creates a partner whose events go to this URL.
    pub(crate) async fn listener(&self, name: &str, url: &str) -> Listener {
        let partner = PartnerId::parse(name).unwrap();
        let who = Tenant {
            partner: partner.clone(),
            mode: self.setup.mode,
        };
        let partner = Partner {
            id: partner,
            name: name.to_owned(),
            status: PartnerStatus::Active,
        };
        let id = EndpointId::new(who.mode, self.clock.now(), &*self.entropy);
        let endpoint = Endpoint {
            id,
            service: self.setup.service,
            url: url.to_owned(),
            secrets: vec![self.secret(id, SECRET, None)],
        };
        let mut tx = self.store.partner_begin("listener").await.unwrap();
        tx.partner_put(who.mode, &partner).await.unwrap();
        tx.endpoint_put(&who, &endpoint).await.unwrap();
        tx.commit().await.unwrap();
        Listener { who, endpoint }
    }

    /// Starts a receiver that follows the script, and creates a partner whose events go to it.
    pub(crate) async fn receiver(
        &self,
        name: &str,
        script: impl IntoIterator<Item = Reply>,
    ) -> (Receiver, Listener) {
        let receiver = Receiver::start(script).await;
        let listener = self.listener(name, &receiver.url()).await;
        (receiver, listener)
    }

    pub(crate) fn secret(
        &self,
        endpoint: EndpointId,
        text: &str,
        expires_at: Option<Timestamp>,
    ) -> EndpointSecret {
        let place = secret_place(endpoint);
        let sealed = self.sealer.seal(&place, text.as_bytes(), &*self.entropy);
        EndpointSecret {
            sealed: sealed.unwrap(),
            created_at: self.clock.now(),
            expires_at,
        }
    }

    /// Suspends the partner.
    pub(crate) async fn suspend(&self, listener: &Listener) {
        let partner = Partner {
            id: listener.who.partner.clone(),
            name: listener.who.partner.to_string(),
            status: PartnerStatus::Suspended,
        };
        let mut tx = self.store.partner_begin("suspend").await.unwrap();
        tx.partner_put(listener.who.mode, &partner).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn change(&self, listener: &Listener, endpoint: &Endpoint) {
        let mut tx = self.store.partner_begin("change").await.unwrap();
        tx.endpoint_put(&listener.who, endpoint).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn emit(&self, listener: &Listener, object: &str, id: &str) {
        self.emit_over(&self.store, listener, object, &[id]).await;
    }

    /// Writes events about an object in one transaction.
    pub(crate) async fn emit_over(
        &self,
        store: &SqliteStore,
        listener: &Listener,
        object: &str,
        ids: &[&str],
    ) {
        let mut tx = store.begin("emit").await.unwrap();
        for id in ids {
            let event = self.event(&listener.who, object, id);
            tx.event_insert(&event).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Writes this many events in one transaction, each about another object.
    pub(crate) async fn emit_crowd(&self, listener: &Listener, count: usize) {
        let mut tx = self.store.begin("emit").await.unwrap();
        for number in 0..count {
            let id = format!("crowd-{number}");
            let event = self.event(&listener.who, &id, &id);
            tx.event_insert(&event).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    pub(crate) fn event(&self, who: &Tenant, object: &str, id: &str) -> NewEvent {
        let now = self.clock.now();
        let sealed = seal_body(&self.sealer, who, id, &body(id), &*self.entropy);
        NewEvent {
            tenant: who.clone(),
            id: id.to_owned(),
            service: self.setup.service,
            kind: id.to_owned(),
            object_id: object.to_owned(),
            body: sealed.unwrap(),
            created_at: now,
            delivery: new_delivery(who.mode, now, &*self.entropy),
        }
    }

    /// Writes an event, and waits until its delivery is neither pending nor in flight.
    pub(crate) async fn conclude(
        &self,
        listener: &Listener,
        object: &str,
        id: &str,
    ) -> DeliveryRecord {
        self.emit(listener, object, id).await;
        self.closed(listener, object).await
    }

    /// Waits until the first delivery about an object is neither pending nor in flight.
    pub(crate) async fn closed(&self, listener: &Listener, object: &str) -> DeliveryRecord {
        self.until(listener, object, |record| {
            succeeded(record) || record.progress.state == DeliveryState::DeadLettered
        })
        .await
    }

    /// Waits until the first delivery about an object matches.
    pub(crate) async fn until(
        &self,
        listener: &Listener,
        object: &str,
        wanted: impl Fn(&DeliveryRecord) -> bool,
    ) -> DeliveryRecord {
        let mut last = None;
        for _ in 0..3000 {
            let record = self.delivery(listener, object).await;
            if wanted(&record) {
                return record;
            }
            last = Some(record);
            tokio::time::sleep(millis(10)).await;
        }
        panic!("{object} stays {last:?}");
    }

    /// Waits until the endpoint has accepted all deliveries about an object.
    pub(crate) async fn delivered(&self, listener: &Listener, object: &str) -> Vec<DeliveryRecord> {
        let mut last = Vec::new();
        for _ in 0..3000 {
            let records = self.store.deliveries_of(&listener.who, object).await;
            last = records.unwrap();
            if last.iter().all(succeeded) {
                return last;
            }
            tokio::time::sleep(millis(10)).await;
        }
        panic!("{object} stays {last:?}");
    }

    pub(crate) async fn delivery(&self, listener: &Listener, object: &str) -> DeliveryRecord {
        let records = self.store.deliveries_of(&listener.who, object).await;
        records.unwrap().remove(0)
    }
}

async fn open(folder: &Path, clock: &Arc<TestClock>) -> SqliteStore {
    let options = Options {
        velocity_window: Duration::from_secs(60),
        idempotency_ttl: Duration::from_secs(60),
        turn_timeout: store_sqlite::TURN_TIMEOUT,
    };
    let file = folder.join("penstock.db");
    SqliteStore::open(&file, clock.clone(), options)
        .await
        .unwrap()
}

/// Whether the endpoint has accepted a delivery.
pub(crate) fn succeeded(record: &DeliveryRecord) -> bool {
    matches!(record.progress.state, DeliveryState::Succeeded { .. })
}

/// The body of an event, with characters that are easily corrupted.
pub(crate) fn body(id: &str) -> Vec<u8> {
    format!("{{\"eventId\":\"{id}\",\"text\":\"\u{2028}\u{1f980} \\u00e9\"}}").into_bytes()
}

pub(crate) fn secret(text: &str) -> SigningSecret {
    SigningSecret::parse(text).unwrap()
}

/// A worker that runs in the background.
pub(crate) struct Running {
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(setup: WorkerConfig) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let worker = Worker::new(setup);
        let task = tokio::spawn(worker.run(async {
            let _ = stopped.await;
        }));
        Self {
            stop: Some(stop),
            task: Some(task),
        }
    }

    /// Stops the worker gracefully.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.task.take().unwrap().await.unwrap();
    }

    /// Stops the worker like a crash.
    pub(crate) fn kill(mut self) {
        self.task.take().unwrap().abort();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
