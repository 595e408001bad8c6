//! Recorded requests: the one example of each published operation, for suites that send a request to every operation.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

const FILES: [&str; 2] = [
    include_str!("../../../crates/pools-http/src/examples.json"),
    include_str!("../../../crates/gate-http/src/examples.json"),
];

/// A request without its credential.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recorded {
    pub method: String,
    /// The path below the host, with its query.
    pub path: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body in JSON.
    #[serde(rename = "request", skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// The recorded request of an operation.
///
/// # Panics
/// Without a record. The message says how to add one.
#[must_use]
pub fn recorded(operation: &str) -> &'static Recorded {
    static RECORDS: OnceLock<BTreeMap<String, Recorded>> = OnceLock::new();
    let records = RECORDS.get_or_init(|| {
        let files = FILES.map(|file| {
            let read: BTreeMap<String, Recorded> =
                serde_json::from_str(file).expect("examples.json");
            read
        });
        let count: usize = files.iter().map(BTreeMap::len).sum();
        let records: BTreeMap<String, Recorded> = files.into_iter().flatten().collect();
        assert_eq!(records.len(), count, "two operations have one id");
        records
    });
    records.get(operation).unwrap_or_else(|| {
        panic!(
            "{operation} has no recorded request: send one in tests/acceptance/api/examples.rs, then run twice `PENSTOCK_RECORD_EXAMPLES=1 cargo test --workspace --test api -- examples::`"
        )
    })
}

impl Recorded {
    /// The same request about other objects: `replace` returns the text in place of a segment of the path, a value of the query or
    /// a header, or a text of the body.
    #[must_use]
    pub fn about(&self, replace: impl Fn(&str) -> Option<String>) -> Self {
        let other = |text: &str| replace(text).unwrap_or_else(|| text.to_owned());
        let mut body = self.body.clone();
        body.iter_mut().for_each(|body| fill(body, &other));
        let headers = self.headers.iter();
        Self {
            method: self.method.clone(),
            path: split_inclusive(&self.path)
                .map(|(text, end)| other(text) + end)
                .collect(),
            headers: headers
                .map(|(name, value)| (name.clone(), other(value)))
                .collect(),
            body,
        }
    }
}

/// The parts of a path and its query, each with the delimiter after it.
fn split_inclusive(path: &str) -> impl Iterator<Item = (&str, &str)> {
    path.split_inclusive(['/', '?', '&', '=']).map(|part| {
        let text = part.trim_end_matches(['/', '?', '&', '=']);
        part.split_at(text.len())
    })
}

fn fill(value: &mut Value, other: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = other(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, other)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, other)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What an id says about the kind of its object, such as `gs_test_`; `None` for other texts.
#[must_use]
pub fn kind_of(text: &str) -> Option<&str> {
    let (kind, unique) = text.split_at_checked(text.len().checked_sub(26)?)?;
    let is_id = kind.ends_with('_') && unique.parse::<ulid::Ulid>().is_ok();
    is_id.then_some(kind)
}

/// An id of the same kind that no object has; `None` for other texts.
#[must_use]
pub fn unknown_for(text: &str) -> Option<String> {
    kind_of(text).map(|kind| format!("{kind}01HF7YAT00408104G208104081"))
}
