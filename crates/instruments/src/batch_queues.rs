//! Metrics of batch queues: depth, batch sizes, waiting times and run times.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::registry::{Counters, Gauges, Histograms, MetricRegistry, SPANS};
use crate::{Stopwatch, metrics};

/// A batch has at most 64 commands.
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

#[derive(Debug)]
pub(crate) struct Metrics {
    depth: Gauges<1>,
    held: Gauges<1>,
    size: Histograms<1>,
    wait: Histograms<1>,
    run: Histograms<1>,
    refused: Counters<1>,
    undone: Counters<1>,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        Self {
            depth: book.gauges(
                "penstock_lane_depth",
                "Commands that wait in a batch queue",
                ["lane"],
            ),
            held: book.gauges(
                "penstock_lane_held",
                "Commands that wait in a batch queue because their partner's row is locked",
                ["lane"],
            ),
            size: book.histograms(
                "penstock_lane_batch_size",
                "Commands in one batch",
                ["lane"],
                SIZES,
            ),
            wait: book.histograms(
                "penstock_lane_wait_seconds",
                "Time from queuing a command to the start of its batch",
                ["lane"],
                SPANS,
            ),
            run: book.histograms(
                "penstock_lane_run_seconds",
                "Time to run one batch, including every rerun",
                ["lane"],
                SPANS,
            ),
            refused: book.counters(
                "penstock_lane_refusals_total",
                "Commands refused because the batch queue, or their partner's share of it, was full",
                ["lane"],
            ),
            undone: book.counters(
                "penstock_lane_undone_total",
                "Batches that were rolled back and run again in parts",
                ["lane"],
            ),
        }
    }
}

/// The metrics of one batch queue. Create it when the queue starts, after [`crate::install`].
#[derive(Debug)]
pub struct BatchQueueMetrics(Option<Recorded>);

#[derive(Debug)]
struct Recorded {
    depth: Gauge,
    held: Gauge,
    size: Histogram,
    wait: Histogram,
    run: Histogram,
    refused: Counter,
    undone: Counter,
}

impl BatchQueueMetrics {
    /// The metrics of the queue of this name.
    #[must_use]
    pub fn named(name: &'static str) -> Self {
        Self(metrics().map(|metrics| Recorded {
            depth: metrics.batch_queues.depth.of([name]),
            held: metrics.batch_queues.held.of([name]),
            size: metrics.batch_queues.size.of([name]),
            wait: metrics.batch_queues.wait.of([name]),
            run: metrics.batch_queues.run.of([name]),
            refused: metrics.batch_queues.refused.of([name]),
            undone: metrics.batch_queues.undone.of([name]),
        }))
    }

    /// Records a submitted command. The stopwatch measures its wait.
    #[must_use]
    pub fn queued(&self) -> Stopwatch {
        if let Some(queue) = &self.0 {
            queue.depth.inc();
        }
        Stopwatch::start()
    }

    /// Records that the queue refused a command that was counted as queued.
    pub fn refused(&self) {
        if let Some(queue) = &self.0 {
            queue.depth.dec();
            queue.refused.inc();
        }
    }

    /// Records a command that was refused because too many commands of its partner wait for the partner lock.
    pub fn refused_held(&self) {
        if let Some(queue) = &self.0 {
            queue.refused.inc();
        }
    }

    /// Sets the number of commands that wait because their partners' rows are locked.
    pub fn held(&self, count: usize) {
        if let Some(queue) = &self.0 {
            queue.held.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Records a batch of commands that leaves the queue.
    pub fn taken(&self, waited: impl ExactSizeIterator<Item = Stopwatch>) {
        let Some(queue) = &self.0 else {
            return;
        };
        let count = waited.len();
        queue.depth.dec_by(i64::try_from(count).unwrap_or(i64::MAX));
        queue
            .size
            .observe(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        for span in waited.filter_map(Stopwatch::read) {
            queue.wait.observe(span.as_secs_f64());
        }
    }

    /// Records how long a batch ran.
    pub fn ran(&self, since: Stopwatch) {
        if let (Some(queue), Some(span)) = (&self.0, since.read()) {
            queue.run.observe(span.as_secs_f64());
        }
    }

    /// Records a batch that was rolled back.
    pub fn undone(&self) {
        if let Some(queue) = &self.0 {
            queue.undone.inc();
        }
    }
}
