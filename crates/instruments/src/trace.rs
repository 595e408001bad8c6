//! The spans of traces, their links to a client's trace, and the cause that calls to upstreams carry.
//!
//! Spans are `tracing` spans of the target [`TARGET`]. Logs never show them. If traces are not exported, no span is created and
//! each call costs a comparison. Work has a cause with and without export.

use std::fmt;
use std::sync::OnceLock;

use kernel::TraceParent;
use tracing::Span;

/// The target of every span that belongs to a trace.
pub const TARGET: &str = "penstock_trace";

/// The target of the span that adds the request's id to log lines.
pub const REQUEST_TARGET: &str = "penstock_request";

/// What the exporter of traces knows about spans.
#[derive(Debug, Clone, Copy)]
pub struct Exporter {
    /// Links a span to a client's trace.
    pub link: fn(&Span, TraceParent),
    /// The position of a span in its trace.
    pub position: fn(&Span) -> Option<TraceParent>,
}

static EXPORTER: OnceLock<Exporter> = OnceLock::new();

/// Sets the functions of the exporter. The exporter calls it.
pub fn export_with(exporter: Exporter) {
    EXPORTER.get_or_init(|| exporter);
}

tokio::task_local! {
    /// The cause of the calls to upstreams.
    static CAUSE: Option<TraceParent>;
}

/// Does work that this trace parent causes; without one, the surrounding cause stays. Another task needs it again.
pub fn caused_by<F: Future>(
    parent: Option<TraceParent>,
    work: F,
) -> impl Future<Output = F::Output> {
    CAUSE.scope(parent.or_else(cause), work)
}

/// The trace parent that causes the current work; `None` for work that no request has caused.
#[must_use]
pub fn cause() -> Option<TraceParent> {
    CAUSE.try_with(|cause| *cause).ok().flatten()
}

/// The span of one request; disabled if traces are not exported.
///
/// A client's trace is linked, never continued, so that a client's header does not decide what is recorded here.
#[must_use]
pub fn request(method: &str, route: Option<&str>, client: Option<TraceParent>) -> Span {
    let span = tracing::debug_span!(
        target: TARGET,
        parent: None,
        "request",
        otel.name = tracing::field::Empty,
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        request.id = tracing::field::Empty,
        http.request.method = tracing::field::Empty,
        http.route = tracing::field::Empty,
        http.response.status_code = tracing::field::Empty,
        error.type = tracing::field::Empty
    );
    if !span.is_disabled() {
        let method = crate::http::method(Some(method));
        let route = route.unwrap_or("unmatched");
        span.record("otel.name", format!("{method} {route}"));
        span.record("http.request.method", method);
        span.record("http.route", route);
        if let (Some(client), Some(exporter)) = (client, EXPORTER.get()) {
            (exporter.link)(&span, client);
        }
    }
    span
}

/// The position of a span in its trace; `None` if traces are not exported.
#[must_use]
pub fn position(span: &Span) -> Option<TraceParent> {
    if span.is_disabled() {
        return None;
    }
    (EXPORTER.get()?.position)(span)
}

/// Records the response to the request of a span.
pub fn answered(span: &Span, id: &dyn fmt::Display, status: u16, code: Option<&'static str>) {
    if span.is_disabled() {
        return;
    }
    span.record("request.id", tracing::field::display(id));
    span.record("http.response.status_code", status);
    if let Some(code) = code {
        span.record("error.type", code);
    }
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of one call to an upstream; disabled if traces are not exported.
#[must_use]
pub fn call(to: &'static str, operation: &'static str) -> Span {
    let span = tracing::debug_span!(
        target: TARGET,
        "call",
        otel.name = tracing::field::Empty,
        otel.kind = "client",
        peer.service = to,
        call.operation = operation
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("{to} {operation}"));
    }
    span
}

/// The current span, for work that continues in another task; disabled if traces are not exported.
#[must_use]
pub fn current() -> Span {
    if tracing::span_enabled!(target: TARGET, tracing::Level::DEBUG) {
        Span::current()
    } else {
        Span::none()
    }
}

/// The span of a batch, linked to the requests of its commands; disabled if traces are not exported.
#[must_use]
pub fn batch<'s>(queue: &'static str, requests: impl ExactSizeIterator<Item = &'s Span>) -> Span {
    let span = tracing::debug_span!(
        target: TARGET,
        parent: None,
        "lane.batch",
        lane.name = queue,
        lane.batch = requests.len()
    );
    if !span.is_disabled() {
        for request in requests {
            span.follows_from(request);
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn parent(span_id: u64) -> TraceParent {
        TraceParent {
            trace_id: 7,
            span_id,
            sampled: false,
        }
    }

    // rule: upstream.http.traceparent
    #[tokio::test]
    async fn cause_of_request_holds_until_another_one_replaces_it() {
        assert_eq!(cause(), None);
        let work = async {
            let kept = caused_by(None, async { cause() }).await;
            let replaced = caused_by(Some(parent(2)), async { cause() }).await;
            [kept, replaced, cause()]
        };
        let causes = caused_by(Some(parent(1)), work).await;
        assert_eq!(causes, [1, 2, 1].map(|span_id| Some(parent(span_id))));
        assert_eq!(caused_by(None, async { cause() }).await, None);
    }
}
