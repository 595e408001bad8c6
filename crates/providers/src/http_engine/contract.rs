//! The calls to an engine. The published contract `engine-v1` is generated from them.

use hyper::Method;
use utoipa::openapi::OpenApi;

use super::wire;
use crate::contract::{Call, Contract, Document, PathId};

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

pub(super) static DEPTH: Call = Call {
    method: Method::POST,
    path: "/v1/depth",
    id: "askDepth",
    summary: "Check the depth for an order",
    description: "Sent for every quote, firm or indicative. Reserves nothing. The partner gets `pool_dry` for `dry`, and `engine_unavailable` \
        without a valid response.",
    body: Some(Document::of::<wire::Order>()),
    response: Document::of::<wire::DepthAnswer>(),
    statuses: &[],
};

pub(super) static HOLD: Call = Call {
    method: Method::POST,
    path: "/v1/trades/{tradeId}/hold",
    id: "holdTrade",
    summary: "Hold liquidity for a trade",
    description: "Reserves the liquidity of the deal until the hold is confirmed, is released or lapses. Nothing is delivered yet. The same id \
        gets the same response. Without a valid response Penstock releases the id, and the partner's next attempt has another id.",
    body: Some(Document::of::<wire::Deal>()),
    response: Document::of::<wire::HoldAnswer>(),
    statuses: &[],
};

pub(super) static CONFIRM: Call = Call {
    method: Method::POST,
    path: "/v1/trades/{tradeId}/confirm",
    id: "confirmTrade",
    summary: "Confirm a trade's hold",
    description: "Penstock has stored the trade: carry it out. Penstock repeats the confirmation before it requests the report of a trade that \
        has not ended, because the first confirmation may have been lost. So respond with `confirmed` also for a trade that is in \
        progress or has ended.\n\nAfter `lapsed` Penstock requests the report, and returns the money to the partner's balance only \
        if the report is `released`. Respond with `lapsed` only if the engine knows that nothing was delivered and nothing will \
        be. If it does not know the id and cannot tell why, respond with 404: the trade then stays unchanged until the operator has \
        examined it.",
    body: None,
    response: Document::of::<wire::ConfirmAnswer>(),
    statuses: &[],
};

pub(super) static RELEASE: Call = Call {
    method: Method::POST,
    path: "/v1/trades/{tradeId}/release",
    id: "releaseTrade",
    summary: "Release a trade's hold",
    description: "Penstock will not store this trade. An unknown id is released too, and a later hold under it is `refused`. Nothing depends on \
        the response, and the request is not repeated: without it the hold lapses.",
    body: None,
    response: Document::of::<wire::ReleaseAnswer>(),
    statuses: &[],
};

pub(super) static REPORT: Call = Call {
    method: Method::GET,
    path: "/v1/trades/{tradeId}",
    id: "reportTrade",
    summary: "Report the outcome of a trade",
    description: "Sent when the partner polls, after a response to the confirmation, `lapsed` included. Also sent for 30 days after `delivered`, \
        to detect a return, at most once a minute while nothing changes.\n\nThe engine need not wait for Penstock: a trade may be \
        delivered and returned before the first report is requested. Report its current state. A report that contradicts an \
        earlier `delivered` (`failed`, `released`, or another `fillTxId`) changes nothing and alerts Penstock's operator.",
    body: None,
    response: Document::of::<wire::Report>(),
    statuses: &[],
};

static CONTRACT: Contract = Contract {
    upstream: "engine",
    setting: "PENSTOCK_ENGINE",
    title: "Penstock Liquidity Engine Contract",
    description: DESCRIPTION,
    version: "2026-11-23",
    url: "http://127.0.0.1:9000",
    id: PathId {
        name: "tradeId",
        description: "The trade's id, which the partner knows as `transactId`. Says of which mode it is.",
        example: "txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
    },
    calls: &[&DEPTH, &HOLD, &CONFIRM, &RELEASE, &REPORT],
};

/// The published contract.
#[must_use]
pub fn openapi() -> OpenApi {
    CONTRACT.openapi()
}
