//! The contract of the store ports, as cases that every store passes.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing case is a panic"
)]

pub mod deliveries;
pub mod fixture;
pub mod throughput;
mod world;

pub use fixture::{Fixture, IDEMPOTENCY_TTL, ManualClock, Ports, WINDOW};
