//! `docs/gate-errors.md` says what the service says: it is generated from the same list as `/docs`.
//!
//! `UPDATE_DOCS=1 cargo test -p gate-http --test errors_doc` rewrites it.

use gate_http::every_error;
use http_kit::errors_page;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gate-errors.md");

const INTRODUCTION: &str = "\
# Errors of the gate

<!-- Generated from the code by `UPDATE_DOCS=1 cargo test -p gate-http --test errors_doc`; do not edit. -->

Every refusal of the gate API, whatever its cause, is this JSON object with exactly these fields:

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
- `request_id` equals the `X-Request-Id` header of the answer. Quote it to the operator: the log has the cause under it.
- `doc_url` points at the code's anchor on the service's own `/docs` page. The anchors of this page are the same.
- After a 5xx, a timeout or a broken connection, repeat a write with the same `Idempotency-Key`: if it was done, you get its
  first answer, with the request id of that time. Only a 2xx is remembered under a key; every other answer leaves it free.

The pools API has [a page of its own](errors.md).
";

/// The page as the code would write it.
fn page() -> String {
    errors_page(INTRODUCTION, every_error())
}

#[test]
fn the_page_says_what_the_service_says() {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|set| set == "1") {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/gate-errors.md is out of date; run `UPDATE_DOCS=1 cargo test -p gate-http --test errors_doc`"
    );
}

#[test]
fn every_code_has_one_anchor() {
    let page = page();
    for doc in every_error() {
        let heading = format!("### {}", doc.code);
        let found = page.lines().filter(|line| *line == heading).count();
        assert_eq!(found, 1, "{}", doc.code);
    }
}
