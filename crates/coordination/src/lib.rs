//! What requests share beside the database: throttles, keys in flight, a short-lived cache of who
//! may do what, and the lanes that turn a queue of writes into one transaction.
//!
//! Everything lives in this process or in a Redis that the replicas share, and decides nothing about
//! money: whatever is lost here, the database still knows.

pub mod batch_queue;
pub mod directory_cache;
pub mod in_flight;
pub mod key_uses;
pub mod partner_queues;
pub mod redis;
pub mod take_once;
pub mod throttle;

pub use batch_queue::{BatchQueueOptions, BatchRunner};
pub use directory_cache::DirectoryCache;
pub use in_flight::MemoryInFlight;
pub use key_uses::KeyUses;
pub use partner_queues::PartnerQueues;
pub use redis::{RedisConnection, RedisInFlight, RedisThrottle, RedisTimeouts, RedisUrl};
pub use take_once::TakeOnceCache;
pub use throttle::MemoryThrottle;
