//! The service's log, line by line.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use serde_json::Value;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::client::Answer;

thread_local! {
    /// The destination of this thread's lines while a test captures them.
    static CAUGHT: RefCell<Option<Logs>> = const { RefCell::new(None) };
}

/// The captured lines of the current thread, at every level.
#[derive(Debug, Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

/// Captures until it is dropped.
#[derive(Debug)]
pub struct Catching(());

impl Drop for Catching {
    fn drop(&mut self) {
        CAUGHT.with(|caught| caught.borrow_mut().take());
    }
}

impl Logs {
    /// Installs the subscriber once for all tests: only capturing threads pay for it.
    pub(crate) fn start() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            let catching =
                dynamic_filter_fn(|_, _| CAUGHT.with(|caught| caught.borrow().is_some()));
            let lines = tracing_subscriber::fmt::layer()
                .json()
                .flatten_event(true)
                .with_writer(ToCatcher);
            tracing_subscriber::registry()
                .with(lines.with_filter(catching))
                .init();
        });
    }

    /// Captures until the second value is dropped. For tests on one thread.
    #[must_use]
    pub fn catch() -> (Self, Catching) {
        Self::start();
        let logs = Self::default();
        CAUGHT.with(|caught| caught.borrow_mut().replace(logs.clone()));
        (logs, Catching(()))
    }

    /// All lines captured so far.
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
            .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"));
        // The id is on the line itself or on its span.
        lines
            .filter(|line| line.to_string().contains(request))
            .collect()
    }

    /// The one line about a request and its response.
    #[must_use]
    #[track_caller]
    pub fn line_of(&self, answer: &Answer) -> Value {
        let request = answer.header("x-request-id").expect("a request id");
        let mut lines = self.of(request);
        lines.retain(|line| line.get("http.status").is_some());
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }

    /// Checks that the line about a request has these fields with these ids.
    #[track_caller]
    pub fn expect_ids(&self, answer: &Answer, ids: &[(&str, &str)]) {
        let line = self.line_of(answer);
        for (field, id) in ids {
            assert_eq!(line[*field].as_str(), Some(*id), "{field}: {line}");
        }
    }
}

struct ToCatcher;

impl io::Write for ToCatcher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAUGHT.with(|caught| {
            if let Some(logs) = &*caught.borrow() {
                logs.0.lock().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for ToCatcher {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        Self
    }
}
