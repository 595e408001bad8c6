//! Whether the database takes writes: asked by a probe of its own.
//!
//! The probe is a connection beside the pools that commits a transaction: a full disk, a file system that became read-only
//! and a file that is gone all still answer reads. There is one probe at a time, and its result counts for a while.
//! The write lock belongs to whoever works, so the probe does not insist on it: a commit of somebody else while the probe
//! waits shows as well that the database takes writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::StoreError;
use sqlx::sqlite::SqliteSynchronous;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::{Instant, timeout};

use crate::{errors, open};

/// What a probe has found counts so long.
const VERDICT_AGE: Duration = Duration::from_millis(500);
/// A caller who asks waits so long for a probe.
const READY_TIMEOUT: Duration = Duration::from_millis(1400);
/// The probe waits so long for the write lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Changes a row forth and back. SQLite writes the page all the same, so the commit has something to make durable.
const WRITE: &str = "BEGIN IMMEDIATE; UPDATE clock SET at = at + 1 WHERE id = 1; \
     UPDATE clock SET at = at - 1 WHERE id = 1; COMMIT";

/// What the last probe has found.
#[derive(Debug, Clone)]
struct Verdict {
    at: Instant,
    /// `Err`: why the database takes no writes.
    found: Result<(), Arc<str>>,
}

fn is_recent(verdict: &Option<Verdict>) -> bool {
    let recent = |verdict: &Verdict| verdict.at.elapsed() < VERDICT_AGE;
    verdict.as_ref().is_some_and(recent)
}

/// Probes the database in a file.
#[derive(Debug)]
pub(crate) struct Health {
    file: PathBuf,
    verdict: watch::Sender<Option<Verdict>>,
    /// Held by the probe that runs.
    turn: Arc<Mutex<()>>,
}

impl Health {
    pub(crate) fn new(file: &Path) -> Arc<Self> {
        Arc::new(Self {
            file: file.to_owned(),
            verdict: watch::Sender::new(None),
            turn: Arc::default(),
        })
    }

    /// Does the database take writes, by a probe that is hardly older than the question?
    pub(crate) async fn ready(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut verdict = self.verdict.subscribe();
        let is_known = is_recent(&self.verdict.borrow());
        if !is_known && let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() {
            // A caller who leaves does not end the probe.
            tokio::spawn(Arc::clone(self).run(turn));
        }
        let recent = timeout(READY_TIMEOUT, verdict.wait_for(is_recent)).await;
        let found = match &recent {
            Ok(Ok(verdict)) => verdict.as_ref().map(|verdict| verdict.found.clone()),
            Ok(Err(_)) | Err(_) => None,
        };
        match found {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => Err(StoreError::unavailable(why.to_string())),
            None => Err(StoreError::unavailable(format!(
                "{} has not answered the probe in time: check its disk",
                self.file.display()
            ))),
        }
    }

    /// Waits for the probe that runs, as long as a caller would.
    pub(crate) async fn rest(&self) {
        drop(timeout(READY_TIMEOUT, self.turn.lock()).await);
    }

    async fn run(self: Arc<Self>, turn: OwnedMutexGuard<()>) {
        let found = self.probe().await.map_err(|fault| match fault {
            StoreError::Unavailable(why) | StoreError::Unexpected(why) => kernel::causes(&*why),
            fault => kernel::causes(&fault),
        });
        if let Err(why) = &found {
            let was_good = |verdict: &Verdict| verdict.found.is_ok();
            if self.verdict.borrow().as_ref().is_none_or(was_good) {
                tracing::warn!(error.chain = why, "The database takes no writes");
            }
        }
        self.verdict.send_replace(Some(Verdict {
            at: Instant::now(),
            found: found.map_err(Arc::from),
        }));
        drop(turn);
    }

    /// Opens a connection, reads the schema's version, and commits a write that leaves nothing.
    async fn probe(&self) -> Result<(), StoreError> {
        let options = open::connect(&self.file)
            .busy_timeout(LOCK_TIMEOUT)
            .synchronous(SqliteSynchronous::Full)
            // The writer brings the log back; a probe that did would take long.
            .pragma("wal_autocheckpoint", "0");
        let connected = options.connect().await;
        let mut conn = connected.map_err(|fault| errors::opening(&self.file, fault))?;
        let written = self.write(&mut conn).await;
        // It has committed or not: how it is closed says nothing of that.
        drop(conn.close().await);
        written
    }

    async fn write(&self, conn: &mut SqliteConnection) -> Result<(), StoreError> {
        open::check_schema(conn).await?;
        let before = self.commits(conn).await?;
        match sqlx::raw_sql(WRITE).execute(&mut *conn).await {
            Ok(_) => Ok(()),
            Err(fault) if !errors::is_busy(&fault) => Err(errors::opening(&self.file, fault)),
            Err(_) if self.commits(conn).await? != before => Ok(()),
            Err(_) => Err(StoreError::unavailable(format!(
                "the write lock of {} has been held for {} ms without a commit: is another program working on it?",
                self.file.display(),
                LOCK_TIMEOUT.as_millis()
            ))),
        }
    }

    /// A number that other connections' commits change.
    async fn commits(&self, conn: &mut SqliteConnection) -> Result<i64, StoreError> {
        let read = sqlx::query_scalar("PRAGMA data_version").fetch_one(conn);
        read.await
            .map_err(|fault| errors::opening(&self.file, fault))
    }
}
