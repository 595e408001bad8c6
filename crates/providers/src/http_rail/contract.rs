//! The calls to a rail. The published contract `rail-v1` is generated from them.

use hyper::Method;
use utoipa::openapi::OpenApi;

use super::{notification, wire};
use crate::contract::{Call, Contract, Document, PathId};

const DESCRIPTION: &str = "\
The interface of a rail, which collects and sends fiat, and swaps assets. The operator implements it and configures its URL in \
`PENSTOCK_RAIL=http:<url>`; the gate service calls it.

Penstock requests instructions before it stores a pay-in, begins a payment after it has stored the pay-in, pay-out or swap, and then \
requests reports until the payment has ended. For 30 days after that it asks once a day whether the rail still reports the same. The \
rail moves the money of a payment that has begun.

In a swap, which only the widget makes and only where the operator's catalogue offers it, the user sends `source_amount` of \
`source_asset` on `source_network`, and the rail delivers `crypto_amount` of `asset` on `network` to `wallet_address`. `fiat_amount` is \
the value of both; no fiat moves.

- **The payment's id is the idempotency key.** Every request may arrive twice, late or out of order. A repeated request changes nothing \
and gets the same response. Money moves once per id.
- **A payment belongs to one rail.** Penstock stores the name of the rail with each payment, and sends calls about it to that rail only, \
also after the operator has configured another rail for new payments.
- **Without a valid response nothing is decided.** A response counts as absent if it takes longer than 3 seconds, breaks off, has \
another status than 200, has another content type than `application/json`, is longer than 128 KiB, names another id or does not follow \
this contract. Penstock then neither settles nor ends the payment; it asks again under the same id, after 1 second at first and after 60 \
seconds at most. So a rail that does not know the outcome yet reports `processing`, and one that cannot tell responds with 503. It never \
guesses.
- **404 for a report means that the rail does not know the payment.** It counts only with the content type `application/json` and a JSON \
object as its body, so that no proxy can say it. Penstock then begins the payment, again under the same id. After the rail has once \
accepted or reported a payment, a 404 is a contradiction: the operator is alerted, and Penstock never begins that payment again. So a \
rail that has lost its records responds with 503, and not with 404.
- **A payment has a deadline**, `pay_until`, except a pay-out that is not hosted. Until then the user can pay. From then on Penstock \
asks to cancel the payment before each report. The rail takes no money that comes later: it gives it back and reports `failed` with the \
reason `expired`.
- **A rail settles the whole amount, or nothing.** While less than the amount has arrived, report `processing`, with `received`. If less \
or more than the amount has arrived in the end, give it back and report `failed` with the reason `amount_differs`. `received` is what \
has arrived of what the user pays: the fiat of a pay-in, the asset of a hosted pay-out, the source of a swap. `settled` with a \
`received` that differs is a contradiction and settles nothing. So is every report of another currency, asset or network than the \
payment's. An amount of zero in `received` says that nothing has arrived; without `received` Penstock relies on the status alone.
- **A payment ends** as `settled`, `failed` or `cancelled`. These states are final. A pay-out is never `cancelled`: Penstock counts such \
a report as a contradiction and asks again. A hosted pay-out, which has `payout`, and a swap may be: the user sends the crypto first, as \
the instructions say, and may give up before that.
- **Money that comes back** after `settled` is reported as `returned`. Money that arrives after `failed` or `cancelled` is reported as \
`processing` with `received` until the rail has given it back, and then as `failed`. Penstock changes no payment that has ended. A report \
that differs from the end of a payment is left for the operator, who settles the money with the rail.
- **A cancellation is final too.** After the response `cancelled` no money moves under that id, also if the payment begins later. \
Respond so only while nothing has arrived: money that a rail has after its cancellation is left for the operator.
- **A rail may notify the gate** that the state of a payment may have changed (`railNotification`), also after its end. Penstock then \
requests a report at once. A notification decides nothing, and Penstock asks without one too.
- Both sides ignore unknown fields. Amounts are decimal strings and are never rounded. Only of `received`, digits beyond those of the \
asset are cut off.";

pub(super) static INSTRUCTIONS: Call = Call {
    method: Method::POST,
    path: "/v1/payments/{id}/instructions",
    id: "instructPayer",
    summary: "State what the payer needs",
    description: "Sent before a pay-in, a hosted pay-out or a swap is stored. Moves nothing and promises nothing: the payment may never \
        be stored, and then the id never begins. For a pay-in, say how to pay the fiat. For a hosted pay-out, say where to send the \
        crypto, and for a swap where to send the source: `address`, `network`, `asset`, `amount`, and `memo` if the network needs one. \
        Instructions may not differ from the payment. `amount` is what the user pays, as a number, and `currency` is that of the \
        payment. `asset` and `network` are those that the user sends, in a pay-in those that the user buys. `fiat_amount`, \
        `crypto_amount`, `source_amount`, `source_asset` and `source_network` are those of the request. For a hosted pay-out and a \
        swap, `address` must be a valid address of its network. Each of these may be absent. If one differs, the payment is refused \
        with 503 `rail_unavailable`, and the operator is alerted. Without a valid response the payment is refused with 503 \
        `service_unavailable`. In both cases the next attempt has another id.",
    body: Some(Document::of::<wire::Payment>()),
    response: Document::of::<wire::InstructionsAnswer>(),
    statuses: &[],
};

pub(super) static BEGIN: Call = Call {
    method: Method::PUT,
    path: "/v1/payments/{id}",
    id: "beginPayment",
    summary: "Begin a payment",
    description: "Penstock has stored the payment: collect its fiat, send it, or await the source of a swap. Sent at the first poll, and \
        again if a report is 404 before the rail has accepted or reported the payment; never after `pay_until`. Respond with `accepted` \
        also for a payment that is in progress or has ended. A payment that the rail cannot carry out is accepted too, and reported as \
        `failed`. Respond with 409 if the id has begun with other terms.",
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
    description: "Sent after the payment has begun, until a report ends it. After the end it is sent once a day for 30 days, and once \
        after each notification: report what has happened, such as `returned`. Respond with 404 only if the rail has never accepted or \
        reported the payment.",
    body: None,
    response: Document::of::<wire::Report>(),
    statuses: &[(
        "404",
        "The rail does not know the payment. The content type is `application/json`, and the body is a JSON object, which may have the \
         `id` of the call. Any other 404 is no valid response: Penstock decides nothing on it",
    )],
};

pub(super) static CANCEL: Call = Call {
    method: Method::POST,
    path: "/v1/payments/{id}/cancel",
    id: "cancelPayment",
    summary: "Cancel a payment",
    description: "The user of a hosted payment has given up, or `pay_until` has passed. Respond with `cancelled` if no money has arrived \
        or moved, and none will, also if the payment has not begun. Respond with `not_cancellable` if it is too late: then the report \
        decides, and the payment never begins again. \
        After `pay_until` the call is repeated before each report until the payment has ended.",
    body: Some(Document::of::<wire::Payment>()),
    response: Document::of::<wire::CancelAnswer>(),
    statuses: &[],
};

static CONTRACT: Contract = Contract {
    upstream: "rail",
    setting: "PENSTOCK_RAIL",
    title: "Penstock Rail Contract",
    description: DESCRIPTION,
    version: "2026-11-29",
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
