//! Where liquidity and rates come from and what moves fiat: the implementations of the domains' far
//! ends.
//!
//! [`sandbox`] and [`sandbox_rail`] serve mode test, [`static_rates`] a rate table written by the operator, and
//! [`none`] stands where nothing is configured. [`measured`] counts what any of them answers.

pub mod measured;
pub mod none;
pub mod sandbox;
pub mod sandbox_rail;
pub mod static_rates;

pub use measured::{MeasuredEngine, MeasuredRates};
pub use none::{NoEngine, NoRates};
pub use sandbox::{SandboxEngine, SandboxRates};
pub use sandbox_rail::SandboxRail;
pub use static_rates::{RatesFault, StaticRates};
