//! What a program of Penstock runs on: configuration, logs, the adapters behind the cores' ports,
//! the tasks in the background, and an orderly end.
//!
//! Only `service` listens: tests and tools run everything else without a listener.

pub mod config;
pub mod desk;
pub mod looks;
pub mod master_key;
pub mod open;
pub mod process;
pub mod service;
pub mod shutdown;
pub mod store;
mod supervise;
pub mod telemetry;

mod background;
mod catalogue;
mod engine_check;
mod far_ends;
mod sampling;
mod shared;

pub use providers::http_engine::openapi as engine_openapi;

pub use config::{Config, ConfigFault, Loaded, Sources};
pub use far_ends::check_files;
pub use open::{Foundation, OpenFault, Runtime};
pub use process::Ports;
pub use store::Store;
