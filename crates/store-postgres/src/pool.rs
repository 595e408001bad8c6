//! A bounded pool of connections, which tests a connection that has been idle before lending it.
//!
//! The driver's pool pings each returned connection without a deadline. This pool does not: it closes a connection that did not
//! finish its exchange.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use instruments::store::waiting;
use kernel::{StoreError, StoreResult};
use sqlx::{Executor as _, Row as _, SqlStr};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::conn::Conn;
use crate::errors;
use crate::health::Alarm;
use crate::hosts::{Hosts, Timeouts};
use crate::open::Options;

/// A connection that was idle for longer is tested before it is lent.
const TEST_AFTER: Duration = Duration::from_secs(1);
/// How long the test of an idle connection may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(1);
/// A connection that was idle for longer is closed when another connection is returned.
const MAX_IDLE: Duration = Duration::from_secs(600);
/// A connection that is older is closed instead of lent.
const MAX_AGE: Duration = Duration::from_secs(1800);

/// A pool. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The pool's name in metrics.
    name: &'static str,
    hosts: Hosts,
    timeouts: Timeouts,
    /// How long a caller waits for a free connection.
    wait: Duration,
    alarm: Arc<Alarm>,
    size: u32,
    permits: Arc<Semaphore>,
    /// A stack: the connection that was used last is lent first, because it has the current statements prepared.
    idle: Mutex<Vec<Idle>>,
    /// Incremented when the connections opened so far are no longer trusted.
    generation: AtomicU64,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Idle {
    conn: Conn,
    made: Instant,
    since: Instant,
    generation: u64,
}

impl Pool {
    pub(crate) fn new(
        name: &'static str,
        size: u32,
        hosts: &Hosts,
        options: &Options,
        alarm: &Arc<Alarm>,
    ) -> Self {
        let permits = usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Shared {
            name,
            hosts: hosts.clone(),
            timeouts: options.timeouts,
            wait: options.waits.connection,
            alarm: Arc::clone(alarm),
            size,
            permits: Arc::new(Semaphore::new(permits)),
            idle: Mutex::default(),
            generation: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }))
    }

    /// A connection, outside any transaction.
    pub(crate) async fn acquire(&self) -> StoreResult<Pooled> {
        waiting(self.0.name, self.take()).await
    }

    async fn take(&self) -> StoreResult<Pooled> {
        let shared = &self.0;
        let permit = timeout(shared.wait, Arc::clone(&shared.permits).acquire_owned());
        let permit = permit
            .await
            .map_err(|_| StoreError::busy("every connection to the database is in use"))?
            .map_err(|_| StoreError::unavailable("the database is closed"))?;
        while let Some(mut idle) = shared.pop() {
            if idle.since.elapsed() < TEST_AFTER || is_fresh(&mut idle.conn).await {
                return Ok(shared.lend(permit, idle.conn, idle.made, idle.generation));
            }
            // The connections that were idle for longer are probably broken too.
            self.distrust();
        }
        let generation = shared.generation.load(Ordering::Acquire);
        let conn = shared.hosts.connect(shared.timeouts, &shared.alarm).await?;
        Ok(shared.lend(permit, conn, Instant::now(), generation))
    }

    pub(crate) fn size(&self) -> u32 {
        self.0.size
    }

    /// Closes the idle connections, and those in use when they are returned.
    pub(crate) fn distrust(&self) {
        self.0.generation.fetch_add(1, Ordering::AcqRel);
        self.0.idle().clear();
    }

    /// The pool's name, and the numbers of connections in use and idle.
    pub(crate) fn usage(&self) -> (&'static str, u64, u64) {
        let shared = &self.0;
        let free = u64::try_from(shared.permits.available_permits()).unwrap_or(u64::MAX);
        let idle = u64::try_from(shared.idle().len()).unwrap_or(u64::MAX);
        (
            shared.name,
            u64::from(shared.size).saturating_sub(free),
            idle,
        )
    }

    /// Closes every connection, waiting for those in use.
    pub(crate) async fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        // Each borrower returns its connection within its deadlines.
        let all = self.0.permits.acquire_many(self.0.size).await;
        self.0.permits.close();
        drop(all);
        let idle = mem::take(&mut *self.0.idle());
        for idle in idle {
            idle.conn.close().await;
        }
    }
}

impl Shared {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_trusted(&self, generation: u64) -> bool {
        generation == self.generation.load(Ordering::Acquire)
    }

    /// The connection used last, unless it is too old, or was returned while the pool stopped trusting it.
    fn pop(&self) -> Option<Idle> {
        loop {
            let idle = self.idle().pop()?;
            if idle.made.elapsed() < MAX_AGE && self.is_trusted(idle.generation) {
                return Some(idle);
            }
            close(idle.conn);
        }
    }

    fn lend(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        conn: Conn,
        made: Instant,
        generation: u64,
    ) -> Pooled {
        Pooled {
            conn,
            made,
            generation,
            pool: Arc::clone(self),
            permit: Some(permit),
        }
    }

    fn put_back(&self, conn: Conn, made: Instant, generation: u64) {
        if !conn.is_usable() || !self.is_trusted(generation) || self.closed.load(Ordering::Acquire)
        {
            return close(conn);
        }
        let since = Instant::now();
        let mut idle = self.idle();
        idle.push(Idle {
            conn,
            made,
            since,
            generation,
        });
        let expired = idle
            .iter()
            .take_while(|idle| since.duration_since(idle.since) >= MAX_IDLE)
            .count();
        let expired: Vec<Idle> = idle.drain(..expired).collect();
        drop(idle);
        expired.into_iter().for_each(|idle| close(idle.conn));
    }
}

/// Closes a connection in the background. Without a runtime the socket is closed at once.
fn close(conn: Conn) {
    if conn.is_usable()
        && let Ok(runtime) = Handle::try_current()
    {
        runtime.spawn(conn.close());
    }
}

/// Does the connection respond, and is it outside a transaction? Inside a transaction the two instants would differ.
async fn is_fresh(conn: &mut Conn) -> bool {
    let response = conn.fetch_one(sqlx::raw_sql("SELECT now() = statement_timestamp()"));
    match timeout(TEST_TIMEOUT, response).await {
        Ok(Ok(row)) => row.try_get(0).unwrap_or(false),
        Ok(Err(_)) | Err(_) => false,
    }
}

/// A connection of a pool, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Pooled {
    conn: Conn,
    made: Instant,
    generation: u64,
    pool: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Pooled {
    /// Moves the connection and its permit out. The value left behind takes no statement.
    fn take(&mut self) -> Self {
        Self {
            conn: self.conn.take(),
            made: self.made,
            generation: self.generation,
            pool: Arc::clone(&self.pool),
            permit: self.permit.take(),
        }
    }
}

impl Deref for Pooled {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let conn = self.conn.take();
        self.pool.put_back(conn, self.made, self.generation);
    }
}

/// A transaction. If it is dropped before its commit, it rolls back in the background.
#[derive(Debug)]
pub(crate) struct Tx {
    conn: Pooled,
    open: bool,
}

impl Tx {
    /// Begins a transaction with these statements, in one exchange. If the future is dropped before the server responds, the
    /// connection is closed, so that no other caller gets the open transaction.
    pub(crate) async fn begin(pool: &Pool, opening: SqlStr) -> StoreResult<Self> {
        let mut conn = pool.acquire().await?;
        let begun = conn.execute(sqlx::raw_sql(opening)).await;
        begun.map_err(errors::statement)?;
        Ok(Self { conn, open: true })
    }

    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.open = false;
        self.conn.run("COMMIT").await
    }

    /// Rolls back and returns the connection to the pool. The transaction then takes no statement.
    pub(crate) async fn release(&mut self) -> Result<(), sqlx::Error> {
        self.open = false;
        let mut conn = self.conn.take();
        conn.run("ROLLBACK").await
    }

    pub(crate) async fn rollback(mut self) -> Result<(), sqlx::Error> {
        self.open = false;
        self.conn.run("ROLLBACK").await
    }
}

impl Deref for Tx {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if !self.open || !self.conn.is_usable() {
            return;
        }
        let mut conn = self.conn.take();
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    if conn.run("ROLLBACK").await.is_err() {
                        conn.spoil();
                    }
                });
            }
            Err(_) => conn.spoil(),
        }
    }
}

#[cfg(test)]
mod tests;
