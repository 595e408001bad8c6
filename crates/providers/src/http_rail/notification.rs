//! The published description of a rail's notification. The rail sends it to the gate, whose HTTP crate receives it.

use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem, Paths,
};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Required, Response};
use utoipa::{PartialSchema, ToSchema};

use crate::contract::Document;

/// The payment whose state may have changed. Other fields are ignored: a notification carries no state.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "documents the request; the gate's HTTP crate reads it"
)]
pub(super) struct RailNotification {
    /// The id of the payment, as the rail was called with it.
    #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: String,
}

pub(super) static DOCUMENT: Document = Document::of::<RailNotification>();

/// The calls that a rail makes.
pub(super) fn webhooks() -> Paths {
    let operation = OperationBuilder::new()
        .operation_id(Some("railNotification"))
        .summary(Some("Notify the gate that a payment may have changed"))
        .description(Some(
            "Send it to `POST /v1/rail_notifications` of the gate, also for a payment that has ended. It is optional and never believed: \
             Penstock requests a report of the payment at once, and only the report counts. It counts only for payments of the rail whose \
             secret has signed it. A repeated or replayed notification changes nothing, and any number of them adds one request. The \
             response is the same for every id. Treat any response as final: without a notification Penstock requests the report later.",
        ))
        .parameter(signature())
        .request_body(Some(DOCUMENT.body()))
        .response("202", Response::new("Received"))
        .response(
            "400",
            Response::new("The body is not a JSON object with the `id` of a payment"),
        )
        .response(
            "401",
            Response::new("The signature is missing, wrong, or more than five minutes old"),
        )
        .response("404", Response::new("The gate has no rail over HTTP, or the rail has no secret"))
        .response("413", Response::new("The body is larger than 4 KiB"))
        .response("415", Response::new("The body has a `Content-Encoding`"))
        // A notification carries a signature, not the secret.
        .securities(Some(Vec::<SecurityRequirement>::new()))
        .build();
    let mut paths = Paths::new();
    let item = PathItem::new(HttpMethod::Post, operation);
    paths.paths.insert("railNotification".to_owned(), item);
    paths
}

fn signature() -> Parameter {
    ParameterBuilder::new()
        .name("Rail-Signature")
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(
            "`t=<unix seconds>,v1=<hex>`: lowercase hex of HMAC-SHA256 over `<t>.<body>`, whose key is the secret of the rail: \
             `PENSTOCK_RAIL_SECRET`, or `PENSTOCK_RAIL_FORMER_SECRET` of a former rail. `t` is at most five minutes away from the gate's \
             clock. While the secret changes, a second `v1` may follow.",
        ))
        .schema(Some(String::schema()))
        .example(Some("t=1779710400,v1=0123…".into()))
        .build()
}
