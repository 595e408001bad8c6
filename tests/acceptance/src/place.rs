//! Location of a world's database, and the store that opens it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::Clock;
use runtime::Store;
use sqlx::PgConnection;
use store_postgres::{PostgresStore, Waits};
use store_sqlite::SqliteStore;
use tempfile::TempDir;
use test_support::test_database::{LONG_TIMEOUTS, LONG_WAITS, StoreKind};
use tokio::sync::OnceCell;

use crate::database::Database;
use crate::setup::Setup;

/// Enough connections for two batch queues and the reads.
const CONNECTIONS: u32 = 6;

/// The bytes of a migrated database file. Each world gets a copy, because migrating a file takes longer than most tests.
static MIGRATED: OnceCell<Vec<u8>> = OnceCell::const_new();

/// A database for one world, deleted when the value is dropped.
#[derive(Debug)]
pub(crate) enum Place {
    File(TempDir),
    Server(test_support::test_database::Database),
}

impl Place {
    pub(crate) async fn new() -> Self {
        match StoreKind::of_run() {
            StoreKind::Sqlite => {
                let folder = temporary_folder();
                let migrated = MIGRATED.get_or_init(migrated).await;
                std::fs::write(file(&folder), migrated).expect("a copy of the database");
                Self::File(folder)
            }
            StoreKind::Postgres => {
                Self::Server(test_support::test_database::Database::make().await)
            }
        }
    }

    /// Opens the database as one process of the service does, but with a test clock, and as the
    /// operator does.
    pub(crate) async fn open(
        &self,
        setup: &Setup,
        clock: Arc<dyn Clock>,
    ) -> (Arc<dyn Store>, Arc<dyn Store>) {
        let (velocity_window, idempotency_ttl) = (setup.velocity_window, setup.idempotency_ttl);
        match self {
            Self::File(folder) => {
                let options = store_sqlite::Options {
                    velocity_window,
                    idempotency_ttl,
                    turn_timeout: LONG_WAITS.turn,
                };
                let store = SqliteStore::open(&file(folder), clock, options).await;
                let store = Arc::new(store.expect("a store"));
                (store.clone(), store)
            }
            Self::Server(database) => {
                let options = store_postgres::Options {
                    velocity_window,
                    idempotency_ttl,
                    connections: CONNECTIONS,
                    timeouts: LONG_TIMEOUTS,
                    waits: Waits {
                        lock: setup.lock_timeout,
                        ..LONG_WAITS
                    },
                    process: Arc::clone(&clock),
                    clock: Some(clock),
                };
                let few = store_postgres::Options {
                    connections: 2,
                    ..options.clone()
                };
                let store = PostgresStore::open(&database.serving(), options).await;
                let operating = PostgresStore::open(&database.operating(), few).await;
                let store = Arc::new(store.expect("a store"));
                (store, Arc::new(operating.expect("a store")))
            }
        }
    }

    /// A separate connection for queries.
    pub(crate) async fn look(&self) -> Database {
        match self {
            Self::File(folder) => Database::of_file(&file(folder)).await,
            Self::Server(database) => Database::of_server(&database.owning()).await,
        }
    }

    /// Locks the rows of a partner in a table as an open `psql` does, until the connection is closed. `None` on an embedded
    /// database, which has one lock for all rows.
    pub(crate) async fn lock_rows(&self, table: &str, partner: &str) -> Option<PgConnection> {
        let Self::Server(database) = self else {
            return None;
        };
        let mut owner = database.owner().await;
        let lock = format!("BEGIN; SELECT FROM {table} WHERE partner_id = '{partner}' FOR UPDATE");
        test_support::test_database::run(&mut owner, &lock).await;
        Some(owner)
    }

    /// Runs SQL that the service itself would never run.
    pub(crate) async fn damage(&self, sql: &str) {
        match self {
            Self::File(folder) => Database::damage(&file(folder), sql).await,
            Self::Server(database) => database.damage(sql).await,
        }
    }
}

async fn migrated() -> Vec<u8> {
    let folder = temporary_folder();
    let file = file(&folder);
    SqliteStore::migrate(&file, None).await.expect("a database");
    std::fs::read(file).expect("a database file")
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("penstock.db")
}

/// In memory if the machine has such a directory, because tests do not need durability.
fn temporary_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    };
    folder.expect("a temporary folder")
}
