//! The embedded store: every line of SQLite SQL.
//!
//! There is one writer connection, so writes are serialized and a transaction's reads cannot be
//! overtaken; readers beside it see snapshots. One file per noun of the cores, with the same
//! names; `open` opens, `tx` is the transaction, `lane` the batched money path, `verify` the
//! invariants of the whole database. Every statement is static text.

mod access;
mod batch;
mod branding;
mod clock;
mod config;
mod connection;
mod contingent_credits;
mod customers;
mod deliveries;
mod deposits;
mod endpoints;
mod errors;
mod events;
mod exports;
mod files;
mod gate_reads;
mod health;
mod idempotency;
mod jumps;
mod keys;
mod ledger;
mod master_keys;
mod migrations;
mod open;
#[cfg(test)]
mod plans;
mod previews;
mod quote_retention;
mod quotes;
mod reads;
mod row;
mod signed_quotes;
mod stats;
mod stored_responses;
mod trades;
mod transactions;
mod tx;
mod velocity;
mod verify;

pub use files::ForeignFile;
pub use open::{Options, SqliteStore};
pub use store_sql::schema::Migrated;
