//! Metrics of quotes and transacts by result, and of trades by status.

use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;

use crate::record;
use crate::registry::{Counters, Gauges, MetricRegistry, saturated};

#[derive(Debug)]
pub(crate) struct Metrics {
    quotes: Counters<2>,
    transacts: Counters<2>,
    pub(crate) transitions: Counters<2>,
    trades: Gauges<1>,
    oldest_reserved: Gauge,
    returnable_elsewhere: Gauge,
    oldest_payment: Gauge,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        let quotes = book.counters(
            "penstock_quotes_total",
            "Well-formed quote requests by outcome; `reason` is why a quote is `unavailable`, or the error code of a `refused` or `failed` request",
            ["outcome", "reason"],
        );
        quotes.begin([
            ["firm", ""],
            ["indicative", ""],
            ["unavailable", "pool_dry"],
            ["unavailable", "engine_unavailable"],
            ["unavailable", "rate_unavailable"],
        ]);
        let transacts = book.counters(
            "penstock_transacts_total",
            "Well-formed transacts by outcome: `opened` created a trade, `existing` found one; `reason` is the error code of a `refused` or `failed` transact",
            ["outcome", "reason"],
        );
        transacts.begin([
            ["opened", ""],
            ["existing", ""],
            ["refused", "velocity_cap_exceeded"],
            ["refused", "insufficient_balance"],
            ["refused", "reservation_failed"],
            ["failed", "engine_unavailable"],
        ]);
        let transitions = book.counters(
            "penstock_trade_transitions_total",
            "Committed steps of trades; `from` is `none` if the step created the trade",
            ["from", "to"],
        );
        transitions.begin([
            ["none", "reserved"],
            ["reserved", "settled"],
            ["reserved", "released"],
            ["reserved", "failed"],
            ["settled", "returned"],
        ]);
        Self {
            quotes,
            transacts,
            transitions,
            trades: book.gauges("penstock_trades", "Trades by state, sampled", ["state"]),
            oldest_reserved: book.gauge(
                "penstock_trade_oldest_reserved_age_seconds",
                "Age of the oldest reserved trade, sampled; 0 without a reserved trade",
            ),
            returnable_elsewhere: book.gauge(
                "penstock_trades_returnable_elsewhere",
                "Settled trades of engines other than the configured one that are inside the return window, counted at start and every hour; this process does not ask their engines about returns",
            ),
            oldest_payment: book.gauge(
                "penstock_rail_oldest_processing_age_seconds",
                "Age of the oldest pay-in or pay-out that is processing, sampled; 0 without one",
            ),
        }
    }
}

/// Counts a quote request by its result.
pub fn quoted(outcome: &'static str, reason: &'static str) {
    record(|metrics| metrics.trading.quotes.inc([outcome, reason]));
}

/// Counts a transact by its result.
pub fn transacted(outcome: &'static str, reason: &'static str) {
    record(|metrics| metrics.trading.transacts.inc([outcome, reason]));
}

/// Sets the number of trades of a status.
pub fn trades(state: &'static str, count: u64) {
    record(|metrics| metrics.trading.trades.set([state], count));
}

/// Sets the age of the oldest payment that a rail is processing.
pub fn oldest_payment(age: Option<Duration>) {
    record(|metrics| {
        let age = age.map_or(0, |age| age.as_secs());
        metrics.trading.oldest_payment.set(saturated(age));
    });
}

/// Sets the number of settled trades of other engines that can still be returned.
pub fn returnable_elsewhere(count: u64) {
    record(|metrics| metrics.trading.returnable_elsewhere.set(saturated(count)));
}

/// Sets the age of the oldest reserved trade.
pub fn oldest_reserved(age: Option<Duration>) {
    record(|metrics| {
        let age = age.map_or(0, |age| age.as_secs());
        metrics.trading.oldest_reserved.set(saturated(age));
    });
}
