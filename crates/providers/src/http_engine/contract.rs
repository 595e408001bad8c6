//! The calls to an engine as one table. The client sends requests by this table, and the published contract `engine-v1` is
//! generated from it.

use hyper::Method;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem, Paths,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::{ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref,
    RefOr, Required, Response, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use super::wire;

/// The placeholder of the trade id in a path.
pub(super) const TRADE: &str = "{tradeId}";

/// The contract's version: a date.
const VERSION: &str = "2026-11-23";
const SECRET: &str = "engineSecret";
const JSON: &str = "application/json";

const DESCRIPTION: &str = "\
What a liquidity engine answers to Penstock. The operator implements it and names it in `PENSTOCK_ENGINE=http:<url>`; the pools \
service calls it.

A trade goes `hold` → `confirm` → carried out by the engine. Penstock asks for a hold before it writes a trade, confirms after it has \
written it, and asks for the report whenever the partner polls.

- **The trade's id is the idempotency key.** Every call about a trade may come twice, late or out of order, and a call that is repeated \
changes nothing: it is answered again. Under one id money moves once.
- **What is not answered is not decided.** An answer that is late (2 seconds), that breaks off, has another status than 200, is longer \
than 64 KiB or is not of this contract counts as none. Penstock neither settles nor fails a trade on it; it asks again under the same id. \
So an engine that does not know yet says `in_progress`, and one that cannot tell answers 503: never a guess.
- **A hold that nobody confirms lapses**, by the engine's own clock; a minute is enough. Once it has lapsed, confirming answers `lapsed` \
for ever, the report is `released`, and nothing is delivered.
- **A release wins.** It can overtake its hold: a hold that comes later under the same id is `refused`. After a confirmation no release \
comes.
- **A confirmed trade ends** as `delivered`, `failed` or `released`, and what has ended stays so; `delivered` alone may become `returned`, and \
nothing follows `returned`.
- Clients ignore fields they do not know, on both sides. Amounts are decimal strings and are never rounded.";

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

    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Depth => (
                "Has the engine depth for an order?",
                "Asked for every quote, firm or indicative. Reserves nothing. `dry` is answered to the partner as `pool_dry`, silence as \
                 `engine_unavailable`.",
            ),
            Self::Hold => (
                "Hold liquidity for a trade",
                "Reserves what the deal needs until it is confirmed, released or lapses. Nothing is delivered yet. The same id again: the same \
                 answer. After silence Penstock releases the id, and the partner's next attempt comes under another one.",
            ),
            Self::Confirm => (
                "Confirm a trade's hold",
                "The trade is written: carry it out. Also asked before the report of every trade that is not known to have ended, in case the \
                 first confirmation was lost: so it is answered `confirmed` for a trade that is under way or over, too.\n\nAfter `lapsed` \
                 Penstock asks for the report, and gives the partner's money back only if that is `released`. Answer `lapsed` only where the \
                 engine knows that nothing was delivered and nothing will be; where it does not \
                 know the id and cannot tell why, a 404 leaves the trade as it is until somebody has looked.",
            ),
            Self::Release => (
                "Give a trade's hold back",
                "There will be no such trade. An id that is not known is released all the same, and a hold that comes later is `refused`. \
                 Nothing depends on the answer, and it is not asked again: without it the hold lapses.",
            ),
            Self::Report => (
                "What has become of a trade?",
                "Asked when the partner polls, after a confirmation that was answered, `lapsed` included; for 30 days after `delivered`, to learn \
                 of a return, at most once a minute while nothing changes.\n\nThe engine need not wait for Penstock: a trade may be delivered and \
                 have come back before the first report is asked for, and is reported as it stands. A report that contradicts an earlier \
                 `delivered` (`failed`, `released`, or another `fillTxId`) changes nothing and alerts Penstock's operator.",
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

    fn answer(self) -> Response {
        match self {
            Self::Depth => answer_of::<wire::DepthAnswer>(),
            Self::Hold => answer_of::<wire::HoldAnswer>(),
            Self::Confirm => answer_of::<wire::ConfirmAnswer>(),
            Self::Release => answer_of::<wire::ReleaseAnswer>(),
            Self::Report => answer_of::<wire::Report>(),
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
            "`PENSTOCK_ENGINE_SECRET`, where it is set, as mode live demands. Compare it in constant time, and answer 401 to any other.",
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
    let (summary, description) = operation.told();
    let mut built = OperationBuilder::new()
        .operation_id(Some(operation.id()))
        .summary(Some(summary))
        .description(Some(description))
        .request_body(operation.body())
        .response("200", operation.answer())
        .response(
            "default",
            Response::new("No answer: nothing is decided on it"),
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

fn body_of<T: ToSchema>() -> RequestBody {
    RequestBodyBuilder::new()
        .content(
            JSON,
            ContentBuilder::new().schema(Some(refer::<T>())).build(),
        )
        .required(Some(Required::True))
        .build()
}

fn answer_of<T: ToSchema>() -> Response {
    ResponseBuilder::new()
        .description("The answer")
        .content(
            JSON,
            ContentBuilder::new().schema(Some(refer::<T>())).build(),
        )
        .build()
}

fn refer<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
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

fn take<T: ToSchema>(into: &mut Vec<(String, RefOr<Schema>)>) {
    into.push((T::name().into_owned(), T::schema()));
    T::schemas(into);
}
