//! The API reference as one page without scripts or external resources, readable offline and in
//! print.
//!
//! It is rendered from the published contract and adds no facts. Every error code is an anchor;
//! `doc_url` points at it. The pages are committed, and the services serve the committed bytes.

mod html;
mod schema;

use http_kit::openapi::{ContractError, X_CODES, to_value};
use http_kit::{Document, ErrorCode};
use serde_json::Value;

use crate::html::{Row, code_block, escape, inline, mark, prose, table};
use crate::schema::{Schemas, Written, list};

const STYLE: &str = include_str!("style.css");
/// The glossary, a Markdown table with two columns.
const GLOSSARY: &str = include_str!("../../../docs/glossary.md");
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A document of the service, as the page links to it.
struct Linked {
    title: String,
    yaml_path: String,
    json_path: String,
}

impl Linked {
    fn of(document: &Document) -> Self {
        Self {
            title: document.api.info.title.clone(),
            yaml_path: document.path("yaml"),
            json_path: document.path("json"),
        }
    }
}

/// Renders the contract of a service, with the explanation of every error code and links to every
/// document that the service serves.
///
/// # Errors
/// [`ContractError`] if JSON cannot express the contract.
pub fn render(
    contract: &Document,
    others: &[Document],
    errors: &[&ErrorCode],
) -> Result<String, ContractError> {
    let served = std::iter::once(contract).chain(others);
    let linked: Vec<Linked> = served.map(Linked::of).collect();
    Ok(page_of(&to_value(&contract.api)?, errors, &linked))
}

/// Renders an OpenAPI 3.1 document.
fn page_of(document: &Value, errors: &[&ErrorCode], linked: &[Linked]) -> String {
    let page = Page {
        document,
        schemas: Schemas::of(document),
    };
    let title = text(&page.document["info"], "title");
    let body = [
        page.introduction(linked),
        page.operations()
            .iter()
            .map(|found| page.operation(found))
            .collect(),
        page.webhooks(),
        error_codes(errors),
        glossary(),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{}</title>\
         <style>{STYLE}</style></head>\n<body><nav aria-label=\"Contents\">{}</nav>\n<main>{}</main></body></html>\n",
        escape(title),
        page.navigation(),
        body.join("\n"),
    )
}

struct Page<'a> {
    document: &'a Value,
    schemas: Schemas<'a>,
}

/// One operation of the document, or one event.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    value: &'a Value,
}

impl<'a> Operation<'a> {
    /// The operation's id, which is also its anchor.
    fn id(&self) -> &'a str {
        text(self.value, "operationId")
    }

    /// The anchor of an event. The prefix separates it from the anchors of error codes.
    fn event_anchor(&self) -> String {
        format!("event-{}", self.id())
    }
}

impl<'a> Page<'a> {
    fn navigation(&self) -> String {
        let link = |anchor: &str, label: &str| {
            format!("<a href=\"#{}\">{}</a>", escape(anchor), escape(label))
        };
        let mut nav = link("introduction", "Introduction");
        nav.push_str(&link("documents", "Documents"));
        nav.push_str(&link("authentication", "Authentication"));
        nav.push_str("<strong>Operations</strong>");
        for operation in self.operations() {
            nav.push_str(&link(operation.id(), operation.id()));
        }
        let events = self.events();
        if !events.is_empty() {
            nav.push_str("<strong>Events</strong>");
            for event in events {
                nav.push_str(&link(&event.event_anchor(), event.path));
            }
        }
        nav.push_str("<strong>Reference</strong>");
        nav.push_str(&link("errors", "Error codes"));
        nav.push_str(&link("glossary", "Glossary"));
        nav
    }

    fn introduction(&self, linked: &[Linked]) -> String {
        let info = &self.document["info"];
        let servers = list(self.document, "servers").iter().map(|server| {
            let url = text(server, "url");
            if url.contains("://") {
                let description = inline(text(server, "description"));
                return format!("<li><code>{}</code> {description}</li>", escape(url));
            }
            "<li>The base URL is the origin that serves this page. In the calls below, <code>$BASE_URL</code> stands for it.</li>".to_owned()
        });
        let servers: String = servers.collect();
        let servers = if servers.is_empty() {
            servers
        } else {
            format!("<ul>{servers}</ul>")
        };
        format!(
            "<h1 id=\"introduction\">{}</h1><p class=\"dim\">Version {}</p>{}{servers}{}{}",
            escape(text(info, "title")),
            escape(text(info, "version")),
            prose(text(info, "description"), 2),
            documents(linked),
            self.credentials(),
        )
    }

    fn credentials(&self) -> String {
        let schemes = self.document.pointer("/components/securitySchemes");
        let Some(schemes) = schemes.and_then(Value::as_object) else {
            return String::new();
        };
        let rows = schemes.iter().map(|(name, scheme)| {
            Row::of([
                format!("<code>{}</code>", escape(name)),
                prose(text(scheme, "description"), 0),
            ])
        });
        let rows: Vec<Row> = rows.collect();
        format!(
            "<h2 id=\"authentication\">Authentication</h2>{}",
            table("Authentication", &["Key", "Meaning"], &rows)
        )
    }

    fn operations(&self) -> Vec<Operation<'a>> {
        found_in(&self.document["paths"], &METHODS)
    }

    fn events(&self) -> Vec<Operation<'a>> {
        found_in(&self.document["webhooks"], &["post"])
    }

    fn operation(&self, found: &Operation<'a>) -> String {
        let (method, path, value) = (found.method, found.path, found.value);
        format!(
            "<h2 id=\"{}\">{}</h2><p class=\"route\"><span class=\"verb {method}\">{}</span> <code>{}</code></p>{}{}{}{}{}{}",
            escape(found.id()),
            escape(first_of(&[text(value, "summary"), found.id()])),
            method.to_uppercase(),
            escape(path),
            prose(text(value, "description"), 3),
            credentials_of(value),
            self.parameters(value, Written::ByPartner, 3),
            self.request(value, "Request body", Written::ByPartner, 3),
            self.call(found),
            self.responses(value),
        )
    }

    fn webhooks(&self) -> String {
        let events = self.events();
        if events.is_empty() {
            return String::new();
        }
        let sections = events.iter().map(|event| {
            format!(
                "<h3 id=\"{}\">{}</h3><p class=\"route\"><span class=\"verb event\">EVENT</span> <code>{}</code></p>{}{}{}",
                escape(&event.event_anchor()),
                escape(first_of(&[text(event.value, "summary"), event.path])),
                escape(event.path),
                prose(text(event.value, "description"), 4),
                self.parameters(event.value, Written::ByService, 4),
                self.request(event.value, "Body", Written::ByService, 4),
            )
        });
        format!(
            "<h2 id=\"events\">Events</h2>{}",
            sections.collect::<String>()
        )
    }

    fn parameters(&self, operation: &'a Value, written: Written, level: u8) -> String {
        let rows = list(operation, "parameters").iter().map(|parameter| {
            let parameter = self.schemas.resolve(parameter);
            let schema = &parameter["schema"];
            let required = parameter["required"].as_bool().unwrap_or(false);
            let default = schema.get("default").map(|value| {
                format!(
                    "<p class=\"dim\">default <code>{}</code></p>",
                    escape(&plain(value))
                )
            });
            let meaning = prose(text(parameter, "description"), 0);
            let mark = match (written, required) {
                (Written::ByService, true) => "",
                _ => mark(required),
            };
            Row::of([
                format!("<code>{}</code>{mark}", escape(text(parameter, "name"))),
                escape(text(parameter, "in")),
                self.schemas.type_of(schema, 0),
                format!("{meaning}{}", default.unwrap_or_default()),
            ])
        });
        let rows: Vec<Row> = rows.collect();
        if rows.is_empty() {
            return String::new();
        }
        format!(
            "<h{level}>Parameters</h{level}>{}",
            table("Parameters", &["Name", "In", "Type", "Meaning"], &rows)
        )
    }

    fn request(&self, operation: &'a Value, heading: &str, written: Written, level: u8) -> String {
        let Some(content) = self.json_of(&operation["requestBody"]) else {
            return String::new();
        };
        format!(
            "<h{level}>{heading}</h{level}>{}{}",
            self.schemas.table(&content["schema"], written),
            self.example(content)
        )
    }

    /// A `curl` command for the operation.
    fn call(&self, found: &Operation<'a>) -> String {
        let server = list(self.document, "servers").first();
        let server = server
            .map_or("", |server| text(server, "url"))
            .trim_end_matches('/');
        // If the document does not contain its origin, the command uses `$BASE_URL`.
        let server = if server.contains("://") {
            server.to_owned()
        } else {
            format!("$BASE_URL{server}")
        };
        let mut path = found.path.to_owned();
        let mut headers = String::new();
        for parameter in list(found.value, "parameters") {
            let parameter = self.schemas.resolve(parameter);
            let name = text(parameter, "name");
            let sample = parameter.get("example").map_or_else(
                || self.schemas.sample(&parameter["schema"], 0),
                Value::clone,
            );
            match text(parameter, "in") {
                "path" => path = path.replace(&format!("{{{name}}}"), &plain(&sample)),
                "header" if parameter["required"].as_bool() == Some(true) => {
                    headers.push_str(&format!(" \\\n  -H '{name}: {}'", plain(&sample)));
                }
                _ => {}
            }
        }
        let key = if takes(found.value, "secret") {
            "sk_test_…"
        } else {
            "pk_test_…"
        };
        let mut call = format!(
            "curl -X {} \"{server}{path}\" \\\n  -H 'Authorization: Bearer {key}'{headers}",
            found.method.to_uppercase()
        );
        if let Some(content) = self.json_of(&found.value["requestBody"]) {
            let body = self.sample_of(content);
            call.push_str(&format!(
                " \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
            ));
        }
        format!("<h3>Call</h3>{}", code_block(&call))
    }

    fn responses(&self, operation: &'a Value) -> String {
        let Some(responses) = operation["responses"].as_object() else {
            return String::new();
        };
        let (good, refused): (Vec<_>, Vec<_>) = responses
            .iter()
            .partition(|(status, _)| status.starts_with('2'));
        let good = good
            .into_iter()
            .map(|(status, response)| self.response(status, response));
        let refused = refused
            .into_iter()
            .filter_map(|(status, response)| self.refusal(status, response));
        let refused: Vec<Row> = refused.collect();
        let refused = if refused.is_empty() {
            String::new()
        } else {
            let rows = table("Errors", &["Status", "Codes"], &refused);
            format!("<h3>Errors</h3>{rows}")
        };
        format!("{}{refused}", good.collect::<String>())
    }

    fn response(&self, status: &str, response: &'a Value) -> String {
        let response = self.schemas.resolve(response);
        let content = self.json_of(response).map(|content| {
            format!(
                "{}{}",
                self.schemas.table(&content["schema"], Written::ByService),
                self.example(content)
            )
        });
        format!(
            "<h3>Response {}</h3>{}{}{}",
            escape(status),
            prose(text(response, "description"), 4),
            content.unwrap_or_default(),
            self.headers(response),
        )
    }

    fn headers(&self, response: &'a Value) -> String {
        let Some(headers) = response["headers"].as_object() else {
            return String::new();
        };
        let rows = headers.iter().map(|(name, header)| {
            let header = self.schemas.resolve(header);
            Row::of([
                format!("<code>{}</code>", escape(name)),
                inline(text(header, "description")),
            ])
        });
        let rows: Vec<Row> = rows.collect();
        format!(
            "<details><summary>Headers</summary>{}</details>",
            table("Headers", &["Header", "Meaning"], &rows)
        )
    }

    /// One row of an operation's errors; each code links to its explanation.
    fn refusal(&self, status: &str, response: &'a Value) -> Option<Row> {
        let response = self.schemas.resolve(response);
        let codes = list(response, X_CODES)
            .iter()
            .filter_map(Value::as_str)
            .map(|code| format!("<a href=\"#{0}\"><code>{0}</code></a>", escape(code)));
        let codes: Vec<String> = codes.collect();
        (!codes.is_empty()).then(|| Row::of([escape(status), codes.join(", ")]))
    }

    fn json_of(&self, holder: &'a Value) -> Option<&'a Value> {
        self.schemas
            .resolve(holder)
            .get("content")?
            .get("application/json")
    }

    fn example(&self, content: &'a Value) -> String {
        format!(
            "<details open><summary>Example</summary>{}</details>",
            code_block(&self.sample_of(content))
        )
    }

    fn sample_of(&self, content: &'a Value) -> String {
        let sample = match content.get("example") {
            Some(example) => example.clone(),
            None => self.schemas.sample(&content["schema"], 0),
        };
        serde_json::to_string_pretty(&sample).unwrap_or_default()
    }
}

/// The terms of `docs/glossary.md`.
fn glossary() -> String {
    let rows = GLOSSARY.lines().filter_map(|line| {
        let (word, meaning) = line
            .strip_prefix("| ")?
            .strip_suffix(" |")?
            .split_once(" | ")?;
        let is_head = word == "word" || word.starts_with('-');
        (!is_head).then(|| Row::of([inline(word), inline(meaning)]))
    });
    let rows: Vec<Row> = rows.collect();
    format!(
        "<h2 id=\"glossary\">Glossary</h2>{}",
        table("Glossary", &["Word", "Meaning"], &rows)
    )
}

/// Links to the documents that the service serves for programs.
fn documents(linked: &[Linked]) -> String {
    let rows = linked.iter().map(|document| {
        format!(
            "<li>{}: <a href=\"{1}\">{1}</a>, <a href=\"{2}\">{2}</a></li>",
            escape(&document.title),
            escape(&document.yaml_path),
            escape(&document.json_path),
        )
    });
    format!(
        "<h2 id=\"documents\">Documents</h2><p>The contracts for programs, as OpenAPI 3.1.</p><ul>{}</ul>",
        rows.collect::<String>()
    )
}

fn found_in<'a>(paths: &'a Value, methods: &[&'static str]) -> Vec<Operation<'a>> {
    let mut found = Vec::new();
    for (path, item) in paths.as_object().into_iter().flatten() {
        for method in methods {
            if let Some(value) = item.get(method) {
                found.push(Operation {
                    method,
                    path,
                    value,
                });
            }
        }
    }
    found
}

/// Whether an operation takes a key whose scheme begins with this text.
fn takes(operation: &Value, scheme: &str) -> bool {
    list(operation, "security")
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|requirement| requirement.keys())
        .any(|name| name.starts_with(scheme))
}

fn credentials_of(operation: &Value) -> String {
    match (takes(operation, "secret"), takes(operation, "publishable")) {
        (true, true) => "<p class=\"dim\">Takes a secret or a publishable key.</p>".to_owned(),
        (true, false) => "<p class=\"dim\">Takes a secret key.</p>".to_owned(),
        (false, true) => "<p class=\"dim\">Takes a publishable key.</p>".to_owned(),
        (false, false) if takes(operation, "embedToken") => {
            "<p class=\"dim\">Takes the token of a widget.</p>".to_owned()
        }
        (false, false) => String::new(),
    }
}

fn error_codes(errors: &[&ErrorCode]) -> String {
    let mut sorted = errors.to_vec();
    sorted.sort_by_key(|code| (code.status, code.text));
    let rows = sorted.iter().map(|code| Row {
        anchor: Some(code.text.to_owned()),
        cells: vec![
            format!("<code>{}</code>", escape(code.text)),
            code.status.as_u16().to_string(),
            format!("<code>{}</code>", code.kind.as_str()),
            inline(code.meaning),
            inline(code.advice),
        ],
    });
    let rows: Vec<Row> = rows.collect();
    format!(
        "<h2 id=\"errors\">Error codes</h2><p>Every error has the same six fields: <code>type</code>, <code>code</code>, \
         <code>message</code>, <code>request_id</code>, <code>doc_url</code>, <code>statusCode</code>. Branch on the status, \
         the type and the code; the message is for people and may change.</p><div class=\"codes\">{}</div>",
        table(
            "Error codes",
            &["Code", "Status", "Type", "Meaning", "What to do"],
            &rows
        )
    )
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn first_of<'a>(texts: &[&'a str]) -> &'a str {
    texts
        .iter()
        .find(|text| !text.is_empty())
        .copied()
        .unwrap_or_default()
}

/// A value as text for a path or a header: strings have no quotes.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
