//! Delivers events to the partners' endpoints.
//!
//! [`Worker`] claims what is due, signs it and posts it, many at once, and records what came of
//! each. It decides nothing about when to try again or who comes first: those rules, and the one
//! about which addresses may be reached, are `partner_core::webhooks`.
//!
//! The client is no general one. It connects, posts once and reads a status: no redirects, no
//! proxies, no cookies, no compression, because it has none of them.

mod answer;
mod attempt;
mod bounded;
mod connect;
mod idle;
mod lanes;
mod post;
mod resolve;
mod slots;
mod tls;
mod worker;

pub use resolve::{NameServer, Resolve, SystemResolver};
pub use tls::Trust;
pub use worker::{Worker, WorkerConfig};
