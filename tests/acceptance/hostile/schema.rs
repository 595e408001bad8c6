//! The operations of the published document as templates of requests.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use acceptance::ADDRESS;
use partner_core::events::Service;
use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::request::Request;
use crate::values;

/// Published parameters and body of an operation.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The service that serves the operation.
    pub(crate) service: Service,
    pub(crate) id: String,
    method: String,
    template: String,
    parameters: Vec<Parameter>,
    pub(crate) body: Option<Value>,
    /// Whether the operation accepts a secret key, and whether it accepts a publishable key.
    pub(crate) secret: bool,
    pub(crate) publishable: bool,
    /// Whether the operation takes the token of a widget in place of a key.
    pub(crate) widget: bool,
    document: &'static Value,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    place: String,
    required: bool,
    schema: Value,
}

/// Values from earlier responses, by field name.
#[derive(Debug, Default)]
pub(crate) struct Memory(BTreeMap<String, Vec<String>>);

/// Values kept per name; a new value replaces a random one. Few, because quotes are short-lived.
const KEPT: usize = 12;

/// The newest quote of a widget.
pub(crate) const QUOTE_OF_WIDGET: &str = "quote of the widget";

/// Amount of the last signed quote.
const PRICE: &str = "fiat amount of the last quote";

impl Memory {
    pub(crate) fn keep(&mut self, dice: &Dice, name: &str, value: &str) {
        let known = self.0.entry(name.to_owned()).or_default();
        if known.len() < KEPT {
            known.push(value.to_owned());
        } else {
            known[dice.below(KEPT)] = value.to_owned();
        }
    }

    /// Keeps only this value.
    pub(crate) fn keep_only(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), vec![value.to_owned()]);
    }

    /// Aligns amounts: a rail takes a quote and a session of the same amount.
    fn pair(&mut self, kind: &str, id: &str, answer: &Value) {
        let text = |name: &str| answer[name].as_str().unwrap_or_default();
        match (kind, text("status")) {
            ("signed_quote", "active") => {
                self.keep_only(PRICE, text("fiat_amount"));
                self.keep_only("quote without a session", id);
            }
            ("gate_session", "open") if self.one(PRICE) == Some(text("amount")) => {
                let quote = self.one("quote without a session").map(str::to_owned);
                self.keep_only("quote_id", &quote.unwrap_or_default());
                self.keep_only("session_id", id);
            }
            _ => {}
        }
    }

    fn one(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.first().map(String::as_str)
    }

    /// Records every text of a response by field name. A cursor belongs to its own list.
    pub(crate) fn learn(&mut self, dice: &Dice, operation: &str, answer: &Value) {
        match answer {
            Value::Object(fields) => {
                if let (Some(kind), Some(id)) = (answer["object"].as_str(), answer["id"].as_str()) {
                    self.keep(dice, &format!("id of {kind}"), id);
                    self.pair(kind, id, answer);
                }
                for (name, value) in fields {
                    match value.as_str() {
                        Some(text) if name == "nextCursor" => {
                            self.keep(dice, &format!("cursor of {operation}"), text);
                        }
                        // Skips texts that a mutation turned into a key: a valid request may not carry them.
                        Some(text) if text.starts_with("sk_") => {}
                        // Some fields are valid in pairs only, and instructions have their own type.
                        Some(_) if matches!(name.as_str(), "quote_id" | "session_id" | "type") => {}
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

/// The published document of each service.
fn documents() -> &'static [(Service, Value)] {
    static DOCUMENTS: OnceLock<Vec<(Service, Value)>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let published = acceptance::documents().into_iter();
        let of_service = published.map(|(name, document)| match name {
            "pools-v1" => (Service::Pools, document),
            _ => (Service::Gate, document),
        });
        of_service.collect()
    })
}

/// Every operation of the published documents.
pub(crate) fn operations() -> Vec<Operation> {
    let mut operations = Vec::new();
    for (service, document) in documents() {
        for (template, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if operation.get("responses").is_some() {
                    let place = (*service, document);
                    operations.push(Operation::read(place, method, template, operation));
                }
            }
        }
    }
    assert!(!operations.is_empty());
    operations
}

impl Operation {
    fn read(
        (service, document): (Service, &'static Value),
        method: &str,
        template: &str,
        operation: &Value,
    ) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameter = |parameter: &Value| Parameter {
            name: parameter["name"].as_str().unwrap().to_owned(),
            place: parameter["in"].as_str().unwrap().to_owned(),
            required: parameter["required"] == json!(true),
            schema: with_example(&parameter["schema"], &parameter["example"]),
        };
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let takes = |scheme: &str| {
            let security = operation["security"].as_array().into_iter().flatten();
            security
                .into_iter()
                .any(|known| known.get(scheme).is_some())
        };
        Self {
            service,
            document,
            id: operation["operationId"].as_str().unwrap().to_owned(),
            method: method.to_uppercase(),
            template: template.to_owned(),
            parameters: parameters.map(parameter).collect(),
            body: (!body.is_null()).then(|| said(body).clone()),
            secret: takes("secretKey"),
            publishable: takes("publishableKey"),
            widget: takes("embedToken"),
        }
    }

    /// The field name under which earlier responses hold values of a parameter.
    fn known_as(&self, parameter: &str) -> String {
        let within = |place: &str| self.template.contains(place);
        match parameter {
            "cursor" => format!("cursor of {}", self.id),
            "id" if within("/sessions/") || within("/gate_sessions/") => {
                "id of gate_session".to_owned()
            }
            "id" if within("/deliveries/") => "id of webhook_delivery".to_owned(),
            "id" if within("/customers/") => "id of customer".to_owned(),
            "id" if within("/quotes/") && self.service == Service::Gate => {
                "id of signed_quote".to_owned()
            }
            "id" if within("/embed/payments/") => "id of embed_payment".to_owned(),
            "id" if within("/pay_ins/") => "id of rail_pay_in".to_owned(),
            "id" if within("/pay_outs/") => "id of rail_pay_out".to_owned(),
            "id" => "poolId".to_owned(),
            "starting_after" if within("/transactions") => "refid".to_owned(),
            "starting_after" if within("/customers") => "id of customer".to_owned(),
            "starting_after" if within("/deliveries") => "id of webhook_delivery".to_owned(),
            "starting_after" => "id of gate_session".to_owned(),
            name => name.to_owned(),
        }
    }

    /// A request that follows the document, without a credential.
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
            let known = self.known_as(&parameter.name);
            if !parameter.required && !is_known(dice, memory, &known, &parameter.schema) {
                continue;
            }
            let value = self.sample(dice, memory, &known, &parameter.schema);
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
            let body = self.sample(dice, memory, "", schema);
            request.body = Some(body.to_string().into_bytes());
            request.add("content-type", "application/json");
        }
        request
    }

    /// A value of a schema for a field of this name.
    fn sample(&self, dice: &Dice, memory: &Memory, name: &str, schema: &Value) -> Value {
        if let Some(place) = schema["$ref"].as_str() {
            let target = self
                .document
                .pointer(place.trim_start_matches('#'))
                .unwrap();
            return self.sample(dice, memory, name, target);
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            return self.sample(dice, memory, name, dice.pick(choices));
        }
        if let Some(words) = schema["enum"].as_array() {
            return dice.pick(words).clone();
        }
        if let Some(fields) = schema["properties"].as_object() {
            return self.object(dice, memory, schema, fields);
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
            "array" => json!([self.sample(dice, memory, name, &schema["items"])]),
            "object" if schema["additionalProperties"]["type"] == "string" => {
                json!({ "iban": "DE89370400440532013000", "account_holder": "Erika Mustermann" })
            }
            "object" => json!({ "a": 1.10, "b": { "c": [null, "text"] } }),
            _ => json!(format!("text-{}", dice.below(1_000))),
        }
    }

    fn object(
        &self,
        dice: &Dice,
        memory: &Memory,
        schema: &Value,
        fields: &Map<String, Value>,
    ) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut object = Map::new();
        for (name, schema) in fields {
            // A purchase needs an address and takes no account, which the schema cannot express.
            let pays = self.id == "createEmbedPayment";
            let wanted = required.contains(&json!(name))
                || self.id == "createEmbedQuote"
                || name == "destAddress"
                || (pays && name == "wallet_address");
            if wanted || (dice.one_in(4) && !pays) {
                let known = match name.as_str() {
                    "quote_id" if pays => QUOTE_OF_WIDGET,
                    name => name,
                };
                object.insert(name.clone(), self.sample(dice, memory, known, schema));
            }
        }
        if self.id == "createEmbedQuote" {
            // A swap has a source, every other order a method. The schema cannot express that either.
            let foreign: &[&str] = match object["side"].as_str() {
                Some("swap") => &["payment_method"],
                _ => &["source_asset", "source_network"],
            };
            object.retain(|name, _| !foreign.contains(&name.as_str()));
        }
        Value::Object(object)
    }
}

/// The body, if the operation has one.
fn said(schema: &Value) -> &Value {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let mut choices = choices.filter(|choice| choice["type"] != "null");
    choices.next().unwrap_or(schema)
}

fn with_example(schema: &Value, example: &Value) -> Value {
    let mut schema = schema.clone();
    if !example.is_null() {
        schema["example"] = example.clone();
    }
    schema
}

/// Whether this suite knows values for a text that the schema leaves free.
fn is_known(dice: &Dice, memory: &Memory, name: &str, schema: &Value) -> bool {
    let told = ["enum", "example", "default"];
    schema["type"] != "string"
        || told.iter().any(|given| schema.get(given).is_some())
        || meant(dice, memory, name).is_some()
}

/// Values for texts that the schema leaves free.
fn meant(dice: &Dice, memory: &Memory, name: &str) -> Option<String> {
    match name {
        "idempotency-key" | "Idempotency-Key" => Some(format!("key-{}", dice.below(400))),
        "created_after" => Some("2026-05-25T12:00:00Z".to_owned()),
        "created_before" => Some(dice.word(&["2026-05-26", "2030-01-01T00:00:00Z"])),
        "destAddress" => Some(ADDRESS.to_owned()),
        "amount" if dice.one_in(3) && memory.one(PRICE).is_some() => memory.recall(dice, PRICE),
        // Amounts with the sandbox's fractions, so that every outcome of an order occurs.
        "amount" => Some(dice.word(&[
            "100.00", "100.00", "100.00", "25.00", "50", "100.11", "100.12", "100.13", "100.21",
            "100.31", "100.32", "100.33", "100.41", "100.51",
        ])),
        "fiatCurrency" | "cryptoCurrency" | "currency" => None,
        // Values of responses; requests have their own.
        "return_url" | "cancel_url" | "metadata" => None,
        // Other fields of responses and of eligibility requests have these names.
        "asset" => Some(dice.word(&["USDT", "USDT", "USDC", "BTC"])),
        "country_code" => Some(dice.word(&["DE", "DE", "JP"])),
        "network" => Some("polygon".to_owned()),
        // Never the target of a swap.
        "source_asset" => Some("ETH".to_owned()),
        "source_network" => Some("ethereum".to_owned()),
        "payment_method" => Some("sepa".to_owned()),
        // Mostly unknown addresses.
        "email" if !dice.one_in(4) => Some(format!("ann-{}@example.com", dice.below(1_000_000))),
        "external_id" if !dice.one_in(4) => Some(format!("user-{}", dice.below(1_000_000))),
        "clientSecret" => memory.recall(dice, "client_secret"),
        // Mostly the pool of the examples.
        "poolId" if !dice.one_in(8) => Some("EUR-USDT".to_owned()),
        known => memory.recall(dice, known),
    }
}
