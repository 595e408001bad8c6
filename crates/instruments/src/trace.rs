//! The spans of traces, and their links to a client's trace.
//!
//! Spans are `tracing` spans of the target [`TARGET`]. Logs never show them. If traces are not exported, no span is created and
//! each call costs a comparison.

use std::fmt;
use std::sync::OnceLock;

use tracing::Span;

/// The target of every span that belongs to a trace.
pub const TARGET: &str = "penstock_trace";

/// The target of the span that adds the request's id to log lines.
pub const REQUEST_TARGET: &str = "penstock_request";

/// A client's position in its own trace: a well-formed W3C header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: u128,
    /// The id of the client's span.
    pub span_id: u64,
    /// Whether the client records the trace.
    pub sampled: bool,
}

impl TraceParent {
    /// Parses the header's value. Any other form counts as absent.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let (head, rest) = text.split_at_checked(55)?;
        let mut parts = head.split('-');
        let version = lower_hex(parts.next()?, 2)?;
        let trace_id = lower_hex(parts.next()?, 32)?;
        let span_id = u64::try_from(lower_hex(parts.next()?, 16)?).ok()?;
        let flags = lower_hex(parts.next()?, 2)?;
        // A later version may add parts; version 00 has no further parts.
        let closed = rest.is_empty() || version > 0 && rest.starts_with('-');
        let sound = parts.next().is_none() && closed && version != 0xff;
        (sound && trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            sampled: flags & 1 == 1,
        })
    }
}

fn lower_hex(text: &str, length: usize) -> Option<u128> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != length || !text.bytes().all(lower) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// Links a span to a client's trace.
pub type Linker = fn(&Span, TraceParent);

static LINKER: OnceLock<Linker> = OnceLock::new();

/// Sets the function that links spans to a client's trace. The exporter calls it.
pub fn link_with(linker: Linker) {
    LINKER.get_or_init(|| linker);
}

/// The span of one request; disabled if traces are not exported.
///
/// A client's trace is linked, never continued, so that a client's header does not decide what is recorded here.
#[must_use]
pub fn request(
    method: &str,
    route: Option<&str>,
    client: impl FnOnce() -> Option<TraceParent>,
) -> Span {
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
        if let (Some(client), Some(link)) = (client(), LINKER.get()) {
            link(&span, client);
        }
    }
    span
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

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn traceparent_parses_the_recommended_form() {
        let read = TraceParent::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(read.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(read.span_id, 0xb7ad_6b71_6920_3331);
        assert!(read.sampled);
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!TraceParent::parse(unsampled.as_bytes()).unwrap().sampled);
        let later = format!("cc{}-what-comes", &GOOD[2..]);
        assert!(TraceParent::parse(later.as_bytes()).is_some());
    }

    #[test]
    fn other_traceparent_counts_as_absent() {
        let refused = [
            String::new(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-more"),
            format!("{GOOD} "),
            GOOD.to_uppercase(),
            GOOD.replace("00-", "ff-"),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace('-', "_"),
            GOOD.replace("b7ad", "+7ad"),
            format!("cc{}what", &GOOD[2..]),
            "é".repeat(40),
        ];
        for text in refused {
            assert_eq!(TraceParent::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(TraceParent::parse(&[0xff; 55]), None);
    }
}
