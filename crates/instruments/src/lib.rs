//! What is measured: every metric with its name, unit and labels, and the spans of a trace.
//!
//! Adapters call the functions of the modules; a core is measured where an adapter calls it. Nothing is
//! recorded before [`install`]: until then each function costs one load. Labels take words of the code only,
//! never an id, a partner or anything else a client chooses, so the number of series is bounded.
//!
//! The names are what dashboards and alerts rest on. `docs/metrics.md` lists them; a test compares.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub mod batch_queues;
pub mod directory;
pub mod failpoint;
pub mod faults;
pub mod http;
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

/// Everything that is recorded.
#[derive(Debug)]
struct Metrics {
    book: MetricRegistry,
    http: http::Metrics,
    lanes: batch_queues::Metrics,
    store: store::Metrics,
    faults: faults::Metrics,
    trading: trading::Metrics,
    far_end: upstream::Metrics,
    directory: directory::Metrics,
    shared: shared::Metrics,
    webhooks: webhooks::Metrics,
}

impl Metrics {
    fn new(program: &Program) -> Self {
        let mut book = MetricRegistry::default();
        Self {
            http: http::Metrics::new(&mut book),
            lanes: batch_queues::Metrics::new(&mut book),
            store: store::Metrics::new(&mut book),
            faults: faults::Metrics::new(&mut book),
            trading: trading::Metrics::new(&mut book),
            far_end: upstream::Metrics::new(&mut book),
            directory: directory::Metrics::new(&mut book),
            shared: shared::Metrics::new(&mut book),
            webhooks: webhooks::Metrics::new(&mut book),
            book: process::register(book, program),
        }
    }
}

fn metrics() -> Option<&'static Metrics> {
    METRICS.get()
}

/// The program that is measured.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its version.
    pub version: &'static str,
    /// The mode it serves.
    pub mode: &'static str,
    /// When it was started, in seconds since 1970.
    pub started: i64,
}

/// Begins to record. A second call changes nothing: a process has one set of metrics, whatever it serves.
pub fn install(program: &Program) {
    METRICS.get_or_init(|| Metrics::new(program));
}

/// Every metric in Prometheus' text format; empty where nothing is recorded.
#[must_use]
pub fn render() -> String {
    metrics().map_or_else(String::new, |metrics| metrics.book.render())
}

/// Every metric there is, in the order of `/metrics`.
#[must_use]
pub fn catalogue() -> Vec<MetricDoc> {
    let nobody = Program {
        version: "",
        mode: "",
        started: 0,
    };
    Metrics::new(&nobody).book.into_entries()
}

/// Measures a span. It stands still where nothing is recorded, so that nobody pays for the clock in vain.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// Begins now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "a span that is only measured; nothing is decided on it"
    )]
    pub fn start() -> Self {
        Self(metrics().map(|_| Instant::now()))
    }

    /// How long it has run.
    #[must_use]
    pub fn read(self) -> Option<Duration> {
        self.0.map(|begun| begun.elapsed())
    }
}
