//! Opening everything a program needs, in the order in which it can fail: what is only read
//! first, then the database and its key, then tasks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coordination::DirectoryCache;
use gate_core::catalogue::Catalogue;
use gate_core::ports::Rail;
use gate_core::usecases::expiry::Expiring;
use gate_core::usecases::settling::Settling;
use instruments::Program;
use kernel::{Clock, Entropy, StoreError};
use partner_core::events::Service;
use partner_core::ports::{Directory, InFlight, RateSource, Throttle};
use partner_core::sealing::{MasterKey, Sealer};
use partner_core::token::TokenKey;
use partner_core::webhooks::schedule::Schedule;
use pools_core::ports::Engine;
use providers::{MeasuredEngine, MeasuredRates};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use webhooks::{Setup, SystemResolver, Trust, Worker};

use crate::background::{follow_rates, keep_house, settle_rails, sweep_sessions};
use crate::catalogue;
use crate::config::{Config, ConfigFault, Database};
use crate::desk::{QuoteLanes, TransactLanes};
use crate::far_ends;
use crate::looks::Looks;
use crate::master_key;
use crate::process::Ports;
use crate::shared;
use crate::store::{self, Store};
use crate::supervise::supervised;

/// How long deliveries under way may go on when a service stops: it closes within a few seconds,
/// and what is broken off is handed back and sent again.
const DELIVERY_GRACE: Duration = Duration::from_secs(3);

/// Why nothing was opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenFault {
    /// The configuration cannot be: exit 2.
    #[error("the configuration cannot be used")]
    Config(Vec<ConfigFault>),
    /// The database cannot be: exit 1.
    #[error("the database cannot be opened")]
    Store(#[from] StoreError),
}

impl From<ConfigFault> for OpenFault {
    fn from(fault: ConfigFault) -> Self {
        Self::Config(vec![fault])
    }
}

/// What the operator's tools need: the store, the key, the sources of time and randomness.
#[derive(Clone)]
pub struct Foundation {
    /// The configuration; the master key has been taken out.
    pub config: Arc<Config>,
    /// The store.
    pub store: Arc<dyn Store>,
    /// Seals what is encrypted at rest.
    pub sealer: Arc<Sealer>,
    /// Signs embed tokens.
    pub embed_tokens: TokenKey,
    /// The process's clock.
    pub clock: Arc<dyn Clock>,
    /// The process's randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl Foundation {
    /// Opens the database and checks the master key against it. One in a file is made where there
    /// is none, and its schema brought up to date.
    ///
    /// # Errors
    /// [`OpenFault`].
    pub async fn open(mut config: Config, ports: Ports) -> Result<Self, OpenFault> {
        let keys = KeySource::of(&mut config)?;
        let store = store::open(&config, &ports).await?;
        let key = match keys.key_of(&*store, &*ports.entropy).await {
            Ok(key) => key,
            Err(fault) => {
                store.close().await;
                return Err(fault);
            }
        };
        Ok(Self {
            config: Arc::new(config),
            store,
            sealer: Arc::new(Sealer::new(&key)),
            embed_tokens: TokenKey::new(&key, "embed"),
            clock: ports.clock,
            entropy: ports.entropy,
        })
    }

    /// The same for a database that has to be there: for work that makes no sense on a new one.
    ///
    /// # Errors
    /// [`OpenFault`].
    pub async fn open_existing(config: Config, ports: Ports) -> Result<Self, OpenFault> {
        match &config.database {
            Database::Sqlite(file) if !store::is_there(&config.database) => {
                Err(OpenFault::from(no_database(file)))
            }
            Database::Sqlite(_) | Database::Postgres(_) => Self::open(config, ports).await,
        }
    }
}

fn no_database(file: &Path) -> ConfigFault {
    let expected = format!(
        "expected a database; there is none at {}; `penstock apply` makes one, and so do `serve` and `migrate` of a service",
        file.display()
    );
    ConfigFault {
        setting: "PENSTOCK_DATABASE_URL".to_owned(),
        expected,
    }
}

impl fmt::Debug for Foundation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Foundation")
    }
}

/// Where a database's master key comes from.
enum KeySource {
    Given(MasterKey),
    /// The file beside an embedded database.
    Beside(PathBuf),
}

impl KeySource {
    /// The key that is given; or the file beside the database, whose content is judged before
    /// anything is made. A server has no place for one.
    fn of(config: &mut Config) -> Result<Self, ConfigFault> {
        match (config.master_key.take(), &config.database) {
            (Some(key), _) => Ok(Self::Given(key)),
            (None, Database::Sqlite(database)) => {
                let file = master_key::file_beside(database);
                master_key::read(&file)?;
                Ok(Self::Beside(file))
            }
            (None, Database::Postgres(_)) => Err(ConfigFault {
                setting: "PENSTOCK_MASTER_KEY".to_owned(),
                expected: "expected 32 bytes in base64: none is kept beside a database server"
                    .to_owned(),
            }),
        }
    }

    /// The key of a database. Any other is refused.
    async fn key_of(
        self,
        store: &dyn Store,
        entropy: &dyn Entropy,
    ) -> Result<MasterKey, OpenFault> {
        let (key, origin) = match self {
            Self::Given(key) => (key, "PENSTOCK_MASTER_KEY".to_owned()),
            Self::Beside(file) => (
                kept_key(store, &file, entropy).await?,
                file.display().to_string(),
            ),
        };
        check_key(store, &key, origin).await?;
        Ok(key)
    }
}

/// The key kept beside a database. One is made only for a database that has none: with another
/// key than its own nothing sealed in it would open.
async fn kept_key(
    store: &dyn Store,
    file: &Path,
    entropy: &dyn Entropy,
) -> Result<MasterKey, OpenFault> {
    let stored = store.master_key_fingerprint().await?;
    // Read only now: who stores a fingerprint has made the file before.
    match (master_key::read(file)?, stored) {
        (Some(key), _) => Ok(key),
        (None, None) => Ok(master_key::make(file, entropy)?),
        (None, Some(stored)) => Err(OpenFault::from(lost_key(file, &stored))),
    }
}

fn lost_key(file: &Path, fingerprint: &str) -> ConfigFault {
    let expected = format!(
        "{} is missing: restore the database's own master key, fingerprint {fingerprint}, or give it in this variable; \
         no other opens the webhook secrets and the events sealed in the database, so none was made",
        file.display()
    );
    ConfigFault {
        setting: "PENSTOCK_MASTER_KEY".to_owned(),
        expected,
    }
}

/// A database belongs to the key it was first opened with: with another one nothing sealed in it
/// would open.
async fn check_key(store: &dyn Store, key: &MasterKey, origin: String) -> Result<(), OpenFault> {
    let ours = key.fingerprint();
    let stored = store.master_key_check(&ours).await?;
    if stored == ours {
        return Ok(());
    }
    let expected =
        format!("expected the database's master key, fingerprint {stored}; this one has {ours}");
    Err(OpenFault::from(ConfigFault {
        setting: origin,
        expected,
    }))
}

/// Everything a service runs on.
pub struct Runtime {
    /// The store, the key, the sources of time and randomness.
    pub base: Foundation,
    /// Who may do what, through a cache.
    pub directory: Arc<dyn Directory>,
    /// Counts requests.
    pub throttle: Arc<dyn Throttle>,
    /// Detects concurrent twins.
    pub in_flight: Arc<dyn InFlight>,
    /// Where rates come from.
    pub rates: Arc<dyn RateSource>,
    /// What the gate offers where.
    pub catalogue: Arc<Catalogue>,
    /// The liquidity engine.
    pub engine: Arc<dyn Engine>,
    /// What moves fiat; `None`: nothing does.
    pub rail: Option<Arc<dyn Rail>>,
    /// Where transacts are handed in.
    pub transact_desk: Arc<TransactLanes>,
    /// Where quotes are handed in.
    pub quote_desk: Arc<QuoteLanes>,
    /// Where a transact looks before it asks the engine.
    pub looks: Arc<Looks>,
    /// Cancelled when the service is to stop.
    pub shutdown: CancellationToken,
    background: TaskTracker,
}

impl Runtime {
    /// Opens everything and starts the tasks in the background. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`OpenFault`]; nothing is left running.
    pub async fn open(config: Config, ports: Ports) -> Result<Self, OpenFault> {
        // First of all, because who is measured looks for its metrics when it is made.
        if config.metrics_listen.is_some() {
            measure(&config, &ports);
        }
        let (rates, followed) = far_ends::rates(&config.rates, &ports.clock)?;
        let engine = Arc::new(MeasuredEngine::new(far_ends::engine(&config)?));
        let catalogue = catalogue::read(config.catalogue.as_deref());
        let catalogue = Arc::new(catalogue.map_err(OpenFault::Config)?);
        store::migrate_to_serve(&config, &ports).await?;
        let base = Foundation::open(config, ports).await?;
        base.store.velocity_window_keep().await?;
        let cache = Arc::new(DirectoryCache::new(base.store.clone()));
        let shutdown = CancellationToken::new();
        let background = TaskTracker::new();
        keep_house(&base, &cache, &background, &shutdown);
        if let Some(rates) = followed {
            follow_rates(&rates, &background, &shutdown);
        }
        let (throttle, in_flight) = shared::open(&base, &background, &shutdown).await;
        background.close();
        let quote_desk = Arc::new(QuoteLanes::start(&base.store, &base.entropy));
        Ok(Self {
            directory: cache,
            throttle,
            in_flight,
            rates: Arc::new(MeasuredRates::new(rates)),
            catalogue,
            engine,
            rail: far_ends::rail(base.config.mode),
            transact_desk: Arc::new(TransactLanes::start(&base.store, &base.entropy)),
            looks: Arc::new(quote_desk.looks(base.store.clone(), &base.clock)),
            quote_desk,
            shutdown,
            background,
            base,
        })
    }

    /// Starts delivering the events of a service, until the runtime is told to stop.
    pub fn deliver(&self, service: Service) {
        let base = &self.base;
        let config = &base.config;
        let setup = Setup {
            mode: config.mode,
            service,
            deliveries: base.store.clone(),
            sealer: Arc::clone(&base.sealer),
            clock: Arc::clone(&base.clock),
            entropy: Arc::clone(&base.entropy),
            schedule: Schedule::new(config.webhook_waits.clone()),
            timeout: config.webhook_timeout,
            allow_private: config.webhook_allow_private,
            resolver: Arc::new(SystemResolver),
            trust: Trust::System,
            grace: DELIVERY_GRACE,
        };
        let stop = self.shutdown.clone();
        let stopping = stop.clone();
        self.background
            .spawn(supervised("deliveries", stop, move || {
                Worker::new(setup.clone()).run(stopping.clone().cancelled_owned())
            }));
    }

    /// How gate sessions are moved.
    #[must_use]
    pub fn sessions(&self) -> Expiring {
        Expiring {
            store: self.base.store.clone(),
            sealer: Arc::clone(&self.base.sealer),
            entropy: Arc::clone(&self.base.entropy),
        }
    }

    /// Starts expiring gate sessions that nobody reads, until the runtime is told to stop; not
    /// where the configuration has turned it off.
    pub fn sweep_sessions(&self) {
        let config = &self.base.config;
        if let Some(every) = config.session_sweep {
            let (sessions, mode) = (self.sessions(), config.mode);
            let stop = self.shutdown.clone();
            let stopping = stop.clone();
            self.background
                .spawn(supervised("session_sweep", stop, move || {
                    sweep_sessions(sessions.clone(), mode, every, stopping.clone())
                }));
        }
    }

    /// Starts asking the rail about what is under way, until the runtime is told to stop; not where
    /// there is none.
    pub fn settle_rails(&self) {
        let Some(rail) = self.rail.clone() else {
            return;
        };
        let (sessions, mode) = (self.sessions(), self.base.config.mode);
        let settling = Settling { sessions, rail };
        let stop = self.shutdown.clone();
        let stopping = stop.clone();
        self.background.spawn(supervised("rails", stop, move || {
            settle_rails(settling.clone(), mode, stopping.clone())
        }));
    }

    /// Stops in order: the background, then the lanes with what has queued in them, then the
    /// store. To be called when no request is in flight any more.
    pub async fn close(&self) {
        self.shutdown.cancel();
        self.background.wait().await;
        self.quote_desk.shut_down().await;
        self.transact_desk.shut_down().await;
        self.base.store.close().await;
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("config", &self.base.config)
            .finish_non_exhaustive()
    }
}

fn measure(config: &Config, ports: &Ports) {
    instruments::install(&Program {
        version: env!("CARGO_PKG_VERSION"),
        mode: config.mode.as_str(),
        started: ports.clock.now().seconds(),
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kernel::Mode;

    use crate::config::Sources;

    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn config(folder: &Path, pairs: &[(&str, &str)]) -> Config {
        let database = format!("sqlite://{}/data/penstock.db", folder.display());
        let given = [("DATABASE_URL", database.as_str())];
        let variable =
            |(name, text): (&str, &str)| (format!("PENSTOCK_{name}").into(), text.into());
        let pairs = given.into_iter().chain(pairs.iter().copied());
        let sources = Sources {
            environment: pairs.map(variable).collect(),
            ..Sources::default()
        };
        Config::load(&sources).unwrap().config
    }

    #[tokio::test]
    async fn opens_twice_and_ends_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let config = config(folder.path(), &[]);
            let runtime = Runtime::open(config, Ports::of_machine()).await.unwrap();
            runtime.base.store.ready().await.unwrap();
            let pools = runtime.directory.pools_all(Mode::Test).await.unwrap();
            assert!(pools.is_empty());
            runtime.close().await;
            assert!(runtime.base.store.ready().await.is_err());
        }
        assert!(folder.path().join("data/master.key").exists());
    }

    /// Panics when the worker draws the first token of a lease, eight bytes long.
    struct Shaky(AtomicUsize);
    impl Entropy for Shaky {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(7);
            let tokens = usize::from(buffer.len() == 8);
            let drawn = self.0.fetch_add(tokens, Ordering::SeqCst);
            assert!(tokens == 0 || drawn > 0, "this one panics");
        }
    }

    #[tokio::test]
    async fn a_worker_that_panics_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let entropy = Arc::new(Shaky(AtomicUsize::new(0)));
        let ports = Ports {
            entropy: entropy.clone(),
            ..Ports::of_machine()
        };
        let runtime = Runtime::open(config(folder.path(), &[]), ports).await;
        let runtime = runtime.unwrap();
        runtime.deliver(Service::Pools);
        for _ in 0..500 {
            if entropy.0.load(Ordering::SeqCst) > 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(entropy.0.load(Ordering::SeqCst) > 1);
        runtime.close().await;
    }

    #[tokio::test]
    async fn another_master_key_is_refused_without_being_shown() {
        let folder = tempfile::tempdir().unwrap();
        let first = config(folder.path(), &[]);
        let first = Foundation::open(first, Ports::of_machine()).await.unwrap();
        first.store.close().await;
        let other = config(folder.path(), &[("MASTER_KEY", KEY)]);
        let refused = Foundation::open(other, Ports::of_machine()).await;
        let Err(OpenFault::Config(faults)) = refused else {
            panic!("{refused:?}");
        };
        let line = faults[0].to_string();
        let told = "PENSTOCK_MASTER_KEY: expected the database's master key, fingerprint ";
        assert!(line.starts_with(told) && !line.contains(KEY), "{line}");
    }

    fn refusal<T: fmt::Debug>(refused: Result<T, OpenFault>) -> String {
        let Err(OpenFault::Config(faults)) = refused else {
            panic!("{refused:?}");
        };
        faults[0].to_string()
    }

    // rule: base.master-key-lost
    #[tokio::test]
    async fn a_lost_master_key_is_asked_for_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let again = || Foundation::open(config(folder.path(), &[]), Ports::of_machine());
        again().await.unwrap().store.close().await;
        let file = folder.path().join("data/master.key");
        let key = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let line = refusal(again().await);
        assert!(line.contains("master.key is missing: restore"), "{line}");
        let beside: Vec<_> = std::fs::read_dir(file.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.to_str().unwrap().starts_with("master"))
            .collect();
        assert!(beside.is_empty(), "{beside:?}");
        std::fs::write(&file, key).unwrap();
        again().await.unwrap();
    }

    // rule: base.master-key-file, base.database-file
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn programs_that_start_at_once_open_one_database_with_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let opening: Vec<_> = (0..4)
            .map(|_| {
                let config = config(folder.path(), &[]);
                tokio::spawn(Foundation::open(config, Ports::of_machine()))
            })
            .collect();
        for one in opening {
            one.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_broken_key_file_stops_before_a_database_is_made() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("data/master.key"), "hunter2").unwrap();
        let opened = Foundation::open(config(folder.path(), &[]), Ports::of_machine()).await;
        let line = refusal(opened);
        assert!(line.contains("holds no key"), "{line}");
        assert!(!folder.path().join("data/penstock.db").exists());
    }

    #[tokio::test]
    async fn work_on_an_existing_database_makes_none() {
        let folder = tempfile::tempdir().unwrap();
        let existing =
            || Foundation::open_existing(config(folder.path(), &[]), Ports::of_machine());
        let line = refusal(existing().await);
        assert!(line.contains("there is none at"), "{line}");
        assert!(!folder.path().join("data").exists());
        // What a program leaves that was stopped at its first step is no database either.
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("data/penstock.db"), "").unwrap();
        refusal(existing().await);
        let config = config(folder.path(), &[]);
        store::migrate(&config, &Ports::of_machine()).await.unwrap();
        existing().await.unwrap();
    }

    #[tokio::test]
    async fn a_faulty_rate_file_stops_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rates.toml");
        std::fs::write(
            &file,
            "[[rates]]\npair = \"EUR\"\nmid = \"1\"\nspread_bps = 1",
        )
        .unwrap();
        let rates = format!("static:{}", file.display());
        let config = config(folder.path(), &[("RATES", &rates)]);
        let refused = Runtime::open(config, Ports::of_machine()).await;
        let Err(OpenFault::Config(faults)) = refused else {
            panic!("{refused:?}");
        };
        let line = faults[0].to_string();
        assert!(
            line.starts_with("PENSTOCK_RATES: ") && line.contains("rates.toml:2: pair"),
            "{line}"
        );
        assert!(!folder.path().join("data").exists());
    }

    #[tokio::test]
    async fn migrating_needs_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), &[]);
        store::migrate(&config, &Ports::of_machine()).await.unwrap();
        assert!(folder.path().join("data/penstock.db").exists());
        assert!(!folder.path().join("data/master.key").exists());
    }
}
