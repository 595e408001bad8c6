//! The upstreams of the cores: implementations of the engine, the rate source and the rail.
//!
//! [`sandbox`] and [`sandbox_rail`] serve mode test. [`static_rates`] reads a rate table of the operator, [`http_rates`] calls
//! sources of rates, and [`http_engine`] calls an engine of the operator. [`none`] is used if no upstream is configured.
//! [`measured`] counts the responses of each.

mod client;
pub mod http_engine;
pub mod http_rates;
pub mod measured;
pub mod none;
pub mod sandbox;
pub mod sandbox_rail;
pub mod static_rates;

pub use http_engine::{EngineSecret, EngineUrl, HttpEngine};
pub use http_rates::{HttpRates, RatesUnopened};
pub use measured::{MeasuredEngine, MeasuredRates};
pub use none::{NoEngine, NoRates};
pub use sandbox::{SandboxEngine, SandboxRates};
pub use sandbox_rail::SandboxRail;
pub use static_rates::{RatesError, StaticRates};
