//! A valid request for every published operation, for tests of behaviour that all routes share.

use acceptance::{Call, Contract, Operation, purchase};
use serde_json::json;

/// Ids for paths and bodies.
#[derive(Clone)]
pub(crate) struct Ids {
    pub(crate) pool: String,
    pub(crate) quote: String,
    pub(crate) trade: String,
}

impl Ids {
    pub(crate) fn unknown() -> Self {
        Self {
            pool: "EUR-USDT".to_owned(),
            quote: "pq_test_01HF7YAT00408104G208104081".to_owned(),
            trade: "txn_test_01HF7YAT00408104G208104081".to_owned(),
        }
    }
}

/// The key that an operation accepts, and whether it checks the entitlement: the contract's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    AnyKey,
    Secret,
    Entitled,
}

pub(crate) fn class(operation: &Operation) -> Class {
    match operation.id.as_str() {
        "listPools" => Class::AnyKey,
        "getCapabilities" | "createQuote" | "transact" | "getBalance" => Class::Entitled,
        "getQuote"
        | "rejectQuote"
        | "getTransactionByQuote"
        | "listTrades"
        | "getTrade"
        | "getFundingInstructions"
        | "listLedgerEntries" => Class::Secret,
        other => panic!("{other} has no class"),
    }
}

/// A well-formed request for an operation, without a key.
pub(crate) fn call(operation: &Operation, ids: &Ids) -> Call {
    let path = operation
        .template
        .replace("{id}", &ids.pool)
        .replace("{quoteId}", &ids.quote)
        .replace("{transactId}", &ids.trade);
    let call = Call::new(operation.method.as_str(), &path);
    match operation.id.as_str() {
        "createQuote" => call.json(&purchase("EUR-USDT", "100.00")),
        "transact" => call.json(&json!({ "quoteId": ids.quote })).key("routes"),
        _ => call,
    }
}

/// Every operation with its request.
pub(crate) fn all(ids: &Ids) -> Vec<(&'static Operation, Call)> {
    let operations = &Contract::published().operations;
    operations
        .iter()
        .map(|operation| (operation, call(operation, ids)))
        .collect()
}
