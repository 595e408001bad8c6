//! The service under acceptance test: the real router over a real store, the embedded
//! one or a server, with a clock that only tests move, seeded randomness, and upstreams whose
//! responses can be scripted.
//!
//! [`World`] is one service with its database. Every response is checked against the
//! published contract before a test sees it, and [`World::finish`] checks every invariant of the
//! database and that no event was left unnoticed.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test support: a panic fails the test and names the line"
)]

mod client;
mod clock;
mod contract;
mod database;
mod engine;
mod far_engine;
mod far_rail;
mod far_rates;
mod gate;
mod gate_tasks;
mod gate_use_cases;
mod invariants;
mod logs;
pub mod measure;
mod operator;
mod orders;
mod place;
mod queues;
mod rail;
mod rates;
mod relay;
mod setup;
pub mod table;
mod verifier;
mod world;

pub use client::{Answer, Call, Client, keys, purchase, sale};
pub use clock::{ManualClock, Seeded};
pub use contract::{Contract, Operation, documents};
pub use database::Database;
pub use engine::{Asked, Reply, ScriptedEngine};
pub use far_engine::{FarEngine, FarFault};
pub use far_rail::FarRail;
pub use far_rates::FarRates;
pub use gate::{Gate, GateClient, session};
pub use gate_use_cases::GateUseCases;
pub use logs::{Catching, Logs};
pub use operator::{Operator, money};
pub use orders::{Cast, Orders, Paced};
pub use queues::QueueFault;
pub use rail::sandbox_rail;
pub use rates::ScriptedRates;
pub use relay::Relay;
pub use setup::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, ACME_SECRET_2, ADDRESS, FORMER_RAIL_SECRET, RAIL_SECRET,
    RIVAL, RIVAL_PUBLISHABLE, RIVAL_SECRET, RIVAL_SHOP, SHOP, START, Setup, WIDGET, gate_profile,
    limits, profile,
};
pub use test_support::test_database::StoreKind;
pub use verifier::ScriptedVerifier;
pub use world::World;
