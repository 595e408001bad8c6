//! Metrics of calls to upstreams: the engine, the rail, the verifier and the sources of rates.

use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;

use crate::record;
use crate::registry::{Counters, Gauges, Histograms, MetricRegistry, NamedGauges, SPANS};

/// The calls to the rail and to the verifier.
const RAIL: [&str; 4] = ["instructions", "advance", "watch", "cancel"];
const VERIFIER: [&str; 3] = ["start", "submit", "report"];
const FINDINGS: [&str; 5] = ["underpaid", "overpaid", "late", "returned", "retracted"];
const NOTIFICATIONS: [&str; 4] = ["woken", "awake", "elsewhere", "unknown"];

#[derive(Debug)]
pub(crate) struct Metrics {
    engine: Counters<2>,
    engine_duration: Histograms<1>,
    rail: Counters<2>,
    rail_duration: Histograms<1>,
    rail_findings: Counters<1>,
    rail_notifications: Counters<1>,
    rail_open_items: Gauges<1>,
    held_elsewhere: NamedGauges,
    verifier: Counters<2>,
    verifier_duration: Histograms<1>,
    rates: Counters<1>,
    rates_duration: Histogram,
    sources: Gauges<1>,
    pairs: Gauges<1>,
    source_answers: Counters<1>,
    withheld: Counters<1>,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        let engine = book.counters(
            "penstock_engine_calls_total",
            "Calls to the liquidity engine; `answer` is `none` if it did not respond in time",
            ["operation", "answer"],
        );
        engine.begin(
            ["depth", "hold", "confirm", "let_go", "report"].map(|operation| [operation, "none"]),
        );
        let rail = book.counters(
            "penstock_rail_calls_total",
            "Calls to the rail: requests for payment instructions, polls of payments that are processing (`advance`) or have ended (`watch`), and cancellations; `answer` is `none` if it gave no valid response in time",
            ["operation", "answer"],
        );
        rail.begin(RAIL.map(|operation| [operation, "none"]));
        let rail_duration = book.histograms(
            "penstock_rail_call_duration_seconds",
            "Duration of one call to the rail",
            ["operation"],
            SPANS,
        );
        rail_duration.begin(RAIL.map(|operation| [operation]));
        let rail_findings = book.counters(
            "penstock_rail_findings_total",
            "Payments at which the rail has other money than the payment: less (`underpaid`) or more (`overpaid`) has arrived, the rail has money of a payment that had failed or was cancelled (`late`), the money of a settled payment came back (`returned`), or the rail reports as failed or cancelled a payment that had settled (`retracted`)",
            ["finding"],
        );
        rail_findings.begin(FINDINGS.map(|finding| [finding]));
        let rail_notifications = book.counters(
            "penstock_rail_notifications_total",
            "Signed notifications of rails: the payment's next report is due now (`woken`), was due already (`awake`), another rail holds the payment (`elsewhere`), or there is no such payment (`unknown`)",
            ["result"],
        );
        rail_notifications.begin(NOTIFICATIONS.map(|result| [result]));
        let held_elsewhere = book.named_gauges(
            "penstock_held_elsewhere",
            "What upstreams hold that this process is not configured with, and about which it asks none: payments that are processing at a rail (`rail`), payments that ended there within the last 30 days (`rail_ended`), and pending verifications of open sessions (`verifier`)",
            ["upstream", "name"],
        );
        let verifier = book.counters(
            "penstock_verifier_calls_total",
            "Calls to the verifier: starts of verifications, submissions of users' answers, and polls of verifications that are pending; `answer` is `none` if it gave no valid response in time",
            ["operation", "answer"],
        );
        verifier.begin(VERIFIER.map(|operation| [operation, "none"]));
        let verifier_duration = book.histograms(
            "penstock_verifier_call_duration_seconds",
            "Duration of one call to the verifier",
            ["operation"],
            SPANS,
        );
        verifier_duration.begin(VERIFIER.map(|operation| [operation]));
        let rates = book.counters(
            "penstock_rate_calls_total",
            "Rate lookups; `answer` is `none` if no rate is recent enough",
            ["answer"],
        );
        rates.begin([["rate"], ["none"]]);
        let source_answers = book.counters(
            "penstock_rate_source_answers_total",
            "Responses of the sources of `PENSTOCK_RATES=http:`; `prices` are complete responses, all others are errors, which the log names with their source",
            ["answer"],
        );
        let withheld = book.counters(
            "penstock_rates_withheld_total",
            "Rate lookups without a rate: too few sources had a recent price (`too_few`), too few prices were near their median (`too_far_apart`), or the rate moved further within a minute than the file allows (`moved_too_far`)",
            ["reason"],
        );
        Self {
            engine,
            engine_duration: book.histograms(
                "penstock_engine_call_duration_seconds",
                "Duration of one call to the liquidity engine",
                ["operation"],
                SPANS,
            ),
            rail,
            rail_duration,
            rail_findings,
            rail_notifications,
            rail_open_items: book.gauges(
                "penstock_rail_open_items",
                "Payments with an open item of the rail, by finding; `penstock verify` lists them",
                ["finding"],
            ),
            held_elsewhere,
            verifier,
            verifier_duration,
            rates,
            rates_duration: book.histogram(
                "penstock_rate_call_duration_seconds",
                "Duration of one rate lookup",
                SPANS,
            ),
            sources: book.gauges(
                "penstock_rate_sources",
                "Sources of `PENSTOCK_RATES=http:` by the state of their last response",
                ["state"],
            ),
            pairs: book.gauges(
                "penstock_rate_pairs",
                "Pairs of `PENSTOCK_RATES=http:` with a rate (`priced`), or by the reason why they lack a rate, after the last response of a source; the reasons are those of `penstock_rates_withheld_total`",
                ["state"],
            ),
            source_answers,
            withheld,
        }
    }
}

/// The response of a source of rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceAnswer {
    /// All prices of the call.
    Prices,
    /// No response in time.
    Late,
    /// No response.
    Unreachable,
    /// A status other than 200.
    Refused,
    /// A body without all prices.
    Unread,
    /// Prices that are too old or in the future.
    Old,
}

impl SourceAnswer {
    const ALL: [Self; 6] = [
        Self::Prices,
        Self::Late,
        Self::Unreachable,
        Self::Refused,
        Self::Unread,
        Self::Old,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Prices => "prices",
            Self::Late => "late",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Unread => "unread",
            Self::Old => "old",
        }
    }
}

/// Why a pair has no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRateReason {
    /// Too few prices are young enough.
    TooFew,
    /// Too few prices lie near their median.
    TooFarApart,
    /// The rate moved further within a minute than the operator allows.
    MovedTooFar,
}

impl NoRateReason {
    const ALL: [Self; 3] = [Self::TooFew, Self::TooFarApart, Self::MovedTooFar];

    /// The value in the metric and in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooFew => "too_few",
            Self::TooFarApart => "too_far_apart",
            Self::MovedTooFar => "moved_too_far",
        }
    }
}

/// Records a call of the engine.
pub fn engine(operation: &'static str, answer: &'static str, took: Option<Duration>) {
    record(|metrics| {
        metrics.upstream.engine.inc([operation, answer]);
        if let Some(took) = took {
            metrics.upstream.engine_duration.took([operation], took);
        }
    });
}

/// Records a call of the rail.
pub fn rail(operation: &'static str, answer: &'static str, took: Option<Duration>) {
    record(|metrics| {
        metrics.upstream.rail.inc([operation, answer]);
        if let Some(took) = took {
            metrics.upstream.rail_duration.took([operation], took);
        }
    });
}

/// Registers what rails can be found to have, and what their notifications can do: the counters start at zero.
pub fn rail_begin(findings: &[&'static str], notifications: &[&'static str]) {
    record(|metrics| {
        let findings = findings.iter().map(|finding| [*finding]);
        metrics.upstream.rail_findings.begin(findings);
        let results = notifications.iter().map(|result| [*result]);
        metrics.upstream.rail_notifications.begin(results);
    });
}

/// Counts a payment at which the rail has other money.
pub fn rail_found(finding: &'static str) {
    record(|metrics| metrics.upstream.rail_findings.inc([finding]));
}

/// Sets the number of payments with an open item.
pub fn rail_open_items(finding: &'static str, items: u64) {
    record(|metrics| metrics.upstream.rail_open_items.set([finding], items));
}

/// Counts a signed notification.
pub fn rail_notified(result: &'static str) {
    record(|metrics| metrics.upstream.rail_notifications.inc([result]));
}

/// Sets what upstreams of a kind hold that this process is not configured with. Upstreams that no longer hold anything are set to zero.
pub fn held_elsewhere(upstream: &'static str, held: &[(String, u64)]) {
    record(|metrics| metrics.upstream.held_elsewhere.replace(upstream, held));
}

/// Records a call of the verifier.
pub fn verifier(operation: &'static str, answer: &'static str, took: Option<Duration>) {
    record(|metrics| {
        metrics.upstream.verifier.inc([operation, answer]);
        if let Some(took) = took {
            metrics.upstream.verifier_duration.took([operation], took);
        }
    });
}

/// Records a read of a rate.
pub fn rates(answer: &'static str, took: Option<Duration>) {
    record(|metrics| {
        metrics.upstream.rates.inc([answer]);
        if let Some(took) = took {
            metrics.upstream.rates_duration.observe(took.as_secs_f64());
        }
    });
}

/// Registers the sources of rates: their counters start at zero.
pub fn rate_sources_begin() {
    record(|metrics| {
        let answers = SourceAnswer::ALL.map(|answer| [answer.as_str()]);
        metrics.upstream.source_answers.begin(answers);
        let reasons = NoRateReason::ALL.map(|reason| [reason.as_str()]);
        metrics.upstream.withheld.begin(reasons);
    });
}

/// Sets the number of sources of rates, and the number whose last response was complete.
pub fn rate_sources(answering: usize, all: usize) {
    record(|metrics| {
        let failing = all.saturating_sub(answering);
        for (state, count) in [("answering", answering), ("failing", failing)] {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            metrics.upstream.sources.set([state], count);
        }
    });
}

/// Sets the number of pairs with a rate, and the number without one for each reason.
pub fn rate_pairs(all: usize, withheld: &[NoRateReason]) {
    record(|metrics| {
        let set = |state, count: usize| {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            metrics.upstream.pairs.set([state], count);
        };
        set("priced", all.saturating_sub(withheld.len()));
        for reason in NoRateReason::ALL {
            let count = withheld.iter().filter(|other| **other == reason).count();
            set(reason.as_str(), count);
        }
    });
}

/// Records a call of a source of rates.
pub fn rate_source(answer: SourceAnswer) {
    record(|metrics| metrics.upstream.source_answers.inc([answer.as_str()]));
}

/// Counts a pair that received no rate.
pub fn rate_withheld(reason: NoRateReason) {
    record(|metrics| metrics.upstream.withheld.inc([reason.as_str()]));
}
