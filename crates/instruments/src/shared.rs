//! Metrics of the Redis that replicas share.

use std::time::Duration;

use crate::record;
use crate::registry::{Counters, Gauges, Histograms, MetricRegistry, SPANS};

#[derive(Debug)]
pub(crate) struct Metrics {
    up: Gauges<0>,
    calls: Counters<2>,
    duration: Histograms<1>,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        let up = book.gauges(
            "penstock_redis_up",
            "1 while the replicas share their limits, 0 while this process counts alone; absent if no Redis is configured",
            [],
        );
        let calls = book.counters(
            "penstock_redis_calls_total",
            "Requests to Redis; `answer` is `none` if Redis was unavailable or late, so that this process decided alone",
            ["call", "answer"],
        );
        let series = Call::ALL.map(Call::as_str);
        let series = series.map(|call| [[call, "some"], [call, "none"]]);
        calls.begin(series.into_iter().flatten());
        Self {
            up,
            calls,
            duration: book.histograms(
                "penstock_redis_call_duration_seconds",
                "Duration of one request to Redis, with or without a response",
                ["call"],
                SPANS,
            ),
        }
    }
}

/// A call to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Reads and counts the windows of a request.
    Throttle,
    /// Claims a key in flight.
    Claim,
    /// Releases keys in flight.
    Release,
    /// Probes the connection.
    Probe,
}

impl Call {
    const ALL: [Self; 4] = [Self::Throttle, Self::Claim, Self::Release, Self::Probe];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Throttle => "throttle",
            Self::Claim => "claim",
            Self::Release => "release",
            Self::Probe => "probe",
        }
    }
}

/// Sets whether Redis is available.
pub fn up(up: bool) {
    record(|metrics| metrics.shared.up.set([], u64::from(up)));
}

/// Counts a call to Redis by its result.
pub fn asked(call: Call, answered: bool, took: Option<Duration>) {
    record(|metrics| {
        let answer = if answered { "some" } else { "none" };
        metrics.shared.calls.inc([call.as_str(), answer]);
        if let Some(took) = took {
            metrics.shared.duration.took([call.as_str()], took);
        }
    });
}
