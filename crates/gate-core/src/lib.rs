//! The gate domain: hosted ramp sessions, embed tokens, branding and transactions.
//!
//! Rules and state machines are pure functions over values. Use cases compose them over the traits in [`ports`]. This
//! crate does not know the database, HTTP or the system clock.

pub mod access;
pub mod amount;
pub mod branding;
pub mod catalogue;
pub mod change;
pub mod customer;
pub mod draft;
pub mod due;
pub mod embed;
pub mod error;
pub mod events;
pub mod idempotent;
pub mod limits;
pub mod merchant;
pub mod object;
pub mod order;
pub mod payout;
pub mod ports;
pub mod preview;
pub mod pricing;
pub mod profile;
pub mod quota;
pub mod rail;
pub mod redirect;
pub mod secret;
pub mod session;
pub mod signed_quote;
pub mod token;
pub mod transaction;
pub mod usecases;
pub mod verification;
