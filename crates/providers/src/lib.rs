//! Where liquidity and rates come from and what moves fiat: the implementations of the domains' far
//! ends.
//!
//! [`sandbox`] and [`sandbox_rail`] serve mode test, [`static_rates`] a rate table written by the operator,
//! [`http_rates`] sources and [`http_engine`] an engine of the operator's, and [`none`] stands where nothing is configured. [`measured`] counts what any
//! of them answers.

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
