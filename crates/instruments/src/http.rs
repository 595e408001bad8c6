//! Metrics of requests, connections and throttles.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::registry::{Counters, Gauges, Histograms, MetricRegistry, SPANS};
use crate::{metrics, record};

/// The label of a path that no route serves. A client chooses its paths, so they never become labels.
const UNMATCHED: &str = "unmatched";
/// Routes, at most. The route tables have fewer, so a higher number is an error.
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
    warned: Counters<1>,
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
            warned: {
                let warned = book.counters(
                    "penstock_http_warnings_total",
                    "Warnings in the header `Penstock-Warning` of successful responses; `code` is the code of the warning",
                    ["code"],
                );
                warned.begin([["idempotency_body_ignored"], ["unknown_parameter"]]);
                warned
            },
            panics: book.counter("penstock_panics_total", "Panics caught anywhere in the program"),
        }
    }
}

/// A response that was sent.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The route's text in the table; `None` if no route serves the path.
    pub route: Option<&'a str>,
    /// The method; `None` if the request could not be parsed that far.
    pub method: Option<&'a str>,
    pub status: u16,
    /// The code of the error envelope.
    pub code: Option<&'static str>,
    /// The duration; `None` if no route was called.
    pub took: Option<Duration>,
}

/// Counts a response.
pub fn answered(response: &Answer<'_>) {
    let Some(metrics) = metrics().map(|metrics| &metrics.http) else {
        return;
    };
    let route = response.route.map_or(UNMATCHED, interned);
    let method = method(response.method);
    let labels = [
        route,
        method,
        status(response.status),
        response.code.unwrap_or_default(),
    ];
    metrics.requests.inc(labels);
    if let Some(took) = response.took {
        metrics.duration.took([route, method], took);
    }
}

/// An open connection. Dropping it closes the connection.
#[derive(Debug)]
pub struct Connection(Option<Gauge>);

impl Connection {
    /// Counts an accepted connection.
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

/// Registers a listener.
pub fn listening(listener: &'static str) {
    record(|metrics| {
        metrics.http.accepted.begin([[listener]]);
        metrics.http.unaccepted.begin([[listener]]);
        metrics.http.over_bound.begin([[listener]]);
        metrics.http.open.begin([[listener]]);
    });
}

/// Counts a connection that could not be accepted.
pub fn unaccepted(listener: &'static str) {
    record(|metrics| metrics.http.unaccepted.inc([listener]));
}

/// Counts a connection above a limit.
pub fn over_bound(listener: &'static str) {
    record(|metrics| metrics.http.over_bound.inc([listener]));
}

/// Registers a limit: the counters of its tiers start at zero.
pub fn limited(
    group: &'static str,
    counts: &'static str,
    tiers: impl IntoIterator<Item = &'static str>,
) {
    record(|metrics| {
        let tiers = tiers.into_iter().map(|tier| [group, counts, tier]);
        metrics.http.throttled.begin(tiers);
    });
}

/// Counts a request that was refused because this tier was full.
pub fn throttled(group: &'static str, counts: &'static str, tier: &'static str) {
    record(|metrics| metrics.http.throttled.inc([group, counts, tier]));
}

/// Counts a write whose stored response was replayed.
pub fn repeated(same_request: bool) {
    record(|metrics| {
        let request = if same_request { "same" } else { "other" };
        metrics.http.repeated.inc([request]);
    });
}

/// Counts a warning of a successful response.
pub fn warned(code: &'static str) {
    record(|metrics| metrics.http.warned.inc([code]));
}

/// Counts a caught panic.
pub fn panicked() {
    record(|metrics| metrics.http.panics.inc());
}

/// The label of a method. A client may send any text as a method, so only the known methods have a label of their own.
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

/// The route as a static text. There are as many texts as rows in the route tables.
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
    fn text_of_client_is_no_label() {
        assert_eq!(method(Some("GET")), "GET");
        assert_eq!(method(Some("BREW")), "other");
        assert_eq!(method(None), "unreadable");
        assert_eq!(status(200), "200");
        assert_eq!(status(599), "599");
        assert_eq!(status(99), "other");
        assert_eq!(status(600), "other");
    }

    #[test]
    fn route_text_is_kept_once_and_bounded() {
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
