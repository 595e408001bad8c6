//! Probes whether the database takes writes, and stops writers while it does not.
//!
//! The probe opens its own connection, fills some pages of the disk and commits a transaction, because a server may serve reads but
//! take no writes: it is a standby, was made read-only, waits for a missing standby, or its disk is full. While such a commit waits, its session occupies a connection
//! slot of the server even if the client closes the connection. Therefore one probe runs at a time, and after the first
//! exchange without a response writers are refused until a probe succeeds.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kernel::{NoWritesReason, StoreError, StoreResult};
use sqlx::{Executor as _, Row as _};
use store_sql::probe::LastProbe;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::conn::Conn;
use crate::durability::raise_synchronous_commit;
use crate::hosts::{Hosts, Timeouts};
use crate::pool::Pool;
use crate::{errors, schema};

/// A commit of the probe that takes longer than this counts as a failure.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause before the next probe while writes are refused.
const RETRY_BACKOFF: Duration = Duration::from_millis(250);
/// The deadline of the probe's commit: the probe waits as long as its session exists.
const NO_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// Begins the probe's transaction and identifies its session.
///
/// Its commit waits for as much as the commits of writers do.
const BEGIN: &str = concat!(
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = '2s'; \
     SELECT pg_backend_pid() AS pid, pg_postmaster_start_time()::text AS started, \
            current_setting('transaction_read_only') = 'on' AS read_only, ",
    raise_synchronous_commit!(),
    " AS synchronous_commit"
);
/// Writes a temporary file of some 20 pages to the disk of the database: a list that exceeds `work_mem`. Tables grow page by page too, so
/// this fails if they cannot grow. A row would fit into a page that exists.
const FILL: &str = "SET work_mem = '64kB'; SET temp_tablespaces = ''; SELECT count(*) FROM generate_series(1, 10000)";
/// Writes only to the server's log, so that the commit has something to make durable.
const WRITE: &str = "SELECT pg_logical_emit_message(true, 'penstock', '')";
const SESSION_EXISTS: &str = "SELECT pg_postmaster_start_time()::text = $2
     AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";

/// The state that writers and the probe share.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// Has an exchange had no response since the last successful probe?
    raised: AtomicBool,
    requested: Notify,
    last: LastProbe,
}

impl Alarm {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            raised: AtomicBool::new(false),
            requested: Notify::new(),
            last: LastProbe::none(),
        })
    }

    /// Records that the server did not respond in time.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.requested.notify_one();
    }

    fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Refuses a write at once if an exchange had no response since the last successful probe.
    pub(crate) fn admit(&self) -> StoreResult<()> {
        if self.is_raised() {
            return Err(StoreError::unavailable(
                "the database does not respond or does not confirm commits; writes are refused until it does",
            ));
        }
        Ok(())
    }

    /// Returns the result of a recent probe; requests a probe first.
    pub(crate) async fn ready(&self) -> StoreResult<()> {
        self.requested.notify_one();
        let late = || "the database did not respond to the probe in time".to_owned();
        self.last.ready(late).await
    }

    fn clear(&self) {
        self.raised.store(false, Ordering::Release);
    }
}

/// The background task that runs the probes.
#[derive(Debug)]
pub(crate) struct Prober {
    pub(crate) hosts: Hosts,
    pub(crate) timeouts: Timeouts,
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) pools: Vec<Pool>,
}

impl Prober {
    /// Probes when a caller requests it, and repeatedly while writes are refused.
    pub(crate) async fn run(self) {
        let mut trusted = true;
        loop {
            if self.alarm.is_raised() {
                sleep(RETRY_BACKOFF).await;
            } else {
                self.alarm.requested.notified().await;
                if self.has_recent_result() {
                    continue;
                }
            }
            if trusted && self.alarm.is_raised() {
                self.distrust();
                trusted = false;
            }
            match self.probe().await {
                Ok(()) => {
                    self.alarm.clear();
                    self.alarm.last.publish(Ok(()));
                    trusted = true;
                }
                Err(fault) => {
                    let why = self.alarm.last.publish(Err(fault));
                    if trusted {
                        self.distrust();
                        trusted = false;
                        tracing::warn!(error.chain = why, "The database takes no writes");
                    }
                }
            }
        }
    }

    /// Is the last result recent? While the alarm is raised no result is.
    fn has_recent_result(&self) -> bool {
        self.alarm.last.is_recent() && !self.alarm.is_raised()
    }

    /// Closes the pooled connections, because they may lead to a server that is gone.
    fn distrust(&self) {
        self.pools.iter().for_each(Pool::distrust);
    }

    /// Opens a connection, checks the schema's version, and commits a write that changes no table.
    async fn probe(&self) -> StoreResult<()> {
        let mut conn = self.hosts.connect(self.timeouts, &self.alarm).await?;
        schema::check(&mut conn).await?;
        match conn.execute(sqlx::raw_sql(FILL)).await {
            Ok(_) => {}
            // The server allows no such file, so the probe cannot tell whether the disk is full.
            Err(error) if errors::is_over_limit(&error) => {}
            Err(error) => return Err(errors::statement(error)),
        }
        let session = Session::begin(&mut conn).await?;
        match conn.fetch_one(sqlx::raw_sql(WRITE)).await {
            Ok(_) => {}
            // The server may forbid the function to this role; it has begun a transaction that may write.
            Err(error) if errors::is_forbidden(&error) => {
                conn.close().await;
                return Ok(());
            }
            Err(error) => return Err(errors::statement(error)),
        }
        conn.wait_at_most(NO_DEADLINE);
        self.commit(&mut conn, &session).await?;
        conn.close().await;
        Ok(())
    }

    /// Waits for the commit while the session exists, and publishes a failure while it waits.
    async fn commit(&self, conn: &mut Conn, session: &Session) -> StoreResult<()> {
        let began = Instant::now();
        let mut committing = pin!(conn.run("COMMIT"));
        loop {
            match timeout(COMMIT_TIMEOUT, &mut committing).await {
                Ok(done) => return done.map_err(errors::statement),
                Err(_) => self.publish_wait(began.elapsed()),
            }
            if !self.exists(session).await {
                return Err(StoreError::unavailable(
                    "the server of the probe did not respond",
                ));
            }
        }
    }

    fn publish_wait(&self, waited: Duration) {
        let millis = waited.as_millis();
        let why = format!(
            "the database has not confirmed a commit for {millis} ms: check its synchronous standby"
        );
        let refused = StoreError::no_writes(NoWritesReason::Unconfirmed, why);
        self.alarm.last.publish(Err(refused));
        if waited >= self.timeouts.statement {
            self.alarm.raise();
        }
    }

    /// Does the session still exist on the server that a new connection reaches?
    async fn exists(&self, session: &Session) -> bool {
        let Ok(mut conn) = self.hosts.connect(self.timeouts, &self.alarm).await else {
            return false;
        };
        let exists = sqlx::query_scalar(SESSION_EXISTS)
            .bind(session.pid)
            .bind(&session.started)
            .fetch_one(&mut conn)
            .await;
        conn.close().await;
        exists.unwrap_or(false)
    }
}

/// The identity of a probe's session.
#[derive(Debug)]
struct Session {
    pid: i32,
    started: String,
}

impl Session {
    async fn begin(conn: &mut Conn) -> StoreResult<Self> {
        let row = conn.fetch_one(sqlx::raw_sql(BEGIN)).await;
        let row = row.map_err(errors::statement)?;
        let read = || {
            let session = Self {
                pid: row.try_get("pid")?,
                started: row.try_get("started")?,
            };
            Ok::<_, sqlx::Error>((session, row.try_get("read_only")?))
        };
        let (session, read_only) = read().map_err(errors::statement)?;
        if read_only {
            return Err(StoreError::no_writes(
                NoWritesReason::ReadOnly,
                "the database takes no writes: it is a standby, or was made read-only",
            ));
        }
        Ok(session)
    }
}
