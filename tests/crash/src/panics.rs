//! A panic in every handler that the contract names, at its start and at its end.
//!
//! The client receives the envelope of a 500, no database connection is lost, and no change is partial.

mod pools;

use std::net::SocketAddr;
use std::path::Path;

use http_kit::Document;
use http_kit::openapi::to_value;
use instruments::failpoint::Side as Edge;
use serde_json::Value;
use test_support::recorded::{kind_of, recorded};

use crate::Result;
use crate::caller::number;
use crate::http::{Answer, Client, request};
use crate::kills::{Tally, close};
use crate::programs::{Service, WITH_METRICS};
use crate::storm::at_rest;
use crate::subject::Subject;

/// Panics of each handler on each side: more than the database has connections, so that one leak per panic is noticed.
const PANICS_PER_HANDLER: u32 = 12;

/// Result of the panics.
#[derive(Debug, Default)]
pub(crate) struct Panics {
    pub(crate) tally: Tally,
    pub(crate) handlers: u64,
    pub(crate) panics: u64,
}

/// A service whose handlers can be called one by one.
pub(crate) trait Handled: Subject {
    /// Objects that the requests are about.
    type Objects;

    /// Settings under which no object expires during the run.
    const LONG_LIFETIMES: &'static [(&'static str, &'static str)];

    /// The published document, so that no route is forgotten.
    fn operations() -> Result<Vec<Operation>>;

    /// Creates the objects, with a service that has no crash points.
    fn prepare(&self, address: SocketAddr) -> Result<Self::Objects>;

    /// Renders a request that does the operation's main job.
    fn request(&self, objects: &Self::Objects, operation: &Operation) -> Result<Vec<u8>>;

    /// Records that such a request is sent and its outcome is unknown.
    fn doubt(&self, objects: &Self::Objects, operation: &Operation) -> Result<()>;

    /// Path, key and expected status of each object, as long as no handler has changed it.
    fn untouched(&self, objects: &Self::Objects) -> Vec<(String, String, &'static str)>;

    /// Checks that a write succeeds at once, and ends the objects that would otherwise stay open.
    fn work(&self, objects: &Self::Objects, address: SocketAddr) -> Result<()>;
}

/// A published operation.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: String,
    template: String,
}

/// Returns the operations of a document.
pub(crate) fn operations_in(documents: &[Document]) -> Result<Vec<Operation>> {
    let mut all = Vec::new();
    for document in documents {
        let document = to_value(&document.api)?;
        let paths = document.get("paths").and_then(Value::as_object);
        for (template, item) in paths.into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                let id = operation.get("operationId").and_then(Value::as_str);
                all.extend(id.map(|id| Operation {
                    id: id.to_owned(),
                    method: method.to_uppercase(),
                    template: template.clone(),
                }));
            }
        }
    }
    if all.is_empty() {
        return Err("the documents name no operation".into());
    }
    Ok(all)
}

impl Operation {
    fn point(&self, side: Edge) -> String {
        side.of(&format!("{} {}", self.method, self.template))
    }

    /// Whether the token of a widget authorizes it.
    pub(crate) fn is_of_widget(&self) -> bool {
        self.template.starts_with("/v1/embed/")
    }

    /// Renders the recorded request about other objects, with this key and these headers besides, and with an idempotency key of its
    /// own if it has one. A write that is judged by its outcome has a request of its own.
    pub(crate) fn recorded(
        &self,
        key: &str,
        headers: &str,
        id_of: impl Fn(&str) -> Option<String>,
    ) -> Vec<u8> {
        let record = recorded(&self.id).about(|text| kind_of(text).and_then(&id_of));
        let path = record.path.trim_start_matches("/v1");
        let recorded = record.headers.iter();
        let recorded = recorded.map(|(name, value)| match name.as_str() {
            "idempotency-key" => format!("{name}: {value}-{}\r\n", number()),
            _ => format!("{name}: {value}\r\n"),
        });
        let headers = recorded.collect::<String>() + headers;
        let body = record
            .body
            .map_or_else(String::new, |body| body.to_string());
        request(key, &self.method, path, &headers, &body)
    }
}

/// Panics in every handler on both sides.
// rule: error.panic-contained, error.internal-generic, pools.transact.atomic
pub(crate) fn run<S: Handled>(seed: u64, make: impl FnOnce(&Path) -> Result<S>) -> Result<Panics> {
    let folder = tempfile::tempdir()?;
    let subject = make(folder.path())?;
    let operations = S::operations()?;
    let mut panics = Panics {
        handlers: operations.len() as u64,
        ..Panics::default()
    };
    for side in [Edge::Before, Edge::After] {
        let breaches = all_panic(&subject, &operations, side, &mut panics)?;
        panics.tally.blame(seed, panics.tally.rounds, breaches);
        panics.tally.rounds += 1;
    }
    let breaches = close(&subject, &mut panics.tally)?;
    panics.tally.blame(seed, panics.tally.rounds, breaches);
    if !panics.tally.breaches.is_empty() {
        panics.tally = crate::kills::keep(folder, panics.tally)?;
    }
    Ok(panics)
}

/// Makes all handlers panic repeatedly on one side, in one process. The process must then work as before.
fn all_panic<S: Handled>(
    subject: &S,
    operations: &[Operation],
    side: Edge,
    panics: &mut Panics,
) -> Result<Vec<String>> {
    let preparing = subject.installation().serve(None, S::LONG_LIFETIMES)?;
    let objects = subject.prepare(preparing.address)?;
    preparing.kill();
    let armed: Vec<String> = operations
        .iter()
        .map(|operation| {
            format!(
                "{}={PANICS_PER_HANDLER}*return(panic)",
                operation.point(side)
            )
        })
        .collect();
    let more = [S::LONG_LIFETIMES, WITH_METRICS].concat();
    let service = subject
        .installation()
        .serve(Some(&armed.join(";")), &more)?;
    let mut client = Client::new(service.address);
    let mut breaches = Vec::new();
    for operation in operations {
        let bytes = subject.request(&objects, operation)?;
        subject.doubt(&objects, operation)?;
        for _ in 0..PANICS_PER_HANDLER {
            breaches.extend(contained(operation, client.call_until_served(&bytes).ok()));
            panics.panics += 1;
        }
    }
    breaches.extend(not_reached(operations, side, &service)?);
    if side == Edge::Before {
        breaches.extend(untouched(subject, &objects, &service)?);
    }
    for operation in operations {
        let bytes = subject.request(&objects, operation)?;
        match client.call_until_served(&bytes) {
            Ok(answer) if answer.status < 300 => {}
            // A handler that panicked at its end may have rejected, finished or replayed the object.
            Ok(answer) if side == Edge::After && is_done(&answer) => {}
            // The sandbox settles the payment ten seconds after it began.
            Ok(answer) if operation.id == "cancelEmbedPayment" && is_done(&answer) => {}
            other => breaches.push(format!("{} after its panics: {other:?}", operation.id)),
        }
    }
    panics.tally.resolved += subject.converge(service.address)?;
    breaches.extend(subject.judge(service.address, true)?);
    subject.work(&objects, service.address)?;
    if side == Edge::After {
        breaches.extend(at_rest(&service)?);
    }
    service.kill();
    subject.installation().verify()?;
    panics.tally.verified += 1;
    Ok(breaches)
}

fn is_done(answer: &Answer) -> bool {
    answer.status == 409 || answer.code() == "delivery_not_dead_lettered"
}

/// Checks that a panic is a 500 in the envelope, without its cause.
fn contained(operation: &Operation, answer: Option<Answer>) -> Option<String> {
    let answer = answer.map(|answer| (answer.status, answer.code(), answer.json()));
    let members = [
        "type",
        "code",
        "message",
        "request_id",
        "doc_url",
        "statusCode",
    ];
    match &answer {
        Some((500, code, said))
            if code == "internal_error"
                && members.iter().all(|member| said.get(member).is_some())
                && !said.to_string().contains("asked for") =>
        {
            None
        }
        other => Some(format!("{} panicked: {other:?}", operation.id)),
    }
}

/// Returns the handlers that did not panic as often as they were called.
fn not_reached(operations: &[Operation], side: Edge, service: &Service) -> Result<Vec<String>> {
    let said = service.said()?;
    let reached = |operation: &&Operation| {
        let line = format!("failpoint {} panic", operation.point(side));
        said.matches(&line).count() != PANICS_PER_HANDLER as usize
    };
    let missed = operations.iter().filter(reached);
    Ok(missed
        .map(|operation| {
            format!(
                "{} was not reached {PANICS_PER_HANDLER} times",
                operation.point(side)
            )
        })
        .collect())
}

/// Returns the objects that changed although their handlers panicked at the start.
fn untouched<S: Handled>(
    subject: &S,
    objects: &S::Objects,
    service: &Service,
) -> Result<Vec<String>> {
    let mut client = Client::new(service.address);
    let mut touched = Vec::new();
    for (key, path, wanted) in subject.untouched(objects) {
        let answer = client.call_until_served(&request(&key, "GET", &path, "", ""));
        let answer = answer.map_err(|lost| format!("GET {path}: {lost:?}"))?;
        let found = answer.text("status");
        if found.as_deref() != Some(wanted) {
            touched.push(format!("GET {path}: {found:?} after panics, not {wanted}"));
        }
    }
    Ok(touched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_request_has_given_object_and_key_of_its_own() {
        let rename = Operation {
            id: "updateCustomer".to_owned(),
            method: "PATCH".to_owned(),
            template: "/v1/customers/{id}".to_owned(),
        };
        let known = |kind: &str| Some(format!("{kind}known"));
        let render = || String::from_utf8(rename.recorded("key", "", known)).unwrap();
        let request = render();
        assert!(request.contains("/customers/cus_test_known"), "{request}");
        assert_ne!(request, render());
    }
}
