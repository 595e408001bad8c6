//! Logs and traces: one line per event on stderr, for machines or for people; spans to a collector.
//!
//! Separate threads write the lines and send the spans, so no request waits for either reader.

mod export;
mod levels;
mod lines;
mod queue;
mod text;

use std::io::{self, IsTerminal};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::time::Duration;

use instruments::trace;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::config::{ConfigError, LogFormat, TraceExport};
use export::TraceExporter;
use lines::Lines;
use queue::{CAPACITY, LogQueue};
use text::TextLines;

/// Timeout for the last lines of the log. The reader of stderr may have stalled.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// The queue of the installed subscriber.
static LOG: OnceLock<LogQueue> = OnceLock::new();

type Printing = Box<dyn Layer<Registry> + Send + Sync>;

/// The running telemetry. End it when the program ends.
#[derive(Debug, Default)]
pub struct Telemetry {
    exporting: Option<TraceExporter>,
}

impl Telemetry {
    /// Sends the remaining spans within two seconds, and writes the remaining lines within half a second.
    pub fn finish(mut self) {
        if let Some(exporting) = self.exporting.take() {
            exporting.finish();
        }
    }
}

impl Drop for Telemetry {
    /// Writes the remaining lines, also if the program ends early.
    fn drop(&mut self) {
        drain();
    }
}

/// Waits until the log is written, for half a second at most.
pub(crate) fn drain() {
    if let Some(queue) = LOG.get() {
        queue.drain(DRAIN_TIMEOUT);
    }
}

/// Starts logging, and sending traces if a collector is configured. Panics are logged in the same form. Changes nothing if
/// a subscriber is installed already, as in tests.
///
/// # Errors
/// An error that names the invalid variable.
pub fn start(format: LogFormat, traces: Option<&TraceExport>) -> Result<Telemetry, ConfigError> {
    let levels = levels::levels()?;
    let queue = LogQueue::start(io::stderr(), CAPACITY, |_, lines| log_dropped(lines));
    let queue = queue.map_err(|error| {
        ConfigError::new(
            "the log",
            format!("the thread that writes it cannot be started ({error})"),
        )
    })?;
    let printing = printing(format, queue.clone());
    let (started, exporting) = match traces {
        None => {
            let started = tracing_subscriber::registry().with(printing).with(levels);
            (started.try_init(), None)
        }
        Some(wanted) => {
            let (layer, exporting) = export::start(wanted)?;
            let only_spans = Targets::new().with_target(trace::TARGET, LevelFilter::DEBUG);
            let started = tracing_subscriber::registry()
                .with(printing.with_filter(levels))
                .with(layer.with_filter(only_spans));
            (started.try_init(), Some(exporting))
        }
    };
    if started.is_ok() {
        // No other queue is set, because only one subscriber is installed.
        let _ = LOG.set(queue);
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(Telemetry { exporting })
}

fn printing(format: LogFormat, queue: LogQueue) -> Printing {
    let lines = tracing_subscriber::fmt::layer().with_writer(move || queue.clone());
    match format {
        LogFormat::Json => Box::new(lines.fmt_fields(JsonFields::new()).event_format(Lines)),
        LogFormat::Text => {
            let lines = lines.with_ansi(io::stderr().is_terminal());
            Box::new(lines.event_format(TextLines))
        }
    }
}

/// Checks the levels of the log without starting it.
///
/// # Errors
/// An error that names the variable.
pub(crate) fn check_levels() -> Result<(), ConfigError> {
    levels::levels().map(drop)
}

/// Runs on the thread that writes the lines.
fn log_dropped(lines: u64) {
    tracing::warn!(
        log.dropped = lines,
        "Log lines were dropped, because the reader of stderr was too slow or a write failed"
    );
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    instruments::http::panicked();
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map(ToString::to_string);
    tracing::error!(
        panic.message = message,
        panic.location = location.as_deref(),
        "A task panicked"
    );
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    /// Collects the output of a layer.
    #[derive(Clone, Default)]
    pub(super) struct Written(Arc<Mutex<Vec<u8>>>);

    impl Written {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
