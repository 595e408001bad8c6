//! Whether the database takes writes: asked by a probe of its own, and known to every writer.
//!
//! The probe is a connection beside the pools that commits a transaction: a server may answer reads and take
//! no write, because it is a standby, was made read-only, or waits for a standby that is not there. While
//! such a commit waits, the session holds a place on the server that closing the connection does not free.
//! So there is one probe at a time, and after the first exchange without an answer no writer tries until a
//! probe has succeeded.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kernel::StoreError;
use sqlx::{Executor as _, Row as _};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::conn::Conn;
use crate::hosts::{Hosts, Timeouts};
use crate::pool::Pool;
use crate::{errors, schema};

/// What a probe has found counts so long.
const VERDICT_AGE: Duration = Duration::from_millis(500);
/// A caller who asks waits so long for a probe.
const READY_TIMEOUT: Duration = Duration::from_millis(1400);
/// A commit of the probe that takes longer than this says that writes wait.
const LATE: Duration = Duration::from_secs(1);
/// The pause before the next probe while writes are refused.
const RETRY: Duration = Duration::from_millis(250);
/// The probe waits for its commit as long as its session is there.
const NO_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// Begins the probe's transaction, and says what this session is.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = '2s'; \
     SELECT pg_backend_pid() AS pid, pg_postmaster_start_time()::text AS started, \
            current_setting('transaction_read_only') = 'on' AS read_only";
/// Writes to the log and nowhere else, so that the commit has something to make durable.
const WRITE: &str = "SELECT pg_logical_emit_message(true, 'penstock', '')";
const IS_SERVED: &str = "SELECT pg_postmaster_start_time()::text = $2
     AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";

/// What the last probe has found.
#[derive(Debug, Clone)]
struct Verdict {
    at: Instant,
    /// `Err`: why the database takes no writes.
    found: Result<(), Arc<str>>,
}

/// What writers and the probe tell each other.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// Has an exchange been without an answer since the last probe succeeded?
    raised: AtomicBool,
    asked: Notify,
    verdict: watch::Sender<Option<Verdict>>,
}

impl Alarm {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            raised: AtomicBool::new(false),
            asked: Notify::new(),
            verdict: watch::Sender::new(None),
        })
    }

    /// Notes that the server has not answered in time.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.asked.notify_one();
    }

    fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// May a writer try? After an exchange without an answer it is told at once that it may not.
    pub(crate) fn admit(&self) -> Result<(), StoreError> {
        if self.is_raised() {
            return Err(StoreError::unavailable(
                "the database does not answer, or does not confirm commits; writes are refused until it does",
            ));
        }
        Ok(())
    }

    /// Does the database take writes, by a probe that is hardly older than the question?
    pub(crate) async fn ready(&self) -> Result<(), StoreError> {
        let mut verdict = self.verdict.subscribe();
        let is_recent = |verdict: &Option<Verdict>| {
            let recent = |verdict: &Verdict| verdict.at.elapsed() < VERDICT_AGE;
            verdict.as_ref().is_some_and(recent)
        };
        self.asked.notify_one();
        let recent = timeout(READY_TIMEOUT, verdict.wait_for(is_recent)).await;
        let found = match &recent {
            Ok(Ok(verdict)) => verdict.as_ref().map(|verdict| verdict.found.clone()),
            Ok(Err(_)) | Err(_) => None,
        };
        match found {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => Err(StoreError::unavailable(why.to_string())),
            None => Err(StoreError::unavailable(
                "the database has not answered the probe in time",
            )),
        }
    }

    fn found(&self, found: Result<(), &dyn fmt::Display>) {
        self.verdict.send_replace(Some(Verdict {
            at: Instant::now(),
            found: found.map_err(|why| Arc::from(why.to_string())),
        }));
    }

    fn clear(&self) {
        self.raised.store(false, Ordering::Release);
    }
}

/// The task that probes.
#[derive(Debug)]
pub(crate) struct Prober {
    pub(crate) hosts: Hosts,
    pub(crate) timeouts: Timeouts,
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) pools: Vec<Pool>,
}

impl Prober {
    /// Probes whenever somebody asks, and again and again while writes are refused.
    pub(crate) async fn run(self) {
        let mut trusted = true;
        loop {
            if self.alarm.is_raised() {
                sleep(RETRY).await;
            } else {
                self.alarm.asked.notified().await;
                if self.has_answered() {
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
                    self.alarm.found(Ok(()));
                    trusted = true;
                }
                Err(fault) => {
                    if trusted {
                        self.distrust();
                        trusted = false;
                        tracing::warn!(
                            error.chain = kernel::causes(&fault),
                            "The database takes no writes"
                        );
                    }
                    self.alarm.found(Err(&kernel::causes(&fault)));
                }
            }
        }
    }

    /// Is what was found last recent enough for who asks now? An alarm is never.
    fn has_answered(&self) -> bool {
        let verdict = self.alarm.verdict.borrow();
        let recent = |verdict: &Verdict| verdict.at.elapsed() < VERDICT_AGE;
        verdict.as_ref().is_some_and(recent) && !self.alarm.is_raised()
    }

    /// Connections that were opened before may lead to a server that is gone.
    fn distrust(&self) {
        self.pools.iter().for_each(Pool::distrust);
    }

    /// Opens a connection, reads the schema's version, and commits a write that leaves nothing.
    async fn probe(&self) -> Result<(), StoreError> {
        let mut conn = self.hosts.connect(self.timeouts, &self.alarm).await?;
        schema::check(&mut conn).await?;
        let session = Session::begin(&mut conn).await?;
        match conn.fetch_one(sqlx::raw_sql(WRITE)).await {
            Ok(_) => {}
            // A server may forbid it to this role; that it takes writes is known all the same.
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

    /// Waits for the commit as long as the server still works on it, and says meanwhile that it waits.
    async fn commit(&self, conn: &mut Conn, session: &Session) -> Result<(), StoreError> {
        let began = Instant::now();
        let mut committing = pin!(conn.run("COMMIT"));
        loop {
            match timeout(LATE, &mut committing).await {
                Ok(done) => return done.map_err(errors::statement),
                Err(_) => self.waits(began.elapsed()),
            }
            if !self.is_served(session).await {
                return Err(StoreError::unavailable(
                    "the server of the probe has not answered",
                ));
            }
        }
    }

    fn waits(&self, so_long: Duration) {
        let millis = so_long.as_millis();
        let why = format!(
            "the database has not confirmed a commit for {millis} ms: is its synchronous standby there?"
        );
        self.alarm.found(Err(&why));
        if so_long >= self.timeouts.statement {
            self.alarm.raise();
        }
    }

    /// Is the session still there, on the server that is reached now?
    async fn is_served(&self, session: &Session) -> bool {
        let Ok(mut conn) = self.hosts.connect(self.timeouts, &self.alarm).await else {
            return false;
        };
        let served = sqlx::query_scalar(IS_SERVED)
            .bind(session.pid)
            .bind(&session.started)
            .fetch_one(&mut conn)
            .await;
        conn.close().await;
        served.unwrap_or(false)
    }
}

/// What tells the session of a probe from every other one.
#[derive(Debug)]
struct Session {
    pid: i32,
    started: String,
}

impl Session {
    async fn begin(conn: &mut Conn) -> Result<Self, StoreError> {
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
            return Err(StoreError::unavailable(
                "the database takes no writes: it is a standby, or was made read-only",
            ));
        }
        Ok(session)
    }
}
