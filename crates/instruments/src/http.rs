//! Requests, connections and throttles.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::metrics;
use crate::registry::{Counters, Gauges, Histograms, MetricRegistry, SPANS};

/// A path that no route serves. Paths are a client's own words and never become labels.
const UNMATCHED: &str = "unmatched";
/// Routes are those of the tables in the code; past this many something else has come in as one.
const MOST_ROUTES: usize = 256;

#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Counters<4>,
    duration: Histograms<2>,
    open: Gauges<1>,
    accepted: Counters<1>,
    unaccepted: Counters<1>,
    over_bound: Counters<1>,
    throttled: Counters<3>,
    repeated: Counters<1>,
    pub(crate) panics: Counter,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        Self {
            requests: book.counters(
                "penstock_http_requests_total",
                "Completed requests; `code` is the error code, empty for a success, and `route` is the row of the route table",
                ["route", "method", "status", "code"],
            ),
            duration: book.histograms(
                "penstock_http_request_duration_seconds",
                "Time from the first poll of a request to its response",
                ["route", "method"],
                SPANS,
            ),
            open: book.gauges(
                "penstock_http_connections",
                "Open connections",
                ["listener"],
            ),
            accepted: book.counters(
                "penstock_http_connections_accepted_total",
                "Accepted connections",
                ["listener"],
            ),
            unaccepted: book.counters(
                "penstock_http_accept_failures_total",
                "Connections that could not be accepted, for example because file descriptors ran out",
                ["listener"],
            ),
            over_bound: book.counters(
                "penstock_http_connections_over_bound_total",
                "Connections over a limit; they were served only health checks, or refused",
                ["listener"],
            ),
            throttled: book.counters(
                "penstock_throttle_refusals_total",
                "Requests refused because a tier was full; `counts` is what the limit counts by",
                ["group", "counts", "tier"],
            ),
            repeated: {
                let repeated = book.counters(
                    "penstock_idempotency_repeats_total",
                    "Writes that got their stored response; `request` is `other` if the repeated request differed",
                    ["request"],
                );
                repeated.begin([["same"], ["other"]]);
                repeated
            },
            panics: book.counter("penstock_panics_total", "Panics caught anywhere in the program"),
        }
    }
}

/// An answer that was given.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The route as the table writes it; `None` where no route serves the path.
    pub route: Option<&'a str>,
    /// The method; `None` where the request could not be read so far.
    pub method: Option<&'a str>,
    /// The status.
    pub status: u16,
    /// The code of the error envelope.
    pub code: Option<&'static str>,
    /// How long it took; `None` where no route was asked.
    pub took: Option<Duration>,
}

/// Counts an answer.
pub fn answered(answer: &Answer<'_>) {
    let Some(metrics) = metrics().map(|metrics| &metrics.http) else {
        return;
    };
    let route = answer.route.map_or(UNMATCHED, interned);
    let method = method(answer.method);
    let labels = [
        route,
        method,
        status(answer.status),
        answer.code.unwrap_or_default(),
    ];
    metrics.requests.inc(labels);
    if let Some(took) = answer.took {
        metrics.duration.took([route, method], took);
    }
}

/// A connection that is open until this is dropped.
#[derive(Debug)]
pub struct Connection(Option<Gauge>);

impl Connection {
    /// Counts a connection that was accepted.
    #[must_use]
    pub fn accepted(listener: &'static str) -> Self {
        Self(metrics().map(|metrics| {
            metrics.http.accepted.inc([listener]);
            let open = metrics.http.open.of([listener]);
            open.inc();
            open
        }))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            open.dec();
        }
    }
}

/// A listener begins to listen.
pub fn listening(listener: &'static str) {
    if let Some(metrics) = metrics() {
        metrics.http.accepted.begin([[listener]]);
        metrics.http.unaccepted.begin([[listener]]);
        metrics.http.over_bound.begin([[listener]]);
        metrics.http.open.begin([[listener]]);
    }
}

/// A connection could not be accepted.
pub fn unaccepted(listener: &'static str) {
    if let Some(metrics) = metrics() {
        metrics.http.unaccepted.inc([listener]);
    }
}

/// A connection was over a bound.
pub fn over_bound(listener: &'static str) {
    if let Some(metrics) = metrics() {
        metrics.http.over_bound.inc([listener]);
    }
}

/// A limit is in force: its tiers are counted from zero.
pub fn limited(
    group: &'static str,
    counts: &'static str,
    tiers: impl IntoIterator<Item = &'static str>,
) {
    if let Some(metrics) = metrics() {
        let tiers = tiers.into_iter().map(|tier| [group, counts, tier]);
        metrics.http.throttled.begin(tiers);
    }
}

/// A request was refused because this tier was full.
pub fn throttled(group: &'static str, counts: &'static str, tier: &'static str) {
    if let Some(metrics) = metrics() {
        metrics.http.throttled.inc([group, counts, tier]);
    }
}

/// A write was given its first answer again.
pub fn repeated(same_request: bool) {
    if let Some(metrics) = metrics() {
        let request = if same_request { "same" } else { "other" };
        metrics.http.repeated.inc([request]);
    }
}

/// A panic was caught.
pub fn panicked() {
    if let Some(metrics) = metrics() {
        metrics.http.panics.inc();
    }
}

/// A client may send any word as a method, also one that belongs in no log: the known ones are told
/// apart, and nothing else is written down.
#[must_use]
pub fn method(word: Option<&str>) -> &'static str {
    const KNOWN: [&str; 8] = [
        "GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE",
    ];
    let Some(word) = word else {
        return "unreadable";
    };
    KNOWN
        .into_iter()
        .find(|known| *known == word)
        .unwrap_or("other")
}

fn status(code: u16) -> &'static str {
    static WORDS: LazyLock<Vec<String>> =
        LazyLock::new(|| (100..600_u16).map(|code| code.to_string()).collect());
    let place = usize::from(code).checked_sub(100);
    place
        .and_then(|place| WORDS.get(place))
        .map_or("other", String::as_str)
}

/// The route as a word that lives for ever. There are as many as the route tables have rows.
fn interned(route: &str) -> &'static str {
    static ROUTES: LazyLock<RwLock<HashSet<&'static str>>> = LazyLock::new(RwLock::default);
    if let Some(known) = ROUTES.read().get(route) {
        return known;
    }
    let mut routes = ROUTES.write();
    if let Some(known) = routes.get(route) {
        return known;
    }
    if routes.len() >= MOST_ROUTES {
        return UNMATCHED;
    }
    let kept: &'static str = Box::leak(Box::from(route));
    routes.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_own_words_are_no_labels() {
        assert_eq!(method(Some("GET")), "GET");
        assert_eq!(method(Some("BREW")), "other");
        assert_eq!(method(None), "unreadable");
        assert_eq!(status(200), "200");
        assert_eq!(status(599), "599");
        assert_eq!(status(99), "other");
        assert_eq!(status(600), "other");
    }

    #[test]
    fn routes_are_kept_once_and_not_without_end() {
        let one = interned("/v1/pools/{id}");
        let again = interned(&String::from("/v1/pools/{id}"));
        assert!(std::ptr::eq(one, again));
        for number in 0..2 * MOST_ROUTES {
            interned(&format!("/{number}"));
        }
        assert_eq!(interned("/one/more"), UNMATCHED);
        assert!(std::ptr::eq(interned("/v1/pools/{id}"), one));
    }
}
