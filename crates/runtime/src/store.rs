//! Opens and migrates the store that the configuration names.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::{CustomerForms, GateExports, GateStore, UnusedQuotes};
use gate_core::profile::GateProfile;
use kernel::{Mode, StoreError};
use partner_core::ports::{
    Audit, ClockGuard, Deliveries, DeliveryAdmin, Directory, EventReads, Maintenance,
    MasterKeyStore, PartnerStore as _, Readiness,
};
use pools_core::ports::{
    Exports, PoolsStore, QuoteRetention, QuoteStore, StatsReads, TransactStore,
};
use pools_core::profile::PoolsProfile;
use provisioning::ports::ProvisionStore;
use store_postgres::{Durability, Migrated, PostgresStore};
use store_sqlite::{ForeignFile, SqliteStore};

use crate::config::{Config, ConfigError, Database};
use crate::open::OpenError;
use crate::process::Ports;

/// Every port that a store implements. `Arc<dyn Store>` converts to each of them.
#[async_trait]
pub trait Store:
    PoolsStore
    + TransactStore
    + QuoteStore
    + QuoteRetention
    + Exports
    + GateExports
    + StatsReads
    + GateStore
    + CustomerForms
    + UnusedQuotes
    + Directory<PoolsProfile>
    + Directory<GateProfile>
    + EventReads
    + Deliveries
    + DeliveryAdmin
    + Audit
    + Maintenance
    + ClockGuard
    + Readiness
    + ProvisionStore
    + MasterKeyStore
    + fmt::Debug
{
    /// The number of batch queues that the store can run concurrently.
    fn batch_queue_count(&self) -> usize;

    /// The connections of each pool that are in use, and those that are idle.
    fn connections(&self) -> Vec<(&'static str, u64, u64)>;

    /// How far the store's clock is ahead of its source; zero unless the source was set back.
    fn clock_ahead(&self) -> Duration;

    /// How far the source of the store's clock jumped ahead of the elapsed time; zero unless the jump is refused.
    fn clock_jump(&self) -> Duration;

    /// The server's settings that decide whether an acknowledged commit survives a crash. `None` for a file, which is flushed with
    /// each commit.
    fn durability(&self) -> Option<&Durability>;

    /// Closes every connection, waiting for those in use.
    async fn close(&self);
}

#[async_trait]
impl Store for SqliteStore {
    /// One, because there is one writer: more queues would wait for it with smaller batches.
    fn batch_queue_count(&self) -> usize {
        1
    }

    fn connections(&self) -> Vec<(&'static str, u64, u64)> {
        Self::connections(self).to_vec()
    }

    fn durability(&self) -> Option<&Durability> {
        None
    }

    fn clock_ahead(&self) -> Duration {
        Self::clock_ahead(self)
    }

    fn clock_jump(&self) -> Duration {
        Self::clock_jump(self)
    }

    async fn close(&self) {
        Self::close(self).await;
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn batch_queue_count(&self) -> usize {
        usize::try_from(store_postgres::BATCH_QUEUE_COUNT).unwrap_or(1)
    }

    fn connections(&self) -> Vec<(&'static str, u64, u64)> {
        Self::connections(self)
    }

    fn durability(&self) -> Option<&Durability> {
        Some(Self::durability(self))
    }

    fn clock_ahead(&self) -> Duration {
        Self::clock_ahead(self)
    }

    fn clock_jump(&self) -> Duration {
        Self::clock_jump(self)
    }

    async fn close(&self) {
        Self::close(self).await;
    }
}

/// Whether the database exists. A database on a server is checked when it is opened.
#[must_use]
pub fn is_there(database: &Database) -> bool {
    match database {
        Database::Sqlite(file) => SqliteStore::is_there(file),
        Database::Postgres(_) => true,
    }
}

/// The mode of the installation in a database; `None` if there is no database, or if no program has stored its mode.
pub async fn stored_mode(config: &Config, database: &Database) -> Result<Option<Mode>, OpenError> {
    Ok(match database {
        Database::Sqlite(file) => SqliteStore::stored_mode(file)
            .await
            .map_err(|error| refused("PENSTOCK_DATABASE_URL", error))?,
        Database::Postgres(url) => {
            PostgresStore::stored_mode(url.as_str(), timeouts(config)).await?
        }
    })
}

/// Refuses the installation of another mode.
fn check_mode(config: &Config, database: &Database, stored: Option<Mode>) -> Result<(), OpenError> {
    match stored {
        Some(stored) if stored != config.mode => {
            let expected = format!(
                "expected {stored}, the mode of the installation in {database}, but this program runs in mode {}; set the mode, or name \
                 the database of the other installation",
                config.mode
            );
            Err(OpenError::from(ConfigError::new("PENSTOCK_MODE", expected)))
        }
        Some(_) | None => Ok(()),
    }
}

fn timeouts(config: &Config) -> store_postgres::Timeouts {
    store_postgres::Timeouts {
        connect: config.database_connect_timeout,
        statement: config.database_timeout,
    }
}

/// Migrates a database's schema, and stores the mode of the installation if the operator set it.
pub async fn migrate(config: &Config) -> Result<Migrated, OpenError> {
    let database = &config.migrate_database.clone().behind_links();
    let mode = config.is_mode_set.then_some(config.mode);
    if mode.is_some() {
        check_mode(config, database, stored_mode(config, database).await?)?;
    }
    let setting = if config.migrate_database == config.database {
        "PENSTOCK_DATABASE_URL"
    } else {
        "PENSTOCK_MIGRATE_DATABASE_URL"
    };
    let migrated = match database {
        Database::Sqlite(file) => SqliteStore::migrate(file, mode)
            .await
            .map_err(|error| refused(setting, error))?,
        Database::Postgres(url) => {
            PostgresStore::migrate(url.as_str(), timeouts(config), mode).await?
        }
    };
    if mode.is_some() {
        // Another program may have stored its mode meanwhile.
        check_mode(config, database, stored_mode(config, database).await?)?;
    }
    Ok(migrated)
}

/// Migrates a database on a server before a service opens it, if the configuration asks for it. Opening migrates a file.
pub(crate) async fn migrate_to_serve(config: &Config) -> Result<(), OpenError> {
    if !config.auto_migrate {
        return Ok(());
    }
    match (&config.database, &config.migrate_database) {
        (Database::Sqlite(_), Database::Sqlite(_) | Database::Postgres(_)) => Ok(()),
        (Database::Postgres(_), Database::Postgres(_)) => migrate(config).await.map(drop),
        (Database::Postgres(_), Database::Sqlite(_)) => Err(OpenError::from(ConfigError::new(
            "PENSTOCK_MIGRATE_DATABASE_URL",
            "expected the owner's connection to the server of PENSTOCK_DATABASE_URL",
        ))),
    }
}

/// Opens the store of an installation of this mode. Creates a missing file; a database on a server must exist with this program's schema.
pub(crate) async fn open(config: &Config, ports: &Ports) -> Result<Arc<dyn Store>, OpenError> {
    let database = &config.database;
    Ok(match database {
        Database::Sqlite(file) => {
            // Opening migrates the file, so its mode is checked before.
            check_mode(config, database, stored_mode(config, database).await?)?;
            let options = store_sqlite::Options {
                velocity_window: config.velocity_window,
                idempotency_ttl: config.idempotency_ttl,
                turn_timeout: store_sqlite::TURN_TIMEOUT,
            };
            let opened = SqliteStore::open(file, Arc::clone(&ports.clock), options).await;
            Arc::new(opened.map_err(|error| refused("PENSTOCK_DATABASE_URL", error))?)
        }
        Database::Postgres(url) => {
            let options = store_postgres::Options {
                velocity_window: config.velocity_window,
                idempotency_ttl: config.idempotency_ttl,
                connections: config.database_pool,
                timeouts: timeouts(config),
                waits: store_postgres::Waits::default(),
                process: Arc::clone(&ports.clock),
                clock: None,
            };
            let store = PostgresStore::open(url.as_str(), options).await?;
            check_mode(config, database, store.installation_mode().await?)?;
            Arc::new(store)
        }
    })
}

/// Reports a file that is not a Penstock database as an error of the setting that names it.
fn refused(setting: &str, error: StoreError) -> OpenError {
    let foreign = match &error {
        StoreError::Unexpected(cause) => cause.downcast_ref::<ForeignFile>(),
        _ => None,
    };
    match foreign {
        Some(foreign) => OpenError::from(ConfigError::new(
            setting,
            format!("expected a Penstock database; {foreign}"),
        )),
        None => OpenError::from(error),
    }
}
