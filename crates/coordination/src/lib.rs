//! State that requests share outside the database: throttles, keys in flight, a short-lived cache of access rights, and
//! the batch queues that run queued writes as one transaction.
//!
//! This state lives in the process or in a Redis that the replicas share. It decides nothing about money: everything that
//! is lost here is still in the database.

pub mod batch_queue;
pub mod directory_cache;
pub mod in_flight;
pub mod key_uses;
pub mod partner_queues;
pub mod redis;
pub mod take_once;
pub mod throttle;

pub use batch_queue::{BatchQueueOptions, Locks};
pub use directory_cache::{ConfigCache, DirectoryCache};
pub use in_flight::MemoryInFlight;
pub use key_uses::KeyUses;
pub use partner_queues::PartnerQueues;
pub use redis::{RedisConnection, RedisInFlight, RedisThrottle, RedisTimeouts, RedisUrl};
pub use take_once::TakeOnceCache;
pub use throttle::MemoryThrottle;
