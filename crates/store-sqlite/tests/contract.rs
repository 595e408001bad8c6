//! The contract of the store ports, on SQLite.

#[cfg(test)]
mod fixture;

store_contract::store_contract!(crate::fixture::open);
store_contract::gate_contract!(crate::fixture::open);
