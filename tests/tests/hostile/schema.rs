//! The operations of the published document, as something to make requests from.

use std::collections::BTreeMap;

use acceptance::{ADDRESS, Contract};
use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::request::Request;
use crate::values;

/// What a published operation says of its requests.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) id: String,
    method: String,
    template: String,
    parameters: Vec<Parameter>,
    pub(crate) body: Option<Value>,
    /// Whether a publishable key will do.
    pub(crate) any_key: bool,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    place: String,
    required: bool,
    schema: Value,
}

/// Values from earlier answers, by the name of the field they stood in.
#[derive(Debug, Default)]
pub(crate) struct Memory(BTreeMap<String, Vec<String>>);

/// So many of each name; a new one takes the place of any. Few, because quotes are short-lived.
const KEPT: usize = 12;

impl Memory {
    pub(crate) fn keep(&mut self, dice: &Dice, name: &str, value: &str) {
        let known = self.0.entry(name.to_owned()).or_default();
        if known.len() < KEPT {
            known.push(value.to_owned());
        } else {
            known[dice.below(KEPT)] = value.to_owned();
        }
    }

    /// Learns every text of an answer, by name. A cursor belongs to its own list.
    pub(crate) fn learn(&mut self, dice: &Dice, operation: &str, answer: &Value) {
        match answer {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str() {
                        Some(text) if name == "nextCursor" => {
                            self.keep(dice, &format!("cursor of {operation}"), text);
                        }
                        Some(text) => self.keep(dice, name, text),
                        None => self.learn(dice, operation, value),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.learn(dice, operation, item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    pub(crate) fn recall(&self, dice: &Dice, name: &str) -> Option<String> {
        self.0.get(name).map(|known| dice.pick(known).clone())
    }
}

/// Every operation of the published document.
pub(crate) fn operations() -> Vec<Operation> {
    let document = &Contract::published().document;
    let mut operations = Vec::new();
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation.get("responses").is_some() {
                operations.push(Operation::read(method, template, operation));
            }
        }
    }
    assert!(!operations.is_empty());
    operations
}

impl Operation {
    fn read(method: &str, template: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameter = |parameter: &Value| Parameter {
            name: parameter["name"].as_str().unwrap().to_owned(),
            place: parameter["in"].as_str().unwrap().to_owned(),
            required: parameter["required"] == json!(true),
            schema: with_example(&parameter["schema"], &parameter["example"]),
        };
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let security = operation["security"].as_array().into_iter().flatten();
        Self {
            id: operation["operationId"].as_str().unwrap().to_owned(),
            method: method.to_uppercase(),
            template: template.to_owned(),
            parameters: parameters.map(parameter).collect(),
            body: (!body.is_null()).then(|| body.clone()),
            any_key: security
                .into_iter()
                .any(|scheme| scheme.get("publishableKey").is_some()),
        }
    }

    /// A request as the document asks for it, without a credential.
    pub(crate) fn request(&self, dice: &Dice, memory: &Memory) -> Request {
        let mut request = Request {
            method: self.method.clone(),
            ..Request::default()
        };
        let template = self.template.trim_start_matches('/');
        request.path = template.split('/').map(str::to_owned).collect();
        for parameter in &self.parameters {
            if !parameter.required && !dice.one_in(3) {
                continue;
            }
            let known = match parameter.name.as_str() {
                "id" => "poolId".to_owned(),
                "cursor" => format!("cursor of {}", self.id),
                name => name.to_owned(),
            };
            if !parameter.required && !is_known(dice, memory, &known, &parameter.schema) {
                continue;
            }
            let value = sample(dice, memory, &known, &parameter.schema);
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            match parameter.place.as_str() {
                "path" => {
                    let slot = format!("{{{}}}", parameter.name);
                    let segments = request.path.iter_mut();
                    for segment in segments.filter(|segment| **segment == slot) {
                        *segment = values::escaped(&text);
                    }
                }
                "query" => {
                    let pair = (parameter.name.clone(), values::escaped(&text));
                    request.query.push(pair);
                }
                "header" => request.add(&parameter.name.to_lowercase(), text),
                other => panic!("{}: a parameter in {other}", self.id),
            }
        }
        if let Some(schema) = &self.body {
            let body = sample(dice, memory, "", schema);
            request.body = Some(body.to_string().into_bytes());
            request.add("content-type", "application/json");
        }
        request
    }
}

fn with_example(schema: &Value, example: &Value) -> Value {
    let mut schema = schema.clone();
    if !example.is_null() {
        schema["example"] = example.clone();
    }
    schema
}

/// Whether anything can be said of a text that the document calls nothing but a text.
fn is_known(dice: &Dice, memory: &Memory, name: &str, schema: &Value) -> bool {
    let told = ["enum", "example", "default"];
    schema["type"] != "string"
        || told.iter().any(|given| schema.get(given).is_some())
        || meant(dice, memory, name).is_some()
}

/// A value of a schema, which stands in a field of this name.
fn sample(dice: &Dice, memory: &Memory, name: &str, schema: &Value) -> Value {
    if let Some(place) = schema["$ref"].as_str() {
        let document = &Contract::published().document;
        let target = document.pointer(place.trim_start_matches('#')).unwrap();
        return sample(dice, memory, name, target);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return sample(dice, memory, name, dice.pick(choices));
    }
    if let Some(words) = schema["enum"].as_array() {
        return dice.pick(words).clone();
    }
    if let Some(fields) = schema["properties"].as_object() {
        return object(dice, memory, schema, fields);
    }
    if let Some(meant) = meant(dice, memory, name) {
        return json!(meant);
    }
    for given in ["example", "default"] {
        if schema.get(given).is_some_and(|given| !given.is_null()) {
            return schema[given].clone();
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => dice.pick(kinds).clone(),
        kind => kind.clone(),
    };
    match kind.as_str().unwrap_or("string") {
        "null" => Value::Null,
        "boolean" => json!(dice.one_in(2)),
        "integer" | "number" => {
            let low = schema["minimum"].as_i64().unwrap_or(1);
            json!(dice.between(low, schema["maximum"].as_i64().unwrap_or(low + 100)))
        }
        "array" => json!([sample(dice, memory, name, &schema["items"])]),
        _ => json!(format!("text-{}", dice.below(1_000))),
    }
}

fn object(dice: &Dice, memory: &Memory, schema: &Value, fields: &Map<String, Value>) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut object = Map::new();
    for (name, schema) in fields {
        // A purchase needs its address, which a schema cannot say.
        let wanted = required.contains(&json!(name)) || name == "destAddress";
        if wanted || dice.one_in(4) {
            object.insert(name.clone(), sample(dice, memory, name, schema));
        }
    }
    Value::Object(object)
}

/// Texts of which a schema says only that they are texts.
fn meant(dice: &Dice, memory: &Memory, name: &str) -> Option<String> {
    match name {
        "idempotency-key" | "Idempotency-Key" => Some(format!("key-{}", dice.below(400))),
        "created_after" => Some("2026-05-25T12:00:00Z".to_owned()),
        "created_before" => Some(dice.word(&["2026-05-26", "2030-01-01T00:00:00Z"])),
        "destAddress" => Some(ADDRESS.to_owned()),
        // The sandbox's fractions, so that every outcome of an order comes about.
        "amount" => Some(dice.word(&[
            "100.00", "100.00", "100.00", "25.00", "50", "100.11", "100.12", "100.13", "100.21",
            "100.31", "100.32", "100.33", "100.41", "100.51",
        ])),
        "fiatCurrency" | "cryptoCurrency" | "currency" => None,
        // Most of them in the pool that the examples are of.
        "poolId" if !dice.one_in(8) => Some("EUR-USDT".to_owned()),
        known => memory.recall(dice, known),
    }
}
