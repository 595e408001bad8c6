//! Metrics of the worker that delivers events.

use std::time::Duration;

use crate::record;
use crate::registry::{Counters, Gauges, Histograms, MetricRegistry};

/// Histogram bounds of an attempt: milliseconds to seconds.
const ATTEMPTS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// Histogram bounds of a delivery. With retries it may take days.
const LAGS: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 21_600.0, 86_400.0,
    345_600.0,
];

#[derive(Debug)]
pub(crate) struct Metrics {
    attempts: Counters<2>,
    attempt_duration: Histograms<1>,
    lag: Histograms<1>,
    dead: Counters<1>,
    gone: Counters<1>,
    hastened: Counters<1>,
    queue: Gauges<2>,
    oldest: Gauges<1>,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        Self {
            attempts: book.counters(
                "penstock_webhook_attempts_total",
                "Attempts to deliver an event, by outcome",
                ["service", "outcome"],
            ),
            attempt_duration: book.histograms(
                "penstock_webhook_attempt_duration_seconds",
                "Duration of one attempt, from its start to its outcome",
                ["service"],
                ATTEMPTS,
            ),
            lag: book.histograms(
                "penstock_webhook_delivery_lag_seconds",
                "Time from the change that an event reports to its acceptance by the partner",
                ["service"],
                LAGS,
            ),
            dead: book.counters(
                "penstock_webhook_dead_letters_total",
                "Deliveries given up after their last attempt",
                ["service"],
            ),
            gone: book.counters(
                "penstock_webhook_gone_total",
                "Attempts that the endpoint answered with 410 Gone",
                ["service"],
            ),
            hastened: book.counters(
                "penstock_webhook_hastened_total",
                "Waiting deliveries made due because their endpoint accepts deliveries again",
                ["service"],
            ),
            queue: book.gauges(
                "penstock_webhook_queue_depth",
                "Deliveries by state, sampled: `due` wait for the worker, `scheduled` for their next attempt, `in_flight` for a response",
                ["service", "state"],
            ),
            oldest: book.gauges(
                "penstock_webhook_oldest_due_age_seconds",
                "How long the longest waiting delivery has been due, sampled; 0 without a due delivery",
                ["service"],
            ),
        }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The partner responded with 2xx.
    Delivered,
    /// The partner responded with another status.
    Refused,
    /// The partner did not respond in time.
    TimedOut,
    /// The connection failed or broke: name, network or TLS.
    Unreachable,
    /// Webhooks may not reach the address.
    Forbidden,
    /// The attempt was impossible: there is no secret, or the body cannot be opened.
    Untried,
}

impl Outcome {
    const ALL: [Self; 6] = [
        Self::Delivered,
        Self::Refused,
        Self::TimedOut,
        Self::Unreachable,
        Self::Forbidden,
        Self::Untried,
    ];

    /// The label's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::Forbidden => "forbidden",
            Self::Untried => "untried",
        }
    }
}

/// Registers a worker, whose counters start at zero. In this module `service` is `pools` or `gate`.
pub fn working(service: &'static str) {
    record(|metrics| {
        let metrics = &metrics.webhooks;
        let outcomes = Outcome::ALL.map(|outcome| [service, outcome.as_str()]);
        metrics.attempts.begin(outcomes);
        metrics.dead.begin([[service]]);
        metrics.gone.begin([[service]]);
        metrics.hastened.begin([[service]]);
        metrics.lag.begin([[service]]);
        metrics.attempt_duration.begin([[service]]);
    });
}

/// The span of one attempt. Use it as `attempt.instrument(attempt_span(…))`.
#[must_use]
pub fn attempt_span(service: &'static str, attempt: u32) -> tracing::Span {
    tracing::debug_span!(
        target: crate::trace::TARGET,
        "webhook.attempt",
        otel.kind = "client",
        webhook.service = service,
        webhook.attempt = attempt
    )
}

/// Records the end of an attempt.
pub fn attempted(service: &'static str, outcome: Outcome, took: Duration) {
    record(|metrics| {
        metrics.webhooks.attempts.inc([service, outcome.as_str()]);
        metrics.webhooks.attempt_duration.took([service], took);
    });
}

/// Records the time from a change to the acceptance of its event.
pub fn delivered(service: &'static str, lag: Duration) {
    record(|metrics| metrics.webhooks.lag.took([service], lag));
}

/// Counts a dead-lettered delivery.
pub fn gave_up(service: &'static str) {
    record(|metrics| metrics.webhooks.dead.inc([service]));
}

/// Counts an attempt that was answered with 410.
pub fn gone(service: &'static str) {
    record(|metrics| metrics.webhooks.gone.inc([service]));
}

/// Counts waiting deliveries that were made due.
pub fn hastened(service: &'static str, count: u64) {
    record(|metrics| metrics.webhooks.hastened.add([service], count));
}

/// The stats of the delivery queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queue {
    /// Deliveries that are due.
    pub due: u64,
    /// Deliveries that wait for their next attempt.
    pub scheduled: u64,
    /// Deliveries in flight.
    pub in_flight: u64,
    /// How long the oldest due delivery has been due.
    pub oldest_due: Option<Duration>,
}

/// Sets the stats of the delivery queue. Call it about every 15 seconds.
pub fn queue(service: &'static str, queue: Queue) {
    record(|metrics| {
        let depth = &metrics.webhooks.queue;
        depth.set([service, "due"], queue.due);
        depth.set([service, "scheduled"], queue.scheduled);
        depth.set([service, "in_flight"], queue.in_flight);
        let oldest = queue.oldest_due.map_or(0, |age| age.as_secs());
        metrics.webhooks.oldest.set([service], oldest);
    });
}
