//! One service with its database and its upstreams.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use coordination::{DirectoryCache, MemoryInFlight, MemoryThrottle};
use gate_core::profile::GateProfile;
use http_kit::{ServiceInfo, TrustedProxies};
use kernel::{Clock, Entropy, Mode, Upstreams};
use parking_lot::Mutex;
use partner_core::events::{Service, event_place};
use partner_core::key::PresentedKey;
use partner_core::ports::Directory;
use partner_core::sealing::{MasterKey, Sealer};
use partner_core::{Access, PartnerStatus};
use pools_core::ports::Engine;
use pools_core::profile::PoolsProfile;
use pools_core::quote::QuoteId;
use pools_core::usecases::create_quote::CreateQuote;
use pools_core::usecases::poll_trade::PollTrade;
use pools_core::usecases::queries::PoolsQueries;
use pools_core::usecases::recount_contingent_credits::RecountContingentCredits;
use pools_core::usecases::reject_quote::RejectQuote;
use pools_core::usecases::transact_quote::TransactQuote;
use pools_http::Parts;
use runtime::Store;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

use crate::client::{Answer, Call, Client};
use crate::clock::{ManualClock, Seeded};
use crate::contract::Contract;
use crate::database::Database;
use crate::engine::ScriptedEngine;
use crate::invariants::INVARIANTS;
use crate::logs::Logs;
use crate::operator::Operator;
use crate::place::Place;
use crate::queues::{QueueFault, Queues};
use crate::rates::ScriptedRates;
use crate::setup::{self, Setup};

/// One service with its database. Cheap to clone. [`World::finish`] must be called at the end.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    setup: Setup,
    router: OnceLock<Router>,
    clock: Arc<ManualClock>,
    engine: Arc<ScriptedEngine>,
    rates: Arc<ScriptedRates>,
    operator: Operator,
    queues: Arc<Queues>,
    database: Database,
    sealer: Arc<Sealer>,
    noticed: Mutex<BTreeSet<String>>,
    finished: Mutex<bool>,
    place: Arc<Place>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let unfinished = !*self.finished.lock() && !std::thread::panicking();
        assert!(!unfinished, "a test must end with `World::finish`");
    }
}

impl World {
    /// The default world.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A world with changed settings.
    pub async fn with(change: impl FnOnce(&mut Setup)) -> Self {
        let mut setup = Setup::default();
        change(&mut setup);
        let place = Arc::new(Place::new().await);
        let clock = Arc::new(ManualClock::at(setup::START));
        let world = Self::open(setup, place, clock, Seeded::new(1)).await;
        world.provision().await;
        world
    }

    /// The same database opened by another process of the service, whose randomness differs.
    pub async fn replica(&self) -> Self {
        let inner = &self.0;
        let seed = inner.operator.entropy.next();
        let (place, clock) = (Arc::clone(&inner.place), Arc::clone(&inner.clock));
        Self::open(inner.setup.clone(), place, clock, Seeded::new(seed)).await
    }

    /// The other mode on the same database, provisioned like this one.
    pub async fn other_mode(&self) -> Self {
        let inner = &self.0;
        let mut setup = inner.setup.clone();
        setup.mode = match setup.mode {
            Mode::Test => Mode::Live,
            Mode::Live => Mode::Test,
        };
        let seed = inner.operator.entropy.next();
        let (place, clock) = (Arc::clone(&inner.place), Arc::clone(&inner.clock));
        let other = Self::open(setup, place, clock, Seeded::new(seed)).await;
        other.provision().await;
        other
    }

    async fn open(
        setup: Setup,
        place: Arc<Place>,
        clock: Arc<ManualClock>,
        seeded: Seeded,
    ) -> Self {
        Logs::start();
        let seeded = Arc::new(seeded);
        let entropy: Arc<dyn Entropy> = seeded.clone();
        let (store, operating) = place.open(&setup, clock.clone()).await;
        let sealer = Arc::new(Sealer::new(&MasterKey::new([7; 32])));
        let queues = Queues::new(&store, clock.clone(), setup.velocity_window, &entropy);
        let queues = Arc::new(queues);
        let directory = Arc::new(DirectoryCache::<PoolsProfile>::new(
            store.clone(),
            Arc::default(),
        ));
        let gate_directory = Arc::new(DirectoryCache::<GateProfile>::new(
            store.clone(),
            Arc::default(),
        ));
        let operator = Operator {
            mode: setup.mode,
            store,
            operating,
            clock: Arc::clone(&clock),
            entropy: seeded,
            sealer: Arc::clone(&sealer),
            directory,
            gate_directory,
        };
        let far_end = (
            Arc::<ScriptedEngine>::default(),
            Arc::new(ScriptedRates::new(clock.clone())),
        );
        Self(Arc::new(Inner {
            setup,
            router: OnceLock::new(),
            clock,
            engine: far_end.0,
            rates: far_end.1,
            operator,
            queues,
            database: place.look().await,
            sealer,
            noticed: Mutex::default(),
            finished: Mutex::new(false),
            place,
        }))
    }

    async fn provision(&self) {
        let operator = &self.0.operator;
        for pool in setup::pools() {
            operator.put_pool(&pool).await;
        }
        for (partner, reference, keys) in [
            (
                setup::ACME,
                "ACME-7F3K",
                &[
                    setup::ACME_SECRET,
                    setup::ACME_SECRET_2,
                    setup::ACME_PUBLISHABLE,
                ][..],
            ),
            (
                setup::RIVAL,
                "RIVAL-1",
                &[setup::RIVAL_SECRET, setup::RIVAL_PUBLISHABLE][..],
            ),
        ] {
            operator.put_partner(partner, PartnerStatus::Active).await;
            operator
                .put_profile(partner, &setup::profile(reference))
                .await;
            for key in keys {
                operator.put_key(partner, &self.of_mode(key)).await;
            }
        }
        operator
            .terms(setup::ACME, "EUR-USDT", |terms| {
                *terms = setup::acme_terms()
            })
            .await;
        operator.put_endpoint(setup::ACME, Service::Pools).await;
    }

    /// A key of the constants, in this world's mode.
    #[must_use]
    pub fn of_mode(&self, key: &str) -> String {
        key.replacen("_test_", &format!("_{}_", self.0.setup.mode), 1)
    }

    /// The clock of the service and its store.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.0.clock
    }

    /// The same clock, shared.
    #[must_use]
    pub fn ticking(&self) -> Arc<ManualClock> {
        Arc::clone(&self.0.clock)
    }

    /// Moves the clock on.
    pub fn after(&self, millis: u64) {
        self.0.clock.advance(Duration::from_millis(millis));
    }

    #[must_use]
    pub fn engine(&self) -> &Arc<ScriptedEngine> {
        &self.0.engine
    }

    /// The rate source.
    #[must_use]
    pub fn rates(&self) -> &Arc<ScriptedRates> {
        &self.0.rates
    }

    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.0.operator
    }

    #[must_use]
    pub fn database(&self) -> &Database {
        &self.0.database
    }

    /// The store of the service, for its background tasks.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0.operator.store)
    }

    /// The settings of this world.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.0.setup
    }

    /// Marks an event as noticed.
    pub(crate) fn notice_event(&self, id: String) {
        self.0.noticed.lock().insert(id);
    }

    /// Dependencies of the use cases, except the upstreams.
    pub(crate) fn parts(&self) -> (&Operator, Arc<Queues>, Arc<Sealer>) {
        let inner = &self.0;
        (
            &inner.operator,
            Arc::clone(&inner.queues),
            Arc::clone(&inner.sealer),
        )
    }

    /// The number of stored trades of a quote.
    pub async fn trades_of(&self, quote: &str) -> i64 {
        let id = QuoteId::parse(quote).expect("a quote id").ulid();
        let trades = format!("SELECT count(*) FROM trades WHERE quote_id = '{id}'");
        self.0.database.number(&trades).await
    }

    /// The authentication result for a key.
    pub async fn access(&self, key: &str) -> Arc<Access<PoolsProfile>> {
        let key = PresentedKey::parse(key).expect("a key");
        let found = self.0.operator.directory.access_find(key.mode, &key.hash);
        found.await.expect("a read").expect("a known key")
    }

    /// Injects this commit fault into the next transact.
    pub fn fail_next_commit(&self, fault: QueueFault) {
        self.0.queues.fail_next(fault);
    }

    /// A client with this key.
    #[must_use]
    pub fn client(&self, key: &str) -> Client {
        Client {
            world: self.clone(),
            key: key.to_owned(),
        }
    }

    /// Acme's client.
    #[must_use]
    pub fn acme(&self) -> Client {
        self.client(&self.of_mode(setup::ACME_SECRET))
    }

    /// Rival's client.
    #[must_use]
    pub fn rival(&self) -> Client {
        self.client(&self.of_mode(setup::RIVAL_SECRET))
    }

    /// Sends a request and checks the response against the contract.
    pub async fn send(&self, call: Call) -> Answer {
        let inner = &self.0;
        let router = inner.router.get_or_init(|| {
            let far_end = (Arc::clone(&inner.engine), Arc::clone(&inner.rates));
            router(&inner.setup, &inner.operator, &inner.queues, &far_end)
        });
        let answer = Answer::of(router.clone(), &call).await;
        let tiers = self.0.setup.tiers.iter().flatten();
        let tiers: Vec<&str> = tiers.map(|tier| tier.name).collect();
        Contract::published().check(&call, &answer, &tiers);
        answer
    }

    /// The events about a trade, in order: type and body. They count as noticed.
    pub async fn events(&self, partner: &str, trade: &str) -> Vec<(String, Value)> {
        let who = self.0.operator.tenant(partner);
        let stored = self
            .0
            .operator
            .store
            .events_of(&who, trade)
            .await
            .expect("events");
        let mut events = Vec::new();
        for event in stored {
            assert_eq!(
                event.id,
                hex::encode(Sha256::digest(format!("{trade}:{}", event.kind)))
            );
            let place = event_place(&who, &event.id);
            let body = self
                .0
                .sealer
                .open(&place, &event.body)
                .expect("an event that opens");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            Contract::published().judge_event(&event.kind, &body);
            assert_eq!(
                (body["eventId"].as_str(), body["type"].as_str()),
                (Some(&*event.id), Some(&*event.kind))
            );
            self.0.noticed.lock().insert(event.id);
            events.push((event.kind, body));
        }
        events
    }

    /// Notices the events about a trade; returns their types.
    pub async fn notice(&self, partner: &str, trade: &str) -> Vec<String> {
        let events = self.events(partner, trade).await;
        events.into_iter().map(|(kind, _)| kind).collect()
    }

    /// Marks every event so far as noticed; returns their number by type.
    pub async fn notice_all(&self) -> BTreeMap<String, usize> {
        let rows = self
            .0
            .database
            .texts("SELECT id || ' ' || type FROM events")
            .await;
        let mut counts = BTreeMap::new();
        for row in rows {
            let (id, kind) = row.split_once(' ').expect("two words");
            self.0.noticed.lock().insert(id.to_owned());
            *counts.entry(kind.to_owned()).or_default() += 1;
        }
        counts
    }

    /// Ends the test: checks every invariant of the database and that no event was left unnoticed.
    pub async fn finish(self) {
        self.check().await;
        let unnoticed = self
            .0
            .database
            .texts("SELECT id || ' ' || type || ' ' || object_id FROM events")
            .await;
        let noticed = self.0.noticed.lock().clone();
        let unnoticed: Vec<&String> = unnoticed
            .iter()
            .filter(|row| !row.split(' ').next().is_some_and(|id| noticed.contains(id)))
            .collect();
        assert!(unnoticed.is_empty(), "unnoticed events: {unnoticed:#?}");
        // Acme has an endpoint for each service and rival has not: one delivery per event of acme.
        let missed = "SELECT count(*) FROM events e WHERE (SELECT count(*) FROM deliveries d
            WHERE d.mode = e.mode AND d.partner_id = e.partner_id AND d.event_id = e.id)
            <> (SELECT count(*) FROM webhook_endpoints w WHERE w.mode = e.mode AND w.partner_id = e.partner_id
              AND w.service = e.service)";
        assert_eq!(
            self.0.database.number(missed).await,
            0,
            "one delivery for each endpoint"
        );
        self.close().await;
    }

    /// Ends a replica. The original world checks its events.
    pub async fn close(self) {
        *self.0.finished.lock() = true;
        self.0.queues.shut_down().await;
        self.0.database.close().await;
        self.0.operator.close_store().await;
    }

    /// Recounts contingent credits, as the service does periodically.
    pub async fn recount(&self) {
        let recounting = RecountContingentCredits {
            store: self.0.operator.store.clone(),
            mode: self.0.setup.mode,
        };
        let due = recounting.due().await.expect("the accounts to recount");
        for (who, asset) in due.rows {
            while recounting.advance(&who, asset).await.expect("a slice") {}
        }
    }

    /// Locks a partner's row until the connection is closed; `None` on an embedded database, which has no such lock.
    pub async fn lock_partner(&self, partner: &str) -> Option<PgConnection> {
        self.lock_rows("books", partner).await
    }

    /// Locks the rows of a partner in a table, as [`World::lock_partner`] does.
    pub async fn lock_rows(&self, table: &str, partner: &str) -> Option<PgConnection> {
        self.0.place.lock_rows(table, partner).await
    }

    /// Runs SQL that the service itself would never run.
    pub async fn damage(&self, sql: &str) {
        self.0.place.damage(sql).await;
    }

    /// Checks every invariant of the database.
    pub async fn check(&self) {
        let store = &self.0.operator.store;
        let audit = store.audit(&self.0.sealer, http_kit::is_well_formed, &|_| ());
        let report = audit.await.expect("an audit");
        let broken: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.count > 0)
            .collect();
        assert!(report.clean(), "broken invariants: {broken:#?}");
        assert!(!report.findings.is_empty(), "the audit runs checks");
        for (name, breaches) in INVARIANTS {
            assert_eq!(self.0.database.number(breaches).await, 0, "{name}");
        }
    }
}

type FarEnd = (Arc<ScriptedEngine>, Arc<ScriptedRates>);

fn router(
    setup: &Setup,
    operator: &Operator,
    queues: &Arc<Queues>,
    (engine, rates): &FarEnd,
) -> Router {
    let clock: Arc<dyn Clock> = operator.clock.clone();
    let entropy: Arc<dyn Entropy> = operator.entropy.clone();
    let store = operator.store.clone();
    let present: Arc<dyn Engine> = engine.clone();
    let engines = Upstreams {
        present: Some(present),
        former: None,
    };
    let parts = Parts {
        mode: setup.mode,
        directory: operator.directory.clone(),
        quoting: CreateQuote {
            rates: rates.clone(),
            engine: engine.clone(),
            queue: queues.clone(),
            clock: Arc::clone(&clock),
            entropy: Arc::clone(&entropy),
            ttl: setup.quote_ttl,
        },
        transacting: TransactQuote {
            preflight: queues.preflight.clone(),
            queue: queues.clone(),
            catch_up: queues.catch_up.clone(),
            engine: engine.clone(),
            in_flight: Arc::new(MemoryInFlight::new()),
            clock: Arc::clone(&clock),
            entropy: Arc::clone(&entropy),
        },
        polling: PollTrade::new(
            store.clone(),
            engines,
            Arc::clone(&operator.sealer),
            Arc::clone(&entropy),
            pools_http::render_event,
        ),
        rejecting: RejectQuote::new(store.clone()),
        reading: PoolsQueries::new(store.clone()),
    };
    let service = pools_http::Setup {
        parts,
        throttle: Arc::new(MemoryThrottle::new(Arc::clone(&clock))),
        tiers: setup.tiers.clone(),
        proxies: TrustedProxies::new(
            setup
                .proxies
                .iter()
                .map(|net| net.parse().expect("a network")),
        ),
        site: ServiceInfo::new("https://pools.test/docs", clock, entropy),
        readiness: store,
    };
    pools_http::service(service).expect("a consistent contract")
}
