//! Each sentence of the contract, seen from outside.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a fault here is a failed test, and says where"
)]

mod accounts;
mod auth;
mod clocks;
mod discovery;
mod examples;
mod far_engine;
mod far_rates;
mod framework;
mod gate;
mod holds;
mod interleavings;
mod isolation;
mod logs;
mod main_job;
mod money;
mod outages;
mod poll;
mod poll_leases;
mod poll_reports;
mod published;
mod purity;
mod quote_faults;
mod quote_limits;
mod quote_prices;
mod quote_records;
mod quotes;
mod races;
mod routes;
mod security;
mod tenancy;
mod throttles;
mod trades;
mod transact;
mod transact_engine;
mod transact_idempotency;
mod transact_order;
mod velocity;
