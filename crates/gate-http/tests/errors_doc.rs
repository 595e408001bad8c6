//! `docs/gate-errors.md` lists the error codes of the API.

#[path = "../../../tests/errors_page.rs"]
mod errors_page;

const INTRODUCTION: &str = "\
# Errors of the gate

<!-- Generated from the code by `cargo xtask openapi`; do not edit. -->

Every error response of the gate API is a JSON object with exactly these fields:

```json
{
  \"type\": \"conflict\",
  \"code\": \"session_not_open\",
  \"message\": \"The session is expired.\",
  \"request_id\": \"req_01KSFVT4Z2V6B9C1D3F5G7H8JK\",
  \"doc_url\": \"/docs#session_not_open\",
  \"statusCode\": 409
}
```

- Branch on `statusCode`, `type` and `code`. `message` is for people: it names the offending field and what was expected,
  and its wording may change.
- `request_id` equals the `X-Request-Id` header of the response. Send it to the operator, who finds the cause in the log
  under this id.
- `doc_url` links to the anchor of the code on the service's own `/docs` page. This page has the same anchors.
- After a 5xx, a timeout or a broken connection, repeat a write with the same `Idempotency-Key`. If the first request
  succeeded, you get its response again, with its request id. Only a 2xx response is stored under a key; after any other
  response the key is still free.

[Errors](errors.md) lists the errors of the pools API.

## Warnings

A response that succeeded, but not as its sender may expect, has the header `Penstock-Warning`: a code, `; ` and a text. Several warnings
are several header lines. A text has no comma, so a client that joins the lines with `, ` can split them. Log each warning that you get:

| code | meaning | what to do |
| --- | --- | --- |
| `amount_precision`, `amount_out_of_range`, `currency_not_supported`, `asset_not_supported`, `corridor_not_available`, `network_not_supported`, `invalid_address` | The session was created, but no choice of the widget can pay it; the text names the field. | Cancel the session and fix the order. |
| `idempotency_body_ignored` | The key was used with another body: this is the first response, and the body of the repeat had no effect. | A changed order needs a new key: derive the key from the order and its version. |
| `unknown_parameter` | The read ignored query parameters; the text has up to five names. | Fix their spelling: the response is not filtered by them. |

## Codes
";

#[test]
fn committed_error_page_is_up_to_date() {
    let codes: Vec<_> = gate_http::error_codes().collect();
    errors_page::check("gate-errors.md", INTRODUCTION, &codes);
}
