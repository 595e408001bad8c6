//! The embedded store: every line of SQLite SQL.
//!
//! There is one writer connection, so writes are serialized and a transaction's reads cannot be
//! overtaken; readers beside it see snapshots. One file per noun of the cores, with the same
//! names; `open` opens, `tx` is the transaction, `lane` the batched money path, `verify` the
//! invariants of the whole database. Every statement is static text.

mod access;
mod batch;
mod clock;
mod config;
mod connection;
mod deliveries;
mod endpoints;
mod errors;
mod exports;
mod files;
mod health;
mod jumps;
mod keys;
mod maintenance;
mod master_keys;
mod migrations;
mod open;
#[cfg(test)]
mod plans;
mod quotes;
mod reads;
mod row;
mod stats;
mod tx;
mod verify;

pub use files::ForeignFile;
pub use open::{Options, SqliteStore};
pub use store_sql::schema::Migrated;
