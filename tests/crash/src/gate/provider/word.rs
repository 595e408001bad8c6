//! What a provider says about a payment or a user.

use kernel::Timestamp;
use serde_json::{Map, Value, json};
use test_support::http::Reply;

/// The page that a proxy sends for a path that it does not know.
const PROXY_PAGE: &str = "<html><body>404 Not Found</body></html>";

/// What has arrived of a payment, compared with what its customer pays, as a report says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gate) enum Arrived {
    /// The report does not say it.
    Unsaid,
    Whole,
    Less,
    More,
    /// Another currency, asset or network.
    Other,
}

/// A response of the contract that knows its payment or its user, and that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gate) struct Word {
    pub(in crate::gate) at: Timestamp,
    pub(in crate::gate) status: &'static str,
    pub(in crate::gate) arrived: Arrived,
}

impl Word {
    pub(in crate::gate) const fn new(status: &'static str, at: Timestamp) -> Self {
        Self {
            at,
            status,
            arrived: Arrived::Unsaid,
        }
    }

    /// Whether the gate may apply the status to a payment that is processing.
    pub(in crate::gate) fn is_sound(&self) -> bool {
        match self.arrived {
            Arrived::Unsaid | Arrived::Whole => true,
            Arrived::Less | Arrived::More => self.status != "settled",
            Arrived::Other => false,
        }
    }
}

/// A report before it is rendered.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) status: &'static str,
    pub(super) arrived: Arrived,
    /// Further fields.
    pub(super) fields: Map<String, Value>,
}

impl Report {
    /// A report of a status and of no other field.
    pub(super) fn of(status: &'static str) -> Self {
        Self {
            status,
            arrived: Arrived::Unsaid,
            fields: Map::new(),
        }
    }

    pub(super) fn with_received(self, arrived: Arrived, received: Map<String, Value>) -> Self {
        let report = self.with("received", Value::Object(received));
        Self { arrived, ..report }
    }

    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }
}

/// A response before it is sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// What the response says if it is sent.
    pub(super) word: Option<Word>,
}

impl Answer {
    /// A response with status 200 that says nothing about the state of its object.
    pub(super) fn body(body: &Value) -> Self {
        Self {
            reply: Reply::kept(200, &[], &body.to_string()),
            word: None,
        }
    }

    /// A response with the id and the status of its object.
    pub(super) fn says(id: &str, word: Word) -> Self {
        let body = json!({ "id": id, "status": word.status });
        Self {
            word: Some(word),
            ..Self::body(&body)
        }
    }

    /// A response with a report.
    pub(super) fn reports(id: &str, report: &Report, now: Timestamp) -> Self {
        let mut fields = report.fields.clone();
        fields.insert("id".to_owned(), json!(id));
        fields.insert("status".to_owned(), json!(report.status));
        Self {
            word: Some(Word {
                arrived: report.arrived,
                ..Word::new(report.status, now)
            }),
            ..Self::body(&Value::Object(fields))
        }
    }

    /// A valid response about another id.
    pub(super) fn about_another(id: &str, status: &'static str) -> Self {
        Self::body(&json!({ "id": another(id), "status": status }))
    }

    /// An error with the id.
    pub(super) fn refuses(status: u16, id: &str) -> Self {
        let body = json!({ "id": id }).to_string();
        Self {
            reply: Reply::kept(status, &[], &body),
            word: None,
        }
    }

    /// The 404 of a proxy.
    pub(super) fn proxy_page() -> Self {
        Self {
            reply: Reply::with(404, &[("Content-Type", "text/html")], PROXY_PAGE),
            word: None,
        }
    }

    /// No response, until the gate gives up.
    pub(super) const fn silence() -> Self {
        Self {
            reply: Reply::Waits,
            word: None,
        }
    }
}

/// Another id of the same form.
pub(super) fn another(id: &str) -> String {
    let mut other = id.to_owned();
    let last = other.pop();
    other.push(if last == Some('0') { '1' } else { '0' });
    other
}
