//! Each sentence of the contract, seen from outside.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a fault here is a failed test, and says where"
)]

mod main_job;
