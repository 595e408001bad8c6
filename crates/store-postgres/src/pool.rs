//! Connections that are shared: a bounded number, each tested before it is used after a rest.
//!
//! The pool of the driver asks a connection whether it still answers, without a deadline, each time it is
//! returned. This one asks nothing then: a connection that did not finish its exchange is closed.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use instruments::store::waiting;
use kernel::StoreError;
use sqlx::{Executor as _, Row as _};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::conn::Conn;
use crate::errors;
use crate::health::Alarm;
use crate::hosts::{Hosts, Timeouts};

/// How long a caller waits until a connection is free: as long as the server lets a statement run.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection that has not been used for so long is tested before it is used.
const TEST_AFTER: Duration = Duration::from_secs(1);
/// A connection that has rested so long answers within this time, or is closed.
const TEST_TIMEOUT: Duration = Duration::from_secs(1);
/// A connection that has not been used for so long is closed when another one is returned.
const MAX_REST: Duration = Duration::from_secs(600);
/// A connection is not used for longer.
const MAX_AGE: Duration = Duration::from_secs(1800);

/// A pool. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Its name in metrics.
    name: &'static str,
    hosts: Hosts,
    timeouts: Timeouts,
    alarm: Arc<Alarm>,
    size: u32,
    permits: Arc<Semaphore>,
    /// The one used last is used first: it holds the statements that are in use.
    idle: Mutex<Vec<Idle>>,
    /// Raised when connections that rest are no longer trusted.
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
        timeouts: Timeouts,
        alarm: &Arc<Alarm>,
    ) -> Self {
        let permits = usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Shared {
            name,
            hosts: hosts.clone(),
            timeouts,
            alarm: Arc::clone(alarm),
            size,
            permits: Arc::new(Semaphore::new(permits)),
            idle: Mutex::default(),
            generation: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }))
    }

    /// A connection, outside any transaction.
    pub(crate) async fn acquire(&self) -> Result<Pooled, StoreError> {
        waiting(self.0.name, self.take()).await
    }

    async fn take(&self) -> Result<Pooled, StoreError> {
        let shared = &self.0;
        let permit = timeout(ACQUIRE_TIMEOUT, Arc::clone(&shared.permits).acquire_owned());
        let permit = permit
            .await
            .map_err(|_| StoreError::unavailable("every connection to the database is in use"))?
            .map_err(|_| StoreError::unavailable("the database is closed"))?;
        while let Some(mut idle) = shared.pop() {
            if idle.since.elapsed() < TEST_AFTER || is_fresh(&mut idle.conn).await {
                return Ok(shared.lend(permit, idle.conn, idle.made, idle.generation));
            }
            // What has happened to one has happened to those that have rested longer.
            self.distrust();
        }
        let generation = shared.generation.load(Ordering::Acquire);
        let conn = shared.hosts.connect(shared.timeouts, &shared.alarm).await?;
        Ok(shared.lend(permit, conn, Instant::now(), generation))
    }

    pub(crate) fn size(&self) -> u32 {
        self.0.size
    }

    /// Closes the connections that rest, and those in use when they are returned.
    pub(crate) fn distrust(&self) {
        self.0.generation.fetch_add(1, Ordering::AcqRel);
        self.0.idle().clear();
    }

    /// How many connections are in use, and how many rest.
    pub(crate) fn figures(&self) -> (&'static str, u64, u64) {
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
        // Each holder gives back within its deadlines.
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

    /// The connection used last, unless it is too old.
    fn pop(&self) -> Option<Idle> {
        loop {
            let idle = self.idle().pop()?;
            if idle.made.elapsed() < MAX_AGE {
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

    fn give_back(&self, conn: Conn, made: Instant, generation: u64) {
        let trusted = generation == self.generation.load(Ordering::Acquire);
        if !conn.is_usable() || !trusted || self.closed.load(Ordering::Acquire) {
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
        let rested = idle
            .iter()
            .take_while(|idle| since.duration_since(idle.since) >= MAX_REST)
            .count();
        let rested: Vec<Idle> = idle.drain(..rested).collect();
        drop(idle);
        rested.into_iter().for_each(|idle| close(idle.conn));
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

/// Does the connection answer, outside any transaction? Inside one the two instants would differ.
async fn is_fresh(conn: &mut Conn) -> bool {
    let asked = conn.fetch_one(sqlx::raw_sql("SELECT now() = statement_timestamp()"));
    match timeout(TEST_TIMEOUT, asked).await {
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
    /// Moves the connection and its place in the pool out; what stays takes no statement.
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
        self.pool.give_back(conn, self.made, self.generation);
    }
}

/// A transaction. Dropped without a commit it rolls back, in the background.
#[derive(Debug)]
pub(crate) struct Tx {
    conn: Pooled,
    open: bool,
}

impl Tx {
    /// Begins a transaction with these statements, in one exchange. Dropped while the server answers, the
    /// connection is closed, so that no other caller gets it inside the open transaction.
    pub(crate) async fn begin(pool: &Pool, opening: &'static str) -> Result<Self, StoreError> {
        let mut conn = pool.acquire().await?;
        conn.run(opening).await.map_err(errors::statement)?;
        Ok(Self { conn, open: true })
    }

    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.open = false;
        self.conn.run("COMMIT").await
    }

    /// Ends the transaction without a change and returns its connection. What stays takes no statement.
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
