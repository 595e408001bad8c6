//! What both stores have in common: statements, row readers and ports, each written once.
//!
//! The crate has no driver. An engine implements [`Connection`], [`Snapshot`], [`Reader`], [`EngineTx`] and [`Row`] once. An entity's
//! file has its [`Statement`]s, the reader that parses its rows into the cores' values, and its port, implemented for [`StoreTx`].
//! An engine also implements [`QueueTx`](deliveries::QueueTx), with its statements that take many deliveries.
//! [`reads`] and [`ports`] implement the ports of an engine's store, [`Turns`] limits the connections of one partner, [`exports`] reads
//! windows page by page, and [`verify`] audits the database. `docs/decisions/0037-one-store.md` has the reasons.

pub mod access;
mod bounds;
pub mod branding;
pub mod config;
mod connection;
pub mod contingent_credits;
pub mod customer_forms;
pub mod customers;
pub mod deliveries;
mod deposit_claims;
pub mod deposits;
mod due;
pub mod endpoints;
pub mod events;
pub mod exports;
mod gate;
pub mod idempotency;
pub mod jumps;
pub mod keys;
pub mod ledger;
pub mod maintenance;
pub mod master_keys;
pub mod partners;
mod pools;
pub mod ports;
pub mod preflight;
pub mod previews;
pub mod probe;
pub mod quote_retention;
pub mod quotes;
pub mod rails;
pub mod reads;
mod row;
pub mod schema;
mod sealed;
pub mod sessions;
pub mod signed_quotes;
mod statement;
pub mod stats;
mod store_tx;
pub mod stored_responses;
pub mod tallies;
pub mod trades;
pub mod transactions;
mod turns;
mod value;
pub mod velocity;
pub mod verifications;
pub mod verify;

pub use connection::{Connection, Effects, EngineTx, ReadStore, Reader, RowVisitor, Snapshot};
pub use row::{Found, Row, Unreadable, json};
pub use statement::{Sql, Statement};
pub use store_tx::{StoreTx, exactly, rows};
pub use turns::{TURN_TIMEOUT, Turns};
pub use value::Value;
