//! Opens a database: connections, clock, the schema's version.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Mode, StoreError, StoreResult};
use partner_core::ports::Readiness;
use sqlx::SqlStr;
use store_sql::Turns;
use store_sql::access::AccessCaches;
use store_sql::deliveries::Watchers;
use store_sql::schema::Migrated;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::clock::StoreClock;
use crate::config;
use crate::conn::Conn;
use crate::deliveries::LeftOut;
use crate::durability::Durability;
use crate::health::{Alarm, Prober};
use crate::hosts::{Hosts, Location, Timeouts, UnreadUrl};
use crate::pool::{Pool, Pooled, Tx};
use crate::schema;
use crate::waits::{Openings, Waits};

/// The name of the connection pool in metrics.
const POOL: &str = "server";
/// The name of the batch queues' connection pool in metrics.
const BATCH_POOL: &str = "lanes";
/// The name in metrics of the pool that reads what keeps the service up.
const RESERVED_POOL: &str = "reserved_reader";
/// Connections that read what keeps the service up. No partner waits for one or occupies one.
const RESERVED_CONNECTIONS: u32 = 1;
/// The number of batch queues, each with a connection. While one waits for the server, the other runs. More queues would make
/// batches smaller.
pub const BATCH_QUEUE_COUNT: u32 = 2;
/// The timeout of audits, exports and migrations. One of their statements may read a whole table.
const LONG_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Begins an export or an audit, without timeouts, because the reader of an export may be slow. The query takes the snapshot.
const LONG_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0; SELECT 1";

/// The durations of the rules, and the use of the server.
#[derive(Clone)]
pub struct Options {
    /// The rolling window of the velocity cap.
    pub velocity_window: Duration,
    /// How long idempotency records count.
    pub idempotency_ttl: Duration,
    /// The maximum number of connections for requests and background tasks. One more reads what keeps the service up.
    pub connections: u32,
    /// How long to wait for the server.
    pub timeouts: Timeouts,
    /// How long to wait for other requests.
    pub waits: Waits,
    /// The process's clock. It measures ages, and the elapsed time that shows jumps of the server's clock.
    pub process: Arc<dyn Clock>,
    /// Replaces the server's clock in tests.
    pub clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("velocity_window", &self.velocity_window)
            .field("idempotency_ttl", &self.idempotency_ttl)
            .field("connections", &self.connections)
            .field("timeouts", &self.timeouts)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
}

kernel::debug_as_text!(PostgresStore, "PostgresStore");

pub(crate) struct Inner {
    pool: Pool,
    /// The connections of the batch queues. On another connection the server would first plan the batch's statements, which takes
    /// 100 ms while many commands wait.
    batch_pool: Option<Pool>,
    /// Reads the version of the configuration, the current master key and the clock.
    reserved_pool: Pool,
    hosts: Hosts,
    alarm: Arc<Alarm>,
    prober: AbortHandle,
    durability: Durability,
    openings: Openings,
    pub(crate) clock: StoreClock,
    pub(crate) options: Options,
    pub(crate) access: AccessCaches,
    /// The turns of transactions that wait for a partner lock.
    pub(crate) turns: Turns,
    /// The turns of pages. A page does not wait for transactions that wait for a lock.
    pub(crate) page_turns: Turns,
    pub(crate) watchers: Watchers,
    pub(crate) left_out: LeftOut,
    /// The installation's identity, after it was read.
    pub(crate) identity: OnceLock<String>,
}

impl PostgresStore {
    /// Opens a database whose schema is up to date.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the server cannot be reached. [`StoreError::Unexpected`] if the URL is malformed, or if this
    /// program does not support the schema; the error then names the command to run.
    pub async fn open(url: &str, options: Options) -> StoreResult<Self> {
        let hosts = Hosts::parse(url).map_err(StoreError::unexpected)?;
        let alarm = Alarm::new();
        let mut conn = hosts.connect(options.timeouts, &alarm).await?;
        let checked = schema::check(&mut conn).await;
        checked.map_err(|fault| hosts.locate(fault))?;
        let durability = Durability::read(&mut conn).await;
        let durability = durability.map_err(|fault| hosts.locate(fault))?;
        let clock = StoreClock::start(
            options.clock.clone(),
            Arc::clone(&options.process),
            &mut conn,
        )
        .await
        .map_err(|fault| hosts.locate(fault))?;
        conn.close().await;
        let (pool, batch_pool) = pools(&options, &hosts, &alarm);
        let reserved_pool = Pool::new(
            RESERVED_POOL,
            RESERVED_CONNECTIONS,
            &hosts,
            &options,
            &alarm,
        );
        let turns = Turns::of_locks(pool.size(), options.waits.turn);
        let page_turns = Turns::of_pages(pool.size(), options.waits.turn);
        let prober = Prober {
            hosts: hosts.clone(),
            timeouts: options.timeouts,
            alarm: Arc::clone(&alarm),
            pools: [&pool, &reserved_pool]
                .into_iter()
                .chain(&batch_pool)
                .cloned()
                .collect(),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                batch_pool,
                reserved_pool,
                hosts,
                prober: tokio::spawn(prober.run()).abort_handle(),
                alarm,
                durability,
                openings: Openings::new(options.waits),
                clock,
                options,
                access: AccessCaches::default(),
                turns,
                page_turns,
                watchers: Watchers::default(),
                left_out: LeftOut::default(),
                identity: OnceLock::new(),
            }),
        })
    }

    /// Migrates a database, and stores the mode of the installation if it is given and no program has stored one. The URL must name the
    /// database's owner.
    ///
    /// # Errors
    /// The errors of [`PostgresStore::open`].
    pub async fn migrate(
        url: &str,
        timeouts: Timeouts,
        mode: Option<Mode>,
    ) -> StoreResult<Migrated> {
        let hosts = Hosts::parse(url).map_err(StoreError::unexpected)?;
        let mut conn = hosts.connect(timeouts, &Alarm::new()).await?;
        let link = conn.link()?;
        // A migration may rebuild a table.
        let migrated = timeout(LONG_TIMEOUT, schema::migrate(link)).await;
        let migrated = migrated.map_err(StoreError::unavailable)?;
        let migrated = migrated.map_err(|fault| hosts.locate(fault))?;
        if let Some(mode) = mode {
            store_sql::config::begin_mode(&mut conn, mode).await?;
        }
        conn.close().await;
        Ok(migrated)
    }

    /// The mode of the installation; `None` if the database has no schema, or if no program has stored its mode.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the server cannot be reached.
    pub async fn stored_mode(url: &str, timeouts: Timeouts) -> StoreResult<Option<Mode>> {
        let hosts = Hosts::parse(url).map_err(StoreError::unexpected)?;
        let mut conn = hosts.connect(timeouts, &Alarm::new()).await?;
        let mode = config::stored_mode(&mut conn).await;
        let mode = mode.map_err(|fault| hosts.locate(fault))?;
        conn.close().await;
        Ok(mode)
    }

    /// Where the database of a URL is. Checks the form of the URL without connecting.
    ///
    /// # Errors
    /// [`UnreadUrl`], which describes the expected form and repeats no part of the URL.
    pub fn locate(url: &str) -> Result<Location, UnreadUrl> {
        Hosts::parse(url).map(|hosts| hosts.location())
    }

    /// How many connections are in use, and how many are idle.
    #[must_use]
    pub fn connections(&self) -> Vec<(&'static str, u64, u64)> {
        let Inner {
            pool,
            batch_pool,
            reserved_pool,
            ..
        } = &*self.inner;
        [pool, reserved_pool]
            .into_iter()
            .chain(batch_pool)
            .map(Pool::usage)
            .collect()
    }

    /// The server's settings that decide whether an acknowledged commit survives a crash, read when the database was opened.
    #[must_use]
    pub fn durability(&self) -> &Durability {
        &self.inner.durability
    }

    /// How far the store's clock is ahead of the server's; zero unless the server's clock was set back.
    #[must_use]
    pub fn clock_ahead(&self) -> Duration {
        self.inner.clock.ahead()
    }

    /// How far the server's clock jumped ahead of the elapsed time; zero unless the jump is rejected.
    #[must_use]
    pub fn clock_jump(&self) -> Duration {
        let jump = self.inner.clock.watch().jump();
        jump.map_or(Duration::ZERO, |jump| jump.span())
    }

    /// Closes every connection, waiting for those in use.
    pub async fn close(&self) {
        self.inner.prober.abort();
        if let Some(batch_pool) = &self.inner.batch_pool {
            batch_pool.close().await;
        }
        self.inner.reserved_pool.close().await;
        self.inner.pool.close().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.prober.abort();
    }
}

impl Inner {
    /// A connection for a single statement.
    pub(crate) async fn conn(&self) -> StoreResult<Pooled> {
        self.pool.acquire().await
    }

    /// A connection for a single statement, which no partner occupies. If that one waits for a lost response, any other connection.
    pub(crate) async fn reserved_conn(&self) -> StoreResult<Pooled> {
        match self.reserved_pool.acquire().await {
            Err(error) if error.is_busy() => self.pool.acquire().await,
            lent => lent,
        }
    }

    /// A connection for a statement that writes and commits by itself.
    pub(crate) async fn writing_conn(&self) -> StoreResult<Pooled> {
        self.alarm.admit()?;
        self.conn().await
    }

    /// A write transaction.
    pub(crate) async fn write(&self) -> StoreResult<Tx> {
        self.alarm.admit()?;
        Tx::begin(&self.pool, self.openings.writing.clone()).await
    }

    /// A write transaction of a batch queue.
    pub(crate) async fn batch_tx(&self) -> StoreResult<Tx> {
        self.alarm.admit()?;
        let pool = self.batch_pool.as_ref().unwrap_or(&self.pool);
        Tx::begin(pool, self.openings.writing.clone()).await
    }

    /// Several reads of one snapshot.
    pub(crate) async fn snapshot(&self) -> StoreResult<Tx> {
        Tx::begin(&self.pool, self.openings.snapshot.clone()).await
    }

    /// Several reads of one snapshot, for an export.
    pub(crate) async fn long_snapshot(&self) -> StoreResult<Tx> {
        let opening = SqlStr::from_static(LONG_SNAPSHOT);
        let mut snapshot = Tx::begin(&self.pool, opening).await?;
        snapshot.wait_at_most(LONG_TIMEOUT);
        Ok(snapshot)
    }

    /// A connection for an audit, outside the pools.
    pub(crate) async fn auditor(&self) -> StoreResult<Conn> {
        let mut conn = self
            .hosts
            .connect(self.options.timeouts, &self.alarm)
            .await?;
        conn.wait_at_most(LONG_TIMEOUT);
        Ok(conn)
    }
}

pub(crate) const AUDIT: &str = LONG_SNAPSHOT;

#[async_trait]
impl Readiness for PostgresStore {
    async fn ready(&self) -> StoreResult<()> {
        self.inner.alarm.ready().await
    }
}

/// Each batch queue has a connection of its own if at least as many connections remain for everything else.
fn pools(options: &Options, hosts: &Hosts, alarm: &Arc<Alarm>) -> (Pool, Option<Pool>) {
    let of = |name, size| Pool::new(name, size, hosts, options, alarm);
    let rest = options.connections.saturating_sub(BATCH_QUEUE_COUNT);
    if rest < BATCH_QUEUE_COUNT {
        return (of(POOL, options.connections), None);
    }
    (of(POOL, rest), Some(of(BATCH_POOL, BATCH_QUEUE_COUNT)))
}
