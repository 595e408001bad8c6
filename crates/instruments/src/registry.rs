//! The registry of all metrics: each is registered once, with its name, help and labels, and is part of every response of
//! `/metrics`.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    EncodeLabel as _, EncodeLabelSet, EncodeMetric, LabelSetEncoder, MetricEncoder, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Histogram bounds for requests, calls and batches: from a tenth of a millisecond to ten seconds.
pub(crate) const SPANS: &[f64] = &[
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only increases, from zero at the program's start.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Counts values by size.
    Histogram,
}

impl Kind {
    /// The type's name in the text format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric's row in the documentation.
#[derive(Debug, Clone)]
pub struct MetricDoc {
    /// The metric's full name.
    pub name: &'static str,
    /// The metric's type.
    pub kind: Kind,
    /// The help text: one sentence without a full stop.
    pub help: &'static str,
    /// The names of the metric's labels.
    pub labels: Vec<&'static str>,
    /// The upper bounds of a histogram.
    pub bounds: &'static [f64],
}

impl MetricDoc {
    /// The unit of a value: seconds or bytes by the name's suffix, otherwise a count.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        let base = self.name.strip_suffix("_total").unwrap_or(self.name);
        ["seconds", "bytes"]
            .into_iter()
            .find(|unit| base.ends_with(unit))
            .unwrap_or("count")
    }
}

#[derive(Debug, Default)]
pub(crate) struct MetricRegistry {
    registry: Registry,
    entries: Vec<MetricDoc>,
}

impl MetricRegistry {
    pub(crate) fn counters<const N: usize>(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Counters<N> {
        let family = Family::<Labels<N>, Counter>::default();
        self.enter(name, Kind::Counter, help, &labels, &[]);
        // The library adds the suffix of a counter's samples itself.
        let base = name.strip_suffix("_total").unwrap_or(name);
        self.registry.register(base, help, family.clone());
        Counters {
            names: labels,
            family,
        }
    }

    pub(crate) fn counter(&mut self, name: &'static str, help: &'static str) -> Counter {
        let counter = Counter::default();
        self.enter(name, Kind::Counter, help, &[], &[]);
        let base = name.strip_suffix("_total").unwrap_or(name);
        self.registry.register(base, help, counter.clone());
        counter
    }

    pub(crate) fn gauges<const N: usize>(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Gauges<N> {
        let family = Family::<Labels<N>, Gauge>::default();
        self.enter(name, Kind::Gauge, help, &labels, &[]);
        self.registry.register(name, help, family.clone());
        Gauges {
            names: labels,
            family,
        }
    }

    /// A gauge for each of a few names that are known only at run time, by a kind.
    pub(crate) fn named_gauges(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; 2],
    ) -> NamedGauges {
        let family = Family::default();
        self.enter(name, Kind::Gauge, help, &labels, &[]);
        self.registry.register(name, help, Family::clone(&family));
        NamedGauges {
            labels,
            family,
            names: Mutex::default(),
        }
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str) -> Gauge {
        let gauge = Gauge::default();
        self.enter(name, Kind::Gauge, help, &[], &[]);
        self.registry.register(name, help, gauge.clone());
        gauge
    }

    /// A gauge that is not exported before it is set.
    pub(crate) fn measured_gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
    ) -> MeasuredGauge {
        let gauge = MeasuredGauge::default();
        self.enter(name, Kind::Gauge, help, &[], &[]);
        self.registry.register(name, help, gauge.clone());
        gauge
    }

    pub(crate) fn histograms<const N: usize>(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        bounds: &'static [f64],
    ) -> Histograms<N> {
        let family = Family::new_with_constructor(Bounds(bounds));
        self.enter(name, Kind::Histogram, help, &labels, bounds);
        self.registry.register(name, help, family.clone());
        Histograms {
            names: labels,
            family,
        }
    }

    pub(crate) fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        bounds: &'static [f64],
    ) -> Histogram {
        let histogram = Bounds(bounds).new_metric();
        self.enter(name, Kind::Histogram, help, &[], bounds);
        self.registry.register(name, help, histogram.clone());
        histogram
    }

    /// Metrics that are read for each response.
    pub(crate) fn collect(&mut self, collector: impl Collector, entries: &[MetricDoc]) {
        self.entries.extend_from_slice(entries);
        self.registry.register_collector(Box::new(collector));
    }

    fn enter(
        &mut self,
        name: &'static str,
        kind: Kind,
        help: &'static str,
        labels: &[&'static str],
        bounds: &'static [f64],
    ) {
        self.entries.push(MetricDoc {
            name,
            kind,
            help,
            labels: labels.to_vec(),
            bounds,
        });
    }

    pub(crate) fn into_entries(self) -> Vec<MetricDoc> {
        self.entries
    }

    /// Prometheus' text format 0.0.4. The library writes OpenMetrics, which describes a counter without its suffix. Here the
    /// description has the name of the counter's samples.
    pub(crate) fn render(&self) -> String {
        let mut written = String::with_capacity(32 * 1024);
        if text::encode_registry(&mut written, &self.registry).is_err() {
            // Only a metric whose encoding fails could cause this error, and ours do not fail.
            return String::new();
        }
        let counters: BTreeSet<&str> = self
            .entries
            .iter()
            .filter(|entry| entry.kind == Kind::Counter)
            .filter_map(|entry| entry.name.strip_suffix("_total"))
            .collect();
        let mut text = String::with_capacity(written.len() + 2048);
        for line in written.lines() {
            match described(line).filter(|(_, name, _)| counters.contains(name)) {
                Some((what, name, rest)) => {
                    text.push_str(what);
                    text.push_str(name);
                    text.push_str("_total ");
                    text.push_str(rest);
                }
                None => text.push_str(line),
            }
            text.push('\n');
        }
        text
    }
}

/// A line that describes a metric: its keyword, the metric's name, and the rest.
fn described(line: &str) -> Option<(&str, &str, &str)> {
    let (what, rest) = ["# HELP ", "# TYPE "]
        .into_iter()
        .find_map(|what| Some((what, line.strip_prefix(what)?)))?;
    let (name, rest) = rest.split_once(' ')?;
    Some((what, name, rest))
}

/// The values of a metric's labels, in the order of the names. They are texts of the code, never of a client.
#[derive(Debug, Clone)]
pub(crate) struct Labels<const N: usize> {
    names: [&'static str; N],
    values: [&'static str; N],
}

/// All series of a metric have the same names, so the values alone distinguish them.
impl<const N: usize> PartialEq for Labels<N> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl<const N: usize> Eq for Labels<N> {}

impl<const N: usize> Hash for Labels<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values.hash(state);
    }
}

impl<const N: usize> EncodeLabelSet for Labels<N> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for label in self.names.into_iter().zip(self.values) {
            label.encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

/// Creates the histograms of one metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds(&'static [f64]);

impl MetricConstructor<Histogram> for Bounds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

macro_rules! by_labels {
    ($($(#[$doc:meta])* $name:ident of $metric:ident made by $maker:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name<const N: usize> {
            names: [&'static str; N],
            family: Family<Labels<N>, $metric, $maker>,
        }

        impl<const N: usize> $name<N> {
            /// The series of these values. Keep it if it is used often.
            pub(crate) fn of(&self, values: [&'static str; N]) -> $metric {
                self.family.get_or_create_owned(&self.labels(values))
            }

            /// Creates series before anything is recorded in them. A counter that is first scraped at 1 shows no increase.
            pub(crate) fn begin(&self, values: impl IntoIterator<Item = [&'static str; N]>) {
                for values in values {
                    drop(self.family.get_or_create(&self.labels(values)));
                }
            }

            const fn labels(&self, values: [&'static str; N]) -> Labels<N> {
                Labels { names: self.names, values }
            }
        }
    )*};
}

by_labels! {
    /// A counter for each combination of labels.
    Counters of Counter made by fn() -> Counter;
    /// A gauge for each combination of labels.
    Gauges of Gauge made by fn() -> Gauge;
    /// A histogram for each combination of labels.
    Histograms of Histogram made by Bounds;
}

impl<const N: usize> Counters<N> {
    pub(crate) fn inc(&self, values: [&'static str; N]) {
        self.family.get_or_create(&self.labels(values)).inc();
    }

    pub(crate) fn add(&self, values: [&'static str; N], count: u64) {
        self.family
            .get_or_create(&self.labels(values))
            .inc_by(count);
    }
}

impl<const N: usize> Gauges<N> {
    pub(crate) fn set(&self, values: [&'static str; N], value: u64) {
        self.family
            .get_or_create(&self.labels(values))
            .set(saturated(value));
    }
}

/// A figure that some programs do not measure. A gauge that is only registered would be exported as 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeasuredGauge(Arc<OnceLock<Gauge>>);

impl MeasuredGauge {
    pub(crate) fn set(&self, value: u64) {
        self.0.get_or_init(Gauge::default).set(saturated(value));
    }
}

impl EncodeMetric for MeasuredGauge {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.get().map_or(Ok(()), |gauge| gauge.encode(encoder))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl<const N: usize> Histograms<N> {
    pub(crate) fn observe(&self, values: [&'static str; N], value: f64) {
        self.family
            .get_or_create(&self.labels(values))
            .observe(value);
    }

    pub(crate) fn took(&self, values: [&'static str; N], span: Duration) {
        self.observe(values, span.as_secs_f64());
    }
}

/// Gauges whose names are known only at run time.
#[derive(Debug)]
pub(crate) struct NamedGauges {
    labels: [&'static str; 2],
    family: Family<Vec<(&'static str, String)>, Gauge>,
    /// The kinds and names that were ever set.
    names: Mutex<BTreeSet<(&'static str, String)>>,
}

impl NamedGauges {
    /// Sets the gauges of a kind to these values, and the others of the kind to zero.
    pub(crate) fn replace(&self, kind: &'static str, values: &[(String, u64)]) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.extend(values.iter().map(|(name, _)| (kind, name.clone())));
        for (of, name) in names.iter().filter(|(of, _)| *of == kind) {
            let value = values.iter().find(|(named, _)| named == name);
            let value = value.map_or(0, |(_, value)| *value);
            let [first, second] = self.labels;
            let labels = vec![(first, (*of).to_owned()), (second, name.clone())];
            self.family.get_or_create(&labels).set(saturated(value));
        }
    }
}

pub(crate) fn saturated(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_is_described_under_its_sample_name() {
        let mut book = MetricRegistry::default();
        let doors = book.counters("doors_total", "Doors opened", ["colour", "side"]);
        let open = book.gauge("doors_open", "Doors that are open");
        let spans = book.histogram("door_seconds", "How long a door was open", &[0.5]);
        doors.inc(["red", "left"]);
        doors.add(["red", "left"], 2);
        open.set(7);
        spans.observe(0.25);
        let text = book.render();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "# HELP doors_total Doors opened.",
                "# TYPE doors_total counter",
                "doors_total{colour=\"red\",side=\"left\"} 3",
                "# HELP doors_open Doors that are open.",
                "# TYPE doors_open gauge",
                "doors_open 7",
                "# HELP door_seconds How long a door was open.",
                "# TYPE door_seconds histogram",
                "door_seconds_sum 0.25",
                "door_seconds_count 1",
                "door_seconds_bucket{le=\"0.5\"} 1",
                "door_seconds_bucket{le=\"+Inf\"} 1",
            ]
        );
    }

    #[test]
    fn started_series_is_zero() {
        let mut book = MetricRegistry::default();
        book.counters("doors_total", "Doors opened", ["colour"])
            .begin([["red"], ["blue"]]);
        let text = book.render();
        assert!(text.contains("doors_total{colour=\"red\"} 0\n"), "{text}");
        assert!(text.contains("doors_total{colour=\"blue\"} 0\n"), "{text}");
    }

    #[test]
    fn name_suffix_is_the_unit() {
        let mut book = MetricRegistry::default();
        book.counter("cpu_seconds_total", "Time");
        book.gauge("heap_bytes", "Memory");
        book.gauge("doors", "Doors");
        let units: Vec<&str> = book.into_entries().iter().map(MetricDoc::unit).collect();
        assert_eq!(units, ["seconds", "bytes", "count"]);
    }
}
