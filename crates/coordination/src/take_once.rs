//! A bounded cache that returns each value once.

use std::hash::Hash;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::sync::Cache;

/// Keeps values for a limited time, and returns each of them once.
///
/// A value may be evicted at any time, so a missing value means nothing: read it from its source.
pub struct TakeOnceCache<K, V>(Cache<K, (V, Duration)>);

impl<K, V> TakeOnceCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// A cache of at most `limit` values.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self(
            Cache::builder()
                .max_capacity(limit)
                .expire_after(Life)
                .build(),
        )
    }

    /// Keeps a value for at most about `life`. The caller of [`TakeOnceCache::take`] checks whether the value is still valid.
    pub fn put(&self, key: K, value: V, life: Duration) {
        self.0.insert(key, (value, life));
    }

    /// Removes and returns the value.
    pub fn take(&self, key: &K) -> Option<V> {
        self.0.remove(key).map(|(value, _)| value)
    }
}

/// The lifetime of each value: the `life` of [`TakeOnceCache::put`].
struct Life;

impl<K, V> Expiry<K, (V, Duration)> for Life {
    fn expire_after_create(
        &self,
        _: &K,
        (_, life): &(V, Duration),
        _: Instant,
    ) -> Option<Duration> {
        Some(*life)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn value_is_returned_once() {
        let memory = TakeOnceCache::new(8);
        memory.put("key", "value", LONG);
        assert_eq!(memory.take(&"other"), None);
        assert_eq!(memory.take(&"key"), Some("value"));
        assert_eq!(memory.take(&"key"), None);
    }

    #[test]
    fn cache_stays_within_its_limit() {
        let memory = TakeOnceCache::new(8);
        for number in 0..1_000 {
            memory.put(number, (), LONG);
        }
        memory.0.run_pending_tasks();
        assert!(memory.0.entry_count() <= 8);
    }
}
