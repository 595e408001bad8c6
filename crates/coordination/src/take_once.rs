//! A bounded memory that gives each value once.

use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::sync::Cache;

/// Keeps values for a while, and hands each of them out once. What it has lost, or never had room for, has to be had from
/// where it came from: that it is not here says nothing.
pub struct TakeOnceCache<K, V>(Cache<K, (V, Duration)>);

impl<K, V> TakeOnceCache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// A memory of at most so many values.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self(
            Cache::builder()
                .max_capacity(most)
                .expire_after(Life)
                .build(),
        )
    }

    /// Keeps a value for about as long as `life`, or shorter; whether it still counts is its taker's to judge.
    pub fn put(&self, key: K, value: V, life: Duration) {
        self.0.insert(key, (value, life));
    }

    /// The value, for this caller alone.
    pub fn take(&self, key: &K) -> Option<V> {
        self.0.remove(key).map(|(value, _)| value)
    }
}

impl<K, V> fmt::Debug for TakeOnceCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

/// Each value lives as long as it was put for.
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
    fn a_value_is_handed_out_once() {
        let memory = TakeOnceCache::new(8);
        memory.put("key", "value", LONG);
        assert_eq!(memory.take(&"other"), None);
        assert_eq!(memory.take(&"key"), Some("value"));
        assert_eq!(memory.take(&"key"), None);
    }

    #[test]
    fn there_are_never_many_more_than_it_has_room_for() {
        let memory = TakeOnceCache::new(8);
        for number in 0..1_000 {
            memory.put(number, (), LONG);
        }
        memory.0.run_pending_tasks();
        assert!(memory.0.entry_count() <= 8);
    }
}
