//! What requests share beside the database: throttles, keys in flight, a short-lived cache of who
//! may do what, and the lanes that turn a queue of writes into one transaction.
//!
//! Everything lives in this process or in a Redis that the replicas share, and decides nothing about
//! money: whatever is lost here, the database still knows.

use std::error::Error;

pub mod directory_cache;
pub mod in_flight;
pub mod lane;
pub mod lanes;
pub mod once;
pub mod shared;
pub mod throttle;

pub use directory_cache::DirectoryCache;
pub use in_flight::MemoryInFlight;
pub use lane::{BatchRunner, LaneOptions};
pub use lanes::Lanes;
pub use once::Once;
pub use shared::{Patience, RedisUrl, Shared, SharedInFlight, SharedThrottle};
pub use throttle::MemoryThrottle;

/// A fault with every cause behind it, outermost first, in one line: what a log shows, because
/// `Display` does not print the source.
#[must_use]
pub fn causes(fault: &dyn Error) -> String {
    let mut line = fault.to_string();
    let mut next = fault.source();
    while let Some(cause) = next {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        next = cause.source();
    }
    line
}
