//! What requests share beside the database: throttles, keys in flight, a short-lived cache of who
//! may do what, and the lanes that turn a queue of writes into one transaction.
//!
//! Everything lives in this process or in a Redis that the replicas share, and decides nothing about
//! money: whatever is lost here, the database still knows.

pub mod directory_cache;
pub mod in_flight;
pub mod key_uses;
pub mod lane;
pub mod lanes;
pub mod once;
pub mod shared;
pub mod throttle;

pub use directory_cache::DirectoryCache;
pub use in_flight::MemoryInFlight;
pub use key_uses::KeyUses;
pub use lane::{BatchRunner, LaneOptions};
pub use lanes::Lanes;
pub use once::Once;
pub use shared::{Patience, RedisUrl, Shared, SharedInFlight, SharedThrottle};
pub use throttle::MemoryThrottle;
