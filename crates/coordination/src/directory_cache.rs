//! A short-lived cache of who may do what, in front of a store's directory.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use instruments::{directory, faults};
use kernel::{Mode, StoreError, Timestamp, causes};
use moka::sync::Cache;
use partner_core::Access;
use partner_core::key::KeyHash;
use partner_core::origin::Origin;
use partner_core::pools::Pool;
use partner_core::ports::{Directory, LONGEST_CACHED};
use tokio::time::{Instant, MissedTickBehavior};

use crate::key_uses::KeyUses;

/// How often the version of the configuration is read.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Keys kept at most; the least used leave first.
const MOST_KEYS: u64 = 100_000;

/// Remembers known keys, the pools and the allowed origins for at most [`LONGEST_CACHED`], and forgets everything when
/// the configuration changes.
///
/// Unknown keys are never remembered: a key that was just made works at once, and guessing keys
/// fills no memory.
pub struct DirectoryCache {
    inner: Arc<dyn Directory>,
    /// Raised by every invalidation. An entry counts only in the generation its look-up *began*
    /// in, so that an old value which arrives after an invalidation is never served.
    generation: AtomicU64,
    keys: Shelf<(Mode, KeyHash), Arc<Access>>,
    pools: Shelf<Mode, Arc<[Pool]>>,
    origins: Shelf<Mode, Arc<BTreeSet<Origin>>>,
    uses: KeyUses,
}

impl DirectoryCache {
    /// An empty cache before a directory.
    #[must_use]
    pub fn new(inner: Arc<dyn Directory>) -> Self {
        Self {
            inner,
            generation: AtomicU64::new(0),
            keys: Shelf::new(MOST_KEYS),
            pools: Shelf::new(2),
            origins: Shelf::new(2),
            uses: KeyUses::default(),
        }
    }

    /// The keys that were used, and when.
    #[must_use]
    pub const fn uses(&self) -> &KeyUses {
        &self.uses
    }

    /// Forgets everything, also what is being looked up right now.
    pub fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.keys.entries.invalidate_all();
        self.pools.entries.invalidate_all();
        self.origins.entries.invalidate_all();
    }

    /// Reads the version of the configuration each second and forgets everything when it has
    /// changed. Returns when `stop` does, never in the middle of a read.
    pub async fn watch(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut ticks = tokio::time::interval(WATCH_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = None;
        let mut failing = false;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                _ = ticks.tick() => {}
            }
            match self.inner.config_version().await {
                Ok(version) => {
                    // The count is of entries whose arrival has been worked off.
                    self.keys.entries.run_pending_tasks();
                    directory::holds(self.keys.entries.entry_count());
                    if known != Some(version) {
                        self.invalidate();
                        directory::invalidated();
                        tracing::debug!(config.version = version, "Configuration read afresh");
                    }
                    known = Some(version);
                    failing = false;
                }
                // Entries go on ageing: nothing outlives its five seconds.
                Err(fault) if !failing => {
                    failing = true;
                    faults::of_store(&fault);
                    tracing::warn!(
                        error.chain = causes(&fault),
                        "Failed to read the configuration's version"
                    );
                }
                Err(_) => {}
            }
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            generation: self.generation.load(Ordering::SeqCst),
            asked_at: Instant::now(),
        }
    }
}

impl fmt::Debug for DirectoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryCache")
    }
}

#[async_trait]
impl Directory for DirectoryCache {
    async fn access_find(
        &self,
        mode: Mode,
        hash: &KeyHash,
    ) -> Result<Option<Arc<Access>>, StoreError> {
        let stamp = self.stamp();
        let known = self.keys.find(&(mode, *hash), stamp);
        directory::looked_up("key", known.is_some());
        if known.is_some() {
            return Ok(known);
        }
        let found = self.inner.access_find(mode, hash).await?;
        if let Some(access) = &found {
            self.keys.keep((mode, *hash), Arc::clone(access), stamp);
        }
        Ok(found)
    }

    async fn pools_all(&self, mode: Mode) -> Result<Arc<[Pool]>, StoreError> {
        let stamp = self.stamp();
        let known = self.pools.find(&mode, stamp);
        directory::looked_up("pools", known.is_some());
        if let Some(known) = known {
            return Ok(known);
        }
        let pools = self.inner.pools_all(mode).await?;
        self.pools.keep(mode, Arc::clone(&pools), stamp);
        Ok(pools)
    }

    async fn origins_all(&self, mode: Mode) -> Result<Arc<BTreeSet<Origin>>, StoreError> {
        let stamp = self.stamp();
        let known = self.origins.find(&mode, stamp);
        directory::looked_up("origins", known.is_some());
        if let Some(known) = known {
            return Ok(known);
        }
        let origins = self.inner.origins_all(mode).await?;
        self.origins.keep(mode, Arc::clone(&origins), stamp);
        Ok(origins)
    }

    async fn config_version(&self) -> Result<i64, StoreError> {
        self.inner.config_version().await
    }

    fn key_used(&self, access: &Access, at: Timestamp) {
        self.uses.note(access, at);
    }
}

/// When, and in which generation, a look-up began. The age of an entry counts from here and not
/// from its arrival, because that is how old its facts may be.
#[derive(Clone, Copy)]
struct Stamp {
    generation: u64,
    asked_at: Instant,
}

/// Entries of one kind.
struct Shelf<K, V> {
    entries: Cache<K, (Stamp, V)>,
}

impl<K, V> Shelf<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new(most: u64) -> Self {
        let entries = Cache::builder()
            .max_capacity(most)
            .time_to_live(LONGEST_CACHED)
            .build();
        Self { entries }
    }

    fn find(&self, key: &K, now: Stamp) -> Option<V> {
        let (kept, value) = self.entries.get(key)?;
        let age = now.asked_at.saturating_duration_since(kept.asked_at);
        (kept.generation == now.generation && age < LONGEST_CACHED).then_some(value)
    }

    fn keep(&self, key: K, value: V, stamp: Stamp) {
        self.entries.insert(key, (stamp, value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicUsize};

    use kernel::Entropy;
    use partner_core::key::{KeyKind, NewKey};
    use partner_core::pools::PoolsProfile;
    use partner_core::{Partner, PartnerId, PartnerStatus};
    use tokio::sync::{Notify, oneshot};

    use super::*;

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    /// Knows one key; counts how often it is asked; answers are held back while `gate` is shut.
    #[derive(Default)]
    struct Book {
        asked: AtomicUsize,
        version: AtomicI64,
        broken: std::sync::atomic::AtomicBool,
        begun: Notify,
        gate: parking_lot::Mutex<Option<oneshot::Receiver<()>>>,
    }

    const KNOWN: KeyHash = KeyHash([1; 32]);
    const UNKNOWN: KeyHash = KeyHash([2; 32]);

    /// The partner's name tells in which version of the book it was read.
    fn access(version: i64) -> Arc<Access> {
        let at = Timestamp::from_millis(0).unwrap();
        let (key, _) = NewKey::generate(KeyKind::Secret, Mode::Test, at, &Ones);
        let id = PartnerId::parse("acme").unwrap();
        let profile = PoolsProfile::absent(&id);
        let partner = Partner {
            id,
            name: version.to_string(),
            status: PartnerStatus::Active,
        };
        Arc::new(Access::new(Mode::Test, key.record, partner, profile))
    }

    #[async_trait]
    impl Directory for Book {
        async fn access_find(
            &self,
            _: Mode,
            hash: &KeyHash,
        ) -> Result<Option<Arc<Access>>, StoreError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let read = self.version.load(Ordering::SeqCst);
            let gate = self.gate.lock().take();
            if let Some(gate) = gate {
                self.begun.notify_one();
                gate.await.unwrap();
            }
            Ok((*hash == KNOWN).then(|| access(read)))
        }

        async fn pools_all(&self, _: Mode) -> Result<Arc<[Pool]>, StoreError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::from([]))
        }

        async fn origins_all(&self, _: Mode) -> Result<Arc<BTreeSet<Origin>>, StoreError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::default())
        }

        async fn config_version(&self) -> Result<i64, StoreError> {
            if self.broken.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("away"));
            }
            Ok(self.version.load(Ordering::SeqCst))
        }
    }

    fn asked(book: &Book) -> usize {
        book.asked.load(Ordering::SeqCst)
    }

    async fn version_seen(cache: &DirectoryCache) -> String {
        let found = cache.access_find(Mode::Test, &KNOWN).await.unwrap();
        found.unwrap().partner.name.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn known_keys_pools_and_origins_are_asked_for_once_in_five_seconds() {
        let book = Arc::new(Book::default());
        let cache = DirectoryCache::new(book.clone());
        for _ in 0..3 {
            version_seen(&cache).await;
            cache.pools_all(Mode::Test).await.unwrap();
            cache.origins_all(Mode::Test).await.unwrap();
        }
        assert_eq!(asked(&book), 3);
        tokio::time::advance(Duration::from_millis(4999)).await;
        version_seen(&cache).await;
        cache.pools_all(Mode::Test).await.unwrap();
        cache.origins_all(Mode::Test).await.unwrap();
        assert_eq!(asked(&book), 3);
        tokio::time::advance(Duration::from_millis(1)).await;
        version_seen(&cache).await;
        cache.pools_all(Mode::Test).await.unwrap();
        cache.origins_all(Mode::Test).await.unwrap();
        assert_eq!(asked(&book), 6);
    }

    // rule: base.unknown-keys-not-cached
    #[tokio::test]
    async fn unknown_keys_are_asked_for_every_time() {
        let book = Arc::new(Book::default());
        let cache = DirectoryCache::new(book.clone());
        for _ in 0..3 {
            let found = cache.access_find(Mode::Test, &UNKNOWN).await.unwrap();
            assert!(found.is_none());
        }
        assert_eq!(asked(&book), 3);
        version_seen(&cache).await;
        let live = cache.access_find(Mode::Live, &KNOWN).await.unwrap();
        assert!(live.is_some());
        assert_eq!(asked(&book), 5, "each mode has its own entry");
    }

    // rule: base.config-spreads
    #[tokio::test(start_paused = true)]
    async fn a_change_of_configuration_is_seen_within_a_second() {
        let book = Arc::new(Book::default());
        let cache = Arc::new(DirectoryCache::new(book.clone()));
        let (stop, stopped) = oneshot::channel::<()>();
        let watcher = cache.clone();
        let watch = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            watcher.watch(stopped).await;
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(version_seen(&cache).await, "0");
        book.version.store(7, Ordering::SeqCst);
        assert_eq!(version_seen(&cache).await, "0");
        tokio::time::sleep(Duration::from_millis(1000)).await;
        assert_eq!(version_seen(&cache).await, "7");

        book.broken.store(true, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(3000)).await;
        book.version.store(8, Ordering::SeqCst);
        book.broken.store(false, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1000)).await;
        assert_eq!(version_seen(&cache).await, "8");

        stop.send(()).unwrap();
        watch.await.unwrap();
    }

    #[tokio::test]
    async fn an_old_value_that_arrives_after_an_invalidation_is_not_kept() {
        let book = Arc::new(Book::default());
        let cache = Arc::new(DirectoryCache::new(book.clone()));
        let (open, gate) = oneshot::channel();
        *book.gate.lock() = Some(gate);
        let slow = tokio::spawn({
            let cache = cache.clone();
            async move { version_seen(&cache).await }
        });
        book.begun.notified().await;
        book.version.store(1, Ordering::SeqCst);
        cache.invalidate();
        open.send(()).unwrap();
        assert_eq!(slow.await.unwrap(), "0");
        assert_eq!(version_seen(&cache).await, "1");
    }
}
