//! The Redis that the replicas share, and what happens without it.
//!
//! Redis decides nothing that matters. Each question has a short deadline; the first that is not
//! answered takes the connection down, and whoever asks from then on is told at once that Redis is
//! away and decides by itself. A task in the background connects again.

mod in_flight;
mod throttle;
mod url;

use std::fmt;
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

/// How long a connection that nobody uses goes unquestioned.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// The most a first attempt to connect again waits; the most doubles with each that fails.
const SHORT_REST: Duration = Duration::from_millis(100);
/// The most any attempt waits.
const LONG_REST: Duration = Duration::from_secs(2);
/// A connection that has stood this long is a good one: the waits begin anew.
const STEADY: Duration = Duration::from_secs(10);

/// How long Redis is waited for.
#[derive(Debug, Clone, Copy)]
pub struct RedisTimeouts {
    /// For the answer to one question of a request.
    pub answer: Duration,
    /// For a connection, with everything a new one is asked.
    pub connection: Duration,
    /// For a claim of a key in flight that nobody frees, as that of a replica that was killed. As
    /// long as the database waits for a statement: the twin of a request that takes longer is found
    /// there.
    pub claim: Duration,
}

impl Default for RedisTimeouts {
    fn default() -> Self {
        Self {
            answer: Duration::from_millis(50),
            connection: Duration::from_secs(1),
            claim: Duration::from_secs(2),
        }
    }
}

/// One connection to the Redis that replicas share, used by many requests at once.
pub struct RedisConnection {
    client: Client,
    patience: RedisTimeouts,
    entropy: Arc<dyn Entropy>,
    prefix: String,
    windows: Script,
    release: Script,
    line: watch::Sender<Line>,
}

/// The connection, as everybody sees it.
#[derive(Clone)]
enum Line {
    /// Nothing has been tried yet.
    Untried,
    Up(Arc<MultiplexedConnection>),
    Away,
}

/// Why there is no answer.
#[derive(Debug)]
enum Unanswered {
    /// Redis is known to be away: it was not asked.
    Away,
    /// It was asked, and may have done what it was asked for.
    Lost,
}

/// What took a connection down, or kept it from standing.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("no connection within {0:?}")]
    Unconnected(Duration),
    #[error("Redis failed")]
    Redis(#[from] RedisError),
}

impl RedisConnection {
    /// Connects, and returns when that has succeeded or failed once. [`RedisConnection::keep`] sees to the
    /// rest.
    pub async fn open(
        url: &RedisUrl,
        mode: Mode,
        entropy: Arc<dyn Entropy>,
        patience: RedisTimeouts,
    ) -> Arc<Self> {
        let shared = Self::of(url.client(), mode, entropy, patience, throttle::SERVER_TIME);
        shared.connect().await;
        Arc::new(shared)
    }

    /// `now` is the text that tells the windows' script the time.
    fn of(
        client: Client,
        mode: Mode,
        entropy: Arc<dyn Entropy>,
        patience: RedisTimeouts,
        now: &str,
    ) -> Self {
        // The driver takes the process's provider of cryptography. A process that has one keeps it.
        drop(rustls::crypto::ring::default_provider().install_default());
        Self {
            client,
            patience,
            entropy,
            prefix: format!("penstock:{mode}"),
            windows: throttle::script(now),
            release: in_flight::script(),
            line: watch::Sender::new(Line::Untried),
        }
    }

    /// Keeps the connection until `stop`: asks now and then whether it still answers, and connects
    /// again when it has fallen.
    pub async fn keep(&self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.watch() => {}
        }
    }

    /// Does Redis answer, as far as is known?
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
            sleep(self.rest(failures)).await;
            failures = failures.saturating_add(1);
            self.connect().await;
        }
    }

    /// Returns when the connection has fallen.
    async fn while_up(&self) {
        let mut line = self.line.subscribe();
        while self.is_up() {
            let changed = timeout(PROBE_EVERY, line.changed()).await;
            if changed.is_err() {
                let probed = self.ask(Call::Probe, |connection| self.probe(connection));
                drop(probed.await);
            }
        }
    }

    /// A random span, so that replicas which lost the same Redis do not return to it at once.
    fn rest(&self, failures: u32) -> Duration {
        let most = SHORT_REST.saturating_mul(2_u32.saturating_pow(failures));
        let mut random = [0; 2];
        self.entropy.fill(&mut random);
        most.min(LONG_REST) * u32::from(u16::from_be_bytes(random)) / (1 << 16)
    }

    async fn connect(&self) {
        let most = self.patience.connection;
        let stopwatch = Stopwatch::start();
        let dialled = timeout(most, self.dial()).await;
        measured::asked(Call::Probe, matches!(dialled, Ok(Ok(_))), stopwatch.read());
        match dialled.unwrap_or(Err(ConnectionError::Unconnected(most))) {
            Ok(connection) => self.rise(connection),
            Err(fault) => self.fall(None, &fault),
        }
    }

    /// A connection that has done what requests will ask of it: one that can only read, has no
    /// room or may not run scripts is of no use.
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
        let most = self.patience.answer;
        let probed = timeout(most, self.probe(connection.clone())).await;
        probed.map_err(|_| ConnectionError::Late(most))??;
        Ok(connection)
    }

    /// Asks what a request would ask.
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
        tracing::info!("Limits are shared: Redis answers");
    }

    /// `from` is the connection that failed; one that has been replaced already takes nothing down.
    fn fall(&self, from: Option<&Arc<MultiplexedConnection>>, fault: &ConnectionError) {
        let fell = self.line.send_if_modified(|line| {
            let falls = match line {
                Line::Untried => true,
                Line::Up(standing) => from.is_some_and(|from| Arc::ptr_eq(from, standing)),
                Line::Away => false,
            };
            if falls {
                *line = Line::Away;
            }
            falls
        });
        if fell {
            measured::up(false);
            tracing::warn!(
                error.chain = causes(fault),
                "Limits are counted in this process: Redis does not answer"
            );
        }
    }

    /// Asks Redis, within its patience.
    async fn ask<T, F>(
        &self,
        call: Call,
        question: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, Unanswered>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let line = self.line.borrow().clone();
        let Line::Up(connection) = line else {
            measured::asked(call, false, None);
            return Err(Unanswered::Away);
        };
        let most = self.patience.answer;
        let stopwatch = Stopwatch::start();
        let answered = timeout(most, question(MultiplexedConnection::clone(&connection))).await;
        measured::asked(call, matches!(answered, Ok(Ok(_))), stopwatch.read());
        let fault = match answered {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(fault)) => ConnectionError::Redis(fault),
            Err(_) => ConnectionError::Late(most),
        };
        self.fall(Some(&connection), &fault);
        Err(Unanswered::Lost)
    }

    /// The key of something that is a partner's or a client's: Redis is shown its digest alone.
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

impl fmt::Debug for RedisConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

#[cfg(test)]
mod tests;
