//! Deliveries: a worker on its own store, compared with a loop that signs and posts without a store.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kernel::{Mode, Timestamp};
use partner_core::events::{
    Endpoint, EndpointId, EndpointSecret, NewEvent, Service, new_delivery, seal_body, secret_place,
};
use partner_core::sealing::{MasterKey, Sealer};
use partner_core::webhooks::schedule::Schedule;
use partner_core::webhooks::signing::{Message, SigningSecret};
use partner_core::webhooks::target::AllowPrivate;
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use runtime::{Ports, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use webhooks::{SystemResolver, Trust, Worker, WorkerConfig};

use crate::Result;
use crate::suites::Bench;
use acceptance::measure::{Stopwatch, percentile};
use acceptance::table::{Figure, Row, Turns, rate};

/// Concurrent deliveries per endpoint, and so the connections of the reference loop.
const CONNECTIONS: usize = 32;
const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// A body of the size of a settled trade's event.
const BODY: [u8; 600] = [b'x'; 600];
/// Interval between two events of the paced run.
const PACE: Duration = Duration::from_millis(20);

const fn burst(on: &'static str) -> Figure {
    Figure {
        on,
        what: "webhooks, a burst of 2,000 to one endpoint; compared with a loop that signs and posts on 32 connections",
        bar: "≥ 0.4",
        goal: "≥ 0.7",
    }
}

const fn paced(on: &'static str) -> Figure {
    Figure {
        on,
        what: "webhooks at a fixed rate, from commit to arrival, p50; compared with signing and posting alone",
        bar: "5 ms",
        goal: "2 ms",
    }
}

/// A burst and a paced run, on a store without other work.
pub(crate) async fn measure(
    bench: &mut Bench,
    store: Arc<dyn Store>,
    on: &'static str,
) -> Result<()> {
    let mut deliveries = Deliveries::open(store).await?;
    let mut turns = Turns::default();
    let (mut spans, mut bare) = (Vec::new(), Vec::new());
    for _ in bench.turns("webhooks") {
        let count = bench.work(2000);
        let service = deliveries.burst(count).await?;
        turns.push(service, deliveries.bare_burst(count).await?);
        let count = bench.work(100);
        spans.extend(deliveries.paced(count).await?);
        bare.extend(deliveries.bare_paced(count).await?);
    }
    deliveries.close().await;
    let (service, reference) = (percentile(&mut spans, 50), percentile(&mut bare, 50));
    let rows = &mut bench.table.rows;
    rows.push(turns.row(&burst(on), rate));
    rows.push(Row::spans(&paced(on), service, reference));
    Ok(())
}

/// A store with one endpoint, and its receiver.
struct Deliveries {
    store: Arc<dyn Store>,
    setup: WorkerConfig,
    who: Tenant,
    sink: Sink,
    /// Like the service, the worker and the loop have as many threads as the machine has cores.
    threads: tokio::runtime::Runtime,
    written: u64,
}

impl Deliveries {
    async fn open(store: Arc<dyn Store>) -> Result<Self> {
        let ports = Ports::of_machine();
        let sealer = Arc::new(Sealer::new(&MasterKey::new([7; 32])));
        let setup = WorkerConfig {
            mode: Mode::Test,
            service: Service::Pools,
            deliveries: store.clone(),
            sealer,
            clock: ports.clock,
            entropy: ports.entropy,
            schedule: Schedule::new(Vec::new()),
            timeout: Duration::from_secs(10),
            allow_private: AllowPrivate::Loopback,
            resolver: Arc::new(SystemResolver),
            trust: Trust::System,
            grace: Duration::from_secs(3),
        };
        let partner = PartnerId::parse("bench").ok_or("a partner's name")?;
        let who = Tenant {
            partner,
            mode: Mode::Test,
        };
        let sink = Sink::start()?;
        let deliveries = Self {
            store,
            setup,
            who,
            sink,
            threads: tokio::runtime::Runtime::new()?,
            written: 0,
        };
        deliveries.provision().await?;
        Ok(deliveries)
    }

    async fn provision(&self) -> Result<()> {
        let WorkerConfig {
            sealer, entropy, ..
        } = &self.setup;
        let now = self.now();
        let id = EndpointId::new(Mode::Test, now, &**entropy);
        let endpoint = Endpoint {
            id,
            service: Service::Pools,
            url: format!("http://{}/hooks", self.sink.address),
            secrets: vec![EndpointSecret {
                sealed: sealer.seal(&secret_place(id), SECRET.as_bytes(), &**entropy)?,
                created_at: now,
                expires_at: None,
            }],
        };
        let partner = Partner {
            id: self.who.partner.clone(),
            name: "bench".to_owned(),
            status: PartnerStatus::Active,
        };
        let mut tx = self.store.provision_begin("bench").await?;
        tx.partner_put(Mode::Test, &partner).await?;
        tx.endpoint_put(&self.who, &endpoint).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Queues this many events and starts a worker; returns the arrival rate.
    async fn burst(&mut self, count: usize) -> Result<f64> {
        self.write(count).await?;
        self.sink.forget();
        let watch = Stopwatch::start();
        let worker = self.start();
        let arrived = self.sink.wait_for(count).await?;
        let took = arrived.saturating_sub(watch.since(&self.sink.began));
        worker.stop().await?;
        Ok(count as f64 / took.as_secs_f64())
    }

    /// Signs and posts the same number without a store.
    async fn bare_burst(&self, count: usize) -> Result<f64> {
        self.sink.forget();
        let address = self.sink.address;
        let watch = Stopwatch::start();
        let mut clients = JoinSet::new();
        for client in 0..CONNECTIONS {
            let share = count / CONNECTIONS + usize::from(client < count % CONNECTIONS);
            let clock = Arc::clone(&self.setup.clock);
            clients.spawn_on(
                async move { bare_client(address, share, || clock.now()).await },
                self.threads.handle(),
            );
        }
        while let Some(done) = clients.join_next().await {
            done??;
        }
        Ok(count as f64 / watch.elapsed().as_secs_f64())
    }

    /// Events one by one: from each commit to its arrival.
    async fn paced(&mut self, count: usize) -> Result<Vec<Duration>> {
        let worker = self.start();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut spans = Vec::with_capacity(count);
        for _ in 0..count {
            self.sink.forget();
            self.write(1).await?;
            let committed = self.sink.began.elapsed();
            let arrived = self.sink.wait_for(1).await?;
            spans.push(arrived.saturating_sub(committed));
            tokio::time::sleep(PACE).await;
        }
        worker.stop().await?;
        Ok(spans)
    }

    /// One keep-alive connection: from before signing to the arrival.
    async fn bare_paced(&self, count: usize) -> Result<Vec<Duration>> {
        let mut client = Bare::open(self.sink.address).await?;
        let mut spans = Vec::with_capacity(count);
        for _ in 0..count {
            self.sink.forget();
            let began = self.sink.began.elapsed();
            client.post(self.now()).await?;
            let arrived = self.sink.wait_for(1).await?;
            spans.push(arrived.saturating_sub(began));
            tokio::time::sleep(PACE).await;
        }
        Ok(spans)
    }

    async fn close(self) {
        self.store.close().await;
        self.threads.shutdown_background();
    }

    /// Writes events about separate objects in one transaction.
    async fn write(&mut self, count: usize) -> Result<()> {
        let WorkerConfig {
            sealer, entropy, ..
        } = &self.setup;
        let mut tx = self.store.begin("bench").await?;
        for _ in 0..count {
            self.written += 1;
            let id = format!("{:064x}", self.written);
            let now = self.setup.clock.now();
            tx.event_insert(&NewEvent {
                tenant: self.who.clone(),
                body: seal_body(sealer, &self.who, &id, &BODY, &**entropy)?,
                object_id: id.clone(),
                id,
                service: Service::Pools,
                kind: "pool.transaction.settled".to_owned(),
                created_at: now,
                delivery: new_delivery(Mode::Test, now, &**entropy),
            })
            .await?;
        }
        tx.commit().await?;
        if count > 1 {
            // A service has its server gather statistics every two seconds; claims depend on them.
            self.store.gather_statistics().await?;
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.setup.clock.now()
    }

    fn start(&self) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(self.setup.clone());
        let task = self.threads.spawn(worker.run(async {
            let _ = stopped.await;
        }));
        Running { stop, task }
    }
}

struct Running {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn stop(self) -> Result<()> {
        drop(self.stop);
        Ok(self.task.await?)
    }
}

/// Signs and posts over one keep-alive connection, through the worker's HTTP client.
async fn bare_client(address: SocketAddr, count: usize, now: impl Fn() -> Timestamp) -> Result<()> {
    let mut client = Bare::open(address).await?;
    for _ in 0..count {
        client.post(now()).await?;
    }
    Ok(())
}

struct Bare {
    sender: SendRequest<Full<Bytes>>,
    secrets: [SigningSecret; 1],
}

impl Bare {
    async fn open(address: SocketAddr) -> Result<Self> {
        let secret = SigningSecret::parse(SECRET).ok_or("a secret")?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            secrets: [secret],
        })
    }

    async fn post(&mut self, now: Timestamp) -> Result<()> {
        let message = Message {
            service: Service::Pools,
            event_id: "0000000000000000000000000000000000000000000000000000000000000000",
            body: &BODY,
        };
        let mut request = Request::post("/hooks")
            .header("Host", "bench")
            .header("Content-Type", "application/json");
        for (name, value) in message.sign(&self.secrets, now) {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from_static(&BODY)))?;
        let answer = self.sender.send_request(request).await?;
        if answer.status() != 200 {
            return Err("not 200".into());
        }
        answer.into_body().collect().await?;
        Ok(self.sender.ready().await?)
    }
}

/// A receiver on its own thread that responds with 200 and records arrival times.
struct Sink {
    address: SocketAddr,
    began: Stopwatch,
    arrived: Arc<Mutex<Vec<Duration>>>,
}

impl Sink {
    fn start() -> Result<Self> {
        let listener = std::net::TcpListener::bind((IpAddr::from([127, 0, 0, 1]), 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let began = Stopwatch::start();
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&arrived);
        let thread = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::spawn(move || thread.block_on(accept(listener, began, seen)));
        Ok(Self {
            address,
            began,
            arrived,
        })
    }

    fn forget(&self) {
        self.lock().clear();
    }

    /// Arrival time of the last of this many, on the receiver's watch.
    async fn wait_for(&self, count: usize) -> Result<Duration> {
        for _ in 0..60_000 {
            if let Some(at) = self.lock().get(count - 1) {
                return Ok(*at);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Err("events that never arrived".into())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Duration>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A typical partner's receiver: one axum handler that reads the body and responds.
async fn accept(
    listener: std::net::TcpListener,
    began: Stopwatch,
    arrived: Arc<Mutex<Vec<Duration>>>,
) -> io::Result<()> {
    let handler = move |body: Bytes| {
        let arrived = Arc::clone(&arrived);
        async move {
            let at = began.elapsed();
            arrived
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(at);
            format!("{}", body.len())
        }
    };
    let router = Router::new().route("/hooks", post(handler));
    axum::serve(TcpListener::from_std(listener)?, router).await
}
