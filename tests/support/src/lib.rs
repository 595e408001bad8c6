//! Code that several suites share: the contract of the store ports, recorded requests, a Postgres database for one test, private
//! servers, programs that a test starts, HTTP with an upstream that a test plays, and the operator's engine.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test support: a panic here fails the test at its line"
)]

pub mod contract;
pub mod engine;
pub mod http;
pub mod program;
pub mod recorded;
pub mod servers;
pub mod test_database;
pub mod time;
