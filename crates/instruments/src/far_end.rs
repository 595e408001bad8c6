//! Calls to what is outside: the engine and the sources of rates.

use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;

use crate::book::{Book, Counters, Histograms, SPANS};
use crate::metrics;

#[derive(Debug)]
pub(crate) struct Metrics {
    engine: Counters<2>,
    engine_duration: Histograms<1>,
    rates: Counters<1>,
    rates_duration: Histogram,
}

impl Metrics {
    pub(crate) fn new(book: &mut Book) -> Self {
        let engine = book.counters(
            "penstock_engine_calls_total",
            "Calls to the liquidity engine; the answer `none` means that it did not answer in time",
            ["operation", "answer"],
        );
        engine.begin(["depth", "hold", "confirm", "report"].map(|operation| [operation, "none"]));
        let rates = book.counters(
            "penstock_rate_calls_total",
            "Questions to the source of rates; the answer `none` means that no rate is young enough",
            ["answer"],
        );
        rates.begin([["rate"], ["none"]]);
        Self {
            engine,
            engine_duration: book.histograms(
                "penstock_engine_call_duration_seconds",
                "One call to the liquidity engine",
                ["operation"],
                SPANS,
            ),
            rates,
            rates_duration: book.histogram(
                "penstock_rate_call_duration_seconds",
                "One question to the source of rates",
                SPANS,
            ),
        }
    }
}

/// The engine was called.
pub fn engine(operation: &'static str, answer: &'static str, took: Option<Duration>) {
    if let Some(metrics) = metrics() {
        metrics.far_end.engine.inc([operation, answer]);
        if let Some(took) = took {
            metrics.far_end.engine_duration.took([operation], took);
        }
    }
}

/// The source of rates was asked.
pub fn rates(answer: &'static str, took: Option<Duration>) {
    if let Some(metrics) = metrics() {
        metrics.far_end.rates.inc([answer]);
        if let Some(took) = took {
            metrics.far_end.rates_duration.observe(took.as_secs_f64());
        }
    }
}
