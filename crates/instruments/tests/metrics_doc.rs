//! `docs/metrics.md` lists what the code records: the page is generated from the same registry as `/metrics`.
//!
//! `cargo xtask openapi` rewrites it.

use std::collections::BTreeSet;
use std::fmt::Write;

use instruments::{Kind, MetricDoc, catalogue};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

const INTRODUCTION: &str = "\
# Metrics

<!-- Generated from the code by `cargo xtask openapi`; do not edit. -->

`PENSTOCK_METRICS_LISTEN=127.0.0.1:9464` opens a separate listener. It serves `GET /metrics` in Prometheus' text format, and
returns 404 for everything else. The public listener never serves metrics. Without the variable nothing is recorded.

- No label names a partner, a key, a quote or a trade: all label values are fixed words of the code. `route` is a row of the
  route table, `code` and `reason` are codes of [errors](errors.md), `name` is the name of a transaction.
- Metrics with `lane` in their name are about the batch queues. The label `lane` names the queue.
- Counters that an alert uses start at 0. Other series appear with their first value.
- Sampled gauges are updated every 15 seconds. If the store does not respond, they keep their last value, and
  `penstock_store_faults_total` grows.
- Durations are in seconds. Histograms have classic buckets.

`deploy/prometheus` has an example configuration and alert rules, `deploy/grafana` a dashboard. The alerts link to
[operating](operating.md).

| metric | type | unit | labels |
| --- | --- | --- | --- |
";

/// The page that the code generates.
fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    let entries = catalogue();
    for entry in &entries {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "| [`{0}`](#{0}) | {1} | {2} | {3} |",
            entry.name,
            entry.kind.as_str(),
            entry.unit(),
            labels(entry)
        );
    }
    entries.iter().for_each(|entry| section(&mut text, entry));
    text
}

fn labels(entry: &MetricDoc) -> String {
    let quoted: Vec<String> = entry
        .labels
        .iter()
        .map(|label| format!("`{label}`"))
        .collect();
    quoted.join(", ")
}

/// The heading is only the name, so that the anchor equals the name.
fn section(text: &mut String, entry: &MetricDoc) {
    let _ = write!(text, "\n## {}\n\n{}.\n", entry.name, wrapped(entry.help));
    if entry.kind == Kind::Histogram {
        let bounds: Vec<String> = entry.bounds.iter().map(f64::to_string).collect();
        let _ = writeln!(text, "Upper bounds of the buckets: {}.", bounds.join(", "));
    }
}

/// Wraps the text in lines of at most 138 characters, which leaves space for a full stop.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let gap = match length {
            0 => "",
            _ if length + word.len() < 138 => " ",
            _ => "\n",
        };
        length = if gap == "\n" { 0 } else { length + gap.len() } + word.len();
        lines.push_str(gap);
        lines.push_str(word);
    }
    lines
}

#[test]
fn page_lists_every_metric() {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|set| set == "1") {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/metrics.md is out of date; run `cargo xtask openapi`"
    );
}

#[test]
fn names_and_labels_follow_prometheus_rules() {
    let entries = catalogue();
    let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), entries.len(), "every name is unique");
    let word = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    for entry in &entries {
        assert!(word(entry.name), "{}", entry.name);
        assert_eq!(
            entry.name.ends_with("_total"),
            entry.kind == Kind::Counter,
            "{}",
            entry.name
        );
        // The library describes a counter under its name without the suffix.
        let base = entry.name.strip_suffix("_total");
        assert!(
            !base.is_some_and(|base| names.contains(base)),
            "{}",
            entry.name
        );
        assert!(
            !entry.help.ends_with('.') && entry.help.len() > 10,
            "{}",
            entry.name
        );
        // A label chosen by a client or a partner would create an unbounded number of series.
        for label in &entry.labels {
            let open = ["partner", "key", "id", "quote", "trade", "address", "path"];
            assert!(
                word(label) && !open.contains(label),
                "{} {label}",
                entry.name
            );
        }
        assert!(entry.bounds.is_sorted(), "{}", entry.name);
    }
}
