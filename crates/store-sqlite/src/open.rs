//! Opens a database: folder, file, schema, connections, clock.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use instruments::failpoint::{around, around_commit};
use instruments::store::waiting;
use kernel::{Clock, Mode, StoreError, StoreResult};
use partner_core::ports::Readiness;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, SqliteConnection, Transaction};
use store_sql::Turns;
use store_sql::access::AccessCaches;
use store_sql::deliveries::Watchers;
use store_sql::schema::{Applied, Migrated, Standing};

use crate::clock::StoreClock;
use crate::connection::Link;
use crate::deliveries::LeftOut;
use crate::errors;
use crate::files::{ForeignFile, OpenFile};
use crate::health::Health;
use crate::migrations::{self, MIGRATOR};
use crate::stats::Tally;

/// How long a statement waits for another process's lock, and a caller for a connection.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that read for partners, and for most background tasks.
pub(crate) const READERS: u32 = 4;
/// Connections that read what keeps the service up. No partner waits for one or occupies one.
const RESERVED_READERS: u32 = 1;
/// The mode of the database file: only its owner may read or write trades. SQLite gives the log file the same mode.
const OWNER_ONLY: u32 = 0o600;
/// How often opening is tried again after other programs have held the file.
const MAX_BUSY_RETRIES: u32 = 100;
/// The names of the connection pools in metrics.
const READER: &str = "reader";
const RESERVED_READER: &str = "reserved_reader";
const WRITER: &str = "writer";

/// The durations of the rules, and how long to wait for other requests.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The rolling window of the velocity cap.
    pub velocity_window: Duration,
    /// How long idempotency records count.
    pub idempotency_ttl: Duration,
    /// How long a read waits for a turn of its partner.
    pub turn_timeout: Duration,
}

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) inner: Arc<Inner>,
}

kernel::debug_as_text!(SqliteStore, "SqliteStore");

pub(crate) struct Inner {
    file: PathBuf,
    _open: OpenFile,
    health: Arc<Health>,
    /// A pool of one connection, which serializes writes.
    writer: SqlitePool,
    readers: SqlitePool,
    /// Reads the version of the configuration, the current master key and the accepted clock jump.
    reserved_readers: SqlitePool,
    /// The turns of partners at the readers.
    pub(crate) turns: Turns,
    pub(crate) clock: StoreClock,
    pub(crate) options: Options,
    pub(crate) access: AccessCaches,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) watchers: Watchers,
    pub(crate) left_out: LeftOut,
    /// The installation's identity, after it was read.
    pub(crate) identity: OnceLock<String>,
}

impl SqliteStore {
    /// Does a database exist at this path? An empty file is not a database.
    #[must_use]
    pub fn is_there(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|about| !about.is_file() || about.len() > 0)
    }

    /// Opens a database file and migrates it. Creates the file and its folder if they do not exist.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file cannot be opened, [`StoreError::Unexpected`] if a newer program has changed its
    /// schema, and [`StoreError::Unexpected`] with a [`ForeignFile`] if the file is not a Penstock database.
    pub async fn open(path: &Path, clock: Arc<dyn Clock>, options: Options) -> StoreResult<Self> {
        let open = OpenFile::at(path);
        let (writer, _) = migrated(path).await?;
        let mut conn = writer.acquire().await.map_err(errors::begin)?;
        let clock = StoreClock::start(clock, &mut conn).await?;
        drop(conn);
        let reserved_readers = readers(path, RESERVED_READERS).await?;
        let readers = readers(path, READERS).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                file: path.to_owned(),
                _open: open,
                health: Health::new(path),
                writer,
                readers,
                reserved_readers,
                turns: Turns::of_pages(READERS, options.turn_timeout),
                clock,
                options,
                access: AccessCaches::default(),
                tally: Mutex::default(),
                watchers: Watchers::default(),
                left_out: LeftOut::default(),
                identity: OnceLock::new(),
            }),
        })
    }

    /// Migrates a database file, and stores the mode of the installation if it is given and no program has stored one. Creates the file
    /// and its folder if they do not exist.
    ///
    /// # Errors
    /// The errors of [`SqliteStore::open`].
    pub async fn migrate(path: &Path, mode: Option<Mode>) -> StoreResult<Migrated> {
        let _open = OpenFile::at(path);
        let (writer, migrated) = migrated(path).await?;
        if let Some(mode) = mode {
            let mut conn = writer.acquire().await.map_err(errors::begin)?;
            store_sql::config::begin_mode(&mut Link(&mut *conn), mode).await?;
        }
        writer.close().await;
        Ok(migrated)
    }

    /// The mode of the installation; `None` if there is no database, or if no program has stored its mode. Changes nothing.
    ///
    /// # Errors
    /// The errors of [`SqliteStore::open`].
    pub async fn stored_mode(path: &Path) -> StoreResult<Option<Mode>> {
        if !Self::is_there(path) {
            return Ok(None);
        }
        let _open = OpenFile::at(path);
        // A connection that may only read would leave the files of the log behind.
        let connected = connect(path).pragma("query_only", "ON").connect().await;
        let mut conn = connected.map_err(|fault| errors::opening(path, fault))?;
        let mode = stored_mode(path, &mut conn).await;
        // The result is known already, whatever closing the connection returns.
        drop(conn.close().await);
        mode
    }

    /// How many connections of each pool are in use, and how many are idle.
    #[must_use]
    pub fn connections(&self) -> [(&'static str, u64, u64); 3] {
        let count = |name, pool: &SqlitePool| {
            let idle = u64::try_from(pool.num_idle()).unwrap_or(u64::MAX);
            (name, u64::from(pool.size()).saturating_sub(idle), idle)
        };
        let Inner {
            writer,
            readers,
            reserved_readers,
            ..
        } = &*self.inner;
        [
            count(WRITER, writer),
            count(READER, readers),
            count(RESERVED_READER, reserved_readers),
        ]
    }

    /// How far the store's clock is ahead of the process's; zero unless the process's clock was set back.
    #[must_use]
    pub fn clock_ahead(&self) -> Duration {
        self.inner.clock.ahead()
    }

    /// How far the process's clock jumped ahead of the elapsed time; zero unless the jump is rejected.
    #[must_use]
    pub fn clock_jump(&self) -> Duration {
        let jump = self.inner.clock.watch().jump();
        jump.map_or(Duration::ZERO, |jump| jump.span())
    }

    /// Closes every connection, waiting for those in use.
    pub async fn close(&self) {
        self.inner.readers.close().await;
        self.inner.reserved_readers.close().await;
        self.inner.health.finish().await;
        self.inner.writer.close().await;
    }
}

impl Inner {
    /// A connection that can only read.
    pub(crate) async fn reader(&self) -> StoreResult<PoolConnection<Sqlite>> {
        let reader = waiting(READER, self.readers.acquire()).await;
        reader.map_err(errors::begin)
    }

    /// A connection that can only read, and that no partner occupies.
    pub(crate) async fn reserved_reader(&self) -> StoreResult<PoolConnection<Sqlite>> {
        let reader = waiting(RESERVED_READER, self.reserved_readers.acquire()).await;
        reader.map_err(errors::begin)
    }

    /// Several reads of one snapshot.
    pub(crate) async fn snapshot(&self) -> StoreResult<Transaction<'static, Sqlite>> {
        let snapshot = waiting(READER, self.readers.begin()).await;
        snapshot.map_err(errors::begin)
    }

    /// A connection for an audit, outside the pools. It is opened for writing but writes nothing: SQLite does not check the
    /// `CHECK` constraints of a database that is opened read-only.
    pub(crate) async fn auditor(&self) -> StoreResult<SqliteConnection> {
        let options = connect(&self.file)
            .pragma("query_only", "ON")
            .pragma("cache_size", "-16384");
        options.connect().await.map_err(errors::begin)
    }

    /// The writer's connection, after the writes that waited before.
    pub(crate) async fn writer(&self) -> StoreResult<PoolConnection<Sqlite>> {
        let writer = waiting(WRITER, self.writer.acquire()).await;
        writer.map_err(errors::begin)
    }

    /// A write transaction. It holds SQLite's write lock from the start, so what it reads does not change before it commits.
    pub(crate) async fn write(&self) -> StoreResult<Transaction<'static, Sqlite>> {
        let begun = waiting(WRITER, self.writer.begin_with("BEGIN IMMEDIATE")).await;
        begun.map_err(errors::begin)
    }
}

#[async_trait]
impl Readiness for SqliteStore {
    async fn ready(&self) -> StoreResult<()> {
        if self.inner.readers.is_closed() {
            return Err(StoreError::unavailable("the database is closed"));
        }
        self.inner.health.ready().await
    }
}

/// Checks that this program supports the schema of an open database.
pub(crate) async fn check_schema(conn: &mut SqliteConnection) -> StoreResult<()> {
    let standing = migrations::compare(&applied(conn).await?);
    check(standing).map_err(StoreError::unavailable)
}

/// Checks that this program supports the schema. The error names the command to run.
fn check(standing: Standing) -> Result<(), String> {
    standing.refusal("penstock verify").map_or(Ok(()), Err)
}

fn creation_failed(path: &Path, fault: &io::Error) -> StoreError {
    StoreError::unavailable(format!(
        "{}: {fault}. Choose a folder that this user may write to, with --dir, --database-url or PENSTOCK_DATABASE_URL",
        path.display()
    ))
}

/// The migrations that were run on the database.
async fn applied(conn: &mut SqliteConnection) -> StoreResult<Vec<Applied>> {
    let is_there: bool = sqlx::query_scalar(
        "SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'",
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(errors::statement)?;
    if !is_there {
        return Ok(Vec::new());
    }
    let found: Vec<(i64, String)> =
        sqlx::query_as("SELECT version, description FROM _sqlx_migrations WHERE success")
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
    let applied = |(version, description)| Applied {
        version,
        description,
    };
    Ok(found.into_iter().map(applied).collect())
}

/// Creates an empty file and its folder unless they exist.
fn create_file(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(path);
    match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

pub(crate) fn connect(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(WAIT_TIMEOUT)
        .statement_cache_capacity(256)
        // More rows than any page or batch has, so that the connection's thread never waits for the reader.
        .row_buffer_size(512)
        .pragma("temp_store", "MEMORY")
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(WAIT_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        // If SQLite itself ends a transaction, as on a full disk, the driver still takes it for open. The pool closes such a
        // connection.
        .after_release(|conn, _| {
            Box::pin(async move {
                if conn.is_in_transaction() {
                    conn.ping().await?;
                }
                Ok(!conn.is_in_transaction())
            })
        })
}

/// `FULL`: a commit returns after the log is on the disk. The log grows to about 64 MiB before it is checkpointed, so that a
/// page that changes often is written back once.
async fn writer(path: &Path) -> StoreResult<SqlitePool> {
    let options = connect(path)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", "16384")
        .pragma("cache_size", "-16384");
    let connected = pool(1).connect_with(options).await;
    connected.map_err(|fault| errors::opening(path, fault))
}

async fn readers(path: &Path, connections: u32) -> StoreResult<SqlitePool> {
    let options = connect(path).read_only(true).pragma("cache_size", "-16384");
    let connected = pool(connections).connect_with(options).await;
    connected.map_err(|fault| errors::opening(path, fault))
}

/// Switches a database to a write-ahead log permanently.
///
/// If several programs open a new database together, SQLite refuses the switch at once instead of waiting. A refused program
/// therefore begins an exclusive transaction, for which SQLite does wait, and then tries again.
async fn switch_to_log(path: &Path, conn: &mut SqliteConnection) -> StoreResult<()> {
    for _ in 0..MAX_BUSY_RETRIES {
        match sqlx::query("PRAGMA journal_mode = WAL")
            .execute(&mut *conn)
            .await
        {
            Err(fault) if errors::is_busy(&fault) => wait_for_others(conn).await?,
            switched => {
                return switched
                    .map(drop)
                    .map_err(|fault| errors::opening(path, fault));
            }
        }
    }
    Err(StoreError::unavailable(
        "another program keeps the database locked",
    ))
}

async fn wait_for_others(conn: &mut SqliteConnection) -> StoreResult<()> {
    let held = conn.begin_with("BEGIN EXCLUSIVE").await;
    let held = held.map_err(errors::begin)?;
    held.rollback().await.map_err(errors::statement)
}

/// Opens the writer's pool and migrates the database.
async fn migrated(path: &Path) -> StoreResult<(SqlitePool, Migrated)> {
    create_file(path).map_err(|fault| creation_failed(path, &fault))?;
    let writer = writer(path).await?;
    let migrated = check_and_migrate(path, &writer).await;
    if migrated.is_err() {
        // SQLite removes the log of a database when the last connection is closed.
        writer.close().await;
    }
    Ok((writer, migrated?))
}

async fn check_and_migrate(path: &Path, writer: &SqlitePool) -> StoreResult<Migrated> {
    let mut conn = writer
        .acquire()
        .await
        .map_err(|fault| errors::opening(path, fault))?;
    check_owner(path, &mut conn).await?;
    switch_to_log(path, &mut conn).await?;
    migrate(&mut conn).await
}

/// A schema that is older than the mode has no table for it.
async fn stored_mode(path: &Path, conn: &mut SqliteConnection) -> StoreResult<Option<Mode>> {
    check_owner(path, conn).await?;
    let is_there: bool = sqlx::query_scalar(
        "SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = 'installation_mode'",
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(|fault| errors::opening(path, fault))?;
    if !is_there {
        return Ok(None);
    }
    store_sql::config::mode(&mut Link(conn)).await
}

/// The name of a table in a database that has tables, but not those of Penstock's first migration.
const FOREIGN_TABLE: &str =
    "SELECT CASE WHEN count(*) FILTER (WHERE name IN ('_sqlx_migrations', 'config_version')) < 2
            THEN min(name) FILTER (WHERE name <> '_sqlx_migrations') END
     FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";

/// Refuses the database of another program before changing the file.
async fn check_owner(path: &Path, conn: &mut SqliteConnection) -> StoreResult<()> {
    for _ in 0..MAX_BUSY_RETRIES {
        let table: Option<String> = match sqlx::query_scalar(FOREIGN_TABLE)
            .fetch_one(&mut *conn)
            .await
        {
            Err(fault) if errors::is_busy(&fault) => {
                wait_for_others(conn).await?;
                continue;
            }
            found => found.map_err(|fault| errors::opening(path, fault))?,
        };
        return match table {
            None => Ok(()),
            Some(table) => Err(StoreError::unexpected(ForeignFile::with_table(
                path, &table,
            ))),
        };
    }
    Err(StoreError::unavailable(
        "another program keeps the database locked",
    ))
}

/// Migrates in one transaction, so that two programs that start together do not both migrate.
async fn migrate(conn: &mut SqliteConnection) -> StoreResult<Migrated> {
    let mut tx = conn
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(errors::begin)?;
    let applied = applied(&mut tx).await?;
    let migrated = migrations::migrated(&applied);
    let standing = migrations::compare(&applied);
    // A database that is one additive migration ahead needs nothing.
    if matches!(standing, Standing::OneAhead | Standing::Unknown { .. }) {
        tx.rollback().await.map_err(errors::statement)?;
        check(standing).map_err(StoreError::unexpected)?;
        return Ok(migrated);
    }
    // `Migrator::run` is generic over sources of connections, so its future is not known to be `Send`.
    let running = MIGRATOR.run_direct(None, &mut *tx, false);
    let running = async { running.await.map_err(errors::migration) };
    around("migration.run", running).await?;
    let committing = async { tx.commit().await.map_err(errors::commit) };
    around_commit("migration", committing).await?;
    Ok(migrated)
}
