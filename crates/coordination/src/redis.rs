//! The Redis that the replicas share, and the fallback without it.
//!
//! Redis decides nothing that matters. Each call has a short timeout. The first call that times out marks the connection as
//! down. After that every caller immediately receives "unavailable" and decides alone. A background task reconnects.

mod in_flight;
mod throttle;
mod url;

use std::sync::Arc;
use std::time::Duration;

use instruments::Stopwatch;
use instruments::shared::{self as measured, Call};
use kernel::{Entropy, Mode, causes};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult, Script};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

pub use in_flight::RedisInFlight;
pub use throttle::RedisThrottle;
pub use url::{RedisUrl, UnreadUrl};

/// Interval between probes of an idle connection.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum backoff before the first attempt to reconnect. It doubles with each failed attempt.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// Maximum backoff before any attempt.
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);
/// After a connection has lasted this long, the backoff restarts at its first value.
const STEADY: Duration = Duration::from_secs(10);

/// Timeouts of calls to Redis.
#[derive(Debug, Clone, Copy)]
pub struct RedisTimeouts {
    /// Timeout of one call of a request.
    pub response: Duration,
    /// Timeout of a new connection, including its first calls.
    pub connection: Duration,
    /// Lifetime of a claim on a key in flight that is not released, for example because its replica was killed. It equals the
    /// database's statement timeout: the database detects the twin of a request that takes longer.
    pub claim: Duration,
}

impl Default for RedisTimeouts {
    fn default() -> Self {
        Self {
            response: Duration::from_millis(50),
            connection: Duration::from_secs(1),
            claim: Duration::from_secs(2),
        }
    }
}

/// One connection to the shared Redis, used by concurrent requests.
pub struct RedisConnection {
    client: Client,
    timeouts: RedisTimeouts,
    entropy: Arc<dyn Entropy>,
    prefix: String,
    windows: Script,
    release: Script,
    line: watch::Sender<Line>,
}

/// The state of the connection.
#[derive(Clone)]
enum Line {
    /// No attempt was made yet.
    Untried,
    Up(Arc<MultiplexedConnection>),
    Down,
}

/// Why a call has no response.
#[derive(Debug)]
enum NoResponse {
    /// Redis is known to be unavailable, so the call was not sent.
    NotSent,
    /// The call was sent and may have been executed.
    Lost,
}

/// Why a connection was closed or not established.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error("no response within {0:?}")]
    Late(Duration),
    #[error("no connection within {0:?}")]
    Unconnected(Duration),
    #[error("Redis failed")]
    Redis(#[from] RedisError),
}

impl RedisConnection {
    /// Returns after the first attempt to connect. [`RedisConnection::keep`] makes all further attempts.
    pub async fn open(
        url: &RedisUrl,
        mode: Mode,
        entropy: Arc<dyn Entropy>,
        timeouts: RedisTimeouts,
    ) -> Arc<Self> {
        let shared = Self::of(url.client(), mode, entropy, timeouts, throttle::SERVER_TIME);
        shared.connect().await;
        Arc::new(shared)
    }

    /// `now` is the part of the script that reads the time.
    fn of(
        client: Client,
        mode: Mode,
        entropy: Arc<dyn Entropy>,
        timeouts: RedisTimeouts,
        now: &str,
    ) -> Self {
        // The driver uses the process's cryptography provider. An installed provider is kept.
        drop(rustls::crypto::ring::default_provider().install_default());
        Self {
            client,
            timeouts,
            entropy,
            prefix: format!("penstock:{mode}"),
            windows: throttle::script(now),
            release: in_flight::script(),
            line: watch::Sender::new(Line::Untried),
        }
    }

    /// Keeps the connection until `stop`: probes it at intervals, and reconnects after it went down.
    pub async fn keep(&self, stop: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = stop => {}
            () = self.watch() => {}
        }
    }

    /// Whether Redis is available, as far as is known.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(&*self.line.borrow(), Line::Up(_))
    }

    async fn watch(&self) {
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            self.while_up().await;
            if begun.elapsed() >= STEADY {
                failures = 0;
            }
            sleep(self.backoff(failures)).await;
            failures = failures.saturating_add(1);
            self.connect().await;
        }
    }

    /// Returns after the connection went down.
    async fn while_up(&self) {
        let mut line = self.line.subscribe();
        while self.is_up() {
            let changed = timeout(PROBE_INTERVAL, line.changed()).await;
            if changed.is_err() {
                let probed = self.ask(Call::Probe, |connection| self.probe(connection));
                drop(probed.await);
            }
        }
    }

    /// A random backoff, so that replicas that lost the same Redis do not reconnect at the same time.
    fn backoff(&self, failures: u32) -> Duration {
        let most = FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(failures));
        let mut random = [0; 2];
        self.entropy.fill(&mut random);
        most.min(LONGEST_BACKOFF) * u32::from(u16::from_be_bytes(random)) / (1 << 16)
    }

    async fn connect(&self) {
        let most = self.timeouts.connection;
        let stopwatch = Stopwatch::start();
        let dialled = timeout(most, self.dial()).await;
        measured::asked(Call::Probe, matches!(dialled, Ok(Ok(_))), stopwatch.read());
        match dialled.unwrap_or(Err(ConnectionError::Unconnected(most))) {
            Ok(connection) => self.rise(connection),
            Err(error) => self.fall(None, &error),
        }
    }

    /// Opens a connection and tries the calls of a request on it. They fail on a Redis that is read-only, is full or may not run
    /// scripts.
    async fn dial(&self) -> Result<MultiplexedConnection, ConnectionError> {
        let unbounded = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let mut connection = self
            .client
            .get_multiplexed_async_connection_with_config(&unbounded)
            .await?;
        self.windows.load_async(&mut connection).await?;
        self.release.load_async(&mut connection).await?;
        let most = self.timeouts.response;
        let probed = timeout(most, self.probe(connection.clone())).await;
        probed.map_err(|_| ConnectionError::Late(most))??;
        Ok(connection)
    }

    /// Makes the same call as a request.
    async fn probe(&self, mut connection: MultiplexedConnection) -> RedisResult<()> {
        let bucket = format!("{}:probe", self.prefix);
        let mut question = self.windows.key(bucket);
        question.arg(1).arg("probe").arg(u32::MAX).arg(1_000);
        question
            .invoke_async::<Vec<(u32, u64)>>(&mut connection)
            .await?;
        Ok(())
    }

    fn rise(&self, connection: MultiplexedConnection) {
        self.line.send_replace(Line::Up(Arc::new(connection)));
        measured::up(true);
        tracing::info!("Limits are shared: Redis is available");
    }

    /// Marks the connection `from` as down. Does nothing if `from` was already replaced.
    fn fall(&self, from: Option<&Arc<MultiplexedConnection>>, error: &ConnectionError) {
        let fell = self.line.send_if_modified(|line| {
            let falls = match line {
                Line::Untried => true,
                Line::Up(standing) => from.is_some_and(|from| Arc::ptr_eq(from, standing)),
                Line::Down => false,
            };
            if falls {
                *line = Line::Down;
            }
            falls
        });
        if fell {
            measured::up(false);
            tracing::warn!(
                error.chain = causes(error),
                "Limits are counted in this process: Redis is unavailable"
            );
        }
    }

    /// Calls Redis within its timeout.
    async fn ask<T, F>(
        &self,
        call: Call,
        question: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, NoResponse>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let line = self.line.borrow().clone();
        let Line::Up(connection) = line else {
            measured::asked(call, false, None);
            return Err(NoResponse::NotSent);
        };
        let most = self.timeouts.response;
        let stopwatch = Stopwatch::start();
        let responded = timeout(most, question(MultiplexedConnection::clone(&connection))).await;
        measured::asked(call, matches!(responded, Ok(Ok(_))), stopwatch.read());
        let error = match responded {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => ConnectionError::Redis(error),
            Err(_) => ConnectionError::Late(most),
        };
        self.fall(Some(&connection), &error);
        Err(NoResponse::Lost)
    }

    /// The key of a partner's or a client's value. Redis receives only a digest.
    fn name(&self, kind: &str, parts: &[&str]) -> String {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let digest = hex::encode(digest.finalize());
        format!("{}:{kind}:{digest}", self.prefix)
    }
}

#[cfg(test)]
mod tests;
