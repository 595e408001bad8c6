//! The store that a configuration names: opening it, and bringing its schema up to date.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::GateStore;
use kernel::StoreError;
use partner_core::ports::{
    Audit, ClockGuard, Deliveries, DeliveryAdmin, Directory, EventReads, Maintenance,
    MasterKeyStore, Readiness,
};
use pools_core::ports::{
    Exports, PoolsStore, QuoteRetention, QuoteStore, StatsReads, TransactStore,
};
use provisioning::ports::ProvisionStore;
use store_postgres::{Migrated, PostgresStore};
use store_sqlite::{ForeignFile, SqliteStore};

use crate::config::{Config, ConfigError, Database};
use crate::open::OpenError;
use crate::process::Ports;

/// Every port a store implements, whichever it is. A program asks for the one it needs: `Arc<dyn
/// Store>` turns into any of them.
#[async_trait]
pub trait Store:
    PoolsStore
    + TransactStore
    + QuoteStore
    + QuoteRetention
    + Exports
    + StatsReads
    + GateStore
    + Directory
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
    /// How many lanes of writes are worth having beside each other.
    fn lanes(&self) -> usize;

    /// How many connections of each pool are in use, and how many are idle.
    fn connections(&self) -> Vec<(&'static str, u64, u64)>;

    /// How far the store's clock is ahead of the one it follows; zero unless that was set back.
    fn clock_ahead(&self) -> Duration;

    /// How far the clock that the store follows jumped ahead of the time that has passed; zero unless that is refused.
    fn clock_jump(&self) -> Duration;

    /// Closes every connection, waiting for those in use.
    async fn close(&self);
}

#[async_trait]
impl Store for SqliteStore {
    /// There is one writer: more lanes would only queue before it, in smaller batches.
    fn lanes(&self) -> usize {
        1
    }

    fn connections(&self) -> Vec<(&'static str, u64, u64)> {
        Self::connections(self).to_vec()
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
    fn lanes(&self) -> usize {
        usize::try_from(store_postgres::LANE_COUNT).unwrap_or(1)
    }

    fn connections(&self) -> Vec<(&'static str, u64, u64)> {
        Self::connections(self)
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

/// Has the database been made yet? Whether one on a server has is said by opening it.
#[must_use]
pub fn is_there(database: &Database) -> bool {
    match database {
        Database::Sqlite(file) => SqliteStore::is_there(file),
        Database::Postgres(_) => true,
    }
}

/// Brings a database's schema up to date, and does nothing else.
///
/// # Errors
/// [`OpenError`].
pub async fn migrate(config: &Config) -> Result<Migrated, OpenError> {
    let setting = if config.migrate_database == config.database {
        "PENSTOCK_DATABASE_URL"
    } else {
        "PENSTOCK_MIGRATE_DATABASE_URL"
    };
    Ok(match &config.migrate_database {
        Database::Sqlite(file) => SqliteStore::migrate(file)
            .await
            .map_err(|fault| refused(setting, fault))?,
        Database::Postgres(url) => PostgresStore::migrate(url.as_str()).await?,
    })
}

/// What a service does before it opens its store: the schema of a server is changed only by who
/// asks for it. A file's is by whoever opens it.
pub(crate) async fn migrate_to_serve(config: &Config) -> Result<(), OpenError> {
    match (&config.database, &config.migrate_database) {
        (Database::Postgres(_), Database::Postgres(_)) if config.auto_migrate => {
            migrate(config).await.map(drop)
        }
        (Database::Postgres(_), Database::Sqlite(_)) if config.auto_migrate => {
            Err(OpenError::from(ConfigError {
                setting: "PENSTOCK_MIGRATE_DATABASE_URL".to_owned(),
                expected: "expected the owner's connection to the server of PENSTOCK_DATABASE_URL"
                    .to_owned(),
            }))
        }
        _ => Ok(()),
    }
}

/// Opens the store. A file is made where there is none; a server's database has to be there, with
/// this program's schema.
pub(crate) async fn open(config: &Config, ports: &Ports) -> Result<Arc<dyn Store>, OpenError> {
    Ok(match &config.database {
        Database::Sqlite(file) => Arc::new(
            open_file(file, config, ports)
                .await
                .map_err(|fault| refused("PENSTOCK_DATABASE_URL", fault))?,
        ),
        Database::Postgres(url) => {
            let options = store_postgres::Options {
                velocity_window: config.velocity_window,
                idempotency_ttl: config.idempotency_ttl,
                connections: config.database_pool,
                timeouts: store_postgres::Timeouts {
                    connect: config.database_connect_timeout,
                    statement: config.database_timeout,
                },
                process: Arc::clone(&ports.clock),
                clock: None,
            };
            Arc::new(PostgresStore::open(url.as_str(), options).await?)
        }
    })
}

/// A file that is no database of Penstock's is a fault of the setting that names it.
fn refused(setting: &str, fault: StoreError) -> OpenError {
    let foreign = match &fault {
        StoreError::Unexpected(cause) => cause.downcast_ref::<ForeignFile>(),
        _ => None,
    };
    match foreign {
        Some(foreign) => OpenError::from(ConfigError {
            setting: setting.to_owned(),
            expected: format!("expected a Penstock database; {foreign}"),
        }),
        None => OpenError::from(fault),
    }
}

async fn open_file(file: &Path, config: &Config, ports: &Ports) -> Result<SqliteStore, StoreError> {
    let options = store_sqlite::Options {
        velocity_window: config.velocity_window,
        idempotency_ttl: config.idempotency_ttl,
    };
    SqliteStore::open(file, Arc::clone(&ports.clock), options).await
}
