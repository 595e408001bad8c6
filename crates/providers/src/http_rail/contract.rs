//! The calls to a rail. The published contract `rail-v1` is generated from them.

use hyper::Method;
use utoipa::openapi::OpenApi;

use super::{notification, wire};
use crate::contract::{Call, Contract, Document, PathId};

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

pub(super) static INSTRUCTIONS: Call = Call {
    method: Method::POST,
    path: "/v1/payments/{id}/instructions",
    id: "instructPayer",
    summary: "State what the payer needs",
    description: "Sent before a pay-in, a hosted pay-out or a swap is stored. Moves nothing and promises nothing: the payment may never be stored, and \
        then the id never begins. For a pay-in, say how to pay the fiat. For a hosted pay-out, say where to send the crypto, and for a swap where to send \
        the source: `address`, `network`, `asset`, `amount`, and `memo` if the network needs one. Without a valid response the payment is \
        refused with 503, and the next attempt has another id.",
    body: Some(Document::of::<wire::Payment>()),
    response: Document::of::<wire::InstructionsAnswer>(),
    statuses: &[],
};

pub(super) static BEGIN: Call = Call {
    method: Method::PUT,
    path: "/v1/payments/{id}",
    id: "beginPayment",
    summary: "Begin a payment",
    description: "Penstock has stored the payment: collect its fiat, send it, or await the source of a swap. Sent at the first poll, and again whenever a report is 404. \
        Respond with `accepted` also for a payment that is in progress or has ended. A payment that the rail cannot carry out is \
        accepted too, and reported as `failed`. Respond with 409 if the id has begun with other terms.",
    body: Some(Document::of::<wire::Payment>()),
    response: Document::of::<wire::BeginAnswer>(),
    statuses: &[(
        "409",
        "The id has begun with other terms: Penstock decides nothing on it",
    )],
};

pub(super) static REPORT: Call = Call {
    method: Method::GET,
    path: "/v1/payments/{id}",
    id: "reportPayment",
    summary: "Report the state of a payment",
    description: "Sent after the payment has begun, until a report ends it. Respond with 404 only if the payment has not begun.",
    body: None,
    response: Document::of::<wire::Report>(),
    statuses: &[("404", "The payment has not begun")],
};

pub(super) static CANCEL: Call = Call {
    method: Method::POST,
    path: "/v1/payments/{id}/cancel",
    id: "cancelPayment",
    summary: "Cancel a payment",
    description: "The user of a hosted payment has given up. Respond with `cancelled` if no money has moved and none will, also if the payment \
        has not begun. Respond with `not_cancellable` if it is too late.",
    body: Some(Document::of::<wire::Payment>()),
    response: Document::of::<wire::CancelAnswer>(),
    statuses: &[],
};

static CONTRACT: Contract = Contract {
    upstream: "rail",
    setting: "PENSTOCK_RAIL",
    title: "Penstock Rail Contract",
    description: DESCRIPTION,
    version: "2026-11-25",
    url: "http://127.0.0.1:9100",
    id: PathId {
        name: "id",
        description: "The id of the pay-in (`pi_…`), pay-out (`po_…`) or swap (`sw_…`), which the partner knows. Says of which mode it is.",
        example: "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
    },
    calls: &[&INSTRUCTIONS, &BEGIN, &REPORT, &CANCEL],
};

/// The published contract.
#[must_use]
pub fn openapi() -> OpenApi {
    let mut api = CONTRACT.openapi();
    if let Some(components) = &mut api.components {
        components.schemas.extend(notification::DOCUMENT.schemas());
    }
    api.webhooks = Some(notification::webhooks());
    api
}
