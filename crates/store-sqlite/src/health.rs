//! Probes whether the database takes writes.
//!
//! The probe opens its own connection and commits a transaction, because reads succeed even if the disk is full, the file
//! system is read-only or the file is missing. One probe runs at a time, and its result counts for a while. If another
//! connection holds the write lock, a commit of that connection while the probe waits also shows that the database takes writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::{StoreError, StoreResult};
use sqlx::sqlite::SqliteSynchronous;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use store_sql::probe::{LastProbe, READY_TIMEOUT};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use crate::{errors, open};

/// How long the probe waits for the write lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Changes a row and changes it back. SQLite still writes the page, so the commit has something to make durable.
const WRITE: &str = "BEGIN IMMEDIATE; UPDATE clock SET at = at + 1 WHERE id = 1; \
     UPDATE clock SET at = at - 1 WHERE id = 1; COMMIT";

/// Probes the database file.
#[derive(Debug)]
pub(crate) struct Health {
    file: PathBuf,
    last: LastProbe,
    /// Locked by the running probe.
    running: Arc<Mutex<()>>,
}

impl Health {
    pub(crate) fn new(file: &Path) -> Arc<Self> {
        Arc::new(Self {
            file: file.to_owned(),
            last: LastProbe::none(),
            running: Arc::default(),
        })
    }

    /// Returns the result of a recent probe; starts a probe if the last result is too old.
    pub(crate) async fn ready(self: &Arc<Self>) -> StoreResult<()> {
        if !self.last.is_recent()
            && let Ok(running) = Arc::clone(&self.running).try_lock_owned()
        {
            // In a task of its own, so that the probe goes on if the caller is dropped.
            tokio::spawn(Arc::clone(self).run(running));
        }
        let file = self.file.display();
        let late = || format!("{file} did not respond to the probe in time: check its disk");
        self.last.ready(late).await
    }

    /// Waits for the running probe to end, at most [`READY_TIMEOUT`].
    pub(crate) async fn finish(&self) {
        drop(timeout(READY_TIMEOUT, self.running.lock()).await);
    }

    async fn run(self: Arc<Self>, running: OwnedMutexGuard<()>) {
        let had_failed = self.last.has_failed();
        let refused = self.last.publish(self.probe().await);
        if let Some(why) = refused.filter(|_| !had_failed) {
            tracing::warn!(error.chain = why, "The database takes no writes");
        }
        drop(running);
    }

    /// Opens a connection, checks the schema's version, and commits a write that leaves every row unchanged.
    async fn probe(&self) -> StoreResult<()> {
        let options = open::connect(&self.file)
            .busy_timeout(LOCK_TIMEOUT)
            .synchronous(SqliteSynchronous::Full)
            // The writer checkpoints the log; a checkpoint would make the probe slow.
            .pragma("wal_autocheckpoint", "0");
        let connected = options.connect().await;
        let mut conn = connected.map_err(|fault| errors::opening(&self.file, fault))?;
        let written = self.write(&mut conn).await;
        // The result is known already, whatever closing the connection returns.
        drop(conn.close().await);
        written
    }

    async fn write(&self, conn: &mut SqliteConnection) -> StoreResult<()> {
        open::check_schema(conn).await?;
        let before = self.commits(conn).await?;
        match sqlx::raw_sql(WRITE).execute(&mut *conn).await {
            Ok(_) => Ok(()),
            Err(fault) if !errors::is_busy(&fault) => Err(errors::opening(&self.file, fault)),
            Err(_) if self.commits(conn).await? != before => Ok(()),
            Err(_) => Err(StoreError::unavailable(format!(
                "the write lock of {} has been held for {} ms without a commit: check which program holds it",
                self.file.display(),
                LOCK_TIMEOUT.as_millis()
            ))),
        }
    }

    /// A number that changes with each commit of another connection.
    async fn commits(&self, conn: &mut SqliteConnection) -> StoreResult<i64> {
        let read = sqlx::query_scalar("PRAGMA data_version").fetch_one(conn);
        read.await
            .map_err(|fault| errors::opening(&self.file, fault))
    }
}
