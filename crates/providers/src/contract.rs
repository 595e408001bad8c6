//! The calls to an upstream as one table. The client sends requests by this table, and the upstream's published contract is
//! generated from it.

use std::borrow::Cow;

use hyper::Method;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, Paths,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{
    Http, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::server::{Server, ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::{
    ComponentsBuilder, Content, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi,
    OpenApiBuilder, Ref, RefOr, Required, Response, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

const JSON: &str = "application/json";
/// The end of every description.
const TRACE: &str = "
- **A request may have the W3C header `traceparent`.** It names what made Penstock send the request, so that the logs and traces of both \
sides can be joined. It changes nothing else.";

/// The published contract of an upstream.
pub(crate) struct Contract {
    /// The upstream in one word, such as `engine`.
    pub(crate) upstream: &'static str,
    /// The setting of the upstream's URL.
    pub(crate) setting: &'static str,
    pub(crate) title: &'static str,
    /// A list in Markdown is at its end.
    pub(crate) description: &'static str,
    /// A date.
    pub(crate) version: &'static str,
    /// An example of the upstream's URL.
    pub(crate) url: &'static str,
    /// The id in the paths of the calls.
    pub(crate) id: PathId,
    pub(crate) calls: &'static [&'static Call],
}

/// The id that the paths of calls contain.
pub(crate) struct PathId {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) example: &'static str,
}

pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path below the upstream's URL, with a placeholder for the id.
    pub(crate) path: &'static str,
    /// The operation id in the contract.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    pub(crate) body: Option<Document>,
    pub(crate) response: Document,
    /// Further statuses and what they mean.
    pub(crate) statuses: &'static [(&'static str, &'static str)],
}

/// The JSON document of a request or a response.
pub(crate) struct Document {
    name: fn() -> Cow<'static, str>,
    add: fn(&mut Schemas),
}

type Schemas = Vec<(String, RefOr<Schema>)>;

impl Contract {
    pub(crate) fn openapi(&self) -> OpenApi {
        let info = InfoBuilder::new()
            .title(self.title)
            .description(Some(format!("{}{TRACE}", self.description)))
            .license(Some(
                LicenseBuilder::new()
                    .name("Apache-2.0")
                    .identifier(Some("Apache-2.0"))
                    .build(),
            ))
            .version(self.version)
            .build();
        let secret = format!("{}Secret", self.upstream);
        let documents = self.calls.iter().flat_map(|call| call.documents());
        let components = documents.flat_map(Document::schemas).fold(
            ComponentsBuilder::new()
                .security_scheme(secret.as_str(), SecurityScheme::Http(self.bearer())),
            |components, (name, schema)| components.schema(name, schema),
        );
        let mut paths = Paths::new();
        for call in self.calls {
            let methods = vec![call.http_method()];
            paths.add_path_operation(call.path, methods, self.operation(call));
        }
        OpenApiBuilder::new()
            .info(info)
            .servers(Some([self.server()]))
            .paths(paths)
            .components(Some(components.build()))
            .security(Some([SecurityRequirement::new(secret, [""; 0])]))
            .build()
    }

    fn bearer(&self) -> Http {
        HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(format!(
                "`{}_SECRET`, if it is set; mode live requires it. Compare it in constant time, and respond with 401 to any other.",
                self.setting
            )))
            .build()
    }

    fn server(&self) -> Server {
        let url = ServerVariableBuilder::new()
            .default_value(self.url)
            .description(Some(format!("The URL behind `{}=http:`", self.setting)))
            .build();
        ServerBuilder::new()
            .url(format!("{{{}}}", self.upstream))
            .description(Some(format!("The operator's {}", self.upstream)))
            .parameter(self.upstream, url)
            .build()
    }

    fn operation(&self, call: &Call) -> Operation {
        let mut built = OperationBuilder::new()
            .operation_id(Some(call.id))
            .summary(Some(call.summary))
            .description(Some(call.description))
            .request_body(call.body.as_ref().map(Document::body))
            .response("200", call.response.response());
        for (status, meaning) in call.statuses {
            built = built.response(*status, Response::new(*meaning));
        }
        if call.path.contains('{') {
            built = built.parameter(self.id.parameter());
        }
        built
            .response(
                "default",
                Response::new("No valid response: Penstock decides nothing on it"),
            )
            .build()
    }
}

impl PathId {
    fn parameter(&self) -> Parameter {
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(self.description))
            .schema(Some(String::schema()))
            .example(Some(self.example.into()))
            .build()
    }
}

impl Call {
    /// The path with this id in the place of the placeholder.
    pub(crate) fn path_of(&self, id: &str) -> String {
        match (self.path.split_once('{'), self.path.split_once('}')) {
            (Some((before, _)), Some((_, after))) => format!("{before}{id}{after}"),
            _ => self.path.to_owned(),
        }
    }

    fn http_method(&self) -> HttpMethod {
        match self.method {
            Method::GET => HttpMethod::Get,
            Method::PUT => HttpMethod::Put,
            _ => HttpMethod::Post,
        }
    }

    fn documents(&self) -> impl Iterator<Item = &Document> {
        self.body.iter().chain([&self.response])
    }
}

impl Document {
    pub(crate) const fn of<T: ToSchema>() -> Self {
        Self {
            name: T::name,
            add: add::<T>,
        }
    }

    /// The schema of the document, and every schema that it uses.
    pub(crate) fn schemas(&self) -> Schemas {
        let mut schemas = Vec::new();
        (self.add)(&mut schemas);
        schemas
    }

    pub(crate) fn body(&self) -> RequestBody {
        RequestBodyBuilder::new()
            .content(JSON, self.content())
            .required(Some(Required::True))
            .build()
    }

    fn response(&self) -> Response {
        ResponseBuilder::new()
            .description("The response")
            .content(JSON, self.content())
            .build()
    }

    fn content(&self) -> Content {
        let schema = Ref::from_schema_name((self.name)());
        ContentBuilder::new().schema(Some(schema)).build()
    }
}

fn add<T: ToSchema>(schemas: &mut Schemas) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}
