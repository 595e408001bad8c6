//! What the service logs, line by line, as its operator would read it.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Catches every line that the current thread logs, at every level.
#[derive(Debug, Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Catches from now on, as long as the second value lives. For tests on one thread.
    #[must_use]
    pub fn catch() -> (Self, impl Sized) {
        let logs = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .json()
            .flatten_event(true)
            .with_writer(logs.clone())
            .finish();
        (logs, subscriber.set_default())
    }

    /// Everything caught so far.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).expect("logs are UTF-8")
    }

    /// The lines about one request.
    #[must_use]
    pub fn of(&self, request: &str) -> Vec<Value> {
        let text = self.text();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
        // The id stands on the line itself, or on the span it was logged within.
        lines
            .filter(|line| line.to_string().contains(request))
            .collect()
    }
}

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Logs {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}
