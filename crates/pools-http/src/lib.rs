//! The pools HTTP API: its operations, the wire shapes, and how refusals read from outside.

mod accounts;
mod api;
mod app;
mod codes;
mod discovery;
mod errors;
mod event_docs;
mod measured;
mod quotes;
mod routes;
mod service;
mod trades;
mod wire;
mod words;

pub use api::{documents, error_codes};
pub use app::Parts;
pub use service::{Setup, service};
pub use trades::render_event;
