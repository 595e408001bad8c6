//! The calls to an engine as one table. The client sends requests by this table, and the published contract `engine-v1` is
//! generated from it.

use hyper::Method;
use utoipa::PartialSchema;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem, Paths,
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

/// The placeholder of the trade id in a path.
pub(super) const TRADE: &str = "{tradeId}";

/// The contract's version: a date.
const VERSION: &str = "2026-11-23";
const SECRET: &str = "engineSecret";

const DESCRIPTION: &str = "\
The interface of a liquidity engine. The operator implements it and configures its URL in `PENSTOCK_ENGINE=http:<url>`; the pools \
service calls it.

Penstock requests a hold before it stores a trade, confirms the hold after it has stored the trade, and requests a report when the \
partner polls the trade. The engine carries out a confirmed trade.

- **The trade's id is the idempotency key.** Every request about a trade may arrive twice, late or out of order. A repeated request \
changes nothing and gets the same response. Money moves once per id.
- **Without a valid response nothing is decided.** A response counts as absent if it takes longer than 2 seconds, breaks off, has another \
status than 200, is longer than 64 KiB or does not follow this contract. Penstock then neither settles nor fails the trade; it sends the \
request again under the same id. So an engine that does not know the outcome yet reports `in_progress`, and one that cannot tell responds \
with 503. It never guesses.
- **An unconfirmed hold lapses** by the engine's own clock; a minute is enough. From then on every confirmation gets `lapsed`, the report \
is `released`, and nothing is delivered.
- **A release wins.** It can overtake its hold: a later hold under the same id is `refused`. Penstock sends no release after a \
confirmation.
- **A confirmed trade ends** as `delivered`, `failed` or `released`. These states are final, except that `delivered` may become `returned`. \
`returned` is final.
- Both sides ignore unknown fields. Amounts are decimal strings and are never rounded.";

/// A call to an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Depth,
    Hold,
    Confirm,
    Release,
    Report,
}

impl Operation {
    const ALL: [Self; 5] = [
        Self::Depth,
        Self::Hold,
        Self::Confirm,
        Self::Release,
        Self::Report,
    ];

    /// The method, and the path below the engine's URL.
    pub(super) const fn route(self) -> (Method, &'static str) {
        match self {
            Self::Depth => (Method::POST, "/v1/depth"),
            Self::Hold => (Method::POST, "/v1/trades/{tradeId}/hold"),
            Self::Confirm => (Method::POST, "/v1/trades/{tradeId}/confirm"),
            Self::Release => (Method::POST, "/v1/trades/{tradeId}/release"),
            Self::Report => (Method::GET, "/v1/trades/{tradeId}"),
        }
    }

    /// The operation id in the contract.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Depth => "askDepth",
            Self::Hold => "holdTrade",
            Self::Confirm => "confirmTrade",
            Self::Release => "releaseTrade",
            Self::Report => "reportTrade",
        }
    }

    const fn description(self) -> (&'static str, &'static str) {
        match self {
            Self::Depth => (
                "Check the depth for an order",
                "Sent for every quote, firm or indicative. Reserves nothing. The partner gets `pool_dry` for `dry`, and `engine_unavailable` \
                 without a valid response.",
            ),
            Self::Hold => (
                "Hold liquidity for a trade",
                "Reserves the liquidity of the deal until the hold is confirmed, is released or lapses. Nothing is delivered yet. The same id \
                 gets the same response. Without a valid response Penstock releases the id, and the partner's next attempt has another id.",
            ),
            Self::Confirm => (
                "Confirm a trade's hold",
                "Penstock has stored the trade: carry it out. Penstock repeats the confirmation before it requests the report of a trade that \
                 has not ended, because the first confirmation may have been lost. So respond with `confirmed` also for a trade that is in \
                 progress or has ended.\n\nAfter `lapsed` Penstock requests the report, and returns the money to the partner's balance only \
                 if the report is `released`. Respond with `lapsed` only if the engine knows that nothing was delivered and nothing will \
                 be. If it does not know the id and cannot tell why, respond with 404: the trade then stays unchanged until the operator has \
                 examined it.",
            ),
            Self::Release => (
                "Release a trade's hold",
                "Penstock will not store this trade. An unknown id is released too, and a later hold under it is `refused`. Nothing depends on \
                 the response, and the request is not repeated: without it the hold lapses.",
            ),
            Self::Report => (
                "Report the outcome of a trade",
                "Sent when the partner polls, after a response to the confirmation, `lapsed` included. Also sent for 30 days after `delivered`, \
                 to detect a return, at most once a minute while nothing changes.\n\nThe engine need not wait for Penstock: a trade may be \
                 delivered and returned before the first report is requested. Report its current state. A report that contradicts an \
                 earlier `delivered` (`failed`, `released`, or another `fillTxId`) changes nothing and alerts Penstock's operator.",
            ),
        }
    }

    fn body(self) -> Option<RequestBody> {
        match self {
            Self::Depth => Some(body_of::<wire::Order>()),
            Self::Hold => Some(body_of::<wire::Deal>()),
            Self::Confirm | Self::Release | Self::Report => None,
        }
    }

    fn response(self) -> Response {
        match self {
            Self::Depth => response_of::<wire::DepthAnswer>(),
            Self::Hold => response_of::<wire::HoldAnswer>(),
            Self::Confirm => response_of::<wire::ConfirmAnswer>(),
            Self::Release => response_of::<wire::ReleaseAnswer>(),
            Self::Report => response_of::<wire::Report>(),
        }
    }
}

/// The published contract.
#[must_use]
pub fn openapi() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Penstock Liquidity Engine Contract")
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
            "`PENSTOCK_ENGINE_SECRET`, if it is set; mode live requires it. Compare it in constant time, and respond with 401 to any other.",
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
        .description(Some("The URL behind `PENSTOCK_ENGINE=http:`"))
        .build();
    ServerBuilder::new()
        .url("{engine}")
        .description(Some("The operator's engine"))
        .parameter("engine", url)
        .build()
}

fn with(mut paths: Paths, operation: Operation) -> Paths {
    let (method, path) = operation.route();
    let method = match method {
        Method::GET => HttpMethod::Get,
        _ => HttpMethod::Post,
    };
    let (summary, description) = operation.description();
    let mut built = OperationBuilder::new()
        .operation_id(Some(operation.id()))
        .summary(Some(summary))
        .description(Some(description))
        .request_body(operation.body())
        .response("200", operation.response())
        .response(
            "default",
            Response::new("No valid response: Penstock decides nothing on it"),
        );
    if path.contains(TRADE) {
        built = built.parameter(trade());
    }
    let item = PathItem::new(method, built.build());
    paths.paths.insert(path.to_owned(), item);
    paths
}

fn trade() -> Parameter {
    ParameterBuilder::new()
        .name("tradeId")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(
            "The trade's id, which the partner knows as `transactId`. Says of which mode it is.",
        ))
        .schema(Some(String::schema()))
        .example(Some("txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK".into()))
        .build()
}

/// Every schema that the operations use, directly or through another schema.
fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut found = Vec::new();
    take::<wire::Order>(&mut found);
    take::<wire::Deal>(&mut found);
    take::<wire::DepthAnswer>(&mut found);
    take::<wire::HoldAnswer>(&mut found);
    take::<wire::ConfirmAnswer>(&mut found);
    take::<wire::ReleaseAnswer>(&mut found);
    take::<wire::Report>(&mut found);
    found
}
