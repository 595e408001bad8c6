//! Metrics of the log.

use prometheus_client::metrics::counter::Counter;

use crate::record;
use crate::registry::MetricRegistry;

#[derive(Debug)]
pub(crate) struct Metrics {
    dropped: Counter,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        Self {
            dropped: book.counter(
                "penstock_log_lines_dropped_total",
                "Log lines dropped because the reader of stderr was too slow, or because a write to stderr failed",
            ),
        }
    }
}

/// Counts log lines that were dropped.
pub fn dropped(lines: u64) {
    record(|metrics| metrics.log.dropped.inc_by(lines));
}
