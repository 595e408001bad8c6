//! Metrics of a store's transactions, connections, disk and clock.

use std::time::Duration;

use kernel::{StoreError, StoreResult};
use prometheus_client::metrics::gauge::Gauge;

use crate::failpoint::around_commit;
use crate::registry::{
    Counters, Gauges, Histograms, MeasuredGauge, MetricRegistry, SPANS, saturated,
};
use crate::{Stopwatch, metrics, record};

/// The outcomes of a transaction.
const OUTCOMES: [&str; 4] = ["committed", "rolled_back", "retried", "unknown"];

#[derive(Debug)]
pub(crate) struct Metrics {
    ended: Counters<2>,
    commit: Histograms<1>,
    wait: Histograms<1>,
    connections: Gauges<2>,
    size: Gauges<1>,
    free: MeasuredGauge,
    clock_ahead: Gauge,
    clock_jump: Gauge,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        Self {
            ended: book.counters(
                "penstock_transactions_total",
                "Write transactions by outcome: `retried` lost a race and is run again, `unknown` may have been committed",
                ["name", "outcome"],
            ),
            commit: book.histograms(
                "penstock_commit_duration_seconds",
                "Time to make one transaction durable",
                ["name"],
                SPANS,
            ),
            wait: book.histograms(
                "penstock_store_wait_seconds",
                "Time to wait for a connection; for the writer, time to wait for the one write lock",
                ["pool"],
                SPANS,
            ),
            connections: book.gauges(
                "penstock_store_connections",
                "Connections to the store, sampled",
                ["pool", "state"],
            ),
            size: book.gauges(
                "penstock_store_size_bytes",
                "Size of the `database` file and of its write-ahead `log`, sampled",
                ["file"],
            ),
            free: book.measured_gauge(
                "penstock_store_free_bytes",
                "Free space on the disk of an embedded database, sampled; not exported with a database on a server",
            ),
            clock_ahead: book.gauge(
                "penstock_store_clock_ahead_seconds",
                "How far the store's clock is ahead of the machine's clock, sampled; 0 unless the machine's clock was set back",
            ),
            clock_jump: book.gauge(
                "penstock_store_clock_jump_seconds",
                "How far the clock jumped ahead of the elapsed time; 0 unless writes are refused because of it",
            ),
        }
    }
}

/// The metrics of one write transaction. Dropped without a commit, it counts as rolled back.
#[derive(Debug)]
pub struct Transaction {
    name: &'static str,
    outcome: &'static str,
    /// Steps of trades. They are counted after they are durable.
    steps: Vec<(&'static str, &'static str, u64)>,
    span: tracing::Span,
}

impl Transaction {
    /// Starts a transaction.
    #[must_use]
    pub fn begin(name: &'static str) -> Self {
        if let Some(metrics) = metrics() {
            let outcomes = OUTCOMES.map(|outcome| [name, outcome]);
            metrics.store.ended.begin(outcomes);
        }
        Self {
            name,
            outcome: "rolled_back",
            steps: Vec::new(),
            span: tracing::debug_span!(
                target: crate::trace::TARGET,
                "transaction",
                transaction.name = name,
                transaction.outcome = tracing::field::Empty
            ),
        }
    }

    /// Records that a guarded write lost its race.
    pub fn lost(&mut self) {
        self.outcome = "retried";
    }

    /// Records steps of trades, which count if the transaction is committed.
    pub fn step(&mut self, from: &'static str, to: &'static str, trades: usize) {
        let trades = u64::try_from(trades).unwrap_or(u64::MAX);
        self.steps.push((from, to, trades));
    }

    /// Commits between the two points of a commit, and counts the outcome.
    ///
    /// # Errors
    /// The error of the commit.
    pub async fn commit(
        mut self,
        committing: impl Future<Output = StoreResult<()>>,
    ) -> StoreResult<()> {
        let watch = Stopwatch::start();
        let ended = around_commit(self.name, committing).await;
        self.outcome = match &ended {
            Ok(()) => "committed",
            Err(StoreError::CommitUnknown(_)) => "unknown",
            Err(StoreError::Retry) => "retried",
            Err(_) => "rolled_back",
        };
        if let (Some(metrics), Some(span)) = (metrics(), watch.read()) {
            metrics.store.commit.took([self.name], span);
            if ended.is_ok() {
                for (from, to, trades) in &self.steps {
                    metrics.trading.transitions.add([from, to], *trades);
                }
            }
        }
        ended
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.span.record("transaction.outcome", self.outcome);
        if let Some(metrics) = metrics() {
            metrics.store.ended.inc([self.name, self.outcome]);
        }
    }
}

/// Measures the wait for a connection of a pool.
pub async fn waiting<T>(pool: &'static str, connection: impl Future<Output = T>) -> T {
    let watch = Stopwatch::start();
    let connection = connection.await;
    if let (Some(metrics), Some(span)) = (metrics(), watch.read()) {
        metrics.store.wait.took([pool], span);
    }
    connection
}

/// Sets the numbers of a pool's connections.
pub fn connections(pool: &'static str, in_use: u64, idle: u64) {
    record(|metrics| {
        metrics.store.connections.set([pool, "in_use"], in_use);
        metrics.store.connections.set([pool, "idle"], idle);
    });
}

/// The disk space of a database, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// The size of the database.
    pub database: u64,
    /// The size of the write-ahead log.
    pub log: u64,
    /// The free space for a program without privileges.
    pub free: u64,
}

/// Sets the disk space.
pub fn disk(disk: Disk) {
    record(|metrics| {
        metrics.store.size.set(["database"], disk.database);
        metrics.store.size.set(["log"], disk.log);
        metrics.store.free.set(disk.free);
    });
}

/// Sets how far the store's clock is ahead of the machine's.
pub fn clock_ahead(by: Duration) {
    record(|metrics| metrics.store.clock_ahead.set(saturated(by.as_secs())));
}

/// Sets how far the clock jumped ahead of the elapsed time.
pub fn clock_jump(by: Duration) {
    record(|metrics| metrics.store.clock_jump.set(saturated(by.as_secs())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let rendered = crate::render();
        let found = rendered.lines().find(|line| line.starts_with(text));
        found
            .unwrap_or_else(|| panic!("{text} in {rendered}"))
            .to_owned()
    }

    #[tokio::test]
    async fn transaction_is_counted_by_its_outcome() {
        crate::install(&crate::Program {
            version: "0",
            mode: "test",
            started: 0,
        });
        drop(Transaction::begin("one"));
        let mut lost = Transaction::begin("one");
        lost.lost();
        drop(lost);
        let mut committed = Transaction::begin("one");
        committed.lost();
        committed.step("settled", "returned", 3);
        committed.commit(async { Ok(()) }).await.unwrap();
        let mut in_doubt = Transaction::begin("one");
        in_doubt.step("settled", "returned", 5);
        let unknown = async { Err(StoreError::CommitUnknown("gone".into())) };
        in_doubt.commit(unknown).await.unwrap_err();
        for outcome in OUTCOMES {
            let series =
                format!("penstock_transactions_total{{name=\"one\",outcome=\"{outcome}\"}}");
            assert_eq!(line(&series), format!("{series} 1"));
        }
        let returned = "penstock_trade_transitions_total{from=\"settled\",to=\"returned\"}";
        assert_eq!(line(returned), format!("{returned} 3"));
        assert!(line("penstock_commit_duration_seconds_count{name=\"one\"}").ends_with(" 2"));
    }
}
