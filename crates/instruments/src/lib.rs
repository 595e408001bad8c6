//! All metrics with their names, units and labels, and the spans of traces.
//!
//! Adapters call the functions of the modules. A core is measured in the adapter that calls it. Before [`install`] nothing is
//! recorded, and each function costs one load. Label values are names in the code, never an id, a partner or another text of a
//! client, so the number of series is bounded.
//!
//! Dashboards and alerts depend on the names. `docs/metrics.md` lists them; a test compares the two.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub mod batch_queues;
pub mod directory;
pub mod failpoint;
pub mod faults;
pub mod http;
pub mod log;
mod process;
mod registry;
pub mod shared;
pub mod store;
pub mod trace;
pub mod trading;
pub mod upstream;
pub mod webhooks;

pub use registry::{Kind, MetricDoc};

use registry::MetricRegistry;

static METRICS: OnceLock<Metrics> = OnceLock::new();

/// All metrics.
#[derive(Debug)]
struct Metrics {
    book: MetricRegistry,
    http: http::Metrics,
    batch_queues: batch_queues::Metrics,
    store: store::Metrics,
    faults: faults::Metrics,
    trading: trading::Metrics,
    upstream: upstream::Metrics,
    directory: directory::Metrics,
    shared: shared::Metrics,
    webhooks: webhooks::Metrics,
    log: log::Metrics,
}

impl Metrics {
    fn new(program: &Program) -> Self {
        let mut book = MetricRegistry::default();
        Self {
            http: http::Metrics::new(&mut book),
            batch_queues: batch_queues::Metrics::new(&mut book),
            store: store::Metrics::new(&mut book),
            faults: faults::Metrics::new(&mut book),
            trading: trading::Metrics::new(&mut book),
            upstream: upstream::Metrics::new(&mut book),
            directory: directory::Metrics::new(&mut book),
            shared: shared::Metrics::new(&mut book),
            webhooks: webhooks::Metrics::new(&mut book),
            log: log::Metrics::new(&mut book),
            book: process::register(book, program),
        }
    }
}

fn metrics() -> Option<&'static Metrics> {
    METRICS.get()
}

/// Records something, unless nothing is recorded.
fn record<T>(recording: impl FnOnce(&'static Metrics) -> T) {
    if let Some(metrics) = metrics() {
        recording(metrics);
    }
}

/// The program that is measured.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The program's version.
    pub version: &'static str,
    /// The program's mode.
    pub mode: &'static str,
    /// The start of the program, in seconds since 1970.
    pub started: i64,
}

/// Starts recording. A second call changes nothing, because a process has one set of metrics.
pub fn install(program: &Program) {
    METRICS.get_or_init(|| Metrics::new(program));
}

/// Every metric in Prometheus' text format; empty before [`install`].
#[must_use]
pub fn render() -> String {
    metrics().map_or_else(String::new, |metrics| metrics.book.render())
}

/// Every metric, in the order of `/metrics`.
#[must_use]
pub fn catalogue() -> Vec<MetricDoc> {
    let nobody = Program {
        version: "",
        mode: "",
        started: 0,
    };
    Metrics::new(&nobody).book.into_entries()
}

/// Measures a duration. It reads no clock if nothing is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// Starts now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "a span that is only measured; nothing is decided on it"
    )]
    pub fn start() -> Self {
        Self(metrics().map(|_| Instant::now()))
    }

    /// The elapsed time; `None` if nothing is recorded.
    #[must_use]
    pub fn read(self) -> Option<Duration> {
        self.0.map(|begun| begun.elapsed())
    }
}
