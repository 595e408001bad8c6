//! The contract of the store ports, on SQLite.

#[cfg(test)]
mod fixture;

test_support::store_contract!(crate::fixture::open);
