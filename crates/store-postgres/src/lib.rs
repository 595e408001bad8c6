//! The store on a server: every line of Postgres SQL.
//!
//! Whoever writes a partner's money or sessions holds the partner's row of `books`, so a partner's writes come
//! one after the other over all lanes and replicas; readers see snapshots. One file per noun of the
//! cores, with the names of the embedded store's; `open` opens, `tx` is the transaction, `lane`
//! the batched money path, `verify` the invariants of the whole database. Every statement is static
//! text, but for the `CHECK` constraints and references of the schema, which an audit takes from the catalogue.

mod access;
mod batch;
mod clock;
mod config;
mod conn;
mod connection;
mod deliveries;
mod endpoints;
mod errors;
mod events;
mod exports;
mod health;
mod hosts;
mod jumps;
mod keys;
mod maintenance;
mod master_keys;
mod migrations;
mod open;
mod partner_lock;
#[cfg(test)]
mod plans;
mod pool;
mod quotes;
mod reads;
mod row;
mod schema;
mod stats;
mod turns;
mod tx;
mod verify;

pub use hosts::{Timeouts, UnreadUrl};
pub use open::{BATCH_QUEUE_COUNT, Options, PostgresStore};
pub use store_sql::schema::Migrated;
