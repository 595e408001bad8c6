//! Checks responses against the published contract.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use axum::http::Method;
use http_kit::Document;
use http_kit::openapi::to_value;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::{Answer, Call};

/// One published operation.
#[derive(Debug)]
pub struct Operation {
    pub id: String,
    pub method: Method,
    /// Its path with `{}` parameters.
    pub template: String,
    /// The documented kinds of credential; one of them is enough.
    pub credentials: Vec<String>,
    /// Whether an `Idempotency-Key` is documented.
    pub takes_key: bool,
    /// Whether a body is documented.
    pub takes_body: bool,
    /// Every documented status, with the codes it lists.
    pub statuses: BTreeMap<String, Vec<String>>,
    schemas: BTreeMap<String, Arc<Validator>>,
}

/// How a service writes its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// camelCase, and no discriminator.
    Pools,
    /// snake_case, with a discriminator.
    Gate,
}

/// The published document.
#[derive(Debug)]
pub struct Contract {
    pub document: Value,
    pub operations: Vec<Operation>,
    style: Style,
    events: BTreeMap<String, Validator>,
}

/// Responses that any route may return: documented under `default`.
const ANYWHERE: [u16; 7] = [408, 413, 415, 431, 500, 501, 503];

/// Words that would reveal internals.
const SOFTWARE: [&str; 16] = [
    "axum",
    "hyper",
    "tokio",
    "serde",
    "sqlite",
    "sqlx",
    "postgres",
    "redis",
    "rust",
    "panick",
    "column",
    "struct ",
    "sandbox_",
    "deserial",
    "constraint",
    "thread",
];

/// Every document that the services publish, in JSON by name.
#[must_use]
pub fn documents() -> Vec<(&'static str, Value)> {
    let pools = pools_http::documents().expect("consistent documents");
    let gate = gate_http::documents().expect("consistent documents");
    let all = pools.into_iter().chain(gate);
    all.map(|document| (document.name, in_json(&document)))
        .collect()
}

fn in_json(document: &Document) -> Value {
    to_value(&document.api).expect("a document in JSON")
}

impl Contract {
    /// The contract that the routes publish.
    #[must_use]
    pub fn published() -> &'static Self {
        static CONTRACT: OnceLock<Contract> = OnceLock::new();
        CONTRACT.get_or_init(|| {
            let documents = pools_http::documents().expect("consistent documents");
            Self::of_all(documents, Style::Pools)
        })
    }

    /// The contract of the gate's routes, including the probes and pages.
    #[must_use]
    pub fn gate() -> &'static Self {
        static CONTRACT: OnceLock<Contract> = OnceLock::new();
        CONTRACT.get_or_init(|| {
            let documents = gate_http::documents().expect("consistent documents");
            Self::of_all(documents, Style::Gate)
        })
    }

    /// The first document, with the operations of all of them.
    fn of_all(documents: Vec<Document>, style: Style) -> Self {
        let read = documents
            .into_iter()
            .map(|document| Self::read(in_json(&document), style));
        let joined = read.reduce(|mut first, beside| {
            first.operations.extend(beside.operations);
            first
        });
        joined.expect("a document")
    }

    fn read(document: Value, style: Style) -> Self {
        let mut operations = Vec::new();
        for (template, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("a path item") {
                let Ok(method) = method.to_uppercase().parse::<Method>() else {
                    continue;
                };
                if operation.get("responses").is_some() {
                    operations.push(Operation::read(&document, method, template, operation));
                }
            }
        }
        let events = document["webhooks"].as_object().into_iter().flatten();
        let events = events.map(|(name, item)| {
            let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
            (name.clone(), event_validator(&document, schema))
        });
        let events = events.collect();
        Self {
            document,
            operations,
            style,
            events,
        }
    }

    /// The operation of a request, if the document has one.
    #[must_use]
    pub fn operation(&self, method: &Method, path: &str) -> Option<&Operation> {
        let path = path.split('?').next().unwrap_or(path);
        let segments: Vec<&str> = path.split('/').collect();
        let fits = |operation: &&Operation| {
            let template: Vec<&str> = operation.template.split('/').collect();
            template.len() == segments.len()
                // The router accepts an empty segment as a parameter, except at the end of a path.
                && !(path.ends_with('/') && operation.template.ends_with('}'))
                && template
                    .iter()
                    .zip(&segments)
                    .all(|(known, found)| known == found || known.starts_with('{'))
        };
        let parameters = |operation: &Operation| operation.template.matches('{').count();
        let fitting: Vec<_> = self.operations.iter().filter(fits).collect();
        // A literal path such as `/pools/ledger` takes precedence over a parameter for every method.
        let fewest = fitting.iter().map(|operation| parameters(operation)).min();
        fitting
            .into_iter()
            .find(|operation| operation.method == *method && Some(parameters(operation)) == fewest)
    }

    /// Checks a response against the contract; panics with a list of all deviations.
    pub fn check(&self, call: &Call, answer: &Answer, tiers: &[&str]) {
        let mut faults = Vec::new();
        let operation = self.operation(&call.method, &call.path);
        if call.method == Method::OPTIONS && answer.status == 204 {
            // A browser's preflight: its own tests check it completely.
            return;
        }
        judge_headers(answer, operation.is_some(), tiers, &mut faults);
        if answer.status < 400 && !call.path.starts_with("/v1/") {
            // Pages and probes are not part of the API: their own tests check them completely.
        } else if answer.status < 400 {
            match operation {
                None => faults.push("a success of an unpublished operation".to_owned()),
                Some(operation) => operation.judge_success(answer, &mut faults),
            }
            match self.style {
                Style::Pools => judge_values(&answer.body, "", &mut faults),
                Style::Gate => judge_gate_values(&answer.body, "", &mut faults),
            }
        } else {
            judge_envelope(answer, &mut faults);
            if let Some(operation) = operation {
                operation.judge_refusal(answer, &mut faults);
            }
        }
        assert!(
            faults.is_empty(),
            "{} answered {} {}\n- {}",
            answer.asked,
            answer.status,
            answer.body,
            faults.join("\n- ")
        );
    }

    /// Checks an event's body against the contract.
    pub fn judge_event(&self, kind: &str, body: &Value) {
        let schema = self
            .events
            .get(kind)
            .unwrap_or_else(|| panic!("{kind} is not published"));
        let faults = errors(schema, body);
        assert!(
            faults.is_empty(),
            "{kind}: {body}\n- {}",
            faults.join("\n- ")
        );
    }
}

impl Operation {
    fn read(document: &Value, method: Method, template: &str, operation: &Value) -> Self {
        let id = operation["operationId"]
            .as_str()
            .expect("an operation id")
            .to_owned();
        let mut statuses = BTreeMap::new();
        let mut schemas = BTreeMap::new();
        let mut built: BTreeMap<String, Arc<Validator>> = BTreeMap::new();
        for (status, response) in operation["responses"].as_object().expect("responses") {
            let response = resolve(document, response);
            let content = response["content"].as_object().expect("content");
            let types: Vec<&String> = content.keys().collect();
            assert_eq!(types, ["application/json"], "{id} {status}");
            let schema = &content["application/json"]["schema"];
            let validator = built
                .entry(schema.to_string())
                .or_insert_with(|| Arc::new(validator(document, schema)));
            schemas.insert(status.clone(), Arc::clone(validator));
            let codes = response["x-error-codes"].as_array().into_iter().flatten();
            let codes = codes
                .map(|code| code.as_str().unwrap().to_owned())
                .collect();
            statuses.insert(status.clone(), codes);
        }
        let credentials = operation["security"].as_array().into_iter().flatten();
        let credentials = credentials.flat_map(|it| it.as_object().into_iter().flatten());
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        Self {
            id,
            method,
            template: template.to_owned(),
            takes_key: parameters.any(|it| it["name"] == "Idempotency-Key"),
            takes_body: operation.get("requestBody").is_some(),
            credentials: credentials.map(|(name, _)| name.clone()).collect(),
            statuses,
            schemas,
        }
    }

    fn judge_success(&self, answer: &Answer, faults: &mut Vec<String>) {
        match self.schemas.get(&answer.status.to_string()) {
            None => faults.push(format!("{}: status is not documented", self.id)),
            Some(schema) => faults.extend(errors(schema, &answer.body)),
        }
    }

    fn judge_refusal(&self, answer: &Answer, faults: &mut Vec<String>) {
        let code = answer.body["code"].as_str().unwrap_or_default();
        let status = answer.status.to_string();
        match self.statuses.get(&status) {
            Some(codes) if codes.iter().any(|known| known == code) => {}
            Some(codes) if !ANYWHERE.contains(&answer.status) => {
                faults.push(format!("{}: code {code} is not among {codes:?}", self.id));
            }
            None if !ANYWHERE.contains(&answer.status) => {
                faults.push(format!("{}: status {status} is not documented", self.id));
            }
            Some(_) | None => {}
        }
        let schema = self
            .schemas
            .get(&status)
            .or_else(|| self.schemas.get("default"));
        match schema {
            None => faults.push(format!("{}: no schema for {status}", self.id)),
            Some(schema) => faults.extend(errors(schema, &answer.body)),
        }
    }
}

fn judge_headers(answer: &Answer, routed: bool, tiers: &[&str], faults: &mut Vec<String>) {
    let mut expect = |name: &str, wanted: &str| {
        let found = answer.header(name);
        if found != Some(wanted) {
            faults.push(format!("{name}: {found:?} instead of {wanted:?}"));
        }
    };
    if answer.asked.contains(" /v1/") || answer.status >= 400 {
        expect("content-type", "application/json");
    }
    if answer.asked.contains(" /v1/") {
        expect("cache-control", "no-store");
        expect("x-content-type-options", "nosniff");
    }
    if !answer.header("x-request-id").is_some_and(is_request_id) {
        faults.push(format!("x-request-id: {:?}", answer.header("x-request-id")));
    }
    for (name, _) in &answer.headers {
        let embedded = answer.asked.contains(" /v1/embed/");
        if (name.as_str().starts_with("access-control-") && !embedded)
            || name == "server"
            || name == "x-powered-by"
        {
            faults.push(format!("{name} is sent"));
        }
    }
    // Unknown routes do not read credentials.
    for tier in tiers.iter().filter(|_| routed) {
        for part in ["limit", "remaining", "reset"] {
            let name = format!("x-ratelimit-{part}-{tier}");
            if answer
                .header(&name)
                .is_none_or(|value| value.parse::<u32>().is_err())
            {
                faults.push(format!("{name}: {:?}", answer.header(&name)));
            }
        }
    }
}

fn judge_envelope(answer: &Answer, faults: &mut Vec<String>) {
    let fields = answer.body.as_object().cloned().unwrap_or_default();
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    if names
        != [
            "type",
            "code",
            "message",
            "request_id",
            "doc_url",
            "statusCode",
        ]
    {
        faults.push(format!("the envelope has {names:?}"));
    }
    let text = |name: &str| answer.body[name].as_str().unwrap_or_default();
    let code = text("code");
    let kind = match answer.status {
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        429 => "rate_limited",
        500.. => "server_error",
        _ => "invalid_request",
    };
    if text("type") != kind {
        faults.push(format!("type {} instead of {kind}", text("type")));
    }
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if code.is_empty() || !code.bytes().all(word) {
        faults.push(format!("code {code:?} is not a documented form"));
    }
    if Some(text("request_id")) != answer.header("x-request-id") {
        faults.push(format!(
            "request_id {} is not the header's",
            text("request_id")
        ));
    }
    if answer.body["statusCode"] != json!(answer.status) {
        faults.push("statusCode is not the status".to_owned());
    }
    if !text("doc_url").ends_with(&format!("/docs#{code}")) {
        faults.push(format!("doc_url {}", text("doc_url")));
    }
    let message = text("message").to_lowercase();
    if message.is_empty() {
        faults.push("no message".to_owned());
    }
    let told = SOFTWARE.iter().filter(|word| message.contains(**word));
    faults.extend(told.map(|word| format!("the message names {word:?}")));
}

/// Checks that apply to every field of every success: camelCase names, no discriminator, and numbers
/// only where the contract has numbers.
fn judge_values(value: &Value, name: &str, faults: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "object" || name.contains('_') || name.starts_with(char::is_uppercase) {
                    faults.push(format!("field {name:?}"));
                }
                judge_values(value, name, faults);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| judge_values(item, name, faults)),
        Value::Number(number) => {
            let whole = name.ends_with("Bps") && number.is_u64();
            if !whole && !matches!(name, "minOrderUsdt" | "maxOrderUsdt") {
                faults.push(format!("{name}: {number} is a number"));
            }
        }
        Value::String(text) if name.ends_with("At") && !is_instant(text) => {
            faults.push(format!(
                "{name}: {text:?} is not a UTC instant with milliseconds"
            ));
        }
        Value::String(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Checks that apply to every field of every success of the gate: snake_case names, a discriminator on
/// every resource (an intent and the methods of a widget's options are parts of one), and numbers only where the contract has numbers. Metadata is the partner's own.
fn judge_gate_values(value: &Value, name: &str, faults: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("id")
                && !matches!(name, "intent" | "methods")
                && !fields.contains_key("object")
            {
                faults.push(format!("{name:?} has no discriminator"));
            }
            for (name, value) in fields {
                if name.contains(|it: char| it.is_ascii_uppercase()) {
                    faults.push(format!("field {name:?}"));
                }
                if name != "metadata" {
                    judge_gate_values(value, name, faults);
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| judge_gate_values(item, name, faults)),
        Value::Number(number) => {
            let counts = [
                "attempts",
                "decimals",
                "from_seconds",
                "last_response_status",
                "minor_units",
                "to_seconds",
            ];
            if !counts.contains(&name) {
                faults.push(format!("{name}: {number} is a number"));
            }
        }
        Value::String(text) if name.ends_with("_at") && !is_instant(text) => {
            faults.push(format!(
                "{name}: {text:?} is not a UTC instant with milliseconds"
            ));
        }
        Value::String(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn is_instant(text: &str) -> bool {
    let shape = "0000-00-00T00:00:00.000Z";
    text.len() == shape.len()
        && text
            .chars()
            .zip(shape.chars())
            .all(|(found, wanted)| match wanted {
                '0' => found.is_ascii_digit(),
                other => found == other,
            })
}

fn is_request_id(text: &str) -> bool {
    let ulid =
        |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_uppercase() && !b"ILOU".contains(&byte));
    text.strip_prefix("req_")
        .is_some_and(|ulid_text| ulid_text.len() == 26 && ulid_text.bytes().all(ulid))
}

fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        None => value,
        Some(place) => {
            let pointer = place.strip_prefix('#').expect("a local reference");
            document
                .pointer(pointer)
                .unwrap_or_else(|| panic!("{place} leads nowhere"))
        }
    }
}

/// A validator that also refuses every field that the schema does not name.
fn validator(document: &Value, schema: &Value) -> Validator {
    let mut whole = Map::new();
    whole.insert("allOf".to_owned(), json!([schema]));
    whole.insert("components".to_owned(), document["components"].clone());
    let mut whole = Value::Object(whole);
    close(&mut whole);
    build(&whole)
}

/// The same for an event, whose schema is composed of others and has no nested objects.
fn event_validator(document: &Value, schema: &Value) -> Validator {
    build(&json!({
        "allOf": [schema],
        "unevaluatedProperties": false,
        "components": document["components"],
    }))
}

fn build(whole: &Value) -> Validator {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .build(whole)
        .unwrap_or_else(|fault| panic!("{}: {fault}", whole["allOf"]))
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.entry("additionalProperties").or_insert(json!(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn errors(schema: &Validator, value: &Value) -> Vec<String> {
    schema
        .iter_errors(value)
        .map(|fault| format!("{} at {}", fault, fault.instance_path()))
        .collect()
}
