//! Throttles in the process's memory, with fixed windows. The first request of a window opens it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Timestamp};
use parking_lot::Mutex;
use partner_core::ports::Throttle;
use partner_core::throttle::{Bucket, ThrottleDecision, Tier, TierStatus};

/// Number of shards. Requests of different callers rarely wait for the same shard's lock.
const SHARDS: usize = 64;
/// Maximum number of buckets of keys, and also of client networks.
///
/// Keys and networks have separate shards. Above the limit a shard removes an arbitrary bucket of its own kind: a flood of
/// networks may soften the limits of networks, but it cannot exhaust the memory and cannot evict the bucket of a key.
const MAX_BUCKETS: usize = 1_000_000;
/// A shard below this size is not swept because of its growth.
const MIN_SWEEP_SIZE: usize = 64;
/// Interval after which a shard drops expired buckets, even if it has not grown.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Counts requests in this process.
///
/// There is no background task. A request sweeps its shard if the shard has doubled or was not swept for a minute, so that
/// sweeping costs each request a constant on average.
pub struct MemoryThrottle {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    keys: Vec<Mutex<Shard>>,
    networks: Vec<Mutex<Shard>>,
}

impl MemoryThrottle {
    /// An empty throttle.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_limit(clock, MAX_BUCKETS)
    }

    fn with_limit(clock: Arc<dyn Clock>, most: usize) -> Self {
        let now = clock.now();
        let shard = || Mutex::new(Shard::new(now, (most / SHARDS).max(1)));
        let shards = || std::iter::repeat_with(shard).take(SHARDS).collect();
        Self {
            clock,
            hasher: RandomState::new(),
            keys: shards(),
            networks: shards(),
        }
    }

    /// The number of buckets, including expired ones.
    #[must_use]
    pub fn buckets(&self) -> usize {
        let shards = self.keys.iter().chain(&self.networks);
        shards.map(|shard| shard.lock().windows.len()).sum()
    }

    fn decide(&self, bucket: &Bucket, tiers: &[Tier], counts: Counts) -> ThrottleDecision {
        let now = self.clock.now();
        let hash = usize::try_from(self.hasher.hash_one(bucket) >> 32).unwrap_or_default();
        let shards = if bucket.who.is_by_network() {
            &self.networks
        } else {
            &self.keys
        };
        let Some(shard) = shards.get(hash % SHARDS) else {
            return ThrottleDecision { statuses: vec![] };
        };
        shard.lock().decide(bucket, tiers, now, counts)
    }
}

#[async_trait]
impl Throttle for MemoryThrottle {
    async fn take(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision {
        self.decide(bucket, tiers, Counts::Yes)
    }

    async fn peek(&self, bucket: &Bucket, tiers: &[Tier]) -> ThrottleDecision {
        self.decide(bucket, tiers, Counts::No)
    }
}

/// Whether a decision also counts a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    Yes,
    No,
}

/// A tier's window as a request finds it.
#[derive(Clone, Copy)]
pub(crate) struct WindowState {
    /// The requests before this one.
    pub(crate) used: u32,
    /// The time until the window closes, or the whole window if it is not open.
    pub(crate) closes_in: Duration,
}

/// The decision on a request with these windows. Every throttle uses this function.
pub(crate) fn decision<'t>(
    windows: impl Iterator<Item = (&'t Tier, WindowState)>,
    counts: Counts,
) -> ThrottleDecision {
    let mut decision = ThrottleDecision {
        statuses: windows.map(|(tier, found)| status(tier, found)).collect(),
    };
    if counts == Counts::Yes && decision.admitted() {
        for status in &mut decision.statuses {
            status.remaining = status.remaining.saturating_sub(1);
        }
    }
    decision
}

/// The status of a bucket in a tier, before this request.
fn status(tier: &Tier, found: WindowState) -> TierStatus {
    let remaining = tier.limit.saturating_sub(found.used);
    TierStatus {
        tier: tier.name,
        limit: tier.limit,
        remaining,
        reset: found.closes_in,
        exhausted: remaining == 0,
    }
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
            sweep_at_size: MIN_SWEEP_SIZE,
            sweep_at: now.plus(SWEEP_INTERVAL),
        }
    }

    fn decide(
        &mut self,
        bucket: &Bucket,
        tiers: &[Tier],
        now: Timestamp,
        counts: Counts,
    ) -> ThrottleDecision {
        let open = self.windows.get(bucket).map_or(&[][..], Vec::as_slice);
        let found = tiers.iter().map(|tier| (tier, found(tier, open, now)));
        let decision = decision(found, counts);
        if counts == Counts::Yes && decision.admitted() {
            self.count(bucket, tiers, now);
        }
        decision
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

    /// Prepares for a new bucket: drops expired buckets if a sweep is due, and one bucket if the shard is full.
    fn make_room(&mut self, now: Timestamp) {
        if self.windows.len() >= self.sweep_at_size || now >= self.sweep_at {
            self.windows
                .retain(|_, open| open.iter().any(|window| window.is_open(now)));
            let live = self.windows.len();
            self.windows.shrink_to(live.saturating_mul(2));
            self.sweep_at_size = live.saturating_mul(2).max(MIN_SWEEP_SIZE);
            self.sweep_at = now.plus(SWEEP_INTERVAL);
        }
        if self.windows.len() >= self.most {
            let any = self.windows.keys().next().cloned();
            any.map(|bucket| self.windows.remove(&bucket));
        }
    }
}

/// The window of a tier among the windows of a bucket.
fn found(tier: &Tier, open: &[Window], now: Timestamp) -> WindowState {
    let window = open
        .iter()
        .find(|window| window.tier == tier.name && window.is_open(now));
    WindowState {
        used: window.map_or(0, |window| window.used),
        closes_in: window.map_or(tier.per, |window| window.closes_in(now)),
    }
}

/// Counts a request in a tier's window, and opens a window if none is open.
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
    /// Whether the window is open. A window far in the future, left by a clock that was set back, counts as closed.
    fn is_open(&self, now: Timestamp) -> bool {
        now.since(self.opened) < self.per && self.opened.since(now) < self.per
    }

    fn closes_in(&self, now: Timestamp) -> Duration {
        self.per.saturating_sub(now.since(self.opened))
    }
}

#[cfg(test)]
pub(crate) mod suite;
#[cfg(test)]
mod tests;
