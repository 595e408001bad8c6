//! Opens everything that a program needs. First it reads files without changing anything, then it opens the database and its key,
//! then it starts the tasks.

mod gate_tasks;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coordination::{ConfigCache, DirectoryCache, KeyUses, PartnerQueues};
use gate_core::catalogue::Catalogue;
use gate_core::ports::{Rail, Verifier};
use gate_core::profile::GateProfile;
use gate_core::token::TokenKey;
use instruments::Program;
use kernel::{Clock, Entropy, Mode, NoWritesReason, StoreError, StoreResult, Upstreams};
use partner_core::events::Service;
use partner_core::ports::{
    Directory, InFlight, MasterKeyState, RateSource, Readiness, StoredMasterKey, Throttle,
};
use partner_core::sealing::{DerivedKeys, MasterKey, Sealer};
use partner_core::usecases::master_keys::unlock;
use partner_core::webhooks::schedule::Schedule;
use pools_core::batch::{Decision, TransactCommand};
use pools_core::ports::{Engine, NewQuote};
use pools_core::profile::PoolsProfile;
use pools_core::quote::Quote;
use pools_core::usecases::catch_up::CatchUpVelocity;
use providers::{MeasuredRates, SandboxPages};
use tokio_util::sync::CancellationToken;
use webhooks::{SystemResolver, Trust, Worker, WorkerConfig};

use crate::background::{delete_old_quotes, follow_rates, spawn_maintenance, sweep_idempotency};
use crate::catalogue;
use crate::config::{Config, ConfigError, Database, UpstreamChoice};
use crate::durability;
use crate::engine_check::count_returnable;
use crate::master_key;
use crate::preflight::{CachedPreflight, start_quote_queues, start_transact_queues};
use crate::process::Ports;
use crate::shared;
use crate::store::{self, Store};
use crate::supervise::Tasks;
use crate::upstreams;

/// How long deliveries in flight may continue at shutdown. Interrupted deliveries are released and sent again.
const DELIVERY_GRACE: Duration = Duration::from_secs(3);

/// Why opening failed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration is invalid: exit 2.
    #[error("the configuration cannot be used")]
    Config(Vec<ConfigError>),
    /// The database cannot be opened: exit 1.
    #[error("{}", explained(.0))]
    Store(StoreError),
}

/// The cause alone if it already says what failed.
fn explained(error: &StoreError) -> String {
    match error {
        StoreError::Unexpected(point) => kernel::causes(&**point),
        StoreError::Unavailable(cause) => {
            format!(
                "the database cannot be opened: {}",
                kernel::causes(&**cause)
            )
        }
        other => kernel::causes(other),
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ConfigError> for OpenError {
    fn from(error: ConfigError) -> Self {
        Self::Config(vec![error])
    }
}

/// Everything that the operator's tools need: the store, the key, the clock and the randomness.
#[derive(Clone)]
pub struct OpenedBase {
    /// The configuration without the master key.
    pub config: Arc<Config>,
    pub store: Arc<dyn Store>,
    /// The file of the master keys; `None` if the configuration contains them.
    pub key_file: Option<PathBuf>,
    /// Seals the values that are encrypted at rest.
    pub sealer: Arc<Sealer>,
    /// Signs embed tokens.
    pub embed_tokens: TokenKey,
    /// The keys that a rotation of the master key keeps.
    pub derived: Arc<DerivedKeys>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
}

/// What a program does with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads and writes. The first program that writes stores the mode and the master key's fingerprint.
    Write,
    /// It writes nothing on a server, so that a standby and a role that may only read suffice. A file is opened for both, because every
    /// program migrates it.
    Read,
}

impl OpenedBase {
    /// Opens the database for reading and writing, and checks its mode and the master key against it. Creates a missing database file
    /// and migrates its schema.
    pub async fn open(config: Config, ports: Ports) -> Result<Self, OpenError> {
        Self::open_for(config, ports, Access::Write).await
    }

    /// Opens the database as [`OpenedBase::open`] does, for this access.
    pub async fn open_for(
        mut config: Config,
        ports: Ports,
        access: Access,
    ) -> Result<Self, OpenError> {
        config.database = config.database.behind_links();
        let keys = KeySource::of(&mut config)?;
        let begins = match (&config.database, access) {
            (Database::Sqlite(_), _) | (Database::Postgres(_), Access::Write) => Some(config.mode),
            (Database::Postgres(_), Access::Read) => None,
        };
        let key_file = match &keys {
            KeySource::Given(_) => None,
            KeySource::Beside(file) => Some(file.clone()),
        };
        let store = store::open(&config, &ports).await?;
        let (sealer, derived) = match keys.unlock(&*store, &*ports.entropy, begins).await {
            Ok(unlocked) => unlocked,
            Err(error) => {
                store.close().await;
                return Err(error);
            }
        };
        Ok(Self {
            config: Arc::new(config),
            store,
            key_file,
            sealer: Arc::new(sealer.requiring_confirmation(Arc::clone(&ports.clock))),
            embed_tokens: TokenKey::new(&derived),
            derived: Arc::new(derived),
            clock: ports.clock,
            entropy: ports.entropy,
        })
    }

    /// Opens a database that must exist, for work that makes no sense on a new database.
    pub async fn open_existing(
        config: Config,
        ports: Ports,
        access: Access,
    ) -> Result<Self, OpenError> {
        match &config.database {
            Database::Sqlite(file) if !store::is_there(&config.database) => {
                Err(OpenError::from(no_database(file)))
            }
            Database::Sqlite(_) | Database::Postgres(_) => {
                Self::open_for(config, ports, access).await
            }
        }
    }
}

fn no_database(file: &Path) -> ConfigError {
    let expected = format!(
        "expected a database; there is no file at {}; correct the path, or create a database there with `penstock migrate`",
        file.display()
    );
    ConfigError::new("PENSTOCK_DATABASE_URL", expected)
}

kernel::debug_as_text!(OpenedBase, "OpenedBase");

/// The source of a database's master keys.
enum KeySource {
    Given(Vec<MasterKey>),
    /// The file beside an embedded database.
    Beside(PathBuf),
}

impl KeySource {
    /// The configured keys, or the file next to the database, which is read before anything is created. A database server has no
    /// such file.
    fn of(config: &mut Config) -> Result<Self, ConfigError> {
        match (config.master_keys.take(), &config.database) {
            (Some(keys), _) => Ok(Self::Given(keys)),
            (None, Database::Sqlite(database)) => {
                let file = master_key::file_beside(database);
                master_key::read(&file)?;
                Ok(Self::Beside(file))
            }
            (None, Database::Postgres(_)) => Err(ConfigError::new(
                "PENSTOCK_MASTER_KEY",
                "expected 32 bytes in base64; only an embedded database has a key file",
            )),
        }
    }

    /// The sealer of a database. The database's key must be one of these keys. If the program `begins` an installation of a mode, and the
    /// database has no mode or no key yet, the mode and the first key are stored.
    async fn unlock(
        self,
        store: &dyn Store,
        entropy: &dyn Entropy,
        begins: Option<Mode>,
    ) -> Result<(Sealer, DerivedKeys), OpenError> {
        let (held, origin) = match self {
            Self::Given(keys) => (keys, "PENSTOCK_MASTER_KEY".to_owned()),
            Self::Beside(file) => (
                kept_keys(store, &file, entropy).await?,
                file.display().to_string(),
            ),
        };
        if let (Some(mode), Some(first)) = (begins, held.first()) {
            begin(store, mode, &first.fingerprint().to_string()).await?;
        }
        let mut known = store.master_keys().await?;
        if known.is_empty() {
            // No program that writes has opened the database yet, so it has no sealed value.
            known.extend(held.first().map(StoredMasterKey::first));
        }
        for key in known
            .iter()
            .filter(|key| key.state == MasterKeyState::Retired)
        {
            if held
                .iter()
                .any(|held| held.fingerprint() == key.fingerprint)
            {
                tracing::info!(
                    master_key.fingerprint = %key.fingerprint,
                    "A retired master key is still configured. No value needs it; remove it from the configuration."
                );
            }
        }
        unlock(&held, &known).map_err(|missing| {
            let held: Vec<String> = held
                .iter()
                .map(|key| key.fingerprint().to_string())
                .collect();
            OpenError::from(ConfigError::new(
                origin,
                format!("{missing}; found {}", held.join(", ")),
            ))
        })
    }
}

/// Stores the mode and the first master key of a new installation. Another program may begin the same database with the other
/// mode at the same time, so the stored mode decides.
async fn begin(store: &dyn Store, mode: Mode, fingerprint: &str) -> Result<(), OpenError> {
    let has_key = store.master_key_fingerprint().await?.is_some();
    if !has_key || store.installation_mode().await?.is_none() {
        store.installation_begin(mode, fingerprint).await?;
    }
    match store.installation_mode().await? {
        Some(stored) if stored != mode => Err(OpenError::from(ConfigError::new(
            "PENSTOCK_MODE",
            format!(
                "expected {stored}, which another program has just stored as the mode of the installation; this program runs in mode {mode}"
            ),
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The keys in the file next to a database. Creates a key only for a database without one, because a new key could not decrypt
/// the stored values.
async fn kept_keys(
    store: &dyn Store,
    file: &Path,
    entropy: &dyn Entropy,
) -> Result<Vec<MasterKey>, OpenError> {
    let stored = store.master_key_fingerprint().await?;
    // Read the file now: a program that stores a fingerprint creates the file first.
    match (master_key::read(file)?, stored) {
        (Some(keys), _) => Ok(keys),
        (None, None) => Ok(master_key::make(file, entropy)?),
        (None, Some(stored)) => Err(OpenError::from(lost_key(file, &stored))),
    }
}

fn lost_key(file: &Path, fingerprint: &str) -> ConfigError {
    let expected = format!(
        "{} is missing: restore the database's own master key, fingerprint {fingerprint}, or give it in this variable; \
         no other opens the webhook secrets and the events sealed in the database, so none was made",
        file.display()
    );
    ConfigError::new("PENSTOCK_MASTER_KEY", expected)
}

/// Everything that a service runs on.
pub struct Runtime {
    /// The store, the key, the clock and the randomness.
    pub base: OpenedBase,
    /// The cached access rights to pools.
    pub pools_directory: Arc<dyn Directory<PoolsProfile>>,
    /// The cached access rights to the gate.
    pub gate_directory: Arc<dyn Directory<GateProfile>>,
    pub throttle: Arc<dyn Throttle>,
    /// Detects concurrent twins.
    pub in_flight: Arc<dyn InFlight>,
    pub rates: Arc<dyn RateSource>,
    pub catalogue: Arc<Catalogue>,
    /// The engine of new trades.
    pub engine: Arc<dyn Engine>,
    /// The engines that are asked about trades.
    pub engines: Upstreams<dyn Engine>,
    /// The rails that move fiat.
    pub rails: Upstreams<dyn Rail>,
    /// The verifiers of sessions' users.
    pub verifiers: Upstreams<dyn Verifier>,
    /// Where the pages of the sandbox's rail and verifier are.
    pub sandbox_pages: SandboxPages,
    pub transact_queues: Arc<PartnerQueues<TransactCommand, Decision>>,
    pub quote_queues: Arc<PartnerQueues<NewQuote, Quote>>,
    /// The read of a transact before it asks the engine.
    pub preflight: Arc<CachedPreflight>,
    pub shutdown: CancellationToken,
    tasks: Tasks,
}

impl Runtime {
    /// Opens everything and starts the background tasks. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`OpenError`]; no task is left running.
    pub async fn open(config: Config, ports: Ports) -> Result<Self, OpenError> {
        // Metrics start first, because each adapter looks up its metrics when it is created.
        if config.metrics_listen.is_some() {
            instruments::install(&Program {
                version: env!("CARGO_PKG_VERSION"),
                mode: config.mode.as_str(),
                started: ports.clock.now().seconds(),
            });
        }
        let (rates, followed) = upstreams::rates(&config, &ports.clock)?;
        let engines = upstreams::engines(&config)?;
        let sandbox_pages = SandboxPages::default();
        let rails = upstreams::rails(&config, &ports.clock, &sandbox_pages)?;
        let verifiers = upstreams::verifiers(&config, &ports.clock, &sandbox_pages)?;
        let catalogue = catalogue::read(config.catalogue.as_deref());
        let catalogue = Arc::new(catalogue.map_err(OpenError::Config)?);
        store::migrate_to_serve(&config).await?;
        let base = OpenedBase::open(config, ports).await?;
        base.config.database.log(base.config.mode);
        if let Some(found) = base.store.durability() {
            durability::report(found);
        }
        base.store.velocity_window_keep().await?;
        let uses = Arc::<KeyUses>::default();
        let pools_directory = Arc::new(DirectoryCache::<PoolsProfile>::new(
            base.store.clone(),
            Arc::clone(&uses),
        ));
        let gate_directory = Arc::new(DirectoryCache::<GateProfile>::new(
            base.store.clone(),
            Arc::clone(&uses),
        ));
        let caches: [Arc<dyn ConfigCache>; 2] = [pools_directory.clone(), gate_directory.clone()];
        let tasks = Tasks::default();
        spawn_maintenance(&base, &caches, &uses, &tasks);
        if let Some(rates) = followed {
            follow_rates(&rates, &tasks);
        }
        let (throttle, in_flight) = shared::open(&base, &tasks).await;
        tasks.tracker.close();
        let preflight = CachedPreflight::new(base.store.clone(), Arc::clone(&base.clock));
        let preflight = Arc::new(preflight);
        let quote_queues = start_quote_queues(&base.store, &preflight, &base.entropy);
        let transacts = base.store.clone();
        let transact_queues =
            start_transact_queues(&base.store, transacts, &preflight, &base.entropy);
        Ok(Self {
            pools_directory,
            gate_directory,
            throttle,
            in_flight,
            rates: Arc::new(MeasuredRates::new(rates)),
            catalogue,
            engine: engines.of_new_trades,
            engines: engines.all,
            rails,
            verifiers,
            sandbox_pages,
            preflight,
            quote_queues: Arc::new(quote_queues),
            transact_queues: Arc::new(transact_queues),
            shutdown: tasks.stop.clone(),
            tasks,
            base,
        })
    }

    /// Lets velocity totals catch up with the configured window.
    #[must_use]
    pub fn catch_up(&self) -> CatchUpVelocity {
        CatchUpVelocity {
            store: self.base.store.clone(),
            window: self.base.config.velocity_window,
        }
    }

    /// Reports whether the store accepts writes and the current master key is available.
    #[must_use]
    pub fn readiness(&self) -> Arc<dyn Readiness> {
        Arc::new(Serving {
            store: self.base.store.clone(),
            sealer: Arc::clone(&self.base.sealer),
        })
    }

    /// Starts delivering the events of a service, until shutdown.
    pub fn deliver(&self, service: Service) {
        let base = &self.base;
        let config = &base.config;
        let setup = WorkerConfig {
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
        self.tasks.start("deliveries", move |stop| {
            Worker::new(setup.clone()).run(stop.cancelled_owned())
        });
    }

    /// Starts deleting expired idempotency records of a service, until shutdown.
    pub fn sweep_keys(&self, service: Service) {
        let (store, config) = (self.base.store.clone(), &self.base.config);
        let (of, ttl) = ((config.mode, service), config.idempotency_ttl);
        self.tasks.start("idempotency_sweep", move |stop| {
            sweep_idempotency(store.clone(), of, ttl, stop)
        });
    }

    /// Starts deleting old quotes that were never executed, until shutdown.
    pub fn delete_old_quotes(&self) {
        let (store, config) = (self.base.store.clone(), &self.base.config);
        let of = (config.mode, config.quote_retention);
        self.tasks.start("quote_retention", move |stop| {
            delete_old_quotes(store.clone(), store.clone(), of, stop)
        });
    }

    /// Starts counting the settled trades of other engines that can still be returned, until shutdown.
    pub fn count_returnable_trades(&self) {
        let (store, mode) = (self.base.store.clone(), self.base.config.mode);
        let asks = self.base.config.engine.choice != UpstreamChoice::None;
        let engines = (self.engines.names(), asks);
        self.tasks.start("returnable_trades", move |stop| {
            count_returnable(store.clone(), mode, engines.clone(), stop)
        });
    }

    /// Stops in order: the background tasks, the batch queues after their queued commands, the store. Call it after the last
    /// request has ended.
    pub async fn close(&self) {
        self.shutdown.cancel();
        self.tasks.tracker.wait().await;
        self.quote_queues.shut_down().await;
        self.transact_queues.shut_down().await;
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

/// Ready while the clock is right, the store is ready and values can be sealed for it.
struct Serving {
    store: Arc<dyn Store>,
    sealer: Arc<Sealer>,
}

#[async_trait]
impl Readiness for Serving {
    async fn ready(&self) -> StoreResult<()> {
        let jump = self.store.clock_jump();
        if !jump.is_zero() {
            let cause = format!("the clock jumped {} s ahead", jump.as_secs());
            return Err(StoreError::no_writes(NoWritesReason::ClockJump, cause));
        }
        self.store.ready().await?;
        Ok(self.sealer.can_seal()?)
    }
}

#[cfg(test)]
mod tests;
