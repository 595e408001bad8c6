//! A short-lived cache of access rights in front of a store's directory.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use instruments::{directory, faults};
use kernel::{Mode, StoreResult, Timestamp, causes};
use moka::sync::Cache;
use partner_core::key::{KeyHash, KeyId};
use partner_core::ports::{ConfigVersions, Directory, LONGEST_CACHED};
use partner_core::{Access, Profile, Tenant};
use tokio::time::{Instant, MissedTickBehavior};

use crate::key_uses::KeyUses;

/// Interval between two reads of the configuration's version.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of cached keys. The least used keys are evicted first.
const MAX_KEYS: u64 = 100_000;

/// Caches known keys and the listings of one product for at most [`LONGEST_CACHED`], and drops all entries when the
/// configuration changes.
///
/// Unknown keys are never cached: a new key works immediately, and guessed keys take no memory.
pub struct DirectoryCache<P: Profile> {
    inner: Arc<dyn Directory<P>>,
    /// Every invalidation raises the generation. An entry is valid only in the generation in which its look-up began, so that
    /// an old value that arrives after an invalidation is never served.
    generation: AtomicU64,
    keys: Shelf<KeyName, Arc<Access<P>>>,
    listings: Shelf<Mode, Arc<P::Listing>>,
    uses: Arc<KeyUses>,
}

/// How a request names its key.
#[derive(Clone, PartialEq, Eq, Hash)]
enum KeyName {
    Hash(Mode, KeyHash),
    Id(Tenant, KeyId),
}

/// A cache that is emptied when the configuration changes, whatever its product.
pub trait ConfigCache: Send + Sync {
    /// Drops every entry, and every result of a look-up that is in progress.
    fn invalidate(&self);

    /// Counts the cached keys.
    fn keys_count(&self) -> u64;
}

impl<P: Profile> DirectoryCache<P> {
    /// An empty cache in front of a directory. It records the uses of keys in `uses`.
    #[must_use]
    pub fn new(inner: Arc<dyn Directory<P>>, uses: Arc<KeyUses>) -> Self {
        Self {
            inner,
            generation: AtomicU64::new(0),
            keys: Shelf::new(MAX_KEYS),
            listings: Shelf::new(2),
            uses,
        }
    }

    /// The cached access of a key, or the one that `inner` finds now.
    async fn find(
        &self,
        name: KeyName,
        read: impl Future<Output = StoreResult<Option<Arc<Access<P>>>>> + Send,
    ) -> StoreResult<Option<Arc<Access<P>>>> {
        let stamp = self.stamp();
        let known = self.keys.find(&name, stamp);
        directory::looked_up("key", known.is_some());
        if known.is_some() {
            return Ok(known);
        }
        let found = read.await?;
        if let Some(access) = &found {
            self.keys.keep(name, Arc::clone(access), stamp);
        }
        Ok(found)
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            generation: self.generation.load(Ordering::SeqCst),
            asked_at: Instant::now(),
        }
    }
}

impl<P: Profile> ConfigCache for DirectoryCache<P> {
    fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.keys.entries.invalidate_all();
        self.listings.entries.invalidate_all();
    }

    fn keys_count(&self) -> u64 {
        // The count includes only entries whose pending tasks have run.
        self.keys.entries.run_pending_tasks();
        self.keys.entries.entry_count()
    }
}

/// Reads the version of the configuration each second and empties the caches after a change. Returns after `stop`, never
/// during a read.
pub async fn watch(
    versions: &dyn ConfigVersions,
    caches: &[Arc<dyn ConfigCache>],
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    let mut ticks = tokio::time::interval(WATCH_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known = None;
    let mut failing = false;
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return,
            _ = ticks.tick() => {}
        }
        match versions.config_version().await {
            Ok(version) => {
                directory::holds(caches.iter().map(|cache| cache.keys_count()).sum());
                if known != Some(version) {
                    caches.iter().for_each(|cache| cache.invalidate());
                    directory::invalidated();
                    tracing::debug!(config.version = version, "Configuration read afresh");
                }
                known = Some(version);
                failing = false;
            }
            // Entries continue to age: none is served after five seconds.
            Err(error) if !failing => {
                failing = true;
                faults::of_store(&error);
                tracing::warn!(
                    error.chain = causes(&error),
                    "Failed to read the configuration's version"
                );
            }
            Err(_) => {}
        }
    }
}

impl<P: Profile> fmt::Debug for DirectoryCache<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryCache")
    }
}

#[async_trait]
impl<P: Profile> ConfigVersions for DirectoryCache<P> {
    async fn config_version(&self) -> StoreResult<i64> {
        self.inner.config_version().await
    }
}

#[async_trait]
impl<P: Profile> Directory<P> for DirectoryCache<P> {
    async fn access_find(&self, mode: Mode, hash: &KeyHash) -> StoreResult<Option<Arc<Access<P>>>> {
        let read = self.inner.access_find(mode, hash);
        self.find(KeyName::Hash(mode, *hash), read).await
    }

    async fn access_of(&self, who: &Tenant, key: KeyId) -> StoreResult<Option<Arc<Access<P>>>> {
        let read = self.inner.access_of(who, key);
        self.find(KeyName::Id(who.clone(), key), read).await
    }

    async fn listing(&self, mode: Mode) -> StoreResult<Arc<P::Listing>> {
        let stamp = self.stamp();
        let known = self.listings.find(&mode, stamp);
        directory::looked_up(P::LISTING, known.is_some());
        if let Some(known) = known {
            return Ok(known);
        }
        let listing = self.inner.listing(mode).await?;
        self.listings.keep(mode, Arc::clone(&listing), stamp);
        Ok(listing)
    }

    fn key_used(&self, access: &Access<P>, at: Timestamp) {
        self.uses.note(access, at);
    }
}

/// The instant and the generation in which a look-up began. The age of an entry counts from this instant and not from its
/// arrival, because its facts may be that old.
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

    use kernel::{Entropy, StoreError};
    use partner_core::key::{KeyKind, NewKey};
    use partner_core::{Partner, PartnerId, PartnerStatus};
    use tokio::sync::{Notify, oneshot};

    use super::*;

    /// The profile of a product that only these tests know.
    #[derive(Debug, Clone)]
    struct Product;

    impl Profile for Product {
        type Listing = [u8];
        const LISTING: &'static str = "pools";
    }

    fn cache_of(source: &Arc<CountingDirectory>) -> DirectoryCache<Product> {
        DirectoryCache::new(source.clone(), Arc::default())
    }

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    /// A directory with one key that counts its calls. It holds a result back until `gate` opens.
    #[derive(Default)]
    struct CountingDirectory {
        asked: AtomicUsize,
        version: AtomicI64,
        broken: std::sync::atomic::AtomicBool,
        started: Notify,
        gate: parking_lot::Mutex<Option<oneshot::Receiver<()>>>,
    }

    const KNOWN: KeyHash = KeyHash([1; 32]);
    const UNKNOWN: KeyHash = KeyHash([2; 32]);

    /// Access whose partner is named after the version in which it was read.
    fn access(version: i64) -> Arc<Access<Product>> {
        let at = Timestamp::from_millis(0).unwrap();
        let (key, _) = NewKey::generate(KeyKind::Secret, Mode::Test, at, &Ones);
        let id = PartnerId::parse("acme").unwrap();
        let partner = Partner {
            id,
            name: version.to_string(),
            status: PartnerStatus::Active,
        };
        Arc::new(Access::new(Mode::Test, key.record, partner, Product))
    }

    #[async_trait]
    impl Directory<Product> for CountingDirectory {
        async fn access_find(
            &self,
            _: Mode,
            hash: &KeyHash,
        ) -> StoreResult<Option<Arc<Access<Product>>>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let read = self.version.load(Ordering::SeqCst);
            let gate = self.gate.lock().take();
            if let Some(gate) = gate {
                self.started.notify_one();
                gate.await.unwrap();
            }
            Ok((*hash == KNOWN).then(|| access(read)))
        }

        async fn access_of(
            &self,
            who: &Tenant,
            key: KeyId,
        ) -> StoreResult<Option<Arc<Access<Product>>>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let access = access(self.version.load(Ordering::SeqCst));
            let is_wanted = access.key.id == key && access.tenant == *who;
            Ok(is_wanted.then_some(access))
        }

        async fn listing(&self, _: Mode) -> StoreResult<Arc<[u8]>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::from([]))
        }
    }

    #[async_trait]
    impl ConfigVersions for CountingDirectory {
        async fn config_version(&self) -> StoreResult<i64> {
            if self.broken.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("away"));
            }
            Ok(self.version.load(Ordering::SeqCst))
        }
    }

    fn asked(source: &CountingDirectory) -> usize {
        source.asked.load(Ordering::SeqCst)
    }

    async fn version_seen(cache: &DirectoryCache<Product>) -> String {
        let found = cache.access_find(Mode::Test, &KNOWN).await.unwrap();
        found.unwrap().partner.name.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn known_entries_are_read_once_in_five_seconds() {
        let source = Arc::new(CountingDirectory::default());
        let cache = cache_of(&source);
        for _ in 0..3 {
            version_seen(&cache).await;
            cache.listing(Mode::Test).await.unwrap();
        }
        assert_eq!(asked(&source), 2);
        tokio::time::advance(Duration::from_millis(4999)).await;
        version_seen(&cache).await;
        cache.listing(Mode::Test).await.unwrap();
        assert_eq!(asked(&source), 2);
        tokio::time::advance(Duration::from_millis(1)).await;
        version_seen(&cache).await;
        cache.listing(Mode::Test).await.unwrap();
        assert_eq!(asked(&source), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn key_of_token_is_read_once_in_five_seconds() {
        let source = Arc::new(CountingDirectory::default());
        let cache = cache_of(&source);
        let known = access(0);
        let find = async |who: &Tenant| cache.access_of(who, known.key.id).await.unwrap();
        for _ in 0..3 {
            assert!(find(&known.tenant).await.is_some());
        }
        assert_eq!(asked(&source), 1);
        tokio::time::advance(LONGEST_CACHED).await;
        assert!(find(&known.tenant).await.is_some());
        let rival = Tenant {
            partner: PartnerId::parse("rival").unwrap(),
            ..known.tenant.clone()
        };
        assert!(find(&rival).await.is_none());
        assert_eq!(asked(&source), 3);
    }

    // rule: base.unknown-keys-not-cached
    #[tokio::test]
    async fn unknown_key_is_read_every_time() {
        let source = Arc::new(CountingDirectory::default());
        let cache = cache_of(&source);
        for _ in 0..3 {
            let found = cache.access_find(Mode::Test, &UNKNOWN).await.unwrap();
            assert!(found.is_none());
        }
        assert_eq!(asked(&source), 3);
        version_seen(&cache).await;
        let live = cache.access_find(Mode::Live, &KNOWN).await.unwrap();
        assert!(live.is_some());
        assert_eq!(asked(&source), 5, "each mode has its own entry");
    }

    // rule: base.config-spreads
    #[tokio::test(start_paused = true)]
    async fn configuration_change_is_seen_within_a_second() {
        let source = Arc::new(CountingDirectory::default());
        let cache = Arc::new(cache_of(&source));
        let (stop, stopped) = oneshot::channel::<()>();
        let (versions, watched) = (source.clone(), cache.clone());
        let watching = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            watch(&*versions, &[watched], stopped).await;
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(version_seen(&cache).await, "0");
        source.version.store(7, Ordering::SeqCst);
        assert_eq!(version_seen(&cache).await, "0");
        tokio::time::sleep(Duration::from_millis(1000)).await;
        assert_eq!(version_seen(&cache).await, "7");

        source.broken.store(true, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(3000)).await;
        source.version.store(8, Ordering::SeqCst);
        source.broken.store(false, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1000)).await;
        assert_eq!(version_seen(&cache).await, "8");

        stop.send(()).unwrap();
        watching.await.unwrap();
    }

    #[tokio::test]
    async fn old_value_that_arrives_after_invalidation_is_not_cached() {
        let source = Arc::new(CountingDirectory::default());
        let cache = Arc::new(cache_of(&source));
        let (open, gate) = oneshot::channel();
        *source.gate.lock() = Some(gate);
        let slow = tokio::spawn({
            let cache = cache.clone();
            async move { version_seen(&cache).await }
        });
        source.started.notified().await;
        source.version.store(1, Ordering::SeqCst);
        cache.invalidate();
        open.send(()).unwrap();
        assert_eq!(slow.await.unwrap(), "0");
        assert_eq!(version_seen(&cache).await, "1");
    }
}
