//! Metrics: their listener, and their values after a typical sequence of requests.

use std::collections::{BTreeMap, BTreeSet};

use test_support::servers::Redis;

use crate::far_ends::{UpstreamServer, name_source};
use crate::served::{
    POOLS, eventually, file_for_acme, get, poll, provision, quote, text, transact,
};

const KEY: &str = "sk_test_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001";
const PAGE: &str = include_str!("../../../../docs/metrics.md");
const METRICS: (&str, &str) = ("METRICS_LISTEN", "127.0.0.1:0");

/// The value of a series in the text of `/metrics`.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("{series} in\n{metrics}"));
    line.parse().unwrap()
}

// rule: config.metrics-listen
#[test]
fn metrics_are_served_only_by_their_own_listener() {
    let folder = tempfile::tempdir().unwrap();
    let served = POOLS.start(folder.path(), &[METRICS]);
    let private = served.metrics_address();
    let response = get(&private, "/metrics");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(
        response.contains("content-type: text/plain; version=0.0.4"),
        "{response}"
    );
    for path in ["/", "/v1/pools", "/health", "/docs"] {
        let response = get(&private, path);
        assert!(response.starts_with("HTTP/1.1 404"), "{path}: {response}");
    }
    assert!(served.get("/metrics").starts_with("HTTP/1.1 404"));
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0));
    let scrapes = logged.lines().filter(|line| line.contains("\"/metrics\""));
    assert_eq!(
        scrapes.count(),
        0,
        "a request for metrics is not logged: {logged}"
    );
    let unmeasured = POOLS.start(folder.path(), &[]);
    let (_, logged) = unmeasured.end("-TERM");
    assert!(!logged.contains("metrics"), "{logged}");
}

#[test]
fn metrics_address_in_use_is_reported_with_its_variable() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let variables = [
        ("POOLS_LISTEN", "127.0.0.1:0"),
        ("METRICS_LISTEN", &address),
    ];
    let ended = POOLS.output(folder.path(), &[], &variables);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("PENSTOCK_METRICS_LISTEN"));
}

#[test]
fn typical_requests_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(KEY, None));
    let variables = [METRICS, ("THROTTLE_POOLS", "20/60s")];
    let served = POOLS.start(folder.path(), &variables);
    let private = served.metrics_address();
    let bearer = format!("Bearer {KEY}");
    let headers = [("Authorization", &*bearer)];

    let bought = quote(&served, &headers, "100.00");
    assert_eq!(transact(&served, &headers, &bought)["status"], "reserved");
    assert_eq!(transact(&served, &headers, &bought)["idempotent"], true);
    assert_eq!(poll(&served, &headers, &bought)["status"], "settled");
    let capped = quote(&served, &headers, "4900.00");
    assert_eq!(
        transact(&served, &headers, &capped)["code"],
        "velocity_cap_exceeded"
    );
    let unheld = quote(&served, &headers, "10.51");
    assert_eq!(
        transact(&served, &headers, &unheld)["code"],
        "reservation_failed"
    );
    served.send("GET /v1/pools/canary-path", &[], "");
    let list = || served.send("GET /v1/pools", &headers, "");
    while !list().starts_with("HTTP/1.1 429") {}

    let metrics = get(&private, "/metrics");
    let expected = [
        (
            "penstock_http_requests_total{route=\"/v1/pools/{id}/quote\",method=\"POST\",status=\"200\",code=\"\"}",
            3.0,
        ),
        (
            "penstock_http_requests_total{route=\"/v1/pools/{id}/transact\",method=\"POST\",status=\"429\",code=\"velocity_cap_exceeded\"}",
            1.0,
        ),
        (
            "penstock_http_requests_total{route=\"unmatched\",method=\"GET\",status=\"404\",code=\"route_not_found\"}",
            1.0,
        ),
        ("penstock_quotes_total{outcome=\"firm\",reason=\"\"}", 3.0),
        (
            "penstock_transacts_total{outcome=\"opened\",reason=\"\"}",
            1.0,
        ),
        (
            "penstock_transacts_total{outcome=\"existing\",reason=\"\"}",
            1.0,
        ),
        (
            "penstock_transacts_total{outcome=\"refused\",reason=\"velocity_cap_exceeded\"}",
            1.0,
        ),
        (
            "penstock_transacts_total{outcome=\"refused\",reason=\"reservation_failed\"}",
            1.0,
        ),
        (
            "penstock_trade_transitions_total{from=\"none\",to=\"reserved\"}",
            1.0,
        ),
        (
            "penstock_trade_transitions_total{from=\"reserved\",to=\"settled\"}",
            1.0,
        ),
        (
            "penstock_transactions_total{name=\"trade_apply\",outcome=\"committed\"}",
            1.0,
        ),
        (
            "penstock_engine_calls_total{operation=\"hold\",answer=\"refused\"}",
            1.0,
        ),
        (
            "penstock_engine_calls_total{operation=\"report\",answer=\"delivered\"}",
            1.0,
        ),
        (
            "penstock_throttle_refusals_total{group=\"pools\",counts=\"credential\",tier=\"short\"}",
            1.0,
        ),
        ("penstock_lane_depth{lane=\"transact\"}", 0.0),
        ("penstock_panics_total", 0.0),
    ];
    for (series, count) in expected {
        assert_eq!(
            value(&metrics, series).to_bits(),
            f64::to_bits(count),
            "{series}"
        );
    }
    for kind in ["guard", "inconsistent", "contradiction", "undoable"] {
        let series = format!("invariant_violations_total{{kind=\"{kind}\"}}");
        assert!(value(&metrics, &series).abs() < 0.5, "{series}");
    }
    for chosen in [
        "acme",
        "canary",
        "txn_",
        "pq_",
        "key_test_",
        "0x52908400098527886E",
    ] {
        assert!(!metrics.contains(chosen), "{chosen} in\n{metrics}");
    }
    served.end("-TERM");
}

/// The totals of all polls: transactions that claimed, applied and released a lease, reports, and contradictions.
fn done_by_polls(metrics: &str) -> [f64; 5] {
    let committed = |name: &str| {
        let series =
            format!("penstock_transactions_total{{name=\"{name}\",outcome=\"committed\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
        line.map_or(0.0, |count| count.parse().unwrap())
    };
    let reports = metrics.lines().filter_map(|line| {
        line.strip_prefix("penstock_engine_calls_total{operation=\"report\"")?
            .rsplit_once(' ')
    });
    let reports = reports.map(|(_, count)| count.parse::<f64>().unwrap());
    [
        committed("trade_claim"),
        committed("trade_apply"),
        committed("trade_unclaim"),
        reports.sum(),
        value(
            metrics,
            "invariant_violations_total{kind=\"contradiction\"}",
        ),
    ]
}

// rule: pools.poll.bounded, pools.trade.contradiction
#[test]
fn polls_write_and_ask_only_when_needed() {
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(KEY, None));
    let engine = UpstreamServer::start();
    let engine_url = engine.engine();
    let served = POOLS.start(folder.path(), &[METRICS, ("ENGINE", &engine_url)]);
    let private = served.metrics_address();
    let bearer = format!("Bearer {KEY}");
    let headers = [("Authorization", &*bearer)];
    let bought = quote(&served, &headers, "100.00");
    let trade = transact(&served, &headers, &bought)["transactId"].clone();
    let delivered = r#"{"status":"delivered","fillTxId":"fill-1"}"#;
    for (report, polls, status, done) in [
        // Each poll of a reserved trade asks the engine, and stores its attempt.
        (
            r#"{"status":"in_progress"}"#,
            3,
            "reserved",
            [3, 0, 0, 3, 0],
        ),
        (r#"{"status":"in doubt"}"#, 2, "reserved", [5, 0, 0, 5, 0]),
        (delivered, 1, "settled", [6, 1, 0, 6, 0]),
        // Each contradiction is counted, and the next poll asks again.
        (r#"{"status":"failed"}"#, 2, "settled", [8, 1, 2, 8, 2]),
        (r#"{"status":"released"}"#, 1, "settled", [9, 1, 3, 9, 3]),
        // After an unchanged report, later polls write nothing and do not ask the engine.
        (delivered, 1, "settled", [10, 1, 4, 10, 3]),
        (r#"{"status":"returned"}"#, 9, "settled", [10, 1, 4, 10, 3]),
    ] {
        engine.reports(report);
        for _ in 0..polls {
            let view = poll(&served, &headers, &bought);
            assert_eq!(view["status"], status, "{view}");
        }
        let so_far = done_by_polls(&get(&private, "/metrics"));
        assert_eq!(so_far, done.map(f64::from), "{report}");
    }
    let (_, logged) = served.end("-TERM");
    let errors = logged
        .lines()
        .filter(|line| line.contains("contradicts a settled trade"));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(errors.len(), 3, "{errors:#?}");
    let trade = trade.as_str().unwrap();
    assert!(errors.iter().all(|line| line.contains(trade)));
}

#[test]
fn gauges_are_read_from_database_at_start() {
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(KEY, None));
    let bearer = format!("Bearer {KEY}");
    let headers = [("Authorization", &*bearer)];
    let served = POOLS.start(folder.path(), &[]);
    for euros in ["10.00", "11.31", "12.21"] {
        let quote = quote(&served, &headers, euros);
        transact(&served, &headers, &quote);
        poll(&served, &headers, &quote);
    }
    served.end("-TERM");

    let served = POOLS.start(folder.path(), &[METRICS]);
    let private = served.metrics_address();
    let metrics = eventually(|| {
        let metrics = get(&private, "/metrics");
        let states = metrics.matches("penstock_trades{").count();
        (states == 5).then_some(metrics)
    });
    for (state, count) in [
        ("settled", 1),
        ("failed", 1),
        ("reserved", 1),
        ("released", 0),
        ("returned", 0),
    ] {
        let line = format!("\npenstock_trades{{state=\"{state}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} in\n{metrics}");
    }
    assert!(value(&metrics, "penstock_trade_oldest_reserved_age_seconds") < 3600.0);
    assert!(value(&metrics, "penstock_store_size_bytes{file=\"database\"}") > 4096.0);
    assert!(value(&metrics, "penstock_store_size_bytes{file=\"log\"}") >= 0.0);
    assert!(value(&metrics, "penstock_store_free_bytes") > 4096.0);
    assert!(value(&metrics, "penstock_store_clock_ahead_seconds") < 1.0);
    served.end("-TERM");
}

/// The name, type and labels of each metric in the table of the page.
fn listed() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| [`")?.split('|').map(str::trim);
        let (name, _) = cells.next()?.split_once('`')?;
        let (kind, _unit, labels) = (cells.next()?, cells.next()?, cells.next()?);
        let labels = labels.split(", ").filter(|label| !label.is_empty());
        let labels = labels.map(|label| label.trim_matches('`').to_owned());
        Some((name.to_owned(), (kind.to_owned(), labels.collect())))
    });
    rows.collect()
}

/// The metric of a sample, and the names of the sample's labels.
fn sample<'m>(line: &'m str, exported: &BTreeMap<&str, &str>) -> (&'m str, BTreeSet<String>) {
    let (series, _) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let of_histogram = ["_bucket", "_sum", "_count"]
        .into_iter()
        .find_map(|part| name.strip_suffix(part))
        .filter(|name| exported.get(name) == Some(&"histogram"));
    // No label value contains a comma.
    let labels = labels.trim_end_matches('}').split(',');
    let labels = labels.filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
    let labels = labels.filter(|label| label != "le");
    (of_histogram.unwrap_or(name), labels.collect())
}

/// The gauges that only the gate sets, with labels.
const OF_GATE: [&str; 2] = ["penstock_held_elsewhere", "penstock_rail_open_items"];

#[test]
fn metrics_page_lists_exactly_the_exported_metrics() {
    let folder = tempfile::tempdir().unwrap();
    provision(folder.path(), &[], &file_for_acme(KEY, None));
    let redis = Redis::start().unwrap();
    let url = redis.url();
    name_source(folder.path(), &UpstreamServer::start());
    let variables = [METRICS, ("REDIS_URL", &url), ("RATES", "http:rates.toml")];
    let served = POOLS.start(folder.path(), &variables);
    let bearer = format!("Bearer {KEY}");
    let headers = [("Authorization", &*bearer)];
    let bought = quote(&served, &headers, "100.00");
    transact(&served, &headers, &bought);
    poll(&served, &headers, &bought);
    let private = served.metrics_address();
    let metrics = eventually(|| {
        let metrics = get(&private, "/metrics");
        let sampled = ["penstock_trades{", "penstock_webhook_queue_depth{"];
        let all = sampled.iter().all(|series| metrics.contains(series));
        all.then_some(metrics)
    });
    let (_, metrics) = metrics.split_once("\r\n\r\n").unwrap();
    let described = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let exported: BTreeMap<&str, &str> = described.collect();
    let listed = listed();
    let kinds = listed.iter().map(|(name, (kind, _))| (&**name, &**kind));
    let kinds = kinds.filter(|(name, _)| !OF_GATE.contains(name));
    assert_eq!(exported, kinds.collect());
    let mut seen = BTreeSet::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = sample(line, &exported);
        let (_, expected) = &listed[name];
        assert_eq!(&labels, expected, "{line}");
        seen.insert(name);
    }
    let unseen: Vec<&&str> = exported
        .keys()
        .filter(|name| !seen.contains(**name))
        .collect();
    assert!(
        unseen.is_empty(),
        "described, but without a sample: {unseen:?}"
    );
    served.end("-TERM");
}
