//! The pools HTTP API: the route table, the wire shapes, and how refusals read from outside.

mod accounts;
mod app;
mod contract;
mod discovery;
mod errors;
mod measured;
mod quotes;
mod routes;
mod service;
mod trades;
mod wire;

pub use app::Parts;
pub use contract::{every_error, openapi, openapi_yaml};
pub use service::{Setup, service};
pub use trades::render_event;
