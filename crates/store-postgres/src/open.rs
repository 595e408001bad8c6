//! Opening a database: connections, clock, the schema's version.

use std::fmt;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use instruments::store::waiting;
use kernel::{Clock, StoreError};
use partner_core::ports::Readiness;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, Postgres, Transaction};

use crate::access::Cache;
use crate::clock::StoreClock;
use crate::deliveries::Watchers;
use crate::{errors, schema};

/// How long a caller waits for a connection: as long as for a statement.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a program that starts waits for the server.
const STARTING: Duration = Duration::from_secs(5);
/// A connection that has not been used for so long is asked whether it still is one.
const IDLE: Duration = Duration::from_secs(1);
/// The pools' names in metrics.
const POOL: &str = "server";
const LANES: &str = "lanes";
/// As many lanes as are worth having, each with a connection: while one waits for the server, the
/// other works; more would make batches smaller.
pub const LANE_COUNT: u32 = 2;
/// Statements kept prepared on a connection: all there are.
const STATEMENTS: usize = 256;
/// The setting of a database URL that says otherwise.
const STATEMENTS_SETTING: &str = "statement-cache-capacity";

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
    /// For tests: what counts instead of the server's clock.
    pub clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("velocity_window", &self.velocity_window)
            .field("idempotency_ttl", &self.idempotency_ttl)
            .field("connections", &self.connections)
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
    pool: PgPool,
    /// Connections of the lanes' own. A pool hands out its connections in turn, and on each the
    /// lanes' statements would have to be planned, a tenth of a second while many wait.
    lanes: Option<PgPool>,
    connect: PgConnectOptions,
    pub(crate) clock: StoreClock,
    pub(crate) options: Options,
    pub(crate) access: Mutex<Cache>,
    pub(crate) watchers: Watchers,
}

impl PostgresStore {
    /// Opens a database whose schema is up to date.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where the server cannot be reached, [`StoreError::Unexpected`]
    /// where the URL is none, or where the schema is another than this program's: it says what to
    /// run.
    pub async fn open(url: &str, options: Options) -> Result<Self, StoreError> {
        let connect = connect(url)?;
        let mut conn = reach(&connect).await?;
        schema::check(&mut conn).await?;
        let clock = StoreClock::start(options.clock.clone(), &mut conn).await?;
        conn.close().await.map_err(errors::statement)?;
        let (pool, lanes) = pools(&options, &connect);
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                lanes,
                connect,
                clock,
                options,
                access: Mutex::default(),
                watchers: Watchers::default(),
            }),
        })
    }

    /// Brings the schema of a database up to date; for its owner.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn migrate(url: &str) -> Result<(), StoreError> {
        let mut conn = reach(&connect(url)?).await?;
        schema::migrate(&mut conn).await?;
        conn.close().await.map_err(errors::statement)
    }

    /// Can the driver read this URL? Whether a server is there is found by opening.
    #[must_use]
    pub fn reads(url: &str) -> bool {
        connect(url).is_ok()
    }

    /// How many connections are in use, and how many are idle.
    #[must_use]
    pub fn connections(&self) -> Vec<(&'static str, u64, u64)> {
        let Inner { pool, lanes, .. } = &*self.inner;
        let pools = [(POOL, pool)].into_iter();
        let pools = pools.chain(lanes.iter().map(|lanes| (LANES, lanes)));
        let counted = pools.map(|(name, pool)| {
            let idle = u64::try_from(pool.num_idle()).unwrap_or(u64::MAX);
            (name, u64::from(pool.size()).saturating_sub(idle), idle)
        });
        counted.collect()
    }

    /// How far the store's clock is ahead of the server's; zero unless that one was set back.
    #[must_use]
    pub fn clock_ahead(&self) -> Duration {
        self.inner.clock.ahead()
    }

    /// Closes every connection, waiting for those in use.
    pub async fn close(&self) {
        if let Some(lanes) = &self.inner.lanes {
            lanes.close().await;
        }
        self.inner.pool.close().await;
    }
}

impl Inner {
    /// A connection for a statement of its own.
    pub(crate) async fn conn(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        let conn = waiting(POOL, self.pool.acquire()).await;
        conn.map_err(errors::statement)
    }

    /// A write transaction.
    pub(crate) async fn write(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.begin(WRITING).await
    }

    /// A write transaction of a lane.
    pub(crate) async fn lane(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        match &self.lanes {
            Some(lanes) => begin(LANES, lanes, WRITING).await,
            None => self.write().await,
        }
    }

    /// Several reads of one snapshot.
    pub(crate) async fn snapshot(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.begin(SNAPSHOT).await
    }

    /// The same for a reader who takes long.
    pub(crate) async fn long_snapshot(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        self.begin(LONG_SNAPSHOT).await
    }

    /// A connection for a long look at everything, beside the pool.
    pub(crate) async fn auditor(&self) -> Result<PgConnection, StoreError> {
        self.connect.connect().await.map_err(errors::statement)
    }

    async fn begin(
        &self,
        opening: &'static str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        begin(POOL, &self.pool, opening).await
    }
}

/// Begins in a task of its own, which runs to its end whatever becomes of the caller: dropped
/// while the server answers, the driver would hand the connection to the next borrower inside
/// the open transaction, and what that one writes would never be committed.
async fn begin(
    name: &'static str,
    pool: &PgPool,
    opening: &'static str,
) -> Result<Transaction<'static, Postgres>, StoreError> {
    let pool = pool.clone();
    let beginning = tokio::spawn(async move { pool.begin_with(opening).await });
    let begun = waiting(name, beginning).await;
    let begun = begun.map_err(StoreError::unexpected)?;
    begun.map_err(errors::statement)
}

pub(crate) const AUDIT: &str = LONG_SNAPSHOT;

#[async_trait]
impl Readiness for PostgresStore {
    async fn ready(&self) -> Result<(), StoreError> {
        let mut conn = self.inner.conn().await?;
        schema::check(&mut conn).await.map_err(|fault| match fault {
            StoreError::Unexpected(source) => StoreError::Unavailable(source),
            fault => fault,
        })
    }
}

fn connect(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = PgConnectOptions::from_str(url).map_err(StoreError::unexpected)?;
    // Nothing here is a float, and a pooler knows that parameter only when told.
    let options = options
        .application_name("penstock")
        .extra_float_digits(None);
    Ok(if url.contains(STATEMENTS_SETTING) {
        options
    } else {
        options.statement_cache_capacity(STATEMENTS)
    })
}

/// A connection beside the pool, which would try again and again and not say why there is none.
async fn reach(to: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let away = |why: &dyn fmt::Display| {
        let (host, port) = (to.get_host(), to.get_port());
        StoreError::unavailable(format!("the server at {host}:{port}: {why}"))
    };
    match tokio::time::timeout(STARTING, to.connect()).await {
        Err(late) => Err(away(&late)),
        Ok(Ok(conn)) => Ok(conn),
        Ok(Err(error)) => match errors::statement(error) {
            StoreError::Unavailable(source) => Err(away(&source)),
            fault => Err(fault),
        },
    }
}

/// Of the connections there may be, each lane gets one for itself where as many are left for all else.
fn pools(options: &Options, connect: &PgConnectOptions) -> (PgPool, Option<PgPool>) {
    let of = |many| pool(many).connect_lazy_with(connect.clone());
    let rest = options.connections.saturating_sub(LANE_COUNT);
    if rest < LANE_COUNT {
        return (of(options.connections), None);
    }
    (of(rest), Some(of(LANE_COUNT)))
}

fn pool(connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false)
        .before_acquire(|conn, about| {
            Box::pin(async move {
                if about.idle_for < IDLE {
                    return Ok(true);
                }
                is_fresh(conn).await
            })
        })
}

/// Does the connection answer, outside any transaction? Inside one the two would differ.
async fn is_fresh(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    use sqlx::{Executor as _, Row as _};
    let row = conn
        .fetch_one(sqlx::raw_sql("SELECT now() = statement_timestamp()"))
        .await?;
    row.try_get(0)
}
