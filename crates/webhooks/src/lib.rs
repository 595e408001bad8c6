//! Delivers events to the partners' endpoints.
//!
//! [`Worker`] claims due deliveries, signs and posts them concurrently, and records the outcomes.
//! The rules are in `partner_core::webhooks`: when to retry, how to divide capacity among endpoints,
//! and which addresses may be reached.
//!
//! The HTTP client does one thing: it connects, posts once and reads a status. It has no redirects,
//! no proxies, no cookies and no decompression.

mod attempt;
mod bounded;
mod connect;
mod dispatch;
mod hasten;
mod heads;
mod idle;
mod in_flight;
mod post;
mod post_error;
mod resolve;
mod tls;
mod worker;

pub use resolve::{NameServer, Resolve, SystemResolver};
pub use tls::Trust;
pub use worker::{Worker, WorkerConfig};
