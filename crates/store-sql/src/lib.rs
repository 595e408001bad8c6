//! What the rows of a store mean: read into the cores' values, the same for every store.
//!
//! A store has its own SQL, its own driver and its own types of columns. What its rows say is the
//! same everywhere: [`Row`] is what a store shows of one, and one file per noun of the cores, with
//! the names of the stores' files, reads it and refuses what no row may be made of. [`verify`] is
//! what an audit judges by more than one statement.

pub mod access;
pub mod branding;
pub mod config;
mod connection;
pub mod contingent_credits;
pub mod customers;
pub mod deliveries;
mod deposit_claims;
pub mod deposits;
pub mod endpoints;
pub mod events;
pub mod exports;
mod gate;
pub mod idempotency;
pub mod jumps;
mod keys;
pub mod ledger;
pub mod master_keys;
mod partners;
mod pools;
pub mod preflight;
pub mod previews;
mod provision;
pub mod quote_retention;
pub mod quotes;
pub mod rails;
pub mod reads;
mod row;
pub mod schema;
pub mod sessions;
pub mod signed_quotes;
mod statement;
pub mod stats;
mod store_tx;
pub mod stored_responses;
pub mod tallies;
pub mod trades;
pub mod transactions;
mod value;
pub mod velocity;
pub mod verify;

pub use connection::{Connection, EngineTx, ReadStore, Reader, RowVisitor, Snapshot};
pub use row::{Found, Row, Unreadable, json};
pub use statement::{Sql, Statement};
pub use store_tx::StoreTx;
pub use value::Value;
