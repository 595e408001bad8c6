//! The contract of the store ports, on Postgres.

store_contract::store_contract!(crate::fixture::open);
store_contract::gate_contract!(crate::fixture::open);
