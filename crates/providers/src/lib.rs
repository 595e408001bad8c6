//! The upstreams of the cores: implementations of the engine, the rate source, the rail and the verifier.
//!
//! [`sandbox`], [`sandbox_rail`] and [`sandbox_verifier`] serve mode test. [`static_rates`] reads a rate table of the operator.
//! [`http_rates`] calls sources of rates, [`http_engine`] an engine of the operator, [`http_rail`] a rail and [`http_verifier`] a
//! verifier. [`none`] is used if no upstream is configured. [`measured`] counts the responses of each.

mod address;
mod client;
mod contract;
pub mod http_engine;
pub mod http_rail;
pub mod http_rates;
pub mod http_verifier;
pub mod measured;
pub mod none;
pub mod sandbox;
mod sandbox_pages;
pub mod sandbox_rail;
pub mod sandbox_verifier;
pub mod static_rates;
mod upstream;

pub use address::{UpstreamSecret, UpstreamUrl};
pub use http_engine::HttpEngine;
pub use http_rail::HttpRail;
pub use http_rates::{HttpRates, RatesUnopened};
pub use http_verifier::HttpVerifier;
pub use measured::{MeasuredEngine, MeasuredRail, MeasuredRates, MeasuredVerifier};
pub use none::{NoEngine, NoRates};
pub use sandbox::{SandboxEngine, SandboxRates};
pub use sandbox_pages::SandboxPages;
pub use sandbox_rail::SandboxRail;
pub use sandbox_verifier::SandboxVerifier;
pub use static_rates::{RatesError, StaticRates};
