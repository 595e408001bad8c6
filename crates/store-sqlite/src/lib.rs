//! The embedded store, on SQLite.
//!
//! One connection writes, so writes are serial, and no other transaction changes what a write transaction has read. Readers see
//! snapshots. `store-sql` has the statements that both engines share; this crate has those that need SQLite's own SQL.
//! `open` opens the database, `tx` is the write transaction, `batch` runs the batched writes, and `verify` audits the
//! database. Every statement is static text.

mod access;
mod batch;
mod clock;
mod config;
mod connection;
mod deliveries;
mod errors;
mod files;
mod health;
#[cfg(test)]
mod isolation;
mod jumps;
mod maintenance;
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
pub use store_sql::TURN_TIMEOUT;
pub use store_sql::schema::Migrated;
