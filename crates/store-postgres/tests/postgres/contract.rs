//! The contract of the store ports, on Postgres.

test_support::store_contract!(crate::fixture::open);
