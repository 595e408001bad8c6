//! The recorded request of every published operation of the pools, for tests of behaviour that all operations share.

use acceptance::{Call, Contract, Operation};
use test_support::recorded::{recorded, unknown_for};

/// Ids for paths and bodies.
#[derive(Clone)]
pub(crate) struct Ids {
    pub(crate) quote: String,
    pub(crate) trade: String,
}

/// The key that an operation accepts, and whether it checks the entitlement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    AnyKey,
    Secret,
    Entitled,
}

/// The class of an operation, as its documented credentials and errors show it.
pub(crate) fn class(operation: &Operation) -> Class {
    let refused = operation.statuses.get("403");
    let entitled = |codes: &Vec<String>| codes.iter().any(|code| code == "pools_not_enabled");
    match operation.credentials.as_slice() {
        [_] if refused.is_some_and(entitled) => Class::Entitled,
        [_] => Class::Secret,
        _ => Class::AnyKey,
    }
}

/// Every operation with a request about these objects, or about objects that do not exist.
pub(crate) fn all(ids: Option<&Ids>) -> Vec<(&'static Operation, Call)> {
    let replace = |text: &str| match (ids, text.split('_').next()) {
        (Some(ids), Some("pq")) => Some(ids.quote.clone()),
        (Some(ids), Some("txn")) => Some(ids.trade.clone()),
        _ => unknown_for(text),
    };
    let operations = Contract::published().operations.iter();
    operations
        .map(|operation| (operation, Call::of(&recorded(&operation.id).about(replace))))
        .collect()
}
