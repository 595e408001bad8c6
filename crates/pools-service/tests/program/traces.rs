//! Traces: what a collector receives, and that no request waits for a collector.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use test_support::http::{Reply, Upstream, nowhere};

use crate::far_ends::UpstreamServer;
use crate::served::{POOLS, eventually, file_for_acme, poll, provision, quote, transact};

const KEY: &str = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001";
const CLIENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector that accepts every post.
pub(crate) struct Collector {
    pub(crate) address: String,
    played: Upstream,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let played = Upstream::start(|_| Reply::with(200, &[], ""));
        Self {
            address: played.url(),
            played,
        }
    }

    /// The head and body of each request.
    pub(crate) fn posted(&self) -> Vec<(String, Vec<u8>)> {
        let received = self.played.received().into_iter();
        received
            .map(|request| (request.head, request.body))
            .collect()
    }

    fn spans(&self) -> Vec<Span> {
        let posted = self.posted();
        let requests = posted
            .iter()
            .map(|(_, body)| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
        let scopes = requests
            .flat_map(|request| request.resource_spans)
            .flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let text = |attribute: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        let value = attribute.value.clone().and_then(|value| value.value);
        format!("{value:?}")
    };
    span.attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), text(attribute)))
        .collect()
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let found = spans.iter().find(|span| span.name == name);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    found.unwrap_or_else(|| panic!("{name} in {names:?}"))
}

// rule: upstream.http.trace-source
#[test]
fn transact_is_one_trace_from_request_to_engine() {
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(KEY, None));
    let (collector, far) = (Collector::start(), UpstreamServer::start());
    let engine = far.engine();
    let variables = [
        ("OTLP_ENDPOINT", collector.address.as_str()),
        ("ENGINE", engine.as_str()),
    ];
    let served = POOLS.start(folder.path(), &variables);
    let bearer = format!("Bearer {KEY}");
    let headers = [("Authorization", &*bearer), ("traceparent", CLIENT)];
    let bought = quote(&served, &headers[..1], "100.00");
    transact(&served, &headers, &bought);
    let malformed = [("Authorization", &*bearer), ("traceparent", "00-xyz-01")];
    poll(&served, &malformed, &bought);
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0));
    assert!(!logged.contains("otel"), "spans are not logged: {logged}");

    let (head, _) = collector.posted().remove(0);
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert!(
        head.contains("content-type: application/x-protobuf"),
        "{head}"
    );
    let spans = collector.spans();
    let request = named(&spans, "POST /v1/pools/{id}/transact");
    let by_id: BTreeMap<&[u8], &Span> = spans
        .iter()
        .map(|span| (span.span_id.as_slice(), span))
        .collect();
    let root_of = |span: &Span| {
        let mut at = by_id[span.span_id.as_slice()];
        while let Some(parent) = by_id.get(at.parent_span_id.as_slice()) {
            at = parent;
        }
        at.name.clone()
    };
    assert!(
        request.parent_span_id.is_empty(),
        "a client's trace is never continued"
    );
    let linked: Vec<(String, String)> = request
        .links
        .iter()
        .map(|link| (hex::encode(&link.trace_id), hex::encode(&link.span_id)))
        .collect();
    let client = (
        "0af7651916cd43dd8448eb211c80319c".to_owned(),
        "b7ad6b7169203331".to_owned(),
    );
    assert_eq!(linked, [client]);
    let [trace_id, span_id] = [&request.trace_id, &request.span_id].map(hex::encode);
    let own = format!("\r\ntraceparent: 00-{trace_id}-{span_id}-01\r\n");
    let calls = far.heads().into_iter();
    let hold = calls
        .filter(|head| head.contains("/hold "))
        .collect::<String>();
    assert!(hold.contains(&own), "{own} in {hold}");
    assert_eq!(root_of(named(&spans, "transact")), request.name);
    assert_eq!(root_of(named(&spans, "engine hold")), request.name);
    let polled = named(&spans, "GET /v1/pools/transactions/{quoteId}");
    assert!(
        polled.links.is_empty(),
        "a malformed header counts as absent"
    );
    let applied = |span: &&Span| {
        span.name == "transaction" && attributes(span)["transaction.name"].contains("trade_apply")
    };
    assert_eq!(root_of(spans.iter().find(applied).unwrap()), polled.name);
    let batches: Vec<&Span> = spans
        .iter()
        .filter(|span| span.name == "lane.batch")
        .collect();
    assert_eq!(batches.len(), 2);
    assert!(
        batches
            .iter()
            .all(|batch| batch.links.len() == 1 && batch.parent_span_id.is_empty())
    );
    let attributes = attributes(request);
    assert!(
        attributes["http.response.status_code"].contains("200"),
        "{attributes:?}"
    );
    assert!(attributes["request.id"].contains("req_"), "{attributes:?}");
}

#[test]
fn unreachable_collector_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("http://{}", nowhere());
    let served = POOLS.start(folder.path(), &[("OTLP_ENDPOINT", &address)]);
    for _ in 0..50 {
        served.get("/v1/pools");
    }
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0));
    let said = logged.matches("Failed to send traces").count();
    assert_eq!(said, 1, "{logged}");
}

#[test]
fn one_trace_in_n_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start();
    let variables = [
        ("OTLP_ENDPOINT", collector.address.as_str()),
        ("OTLP_ONE_IN", "10"),
    ];
    let served = POOLS.start(folder.path(), &variables);
    for _ in 0..400 {
        served.get("/v1/pools");
    }
    served.end("-TERM");
    let spans = eventually(|| Some(collector.spans()).filter(|spans| !spans.is_empty()));
    let recorded = spans
        .iter()
        .filter(|span| span.name == "GET /v1/pools")
        .count();
    assert!((5..120).contains(&recorded), "{recorded} of 400");
}
