//! The committed contract equals the generated one, and has the documented operations, events and
//! version.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

use std::collections::BTreeSet;

use serde_json::Value;

fn document() -> Value {
    let api = pools_http::openapi().unwrap();
    http_kit::openapi::to_value(&api).unwrap()
}

/// The operations of a part of the document.
fn operations(part: &Value) -> BTreeSet<(String, String, String)> {
    let paths = part.as_object().unwrap();
    let operation = |(path, item): (&String, &Value)| {
        let path = path.clone();
        let methods = item.as_object().unwrap().clone();
        methods.into_iter().map(move |(method, operation)| {
            let id = operation["operationId"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            (id, method, path.clone())
        })
    };
    paths.iter().flat_map(operation).collect()
}

// rule: openapi.published
#[test]
fn committed_document_is_up_to_date() {
    let committed = include_str!("../../../docs/openapi/pools-v1.yaml");
    let generated = pools_http::openapi_yaml().unwrap();
    assert!(
        committed == generated,
        "docs/openapi/pools-v1.yaml is stale: run `cargo xtask openapi`"
    );
}

// rule: openapi.operations
#[test]
fn document_has_the_twelve_operations() {
    let expected: BTreeSet<_> = [
        ("listPools", "get", "/v1/pools"),
        ("getCapabilities", "get", "/v1/pools/{id}/capabilities"),
        ("createQuote", "post", "/v1/pools/{id}/quote"),
        ("transact", "post", "/v1/pools/{id}/transact"),
        ("getQuote", "get", "/v1/pools/quotes/{quoteId}"),
        ("rejectQuote", "post", "/v1/pools/quotes/{quoteId}/reject"),
        (
            "getTransactionByQuote",
            "get",
            "/v1/pools/transactions/{quoteId}",
        ),
        ("listTrades", "get", "/v1/pools/trades"),
        ("getTrade", "get", "/v1/pools/trades/{transactId}"),
        ("getBalance", "get", "/v1/pools/{id}/balance"),
        ("getFundingInstructions", "get", "/v1/pools/funding"),
        ("listLedgerEntries", "get", "/v1/pools/ledger"),
    ]
    .into_iter()
    .map(|(id, method, path)| (id.to_owned(), method.to_owned(), path.to_owned()))
    .collect();
    assert_eq!(operations(&document()["paths"]), expected);
}

// rule: openapi.operations
#[test]
fn document_has_the_three_events() {
    let document = document();
    let names: Vec<&str> = document["webhooks"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "pool.transaction.failed",
        "pool.transaction.released",
        "pool.transaction.settled",
    ];
    assert_eq!(
        names.into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from(expected)
    );
}

// rule: openapi.operations
#[test]
fn document_has_the_contract_version() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "2026-05-25");
    assert!(
        document["info"]["title"]
            .as_str()
            .unwrap()
            .contains("Partner API")
    );
}
