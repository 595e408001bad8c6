//! The rules of the pools contract, tested over HTTP.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test and names the line"
)]

mod accounts;
mod auth;
mod clocks;
mod deposits;
mod discovery;
mod examples;
mod failing_reads;
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
mod quote_prices;
mod quote_records;
mod quotes;
mod races;
mod routes;
mod security;
mod tenancy;
mod throttles;
mod trace_parents;
mod trades;
mod transact;
mod transact_engine;
mod transact_idempotency;
mod transact_order;
mod velocity;
mod warnings;
