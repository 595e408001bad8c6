//! The published contract: adds what all operations of an API share to the documentation of the routes.

mod requests;
mod shared;

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
    Paths,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{
    Components, ContentBuilder, Header, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder,
    Schema,
};

use crate::error_code::ErrorCode;
use crate::error_code::Kind;

/// The name of the security scheme of secret keys.
pub(crate) const SECRET_KEY: &str = "secretKey";
/// The name of the security scheme of publishable keys.
pub(crate) const PUBLISHABLE_KEY: &str = "publishableKey";
/// The name of the security scheme of widgets' tokens.
pub(crate) const EMBED_TOKEN: &str = "embedToken";

/// The extension with which a response lists its error codes.
pub const X_CODES: &str = "x-error-codes";
const ERROR: &str = "Error";
/// The response for statuses without their own documentation.
const ANY_ERROR: &str = "default";
const JSON: &str = "application/json";
/// The header of warnings.
const WARNING: &str = "Penstock-Warning";
const ABOUT_WARNING: &str = "Only if the request succeeded, but not as its sender may expect: `<code>; <text>`. \
    Several warnings are several lines. A text has no comma, so lines that a client has joined with commas can be split.";

const OWN_SIGNATURE: &str = "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256, keyed with your signing secret, over `<t>.<raw body>`.";
/// The headers of every delivery after the product's own signature.
const STANDARD_HEADERS: [(&str, &str); 3] = [
    (
        "webhook-id",
        "The event's id, as in Standard Webhooks. It is the same on every attempt.",
    ),
    (
        "webhook-timestamp",
        "The time of this attempt's signature, in unix seconds.",
    ),
    (
        "webhook-signature",
        "`v1,<base64>`: the signature as in Standard Webhooks.",
    ),
];

/// An event that a service sends.
#[derive(Debug, Clone)]
pub struct WebhookDoc {
    /// The event's type.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// When the event is sent, and what the receiver should do.
    pub description: &'static str,
    /// The name of the body's schema among the components.
    pub schema: &'static str,
    /// A sample body.
    pub example: serde_json::Value,
}

/// The contract could not be built. This is a bug, which its tests find.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the published contract is inconsistent: {}", .0.join("; "))]
pub struct ContractError(Vec<String>);

/// A document being completed. Consumed by [`Contract::finish`].
pub struct Contract {
    api: OpenApi,
    faults: Vec<String>,
}

impl Contract {
    /// Starts from the documentation of the routes.
    #[must_use]
    pub fn new(api: OpenApi) -> Self {
        let mut contract = Self {
            api,
            faults: Vec::new(),
        };
        let components = contract.components();
        components.schemas.insert(ERROR.to_owned(), error_schema());
        components
            .responses
            .insert(ERROR.to_owned(), RefOr::T(any_error()));
        contract
    }

    /// Describes the credentials that operations take.
    #[must_use]
    pub(crate) fn schemes(mut self, names: &BTreeSet<&'static str>) -> Self {
        let schemes = &mut self.components().security_schemes;
        for name in names {
            schemes.insert((*name).to_owned(), RefOr::T(scheme(name)));
        }
        self
    }

    /// States once for the whole document that its calls take a widget's token.
    #[must_use]
    pub fn of_widgets(mut self) -> Self {
        self.api.security = Some(vec![requirement(EMBED_TOKEN)]);
        self
    }

    /// The groups of operations with their descriptions, in reading order.
    #[must_use]
    pub fn tags(mut self, tags: &[(&str, &str)]) -> Self {
        let tags = tags.iter().map(|(name, about)| {
            TagBuilder::new()
                .name(*name)
                .description(Some(*about))
                .build()
        });
        self.api.tags = Some(tags.collect());
        self
    }

    /// Adds the event bodies under `webhooks`, in the given order, and the headers of their deliveries. `signature` is the name of
    /// the header with the product's own signature.
    #[must_use]
    pub fn webhooks(mut self, webhooks: &[WebhookDoc], signature: &str) -> Self {
        let own = [(signature, OWN_SIGNATURE)];
        let headers: Vec<_> = own.into_iter().chain(STANDARD_HEADERS).collect();
        for (name, meaning) in &headers {
            let header = RefOr::T(delivery_header(name, meaning));
            let parameters = &mut self.components().parameters;
            parameters.insert((*name).to_owned(), header);
        }
        let mut paths = Paths::new();
        for webhook in webhooks {
            let known = self.components().schemas.contains_key(webhook.schema);
            if !known {
                self.faults
                    .push(format!("unknown schema `{}`", webhook.schema));
            }
            let item = PathItem::new(HttpMethod::Post, webhook_operation(webhook, &headers));
            paths.paths.insert(webhook.name.to_owned(), item);
        }
        self.api.webhooks = Some(paths);
        self
    }

    /// Adds recorded examples of responses and request bodies, by operation id.
    ///
    /// The text is a JSON object: `{"listThings": {"request": …, "response": …}}`.
    #[must_use]
    pub fn examples(mut self, recorded: &str) -> Self {
        let mut recorded: BTreeMap<String, Exchange> = match serde_json::from_str(recorded) {
            Ok(recorded) => recorded,
            Err(error) => {
                self.faults
                    .push(format!("the examples cannot be read: {error}"));
                return self;
            }
        };
        for operation in operations(&mut self.api.paths) {
            let id = operation.operation_id.as_deref().unwrap_or_default();
            if let Some(exchange) = recorded.remove(id) {
                exchange.show_in(operation);
            }
        }
        self
    }

    /// Adds a schema to which no operation refers, such as the body of an event.
    #[must_use]
    pub fn schema(mut self, name: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.components()
            .schemas
            .insert(name.to_owned(), schema.into());
        self
    }

    /// Adds `X-Request-Id` and the throttle headers to every response, and the header of warnings to every success.
    #[must_use]
    pub fn headers(mut self, tiers: &[&str]) -> Self {
        let common = common_headers(tiers);
        let waiting = waiting_headers(tiers);
        let warning = [(WARNING.to_owned(), header(Type::String, ABOUT_WARNING))];
        let components = self.components();
        for (name, header) in common.iter().chain(&waiting).chain(&warning) {
            components
                .headers
                .insert(name.clone(), RefOr::T(header.clone()));
        }
        if let Some(RefOr::T(response)) = components.responses.get_mut(ERROR) {
            refer(response, &common);
        }
        for operation in operations(&mut self.api.paths) {
            for (status, response) in &mut operation.responses.responses {
                let RefOr::T(response) = response else {
                    continue;
                };
                refer(response, &common);
                if status == "429" {
                    refer(response, &waiting);
                }
                if status.starts_with('2') {
                    refer(response, &warning);
                }
            }
        }
        self
    }

    /// Completes the document.
    ///
    /// # Errors
    /// [`ContractError`] lists every name that does not exist.
    pub fn finish(mut self) -> Result<OpenApi, ContractError> {
        let groups: BTreeSet<String> = self.api.tags.iter().flatten().map(name_of).collect();
        for operation in operations(&mut self.api.paths) {
            requests::sharpen(operation);
            let id = operation.operation_id.as_deref().unwrap_or_default();
            for tag in operation.tags.iter().flatten() {
                if !groups.contains(tag) {
                    self.faults
                        .push(format!("operation `{id}` has the unknown tag `{tag}`"));
                }
            }
        }
        let OpenApi {
            paths, components, ..
        } = &mut self.api;
        shared::responses(paths, components.get_or_insert_with(Components::new));
        if self.faults.is_empty() {
            Ok(self.api)
        } else {
            Err(ContractError(self.faults))
        }
    }

    fn components(&mut self) -> &mut Components {
        self.api.components.get_or_insert_with(Components::new)
    }
}

/// The document as YAML. The same contract gives the same bytes.
pub fn to_yaml(api: &OpenApi) -> Result<String, ContractError> {
    let yaml = api
        .to_yaml()
        .map_err(|error| ContractError(vec![error.to_string()]))?;
    Ok(yaml.lines().map(with_quotes).collect())
}

/// The document as JSON.
pub fn to_json(api: &OpenApi) -> Result<String, ContractError> {
    let json = api.to_pretty_json();
    json.map_err(|error| ContractError(vec![error.to_string()]))
}

/// Quotes a date or hexadecimal text in a line of YAML. Both are strings in YAML 1.2, which we
/// write, but not in YAML 1.1, which many readers use.
fn with_quotes(line: &str) -> String {
    let value_at = line
        .find(": ")
        .or_else(|| line.find("- "))
        .map_or(line.len(), |at| at + 2);
    let (name, value) = line.split_at(value_at);
    if (is_date(value) || value.starts_with("0x")) && !value.contains(' ') {
        format!("{name}'{value}'\n")
    } else {
        format!("{line}\n")
    }
}

fn is_date(value: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    value.len() >= 10 && value.bytes().take(10).enumerate().all(fits)
}

/// The document as a JSON value, for the reference page and for checks.
pub fn to_value(api: &OpenApi) -> Result<serde_json::Value, ContractError> {
    serde_json::to_value(api).map_err(|error| ContractError(vec![error.to_string()]))
}

/// A recorded request and its response.
#[derive(Debug, Deserialize)]
struct Exchange {
    request: Option<serde_json::Value>,
    response: serde_json::Value,
}

impl Exchange {
    fn show_in(self, operation: &mut Operation) {
        if let Some(RefOr::T(body)) = &mut operation.request_body
            && let Some(RefOr::T(content)) = body.content.get_mut(JSON)
        {
            content.example = self.request;
        }
        let responses = operation.responses.responses.iter_mut();
        let mut good = responses.filter(|(status, _)| status.starts_with('2'));
        if let Some((_, RefOr::T(response))) = good.next()
            && let Some(RefOr::T(content)) = response.content.get_mut(JSON)
        {
            content.example = Some(self.response);
        }
    }
}

fn name_of(tag: &Tag) -> String {
    tag.name.clone()
}

/// The documented operations of a path, by method.
pub(crate) fn by_method(item: &PathItem) -> impl Iterator<Item = (&'static str, &Operation)> {
    let documented = [
        ("GET", &item.get),
        ("PUT", &item.put),
        ("POST", &item.post),
        ("DELETE", &item.delete),
        ("PATCH", &item.patch),
    ];
    documented
        .into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

pub(crate) fn operations(paths: &mut Paths) -> impl Iterator<Item = &mut Operation> {
    paths.paths.values_mut().flat_map(|item| {
        [
            item.get.as_mut(),
            item.put.as_mut(),
            item.post.as_mut(),
            item.delete.as_mut(),
            item.options.as_mut(),
            item.head.as_mut(),
            item.patch.as_mut(),
            item.trace.as_mut(),
        ]
        .into_iter()
        .flatten()
    })
}

/// Documents who may call an operation, and its error codes: one response for each status. The `default` response covers all
/// other errors.
pub(crate) fn describe<'c>(
    operation: &mut Operation,
    schemes: &[&str],
    codes: impl Iterator<Item = &'c ErrorCode>,
) {
    operation.security = Some(schemes.iter().map(|name| requirement(name)).collect());
    let mut by_status: BTreeMap<StatusCode, Vec<&ErrorCode>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status).or_default().push(code);
    }
    let responses = &mut operation.responses.responses;
    for (status, codes) in by_status {
        responses.insert(status.as_str().to_owned(), RefOr::T(error_response(&codes)));
    }
    let any = Ref::from_response_name(ERROR);
    responses.insert(ANY_ERROR.to_owned(), RefOr::Ref(any));
}

fn requirement(scheme: &str) -> SecurityRequirement {
    SecurityRequirement::new(scheme, [""; 0])
}

fn scheme(name: &str) -> SecurityScheme {
    match name {
        EMBED_TOKEN => SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
            "X-Embed-Token",
            "The token of a bootstrap. It belongs to one widget; a server must never use it.",
        ))),
        PUBLISHABLE_KEY => bearer(
            "A publishable key, `pk_test_…` or `pk_live_…`. May also be sent as `X-Publishable-Key`.",
        ),
        _ => bearer(
            "A secret key, `sk_test_…` or `sk_live_…`: server side only. May also be sent as `X-Secret-Key`.",
        ),
    }
}

fn bearer(description: &'static str) -> SecurityScheme {
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(description))
        .build();
    SecurityScheme::Http(scheme)
}

fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
}

fn error_schema() -> RefOr<Schema> {
    let kinds = Kind::ALL.map(Kind::as_str);
    let url_or_null = SchemaType::from_iter([Type::String, Type::Null]);
    let fields = [
        ("type", text("The kind of error.").enum_values(Some(kinds))),
        ("code", text("A stable identifier of the exact error.")),
        (
            "message",
            text("An explanation for people. It may change at any time."),
        ),
        (
            "request_id",
            text("The id of the request; equal to the `X-Request-Id` header."),
        ),
        (
            "doc_url",
            text("A page that explains the code.").schema_type(url_or_null),
        ),
        (
            "statusCode",
            text("The status of the response.").schema_type(Type::Integer),
        ),
    ];
    let about = "Every response that is not a success. Branch on `statusCode`, `type` and `code`, never on `message`.";
    let object = ObjectBuilder::new().description(Some(about));
    let add = |object: ObjectBuilder, (name, field): (&str, ObjectBuilder)| {
        object.property(name, field).required(name)
    };
    RefOr::T(Schema::Object(fields.into_iter().fold(object, add).build()))
}

fn error_content() -> utoipa::openapi::Content {
    ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ERROR)))
        .build()
}

fn any_error() -> Response {
    ResponseBuilder::new()
        .description("Any other error, in the same envelope.")
        .content(JSON, error_content())
        .build()
}

fn error_response(codes: &[&ErrorCode]) -> Response {
    let lines: Vec<String> = codes
        .iter()
        .map(|code| format!("- `{}`: {}", code.text, code.meaning))
        .collect();
    let codes: Vec<&str> = codes.iter().map(|code| code.text).collect();
    ResponseBuilder::new()
        .description(lines.join("\n"))
        .content(JSON, error_content())
        .extensions(Some(ExtensionsBuilder::new().add(X_CODES, codes).build()))
        .build()
}

type NamedHeaders = Vec<(String, Header)>;

fn common_headers(tiers: &[&str]) -> NamedHeaders {
    let mut headers = vec![(
        "X-Request-Id".to_owned(),
        header(
            Type::String,
            "The id of this request in our logs; equal to the `request_id` of an error.",
        ),
    )];
    for tier in tiers {
        for (name, meaning) in [
            ("Limit", "Requests admitted in one window of this tier."),
            (
                "Remaining",
                "Requests still admitted in the current window.",
            ),
            ("Reset", "Seconds until the window closes."),
        ] {
            headers.push((
                format!("X-RateLimit-{name}-{tier}"),
                header(Type::Integer, meaning),
            ));
        }
    }
    headers
}

fn waiting_headers(tiers: &[&str]) -> NamedHeaders {
    let mut headers = vec![(
        "Retry-After".to_owned(),
        header(
            Type::Integer,
            "Seconds to wait before the same request can succeed.",
        ),
    )];
    for tier in tiers {
        let meaning = match *tier {
            "short" => "Seconds to wait: the longest wait of the exhausted tiers.",
            _ => "Seconds to wait, if this tier is exhausted.",
        };
        headers.push((
            format!("Retry-After-{tier}"),
            header(Type::Integer, meaning),
        ));
    }
    headers
}

fn header(kind: Type, description: &str) -> Header {
    let mut header = Header::new(ObjectBuilder::new().schema_type(kind));
    header.description = Some(description.to_owned());
    header
}

fn refer(response: &mut Response, headers: &[(String, Header)]) {
    for (name, _) in headers {
        let place = Ref::new(format!("#/components/headers/{name}"));
        response.headers.insert(name.clone(), RefOr::Ref(place));
    }
}

fn webhook_operation(webhook: &WebhookDoc, headers: &[(&str, &str)]) -> Operation {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(webhook.schema)))
        .example(Some(webhook.example.clone()))
        .build();
    let body = RequestBodyBuilder::new()
        .required(Some(Required::True))
        .content(JSON, content)
        .build();
    let taken = ResponseBuilder::new()
        .description(
            "Any 2xx, sent after the event is safely handled. Any other response is retried.",
        )
        .build();
    let mut operation = OperationBuilder::new()
        .operation_id(Some(webhook.name.replace('.', "_")))
        .summary(Some(webhook.summary))
        .description(Some(webhook.description))
        .request_body(Some(body))
        .response("2XX", taken)
        // A delivery carries a signature, not a key.
        .securities(Some(Vec::<SecurityRequirement>::new()))
        .build();
    let place = |name| RefOr::Ref(Ref::new(format!("#/components/parameters/{name}")));
    operation.parameters = Some(headers.iter().map(|(name, _)| place(name)).collect());
    operation
}

fn delivery_header(name: &str, meaning: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(meaning))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

#[cfg(test)]
mod tests;
