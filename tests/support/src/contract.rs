//! The contract of the store ports, as cases that every store passes.
//!
//! A store's tests pass a function that opens a fresh [`GateFixture`] to `store_contract!(crate::open)`. The macro makes one test per
//! case, so a failure names the store and the case. A case is a public function whose only argument is a [`World`]; `build.rs` lists them.
pub mod audit;
pub mod breaches;
pub mod caches;
pub mod cancels;
pub mod clock;
pub mod contingent_credits;
pub mod customer_breaches;
pub mod customer_forms;
pub mod customers;
pub mod deliveries;
pub mod due;
pub mod events;
pub mod exports;
pub mod figures;
pub mod fixture;
pub mod gate;
pub mod gate_breaches;
pub mod gate_caches;
pub mod gate_races;
mod gate_world;
pub mod hastening;
pub mod history;
pub mod idempotency;
pub mod ledger;
pub mod lists;
pub mod master_keys;
pub mod outages;
mod outcomes;
pub mod owners;
mod partner_rows;
pub mod payment_races;
pub mod payments;
pub mod previews;
pub mod provisioning;
pub mod quotes;
pub mod races;
pub mod rail_breaches;
pub mod rail_upstreams;
pub mod rails;
pub mod references;
pub mod refusals;
mod seeded;
pub mod sessions;
pub mod throughput;
pub mod trades;
pub mod transact_batch;
pub mod unreadable;
pub mod upgrades;
pub mod velocity;
pub mod verification_breaches;
pub mod verifications;
pub mod wakes;
mod world;

pub use fixture::{Fixture, GateFixture, GatePorts, IDEMPOTENCY_TTL, ManualClock, Ports, WINDOW};
pub use world::World;

// The macro `store_contract!`.
include!(concat!(env!("OUT_DIR"), "/store_contract.rs"));

/// The tests of `store_contract!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    ($open:path; $($entity:ident: $($case:ident),+;)+) => { $(
        mod $entity {
            $(
                #[tokio::test]
                async fn $case() {
                    let world = $crate::contract::World::new($open().await);
                    $crate::contract::$entity::$case(world).await;
                }
            )+
        }
    )+ };
}
