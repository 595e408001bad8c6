//! Traces to a collector, as OTLP over HTTP.
//!
//! A separate thread collects and sends spans, so no request waits for a collector. Spans are dropped if the collector is slow or
//! unreachable.

mod client;

use std::collections::HashMap;
use std::time::Duration;

use instruments::trace::{self, Exporter};
use kernel::TraceParent;
use opentelemetry::KeyValue;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider,
};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use secrecy::ExposeSecret as _;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::config::{ConfigError, TraceExport};
use client::Client;

/// The service name of all spans.
const SERVICE: &str = "pools-service";
/// Timeout of one request to the collector.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the last request when the program ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Collects and sends spans.
#[derive(Debug)]
pub(super) struct TraceExporter(SdkTracerProvider);

impl TraceExporter {
    pub(super) fn finish(self) {
        // The client has logged every failed request.
        let _ = self.0.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
    }
}

/// The layer that passes spans of the trace's target to the exporter.
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
        .with_http_client(Client::new(TIMEOUT))
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(address.as_str())
        .with_timeout(TIMEOUT)
        .with_headers(headers(wanted))
        .build()
        .map_err(|error| {
            ConfigError::new(
                "PENSTOCK_OTLP_ENDPOINT",
                format!("the exporter cannot be created ({error})"),
            )
        })?;
    let share = f64::from(wanted.one_in).recip();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share)));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource())
        .build();
    trace::export_with(Exporter { link, position });
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("penstock"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    Ok((layer, TraceExporter(provider)))
}

fn headers(wanted: &TraceExport) -> HashMap<String, String> {
    let headers = wanted.headers.iter();
    headers
        .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
        .collect()
}

fn resource() -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", SERVICE),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ])
        .build()
}

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

/// The ids of a span, which a span that is not sampled has too. `None` after the exporter has ended.
fn position(span: &Span) -> Option<TraceParent> {
    let started = span.context();
    let context = started.span().span_context().clone();
    context.is_valid().then(|| TraceParent {
        trace_id: u128::from_be_bytes(context.trace_id().to_bytes()),
        span_id: u64::from_be_bytes(context.span_id().to_bytes()),
        sampled: context.is_sampled(),
    })
}
