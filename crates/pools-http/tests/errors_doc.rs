//! `docs/errors.md` lists the error codes of the API.

#[path = "../../../tests/errors_page.rs"]
mod errors_page;

const INTRODUCTION: &str = "\
# Errors

<!-- Generated from the code by `cargo xtask openapi`; do not edit. -->

Every error response of the pools API is a JSON object with exactly these fields:

```json
{
  \"type\": \"conflict\",
  \"code\": \"quote_expired\",
  \"message\": \"The quote has expired; ask for a new one.\",
  \"request_id\": \"req_01KSFVT4Z2V6B9C1D3F5G7H8JK\",
  \"doc_url\": \"/docs#quote_expired\",
  \"statusCode\": 409
}
```

- Branch on `statusCode`, `type` and `code`. `message` is for people: it names the offending field and what was expected,
  and its wording may change.
- `request_id` equals the `X-Request-Id` header of the response. Send it to the operator, who finds the cause in the log
  under this id.
- `doc_url` links to the anchor of the code on the service's own `/docs` page. This page has the same anchors.
- If an order has no price, that is not an error: `POST /v1/pools/{id}/quote` returns 200 with `available` false.
- After a 5xx, a timeout or a broken connection, repeat a write with the same `Idempotency-Key`.
  Only a 2xx response is stored under a key; after any other response the key is still free.

## Warnings

A read that succeeded, but ignored query parameters, has the header `Penstock-Warning: unknown_parameter; <names>` with up to five names.
The response is not filtered by them, so fix their spelling. [Errors of the gate](gate-errors.md#warnings) lists the gate's warnings.

## Codes
";

#[test]
fn committed_error_page_is_up_to_date() {
    let codes: Vec<_> = pools_http::error_codes().collect();
    errors_page::check("errors.md", INTRODUCTION, &codes);
}
