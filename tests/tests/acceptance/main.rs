//! Each sentence of the contract, seen from outside.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a fault here is a failed test, and says where"
)]

mod accounts;
mod discovery;
mod main_job;
mod money;
mod poll;
mod quote_faults;
mod quote_limits;
mod quote_prices;
mod quote_records;
mod quotes;
mod trades;
mod transact;
mod transact_engine;
mod transact_idempotency;
mod transact_order;
mod velocity;
