//! Lanes: how much waits, how much goes at once, how long it takes.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::registry::{Counters, Gauges, Histograms, MetricRegistry, SPANS};
use crate::{Stopwatch, metrics};

/// Batches have 64 commands at most.
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

/// What is recorded of one lane. To be made when the lane starts, after [`crate::install`].
#[derive(Debug)]
pub struct Lane(Option<Recorded>);

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

impl Lane {
    /// The lane of this name.
    #[must_use]
    pub fn named(lane: &'static str) -> Self {
        Self(metrics().map(|metrics| Recorded {
            depth: metrics.lanes.depth.of([lane]),
            held: metrics.lanes.held.of([lane]),
            size: metrics.lanes.size.of([lane]),
            wait: metrics.lanes.wait.of([lane]),
            run: metrics.lanes.run.of([lane]),
            refused: metrics.lanes.refused.of([lane]),
            undone: metrics.lanes.undone.of([lane]),
        }))
    }

    /// A command has been handed in; the watch tells later how long it waited.
    #[must_use]
    pub fn queued(&self) -> Stopwatch {
        if let Some(lane) = &self.0 {
            lane.depth.inc();
        }
        Stopwatch::start()
    }

    /// The lane did not take the command that was counted as queued.
    pub fn refused(&self) {
        if let Some(lane) = &self.0 {
            lane.depth.dec();
            lane.refused.inc();
        }
    }

    /// A command was refused because too many of its partner's wait for the partner's row.
    pub fn refused_held(&self) {
        if let Some(lane) = &self.0 {
            lane.refused.inc();
        }
    }

    /// So many commands wait because their partners' rows are locked.
    pub fn held(&self, count: usize) {
        if let Some(lane) = &self.0 {
            lane.held.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A batch of commands leaves the queue.
    pub fn taken(&self, waited: impl ExactSizeIterator<Item = Stopwatch>) {
        let Some(lane) = &self.0 else {
            return;
        };
        let count = waited.len();
        lane.depth.dec_by(i64::try_from(count).unwrap_or(i64::MAX));
        lane.size
            .observe(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        for span in waited.filter_map(Stopwatch::read) {
            lane.wait.observe(span.as_secs_f64());
        }
    }

    /// A batch has been worked off.
    pub fn ran(&self, since: Stopwatch) {
        if let (Some(lane), Some(span)) = (&self.0, since.read()) {
            lane.run.observe(span.as_secs_f64());
        }
    }

    /// A batch was undone.
    pub fn undone(&self) {
        if let Some(lane) = &self.0 {
            lane.undone.inc();
        }
    }
}
