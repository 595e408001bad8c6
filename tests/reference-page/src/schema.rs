//! Renders schemas as tables of fields and as examples.

use serde_json::{Map, Value, json};

use crate::html::{Row, escape, inline, mark, prose, table};

/// The nesting depth at which rendering stops, because a schema may refer to itself.
const DEPTH: usize = 6;

/// The writer of a value. Required fields are marked for a partner's values only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The partner, in a request.
    ByPartner,
    /// The service, in a response or an event.
    ByService,
}

/// Resolves references within the document.
#[derive(Clone, Copy)]
pub(super) struct Schemas<'a> {
    document: &'a Value,
}

impl<'a> Schemas<'a> {
    pub(super) fn of(document: &'a Value) -> Self {
        Self { document }
    }

    /// The target of a `$ref`; any other value is returned unchanged.
    pub(super) fn resolve(&self, value: &'a Value) -> &'a Value {
        let Some(place) = value.get("$ref").and_then(Value::as_str) else {
            return value;
        };
        let pointer = place.strip_prefix('#').unwrap_or(place);
        self.document.pointer(pointer).unwrap_or(value)
    }

    /// A table of an object's fields, in which nested fields have rows of their own. Another schema
    /// becomes a paragraph with its type.
    pub(super) fn table(&self, schema: &'a Value, written: Written) -> String {
        let mut rows = Vec::new();
        self.rows(schema, "", written, &mut rows, 0);
        if rows.is_empty() {
            return format!("<p>{}</p>", self.type_of(schema, 0));
        }
        table("Fields", &["Field", "Type", "Meaning"], &rows)
    }

    fn rows(
        &self,
        schema: &'a Value,
        prefix: &str,
        written: Written,
        rows: &mut Vec<Row>,
        depth: usize,
    ) {
        if depth == DEPTH {
            return;
        }
        let schema = self.resolve(schema);
        for part in list(schema, "allOf") {
            self.rows(part, prefix, written, rows, depth + 1);
        }
        for part in self.alternatives(schema) {
            self.rows(part, prefix, written, rows, depth + 1);
        }
        if let Some(items) = schema.get("items") {
            self.rows(items, &format!("{prefix}[]"), written, rows, depth + 1);
        }
        let required = list(schema, "required");
        let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (name, field) in fields {
            let dot = if prefix.is_empty() { "" } else { "." };
            let path = format!("{prefix}{dot}{name}");
            let needed = required.iter().any(|known| known == name);
            let mark = match (written, needed) {
                (Written::ByService, true) => "",
                _ => mark(needed),
            };
            rows.push(self.row(&path, field, mark));
            self.rows(field, &path, written, rows, depth + 1);
        }
    }

    fn row(&self, path: &str, field: &'a Value, mark: &str) -> Row {
        let resolved = self.resolve(field);
        let mut meaning = prose(self.description(field), 0);
        meaning.push_str(&constraints(resolved));
        Row::of([
            format!("<code>{}</code>{mark}", escape(path)),
            self.type_of(field, 0),
            meaning,
        ])
    }

    /// The description of a field. It takes precedence over the description of the field's type. A
    /// nullable field may have its description in an alternative.
    pub(super) fn description(&self, field: &'a Value) -> &'a str {
        let of = |value: &'a Value| value.get("description").and_then(Value::as_str);
        let parts = || {
            self.alternatives(field)
                .into_iter()
                .chain(list(field, "allOf"))
        };
        of(field)
            .or_else(|| parts().find_map(of))
            .or_else(|| of(self.resolve(field)))
            .or_else(|| parts().find_map(|part| of(self.resolve(part))))
            .unwrap_or_default()
    }

    /// The alternatives of a schema that are not `null`.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        let choices = list(schema, "oneOf").iter().chain(list(schema, "anyOf"));
        choices.filter(|choice| !is_null(choice)).collect()
    }

    /// The type as text: `string`, `integer or null`, `array of Trade`.
    pub(super) fn type_of(&self, schema: &'a Value, depth: usize) -> String {
        if depth == DEPTH {
            return "…".to_owned();
        }
        let schema = self.resolve(schema);
        let mut words = Vec::new();
        match schema.get("type") {
            Some(Value::String(name)) => words.push(self.named(name, schema, depth)),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                words.extend(names.map(|name| self.named(name, schema, depth)));
            }
            _ => {}
        }
        for choice in list(schema, "oneOf").iter().chain(list(schema, "anyOf")) {
            words.push(self.type_of(choice, depth + 1));
        }
        for part in list(schema, "allOf") {
            words.push(self.type_of(part, depth + 1));
        }
        words.dedup();
        let values = list(schema, "enum").iter().filter(|value| !value.is_null());
        let values: Vec<String> = values.map(code_of).collect();
        if !values.is_empty() {
            let null = words.iter().any(|word| word == "null");
            return format!(
                "{}{}",
                values.join(", "),
                if null { " or null" } else { "" }
            );
        }
        if words.is_empty() {
            return "any".to_owned();
        }
        words.join(" or ")
    }

    fn named(&self, name: &str, schema: &'a Value, depth: usize) -> String {
        if name == "array"
            && let Some(items) = schema.get("items")
        {
            return format!("array of {}", self.type_of(items, depth + 1));
        }
        match schema.get("format").and_then(Value::as_str) {
            _ if name == "null" => "null".to_owned(),
            Some(format @ ("date-time" | "uri" | "email" | "uuid")) => {
                format!("{} ({})", escape(name), escape(format))
            }
            _ => escape(name),
        }
    }

    /// A sample value, from the schema's examples, defaults and allowed values.
    pub(super) fn sample(&self, schema: &'a Value, depth: usize) -> Value {
        let schema = self.resolve(schema);
        if depth == DEPTH {
            return Value::Null;
        }
        let given = schema
            .get("example")
            .or_else(|| list(schema, "examples").first())
            .or_else(|| schema.get("const"))
            .or_else(|| list(schema, "enum").first())
            .or_else(|| schema.get("default"));
        if let Some(given) = given {
            return given.clone();
        }
        if let Some(choice) = self.alternatives(schema).first() {
            return self.sample(choice, depth + 1);
        }
        let mut object = Map::new();
        for part in list(schema, "allOf") {
            if let Value::Object(fields) = self.sample(part, depth + 1) {
                object.extend(fields);
            }
        }
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            for (name, field) in fields {
                object.insert(name.clone(), self.sample(field, depth + 1));
            }
        }
        if !object.is_empty() {
            return Value::Object(object);
        }
        match first_type(schema) {
            "array" => {
                let item = schema
                    .get("items")
                    .map(|items| self.sample(items, depth + 1));
                Value::Array(item.into_iter().collect())
            }
            "object" => json!({}),
            "boolean" => json!(true),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            "string" => match schema.get("format").and_then(Value::as_str) {
                Some("date-time") => json!("2026-05-25T12:00:00.000Z"),
                Some("uri") => json!("https://example.com"),
                _ => json!("string"),
            },
            _ => Value::Null,
        }
    }
}

/// The items of an array field; empty if the field is absent.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    match value.get(field) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn first_type(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null")
            .unwrap_or_default(),
        _ => "",
    }
}

fn constraints(schema: &Value) -> String {
    let words = [
        ("default", "default"),
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "at least this long:"),
        ("maxLength", "at most this long:"),
        ("pattern", "matches"),
    ];
    let found: Vec<String> = words
        .iter()
        .filter_map(|(field, word)| {
            let value = schema.get(*field)?;
            Some(format!("{word} {}", code_of(value)))
        })
        .collect();
    if found.is_empty() {
        return String::new();
    }
    format!("<p class=\"dim\">{}</p>", found.join(", "))
}

fn code_of(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    inline(&format!("`{}`", text.replace('`', "'")))
}
