//! Opening a database: connections, clock, the schema's version.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, StoreError};
use partner_core::ports::Readiness;
use store_sql::access::AccessCaches;
use store_sql::deliveries::Watchers;
use store_sql::schema::Migrated;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::clock::StoreClock;
use crate::conn::Conn;
use crate::health::{Alarm, Prober};
use crate::hosts::{Hosts, Timeouts, UnreadUrl};
use crate::pool::{Pool, Pooled, Tx};
use crate::schema;
use crate::turns::Turns;

/// The pools' names in metrics.
const POOL: &str = "server";
/// The name of the batch queues' connection pool in metrics.
const BATCH_POOL: &str = "lanes";
/// As many batch queues as are worth having, each with a connection: while one waits for the server, the
/// other works; more would make batches smaller.
pub const BATCH_QUEUE_COUNT: u32 = 2;
/// Audits and exports are waited for so long: a statement of theirs may read the whole database.
const LONG_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// What a transaction begins with, in one exchange. Set for the transaction alone, so that it holds
/// behind a pooler that hands out connections by transaction. Writes look up what they touch, by
/// its key: a plan that goes through a table while it is small would still do so when it has grown.
/// Where one has to all the same, its price is so high that the server would compile it every time.
pub(crate) const WRITING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; \
     SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; \
     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off; \
     SET LOCAL statement_timeout = '2s'; SET LOCAL lock_timeout = '1s'; \
     SET LOCAL idle_in_transaction_session_timeout = '5s'";
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '2s'; \
     SET LOCAL idle_in_transaction_session_timeout = '5s'";
/// Exports and audits take their time; whoever reads an export may take more. What is seen is seen
/// from here on: the snapshot is taken by the first query.
const LONG_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0; SELECT 1";

/// What the rules measure by, and how the server is used.
#[derive(Clone)]
pub struct Options {
    /// The rolling window of the velocity cap.
    pub velocity_window: Duration,
    /// How long idempotency records count.
    pub idempotency_ttl: Duration,
    /// How many connections are held at most.
    pub connections: u32,
    /// How long the server is waited for.
    pub timeouts: Timeouts,
    /// The process's clock: how much time has passed here, by which ages are counted and jumps of the server's clock found.
    pub process: Arc<dyn Clock>,
    /// For tests: what counts instead of the server's clock.
    pub clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("velocity_window", &self.velocity_window)
            .field("idempotency_ttl", &self.idempotency_ttl)
            .field("connections", &self.connections)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// An open database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pool: Pool,
    /// Connections of the batch queues' own. On every other one the batches' statements would have to be planned
    /// first, a tenth of a second while many wait.
    batch_pool: Option<Pool>,
    hosts: Hosts,
    alarm: Arc<Alarm>,
    prober: AbortHandle,
    pub(crate) clock: StoreClock,
    pub(crate) options: Options,
    pub(crate) access: AccessCaches,
    pub(crate) turns: Turns,
    pub(crate) watchers: Watchers,
    /// What names the installation, once it was read.
    pub(crate) identity: OnceLock<String>,
}

impl PostgresStore {
    /// Opens a database whose schema is up to date.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where the server cannot be reached, [`StoreError::Unexpected`]
    /// where the URL is none, or where the schema is another than this program's: it says what to
    /// run.
    pub async fn open(url: &str, options: Options) -> Result<Self, StoreError> {
        let hosts = Hosts::parse(url).map_err(StoreError::unexpected)?;
        let alarm = Alarm::new();
        let mut conn = hosts.connect(options.timeouts, &alarm).await?;
        let checked = schema::check(&mut conn).await;
        checked.map_err(|fault| hosts.locate(fault))?;
        let clock = StoreClock::start(
            options.clock.clone(),
            Arc::clone(&options.process),
            &mut conn,
        )
        .await
        .map_err(|fault| hosts.locate(fault))?;
        conn.close().await;
        let (pool, batch_pool) = pools(&options, &hosts, &alarm);
        let turns = Turns::new(pool.size());
        let prober = Prober {
            hosts: hosts.clone(),
            timeouts: options.timeouts,
            alarm: Arc::clone(&alarm),
            pools: std::iter::once(&pool).chain(&batch_pool).cloned().collect(),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                batch_pool,
                hosts,
                prober: tokio::spawn(prober.run()).abort_handle(),
                alarm,
                clock,
                options,
                access: AccessCaches::default(),
                turns,
                watchers: Watchers::default(),
                identity: OnceLock::new(),
            }),
        })
    }

    /// Brings the schema of a database up to date; for its owner.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
        let hosts = Hosts::parse(url).map_err(StoreError::unexpected)?;
        let mut conn = hosts.connect(Timeouts::default(), &Alarm::new()).await?;
        let link = conn.link()?;
        // A migration may rebuild a table.
        let migrated = timeout(LONG_TIMEOUT, schema::migrate(link)).await;
        let migrated = migrated.map_err(StoreError::unavailable)?;
        let migrated = migrated.map_err(|fault| hosts.locate(fault))?;
        conn.close().await;
        Ok(migrated)
    }

    /// Can this URL be used? Whether a server is there is found by opening.
    ///
    /// # Errors
    /// [`UnreadUrl`], which says what is wrong with it and repeats nothing of it.
    pub fn check_url(url: &str) -> Result<(), UnreadUrl> {
        Hosts::parse(url).map(drop)
    }

    /// How many connections are in use, and how many are idle.
    #[must_use]
    pub fn connections(&self) -> Vec<(&'static str, u64, u64)> {
        let Inner {
            pool, batch_pool, ..
        } = &*self.inner;
        std::iter::once(pool)
            .chain(batch_pool)
            .map(Pool::figures)
            .collect()
    }

    /// How far the store's clock is ahead of the server's; zero unless that one was set back.
    #[must_use]
    pub fn clock_ahead(&self) -> Duration {
        self.inner.clock.ahead()
    }

    /// How far the server's clock jumped ahead of the time that has passed; zero unless that is being refused.
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
        self.inner.pool.close().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.prober.abort();
    }
}

impl Inner {
    /// A connection for a statement of its own.
    pub(crate) async fn conn(&self) -> Result<Pooled, StoreError> {
        self.pool.acquire().await
    }

    /// A connection for a write that commits by itself.
    pub(crate) async fn writing_conn(&self) -> Result<Pooled, StoreError> {
        self.alarm.admit()?;
        self.conn().await
    }

    /// A write transaction.
    pub(crate) async fn write(&self) -> Result<Tx, StoreError> {
        self.alarm.admit()?;
        Tx::begin(&self.pool, WRITING).await
    }

    /// A write transaction of a batch queue.
    pub(crate) async fn batch_tx(&self) -> Result<Tx, StoreError> {
        self.alarm.admit()?;
        Tx::begin(self.batch_pool.as_ref().unwrap_or(&self.pool), WRITING).await
    }

    /// Several reads of one snapshot.
    pub(crate) async fn snapshot(&self) -> Result<Tx, StoreError> {
        Tx::begin(&self.pool, SNAPSHOT).await
    }

    /// The same for a reader who takes long.
    pub(crate) async fn long_snapshot(&self) -> Result<Tx, StoreError> {
        let mut snapshot = Tx::begin(&self.pool, LONG_SNAPSHOT).await?;
        snapshot.wait_at_most(LONG_TIMEOUT);
        Ok(snapshot)
    }

    /// A connection for a long look at everything, beside the pool.
    pub(crate) async fn auditor(&self) -> Result<Conn, StoreError> {
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
    async fn ready(&self) -> Result<(), StoreError> {
        self.inner.alarm.ready().await
    }
}

/// Each batch queue has a connection of its own if at least as many connections remain for everything else.
fn pools(options: &Options, hosts: &Hosts, alarm: &Arc<Alarm>) -> (Pool, Option<Pool>) {
    let of = |name, size| Pool::new(name, size, hosts, options.timeouts, alarm);
    let rest = options.connections.saturating_sub(BATCH_QUEUE_COUNT);
    if rest < BATCH_QUEUE_COUNT {
        return (of(POOL, options.connections), None);
    }
    (of(POOL, rest), Some(of(BATCH_POOL, BATCH_QUEUE_COUNT)))
}
