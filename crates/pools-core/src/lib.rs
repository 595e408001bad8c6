//! The pools domain: firm quotes, one-time execution, trades, balances and the ledger.
//!
//! Rules and state machines are plain functions over values; use cases compose them over the
//! ports in [`ports`]. Nothing here knows a database, HTTP or a clock of its own.

pub mod access;
pub mod audit;
pub mod batch;
pub mod contingent_credit;
pub mod deposits;
pub mod destination;
pub mod engine;
pub mod events;
pub mod export;
pub mod ledger;
pub mod ports;
pub mod pricing;
pub mod profile;
pub mod quote;
pub mod trade;
pub mod usecases;
pub mod velocity;
