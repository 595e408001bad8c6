//! The calls to a rail as one table. The client sends requests by this table, and the published contract `rail-v1` is generated
//! from it.

use hyper::Method;
use utoipa::PartialSchema;
use utoipa::openapi::path::{
    HttpMethod, Operation as Documented, OperationBuilder, Parameter, ParameterBuilder,
    ParameterIn, Paths,
};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::{ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr, Required,
    Response,
};

use super::{notification, wire};
use crate::schemas::{body_of, response_of, take};

/// The placeholder of the payment's id in a path.
pub(super) const PAYMENT: &str = "{id}";

/// The contract's version: a date.
const VERSION: &str = "2026-11-25";
const SECRET: &str = "railSecret";

const DESCRIPTION: &str = "\
The interface of a rail, which collects and sends fiat, and swaps assets. The operator implements it and configures its URL in \
`PENSTOCK_RAIL=http:<url>`; the gate service calls it.

Penstock requests instructions before it stores a pay-in, begins a payment after it has stored the pay-in, pay-out or swap, and then \
requests reports until the payment has ended. The rail moves the money of a payment that has begun.

In a swap, which only the widget makes and only where the operator's catalogue offers it, the user sends `source_amount` of `source_asset` on \
`source_network`, and the rail delivers `crypto_amount` of `asset` on `network` to `wallet_address`. `fiat_amount` is the value of both; no \
fiat moves.

- **The payment's id is the idempotency key.** Every request may arrive twice, late or out of order. A repeated request changes nothing \
and gets the same response. Money moves once per id.
- **Without a valid response nothing is decided.** A response counts as absent if it takes longer than 3 seconds, breaks off, has another \
status than 200, has another content type than `application/json`, is longer than 128 KiB, names another id or does not follow this \
contract. Penstock then neither settles nor ends the payment; it asks again under the same id, after 1 second at first and after 60 \
seconds at most. So a rail that does not know the outcome yet reports `processing`, and one that cannot tell responds with 503. It \
never guesses.
- **404 for a report means that the payment has not begun.** Penstock then begins it, again under the same id. A rail that has lost its \
records must not respond with 404.
- **A payment ends** as `settled`, `failed` or `cancelled`. These states are final. A pay-out is never `cancelled`: Penstock ignores \
such a report, logs an error and asks again. A hosted pay-out, which has `payout`, and a swap may be: the user sends the crypto first, as the \
instructions say, and may give up before that.
- **A cancellation is final too.** After the response `cancelled` no money moves under that id, also if the payment begins later.
- **A rail may notify the gate** that the state of a payment may have changed (`railNotification`). Penstock then requests a report at \
once. A notification decides nothing, and Penstock asks without one too.
- Both sides ignore unknown fields. Amounts are decimal strings and are never rounded.";

/// A call to a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Instructions,
    Begin,
    Report,
    Cancel,
}

impl Operation {
    const ALL: [Self; 4] = [Self::Instructions, Self::Begin, Self::Report, Self::Cancel];

    /// The method, and the path below the rail's URL.
    pub(super) const fn route(self) -> (Method, &'static str) {
        match self {
            Self::Instructions => (Method::POST, "/v1/payments/{id}/instructions"),
            Self::Begin => (Method::PUT, "/v1/payments/{id}"),
            Self::Report => (Method::GET, "/v1/payments/{id}"),
            Self::Cancel => (Method::POST, "/v1/payments/{id}/cancel"),
        }
    }

    /// The operation id in the contract.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Instructions => "instructPayer",
            Self::Begin => "beginPayment",
            Self::Report => "reportPayment",
            Self::Cancel => "cancelPayment",
        }
    }

    const fn description(self) -> (&'static str, &'static str) {
        match self {
            Self::Instructions => (
                "State what the payer needs",
                "Sent before a pay-in, a hosted pay-out or a swap is stored. Moves nothing and promises nothing: the payment may never be stored, and \
                 then the id never begins. For a pay-in, say how to pay the fiat. For a hosted pay-out, say where to send the crypto, and for a swap where to send \
                 the source: `address`, `network`, `asset`, `amount`, and `memo` if the network needs one. Without a valid response the payment is \
                 refused with 503, and the next attempt has another id.",
            ),
            Self::Begin => (
                "Begin a payment",
                "Penstock has stored the payment: collect its fiat, send it, or await the source of a swap. Sent at the first poll, and again whenever a report is 404. \
                 Respond with `accepted` also for a payment that is in progress or has ended. A payment that the rail cannot carry out is \
                 accepted too, and reported as `failed`. Respond with 409 if the id has begun with other terms.",
            ),
            Self::Report => (
                "Report the state of a payment",
                "Sent after the payment has begun, until a report ends it. Respond with 404 only if the payment has not begun.",
            ),
            Self::Cancel => (
                "Cancel a payment",
                "The user of a hosted payment has given up. Respond with `cancelled` if no money has moved and none will, also if the payment \
                 has not begun. Respond with `not_cancellable` if it is too late.",
            ),
        }
    }

    fn body(self) -> Option<RequestBody> {
        match self {
            Self::Instructions | Self::Begin | Self::Cancel => Some(body_of::<wire::Payment>()),
            Self::Report => None,
        }
    }

    fn response(self) -> Response {
        match self {
            Self::Instructions => response_of::<wire::InstructionsAnswer>(),
            Self::Begin => response_of::<wire::BeginAnswer>(),
            Self::Report => response_of::<wire::Report>(),
            Self::Cancel => response_of::<wire::CancelAnswer>(),
        }
    }

    fn documented(self) -> Documented {
        let (summary, description) = self.description();
        let mut built = OperationBuilder::new()
            .operation_id(Some(self.id()))
            .summary(Some(summary))
            .description(Some(description))
            .parameter(payment())
            .request_body(self.body())
            .response("200", self.response());
        match self {
            Self::Instructions | Self::Cancel => {}
            Self::Begin => {
                built = built.response(
                    "409",
                    Response::new(
                        "The id has begun with other terms: Penstock decides nothing on it",
                    ),
                );
            }
            Self::Report => {
                built = built.response("404", Response::new("The payment has not begun"));
            }
        }
        built
            .response(
                "default",
                Response::new("No valid response: Penstock decides nothing on it"),
            )
            .build()
    }
}

/// The published contract.
#[must_use]
pub fn openapi() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Penstock Rail Contract")
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
            "`PENSTOCK_RAIL_SECRET`, if it is set; mode live requires it. Compare it in constant time, and respond with 401 to any other.",
        ))
        .build();
    let mut api = OpenApiBuilder::new()
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
        .build();
    api.webhooks = Some(notification::webhooks());
    api
}

fn server() -> utoipa::openapi::Server {
    let url = ServerVariableBuilder::new()
        .default_value("http://127.0.0.1:9100")
        .description(Some("The URL behind `PENSTOCK_RAIL=http:`"))
        .build();
    ServerBuilder::new()
        .url("{rail}")
        .description(Some("The operator's rail"))
        .parameter("rail", url)
        .build()
}

fn with(mut paths: Paths, operation: Operation) -> Paths {
    let (method, path) = operation.route();
    let method = match method {
        Method::GET => HttpMethod::Get,
        Method::PUT => HttpMethod::Put,
        _ => HttpMethod::Post,
    };
    paths.add_path_operation(path, vec![method], operation.documented());
    paths
}

fn payment() -> Parameter {
    ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(
            "The id of the pay-in (`pi_…`), pay-out (`po_…`) or swap (`sw_…`), which the partner knows. Says of which mode it is.",
        ))
        .schema(Some(String::schema()))
        .example(Some("pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK".into()))
        .build()
}

/// Every schema that the operations use, directly or through another schema.
fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut found = Vec::new();
    take::<wire::Payment>(&mut found);
    take::<wire::InstructionsAnswer>(&mut found);
    take::<wire::BeginAnswer>(&mut found);
    take::<wire::Report>(&mut found);
    take::<wire::CancelAnswer>(&mut found);
    take::<notification::RailNotification>(&mut found);
    found
}
