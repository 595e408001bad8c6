//! The pools domain: firm quotes, one-time execution, trades, balances and the ledger.
//!
//! Rules and state machines are pure functions over values. Use cases compose them over the traits in [`ports`]. This
//! crate does not know the database, HTTP or the system clock.

pub mod access;
pub mod audit;
pub mod batch;
pub mod contingent_credit;
pub mod deposits;
pub mod destination;
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
