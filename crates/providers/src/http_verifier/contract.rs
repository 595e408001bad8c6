//! The calls to a verifier. The published contract `verifier-v1` is generated from them.

use hyper::Method;
use utoipa::openapi::OpenApi;

use super::wire;
use crate::contract::{Call, Contract, Document, PathId};

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

pub(super) static START: Call = Call {
    method: Method::PUT,
    path: "/v1/verifications/{id}",
    id: "startVerification",
    summary: "Start a verification",
    description: "Creates the case of the id if it does not exist. Respond with what the user must do: visit `url`, or fill in `form`. A verifier \
        that needs neither may decide at once.",
    body: Some(Document::of::<wire::Verification>()),
    response: Document::of::<wire::StartAnswer>(),
    statuses: &[],
};

pub(super) static SUBMIT: Call = Call {
    method: Method::POST,
    path: "/v1/verifications/{id}/answers",
    id: "submitAnswers",
    summary: "Submit the answers to the form",
    description: "The user has filled in `form`. Penstock has checked the answers against it, and submits none to a verification that asks for no form. The same answers may arrive twice. If they do not suffice, stay `pending` or reject the user \
        with a reason. A case that has ended stays unchanged, and the response is its end.",
    body: Some(Document::of::<wire::Answers>()),
    response: Document::of::<wire::ReportAnswer>(),
    statuses: &[],
};

pub(super) static REPORT: Call = Call {
    method: Method::GET,
    path: "/v1/verifications/{id}",
    id: "reportVerification",
    summary: "Report the state of a verification",
    description: "Sent after a start until the verification has ended. Respond with 404 if the id is unknown: that decides nothing.",
    body: None,
    response: Document::of::<wire::ReportAnswer>(),
    statuses: &[],
};

static CONTRACT: Contract = Contract {
    upstream: "verifier",
    setting: "PENSTOCK_VERIFIER",
    title: "Penstock Verifier Contract",
    description: DESCRIPTION,
    version: "2026-11-25",
    url: "http://127.0.0.1:9000",
    id: PathId {
        name: "id",
        description: "The verification's id. Says of which mode it is.",
        example: "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
    },
    calls: &[&START, &SUBMIT, &REPORT],
};

/// The published contract.
#[must_use]
pub fn openapi() -> OpenApi {
    CONTRACT.openapi()
}
