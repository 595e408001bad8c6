//! Everything that a program of Penstock runs on: configuration, logs, the adapters of the cores' ports, background tasks and
//! shutdown.
//!
//! Only `service` opens a listener: tests and tools run everything else without one.

pub mod background;
pub mod config;
pub mod customer_forms;
pub mod descriptors;
pub mod master_key;
pub mod open;
pub mod polls;
pub mod preflight;
pub mod process;
pub mod service;
pub mod shutdown;
pub mod store;
mod supervise;
mod surroundings;
pub mod telemetry;

mod catalogue;
mod durability;
mod elsewhere;
mod engine_check;
mod gauges;
mod shared;
mod upstreams;

pub use providers::http_engine::openapi as engine_openapi;
pub use providers::http_rail::openapi as rail_openapi;
pub use providers::http_verifier::openapi as verifier_openapi;

pub use config::{Config, ConfigError, Loaded, Sources};
pub use open::{Access, OpenError, OpenedBase, Runtime};
pub use process::Ports;
pub use store::Store;
pub use upstreams::check_files;
