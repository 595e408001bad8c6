//! The store on a database server, Postgres.
//!
//! A transaction that writes a partner's money or sessions holds the partner lock, the partner's row in `books`. So a partner's
//! writes are serial over all batch queues and replicas. Readers see snapshots. `store-sql` has the statements that both engines
//! share; this crate has those that need Postgres' own SQL. `open` opens the database, `tx` is the write transaction, `batch`
//! runs the batched writes, and `verify` audits the database.
//!
//! Every statement is static text, except the statements that an audit makes from the catalogue for `CHECK` constraints and
//! references, and the limits of a session or a transaction, which are numbers of `hosts` and `waits`.

mod access;
mod batch;
mod clock;
mod config;
mod conn;
mod connection;
mod deliveries;
mod durability;
mod errors;
mod health;
mod hosts;
mod jumps;
mod maintenance;
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
mod tx;
mod verify;
mod waits;

pub use durability::Durability;
pub use hosts::{Location, Timeouts, UnreadUrl};
pub use open::{BATCH_QUEUE_COUNT, Options, PostgresStore};
pub use store_sql::schema::Migrated;
pub use waits::Waits;
