//! `docs/errors.md` says what the service says: it is generated from the same list as `/docs`.
//!
//! `UPDATE_DOCS=1 cargo test -p pools-http --test errors_doc` rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write;

use http_kit::ErrorDoc;
use pools_http::every_error;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");

const INTRODUCTION: &str = "\
# Errors

<!-- Generated from the code by `UPDATE_DOCS=1 cargo test -p pools-http --test errors_doc`; do not edit. -->

Every refusal of the pools API, whatever its cause, is this JSON object with exactly these fields:

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
- `request_id` equals the `X-Request-Id` header of the answer. Quote it to the operator: the log has the cause under it.
- `doc_url` points at the code's anchor on the service's own `/docs` page. The anchors of this page are the same.
- A route that cannot be priced is no error: `POST /v1/pools/{id}/quote` answers 200 with `available` false.
- After a 5xx, a timeout or a broken connection, repeat a write with the same `Idempotency-Key`.
  Only a 2xx is remembered under a key; every other answer leaves it free.
";

/// The page as the code would write it.
fn page() -> String {
    let mut by_status: BTreeMap<u16, Vec<ErrorDoc>> = BTreeMap::new();
    for doc in every_error() {
        by_status.entry(doc.status).or_default().push(doc);
    }
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n| status | codes |\n| --- | --- |\n");
    for (status, docs) in &by_status {
        let links: Vec<String> = docs.iter().map(link).collect();
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "| {status} | {} |", links.join(", "));
    }
    for (status, docs) in &by_status {
        let _ = write!(text, "\n## {status}\n");
        docs.iter().for_each(|doc| section(&mut text, doc));
    }
    text
}

fn link(doc: &ErrorDoc) -> String {
    format!("[`{0}`](#{0})", doc.code)
}

/// The heading is the code alone, so that its anchor is the code.
fn section(text: &mut String, doc: &ErrorDoc) {
    let _ = write!(
        text,
        "\n### {}\n\nType `{}`. {}\n\nWhat to do: {}\n",
        doc.code,
        doc.kind.as_str(),
        doc.meaning,
        doc.what_to_do
    );
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
        "docs/errors.md is out of date; run `UPDATE_DOCS=1 cargo test -p pools-http --test errors_doc`"
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
