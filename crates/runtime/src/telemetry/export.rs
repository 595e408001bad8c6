//! Traces to a collector, as OTLP over HTTP.
//!
//! Spans are gathered and sent by a thread of its own, so nothing that serves waits for a collector: where it is
//! slow or away, spans are dropped.

mod client;

use std::time::Duration;

use instruments::trace::{self, TraceParent};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState, TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::config::{ConfigError, TraceExport};
use client::Client;

/// Who the spans are of.
const SERVICE: &str = "pools-service";
/// How long one sending may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the program waits for the last sending when it ends.
const LAST: Duration = Duration::from_secs(2);

/// What sends spans.
#[derive(Debug)]
pub(super) struct TraceExporter(SdkTracerProvider);

impl TraceExporter {
    pub(super) fn finish(self) {
        // What could not be sent has been said by the client.
        let _ = self.0.shutdown_with_timeout(LAST);
    }
}

/// The layer that turns spans of the trace's target into what is sent.
pub(super) fn start<S>(
    wanted: &TraceExport,
) -> Result<(impl Layer<S> + Send + Sync + use<S>, TraceExporter), ConfigError>
where
    S: tracing::Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
{
    let path = wanted.collector.path().trim_end_matches('/');
    let mut address = wanted.collector.clone();
    address.set_path(&format!("{path}/v1/traces"));
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client::new(PATIENCE))
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(address.as_str())
        .with_timeout(PATIENCE)
        .build()
        .map_err(|fault| ConfigError {
            setting: "PENSTOCK_OTLP_ENDPOINT".to_owned(),
            expected: format!("the exporter cannot be made ({fault})"),
        })?;
    let share = f64::from(wanted.one_in).recip();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share)));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource())
        .build();
    trace::link_with(link);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("penstock"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    Ok((layer, TraceExporter(provider)))
}

fn resource() -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", SERVICE),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ])
        .build()
}

/// Ties a span to the trace of a client.
fn link(span: &Span, client: TraceParent) {
    let flags = if client.sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::default()
    };
    span.add_link(SpanContext::new(
        TraceId::from(client.trace_id),
        SpanId::from(client.span_id),
        flags,
        true,
        TraceState::default(),
    ));
}
