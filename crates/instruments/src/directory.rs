//! Metrics of the cache of access rights.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::record;
use crate::registry::{Counters, MetricRegistry, saturated};

#[derive(Debug)]
pub(crate) struct Metrics {
    lookups: Counters<2>,
    entries: Gauge,
    invalidations: Counter,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        let lookups = book.counters(
            "penstock_directory_lookups_total",
            "Lookups of keys, pools and allowed origins; a `hit` needed no database query",
            ["of", "answer"],
        );
        lookups.begin([
            ["key", "hit"],
            ["key", "miss"],
            ["pools", "hit"],
            ["pools", "miss"],
            ["origins", "hit"],
            ["origins", "miss"],
        ]);
        Self {
            lookups,
            entries: book.gauge(
                "penstock_directory_entries",
                "Keys in the cache, including expired ones, sampled",
            ),
            invalidations: book.counter(
                "penstock_directory_invalidations_total",
                "How often the cache was cleared because the configuration had changed",
            ),
        }
    }
}

/// Counts a look-up of a key, the pools or the origins.
pub fn looked_up(of: &'static str, hit: bool) {
    record(|metrics| {
        let answer = if hit { "hit" } else { "miss" };
        metrics.directory.lookups.inc([of, answer]);
    });
}

/// Sets the number of cached keys.
pub fn holds(entries: u64) {
    record(|metrics| metrics.directory.entries.set(saturated(entries)));
}

/// Counts an invalidation of the cache.
pub fn invalidated() {
    record(|metrics| metrics.directory.invalidations.inc());
}
