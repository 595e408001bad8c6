//! The calls to a verifier as one table. The client sends requests by this table, and the published contract `verifier-v1` is
//! generated from it.

use hyper::Method;
use utoipa::PartialSchema;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, Paths,
};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::{ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr, Required,
    Response,
};

use super::wire;
use crate::schemas::{body_of, response_of, take};

/// The placeholder of the verification id in a path.
pub(super) const ID: &str = "{id}";

/// The contract's version: a date.
const VERSION: &str = "2026-11-25";
const SECRET: &str = "verifierSecret";

const DESCRIPTION: &str = "\
The interface of a verifier, which verifies the users of hosted sessions. The operator implements it and configures its URL in \
`PENSTOCK_VERIFIER=http:<url>`; the gate service calls it.

Penstock starts a verification, shows the user the verifier's page or form, submits the answers to the form, and requests reports until \
the verification has ended. Penstock sends no personal data except the answers of the user, and stores only the state with the \
reason of a rejection, the times and the verifier's reference. The user reads the reason; it names no personal data.

- **The verification's id is the idempotency key.** Every request about a verification may arrive twice, late or out of order. A repeated \
start creates no second case and gets the same case, with its current state.
- **Without a valid response nothing is decided.** A response counts as absent if it takes longer than 3 seconds, breaks off, is \
redirected, has another status than 200, has another content type than JSON, is longer than 64 KiB, has the id of another \
verification, asks for a `form` with anything else than this contract describes, or does not follow this contract otherwise. Penstock then neither approves nor rejects the user; it sends the request again under \
the same id. So a verifier that does not know the outcome yet reports `pending`, and one that cannot tell responds with 503. It never \
guesses.
- **`approved` and `rejected` are final.** A later report of the opposite changes nothing.
- Both sides ignore unknown fields, except in a `form`.";

/// A call to a verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Start,
    Submit,
    Report,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Start, Self::Submit, Self::Report];

    /// The method, and the path below the verifier's URL.
    pub(super) const fn route(self) -> (Method, &'static str) {
        match self {
            Self::Start => (Method::PUT, "/v1/verifications/{id}"),
            Self::Submit => (Method::POST, "/v1/verifications/{id}/answers"),
            Self::Report => (Method::GET, "/v1/verifications/{id}"),
        }
    }

    /// The operation id in the contract.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Start => "startVerification",
            Self::Submit => "submitAnswers",
            Self::Report => "reportVerification",
        }
    }

    const fn description(self) -> (&'static str, &'static str) {
        match self {
            Self::Start => (
                "Start a verification",
                "Creates the case of the id if it does not exist. Respond with what the user must do: visit `url`, or fill in `form`. A verifier \
                 that needs neither may decide at once.",
            ),
            Self::Submit => (
                "Submit the answers to the form",
                "The user has filled in `form`. Penstock has checked the answers against it, and submits none to a verification that asks for no form. The same answers may arrive twice. If they do not suffice, stay `pending` or reject the user \
                 with a reason. A case that has ended stays unchanged, and the response is its end.",
            ),
            Self::Report => (
                "Report the state of a verification",
                "Sent after a start until the verification has ended. Respond with 404 if the id is unknown: that decides nothing.",
            ),
        }
    }

    fn body(self) -> Option<RequestBody> {
        match self {
            Self::Start => Some(body_of::<wire::Verification>()),
            Self::Submit => Some(body_of::<wire::Answers>()),
            Self::Report => None,
        }
    }

    fn response(self) -> Response {
        match self {
            Self::Start => response_of::<wire::StartAnswer>(),
            Self::Submit | Self::Report => response_of::<wire::ReportAnswer>(),
        }
    }
}

/// The published contract.
#[must_use]
pub fn openapi() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Penstock Verifier Contract")
        .description(Some(DESCRIPTION))
        .license(Some(
            LicenseBuilder::new()
                .name("Apache-2.0")
                .identifier(Some("Apache-2.0"))
                .build(),
        ))
        .version(VERSION)
        .build();
    let secret = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "`PENSTOCK_VERIFIER_SECRET`, if it is set; mode live requires it. Compare it in constant time, and respond with 401 to any other.",
        ))
        .build();
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([server()]))
        .paths(Operation::ALL.into_iter().fold(Paths::new(), with))
        .components(Some(
            schemas()
                .into_iter()
                .fold(
                    ComponentsBuilder::new().security_scheme(SECRET, SecurityScheme::Http(secret)),
                    |components, (name, schema)| components.schema(name, schema),
                )
                .build(),
        ))
        .security(Some([SecurityRequirement::new(SECRET, [""; 0])]))
        .build()
}

fn server() -> utoipa::openapi::Server {
    let url = ServerVariableBuilder::new()
        .default_value("http://127.0.0.1:9000")
        .description(Some("The URL behind `PENSTOCK_VERIFIER=http:`"))
        .build();
    ServerBuilder::new()
        .url("{verifier}")
        .description(Some("The operator's verifier"))
        .parameter("verifier", url)
        .build()
}

fn with(mut paths: Paths, operation: Operation) -> Paths {
    let (method, path) = operation.route();
    let method = match method {
        Method::GET => HttpMethod::Get,
        Method::PUT => HttpMethod::Put,
        _ => HttpMethod::Post,
    };
    let (summary, description) = operation.description();
    let built = OperationBuilder::new()
        .operation_id(Some(operation.id()))
        .summary(Some(summary))
        .description(Some(description))
        .request_body(operation.body())
        .response("200", operation.response())
        .response(
            "default",
            Response::new("No valid response: Penstock decides nothing on it"),
        )
        .parameter(verification());
    paths.add_path_operation(path, vec![method], built.build());
    paths
}

fn verification() -> Parameter {
    ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The verification's id. Says of which mode it is."))
        .schema(Some(String::schema()))
        .example(Some("ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK".into()))
        .build()
}

/// Every schema that the operations use, directly or through another schema.
fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut found = Vec::new();
    take::<wire::Verification>(&mut found);
    take::<wire::Answers>(&mut found);
    take::<wire::StartAnswer>(&mut found);
    take::<wire::ReportAnswer>(&mut found);
    found
}
