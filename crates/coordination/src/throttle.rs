//! Throttles in the process's memory: fixed windows, each opened by the first request in it.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Timestamp};
use parking_lot::Mutex;
use partner_core::ports::Throttle;
use partner_core::throttle::{Bucket, Standing, Tier, Verdict};

/// Requests of different callers rarely wait for each other.
const SHARDS: usize = 64;
/// The most buckets kept. Past it an arbitrary one is forgotten: a flood of addresses may soften
/// a limit, but must not take the process's memory.
const MOST_BUCKETS: usize = 1_000_000;
/// A shard below this size is not worth sweeping for its growth.
const SMALL: usize = 64;
/// How often a shard drops what has expired, grown or not.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Counts requests in this process.
///
/// Nothing runs in the background: a shard is swept by the request that finds it has doubled or
/// has not been swept for a minute, so that sweeping costs each request a constant on average.
pub struct MemoryThrottle {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
}

impl MemoryThrottle {
    /// An empty throttle.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_room(clock, MOST_BUCKETS)
    }

    fn with_room(clock: Arc<dyn Clock>, most: usize) -> Self {
        let now = clock.now();
        let shard = || Mutex::new(Shard::new(now, (most / SHARDS).max(1)));
        Self {
            clock,
            hasher: RandomState::new(),
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
        }
    }

    /// How many buckets are kept at the moment, expired ones included.
    #[must_use]
    pub fn buckets(&self) -> usize {
        let sizes = self.shards.iter().map(|shard| shard.lock().windows.len());
        sizes.sum()
    }

    fn judge(&self, bucket: &Bucket, tiers: &[Tier], counts: Counts) -> Verdict {
        let now = self.clock.now();
        let hash = usize::try_from(self.hasher.hash_one(bucket) >> 32).unwrap_or_default();
        let Some(shard) = self.shards.get(hash % SHARDS) else {
            return Verdict { standings: vec![] };
        };
        shard.lock().judge(bucket, tiers, now, counts)
    }
}

impl fmt::Debug for MemoryThrottle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryThrottle")
    }
}

#[async_trait]
impl Throttle for MemoryThrottle {
    async fn take(&self, bucket: &Bucket, tiers: &[Tier]) -> Verdict {
        self.judge(bucket, tiers, Counts::Yes)
    }

    async fn peek(&self, bucket: &Bucket, tiers: &[Tier]) -> Verdict {
        self.judge(bucket, tiers, Counts::No)
    }
}

/// Does a question also count a request?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Yes,
    No,
}

/// A part of the buckets, under its own lock.
struct Shard {
    windows: HashMap<Bucket, Vec<Window>>,
    most: usize,
    sweep_at_size: usize,
    sweep_at: Timestamp,
}

/// An open window of one tier.
struct Window {
    tier: &'static str,
    opened: Timestamp,
    per: Duration,
    used: u32,
}

impl Shard {
    fn new(now: Timestamp, most: usize) -> Self {
        Self {
            windows: HashMap::new(),
            most,
            sweep_at_size: SMALL,
            sweep_at: now.plus(SWEEP_EVERY),
        }
    }

    fn judge(
        &mut self,
        bucket: &Bucket,
        tiers: &[Tier],
        now: Timestamp,
        counts: Counts,
    ) -> Verdict {
        let open = self.windows.get(bucket).map_or(&[][..], Vec::as_slice);
        let mut standings: Vec<Standing> =
            tiers.iter().map(|tier| standing(tier, open, now)).collect();
        let admitted = !standings.iter().any(|standing| standing.exhausted);
        if admitted && counts == Counts::Yes {
            self.count(bucket, tiers, now);
            for standing in &mut standings {
                standing.remaining = standing.remaining.saturating_sub(1);
            }
        }
        Verdict { standings }
    }

    fn count(&mut self, bucket: &Bucket, tiers: &[Tier], now: Timestamp) {
        if let Some(open) = self.windows.get_mut(bucket) {
            tiers.iter().for_each(|tier| count_in(open, tier, now));
            return;
        }
        self.make_room(now);
        let mut open = Vec::with_capacity(tiers.len());
        tiers.iter().for_each(|tier| count_in(&mut open, tier, now));
        self.windows.insert(bucket.clone(), open);
    }

    /// Before a bucket is added: drops what has expired, when that is due.
    fn make_room(&mut self, now: Timestamp) {
        if self.windows.len() >= self.sweep_at_size || now >= self.sweep_at {
            self.windows
                .retain(|_, open| open.iter().any(|window| window.is_open(now)));
            let live = self.windows.len();
            self.windows.shrink_to(live.saturating_mul(2));
            self.sweep_at_size = live.saturating_mul(2).max(SMALL);
            self.sweep_at = now.plus(SWEEP_EVERY);
        }
        if self.windows.len() >= self.most {
            let any = self.windows.keys().next().cloned();
            any.map(|bucket| self.windows.remove(&bucket));
        }
    }
}

/// Where a bucket with these windows stands in a tier, before the present request.
fn standing(tier: &Tier, open: &[Window], now: Timestamp) -> Standing {
    let window = open
        .iter()
        .find(|window| window.tier == tier.name && window.is_open(now));
    let used = window.map_or(0, |window| window.used);
    let reset = window.map_or(tier.per, |window| window.closes_in(now));
    let remaining = tier.limit.saturating_sub(used);
    Standing {
        tier: tier.name,
        limit: tier.limit,
        remaining,
        reset,
        exhausted: remaining == 0,
    }
}

/// Counts a request in a tier's window, opening one where none is open.
fn count_in(open: &mut Vec<Window>, tier: &Tier, now: Timestamp) {
    let fresh = Window {
        tier: tier.name,
        opened: now,
        per: tier.per,
        used: 1,
    };
    match open.iter_mut().find(|window| window.tier == tier.name) {
        Some(window) if window.is_open(now) => {
            // A clock set back must not stretch a window over the hours it was set back by.
            window.opened = window.opened.min(now);
            window.used = window.used.saturating_add(1);
        }
        Some(closed) => *closed = fresh,
        None => open.push(fresh),
    }
}

impl Window {
    /// A window that a set-back clock puts far into the future counts as closed.
    fn is_open(&self, now: Timestamp) -> bool {
        now.since(self.opened) < self.per && self.opened.since(now) < self.per
    }

    fn closes_in(&self, now: Timestamp) -> Duration {
        self.per.saturating_sub(now.since(self.opened))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    struct Hand(AtomicI64);

    impl Hand {
        fn wait(&self, millis: i64) {
            self.0.fetch_add(millis, Ordering::Relaxed);
        }
    }

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::Relaxed)).unwrap()
        }
    }

    fn hand() -> Arc<Hand> {
        Arc::new(Hand(AtomicI64::new(1_000_000)))
    }

    fn tiers() -> Vec<Tier> {
        let tier = |name, limit, seconds| Tier {
            name,
            limit,
            per: Duration::from_secs(seconds),
        };
        vec![tier("short", 2, 1), tier("medium", 3, 60)]
    }

    fn bucket(who: &str) -> Bucket {
        Bucket {
            group: "pools",
            who: who.to_owned(),
        }
    }

    fn figures(verdict: &Verdict) -> Vec<(u32, u128, bool)> {
        let figure = |one: &Standing| (one.remaining, one.reset.as_millis(), one.exhausted);
        verdict.standings.iter().map(figure).collect()
    }

    #[tokio::test]
    async fn a_full_tier_refuses_and_counts_in_no_other() {
        let clock = hand();
        let throttle = MemoryThrottle::new(clock.clone());
        let first = throttle.take(&bucket("a"), &tiers()).await;
        assert_eq!(figures(&first), [(1, 1000, false), (2, 60_000, false)]);
        clock.wait(400);
        let second = throttle.take(&bucket("a"), &tiers()).await;
        assert_eq!(figures(&second), [(0, 600, false), (1, 59_600, false)]);
        for _ in 0..5 {
            let refused = throttle.take(&bucket("a"), &tiers()).await;
            assert!(!refused.admitted());
            assert_eq!(figures(&refused), [(0, 600, true), (1, 59_600, false)]);
        }
        clock.wait(600);
        let third = throttle.take(&bucket("a"), &tiers()).await;
        assert_eq!(figures(&third), [(1, 1000, false), (0, 59_000, false)]);
        let medium_full = throttle.take(&bucket("a"), &tiers()).await;
        assert_eq!(figures(&medium_full), [(1, 1000, false), (0, 59_000, true)]);
        assert!(throttle.take(&bucket("b"), &tiers()).await.admitted());
    }

    #[tokio::test]
    async fn a_look_counts_nothing_and_tells_what_a_request_would_meet() {
        let clock = hand();
        let throttle = MemoryThrottle::new(clock.clone());
        for _ in 0..5 {
            let seen = throttle.peek(&bucket("a"), &tiers()).await;
            assert_eq!(figures(&seen), [(2, 1000, false), (3, 60_000, false)]);
        }
        assert_eq!(throttle.buckets(), 0);
        for _ in 0..2 {
            throttle.take(&bucket("a"), &tiers()).await;
        }
        let full = throttle.peek(&bucket("a"), &tiers()).await;
        assert_eq!(figures(&full), [(0, 1000, true), (1, 60_000, false)]);
    }

    // rule: throttle.window
    #[tokio::test]
    async fn a_window_opens_with_its_first_request_and_not_by_the_clock() {
        let clock = hand();
        let throttle = MemoryThrottle::new(clock.clone());
        clock.wait(999);
        throttle.take(&bucket("a"), &tiers()).await;
        clock.wait(999);
        let last = throttle.take(&bucket("a"), &tiers()).await;
        assert_eq!(figures(&last)[0], (0, 1, false));
        assert!(!throttle.take(&bucket("a"), &tiers()).await.admitted());
        clock.wait(1);
        assert!(throttle.take(&bucket("a"), &tiers()).await.admitted());
    }

    #[tokio::test]
    async fn a_clock_set_back_locks_nobody_out_for_hours() {
        let clock = hand();
        let throttle = MemoryThrottle::new(clock.clone());
        let second = Tier {
            name: "short",
            limit: 2,
            per: Duration::from_secs(1),
        };
        let tier = std::slice::from_ref(&second);
        throttle.take(&bucket("a"), tier).await;
        clock.wait(-900_000);
        assert_eq!(
            figures(&throttle.take(&bucket("a"), tier).await),
            [(1, 1000, false)]
        );
        throttle.take(&bucket("a"), tier).await;
        clock.wait(-500);
        let refused = throttle.take(&bucket("a"), tier).await;
        assert_eq!(figures(&refused), [(0, 1000, true)]);
    }

    #[tokio::test]
    async fn memory_follows_the_callers_of_the_last_windows() {
        let clock = hand();
        let throttle = MemoryThrottle::new(clock.clone());
        let short = &tiers()[..1];
        for caller in 0..100_000 {
            throttle.take(&bucket(&caller.to_string()), short).await;
            if caller % 1000 == 999 {
                clock.wait(100);
            }
        }
        let kept = throttle.buckets();
        assert!(kept <= 24_000, "{kept} buckets for 10,000 in their windows");

        clock.wait(120_000);
        for caller in 0..10_000 {
            throttle
                .take(&bucket(&format!("late {caller}")), short)
                .await;
        }
        assert_eq!(throttle.buckets(), 10_000);
    }

    #[tokio::test]
    async fn a_flood_of_callers_cannot_take_the_memory() {
        let throttle = MemoryThrottle::with_room(hand(), 640);
        for caller in 0..100_000 {
            throttle.take(&bucket(&caller.to_string()), &tiers()).await;
        }
        assert!(throttle.buckets() <= 640);
    }

    // rule: throttle.exact
    #[tokio::test]
    async fn many_at_once_are_counted_exactly() {
        let throttle = Arc::new(MemoryThrottle::new(hand()));
        let hundred = Tier {
            name: "short",
            limit: 100,
            per: Duration::from_secs(1),
        };
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (throttle, tier) = (throttle.clone(), hundred.clone());
            tasks.spawn(async move {
                let mut admitted = 0;
                for _ in 0..50 {
                    let verdict = throttle
                        .take(&bucket("a"), std::slice::from_ref(&tier))
                        .await;
                    admitted += u32::from(verdict.admitted());
                }
                admitted
            });
        }
        assert_eq!(tasks.join_all().await.iter().sum::<u32>(), 100);
    }
}
