use std::sync::atomic::{AtomicI64, Ordering};

use super::suite::{self, ThrottleFixture, bucket, tiers};
use super::*;

/// A clock that the test advances.
#[derive(Clone)]
struct Clockwork(Arc<AtomicI64>);

impl Clock for Clockwork {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed)).unwrap()
    }
}

impl suite::TestClock for Clockwork {
    fn wait(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

fn clock() -> Clockwork {
    Clockwork(Arc::new(AtomicI64::new(1_000_000)))
}

fn rig() -> ThrottleFixture {
    let clock = clock();
    ThrottleFixture {
        throttle: Arc::new(MemoryThrottle::new(Arc::new(clock.clone()))),
        clock: Box::new(clock),
    }
}

// rule: throttle.network
#[tokio::test]
async fn throttle_decides_fixed_requests() {
    suite::throttle_decides_fixed_requests(async || rig()).await;
}

// rule: throttle.exact
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_are_counted_exactly() {
    suite::concurrent_requests_are_counted_exactly(rig()).await;
}

// rule: throttle.window, throttle.exact
#[test]
fn throttle_equals_model_for_random_steps() {
    suite::throttle_equals_model_for_random_steps(512, async || rig());
}

#[tokio::test]
async fn peek_takes_no_memory() {
    let throttle = MemoryThrottle::new(Arc::new(clock()));
    throttle.peek(&bucket("a"), &tiers()).await;
    assert_eq!(throttle.buckets(), 0);
}

#[tokio::test]
async fn memory_follows_callers_of_recent_windows() {
    let clock = clock();
    let throttle = MemoryThrottle::new(Arc::new(clock.clone()));
    let second = [suite::tier("short", 2, 1)];
    for caller in 0..100_000 {
        throttle.take(&bucket(&caller.to_string()), &second).await;
        if caller % 1000 == 999 {
            suite::TestClock::wait(&clock, 100);
        }
    }
    let kept = throttle.buckets();
    assert!(kept <= 24_000, "{kept} buckets for 10,000 in their windows");

    suite::TestClock::wait(&clock, 120_000);
    for caller in 0..10_000 {
        let late = bucket(&format!("late {caller}"));
        throttle.take(&late, &second).await;
    }
    assert_eq!(throttle.buckets(), 10_000);
}

#[tokio::test]
async fn flood_of_callers_stays_within_memory_limit() {
    let throttle = MemoryThrottle::with_limit(Arc::new(clock()), 640);
    for caller in 0..100_000 {
        throttle.take(&bucket(&caller.to_string()), &tiers()).await;
    }
    assert!(throttle.buckets() <= 640);
}

// rule: throttle.network
#[tokio::test]
async fn flood_of_networks_evicts_no_key() {
    let throttle = MemoryThrottle::with_limit(Arc::new(clock()), 640);
    let one = [suite::tier("short", 1, 60)];
    throttle.take(&bucket("key"), &one).await;
    for at in 0..20_000_u32 {
        let address = format!("2001:db8:{:x}:{:x}::1", at >> 16, at & 0xffff);
        throttle.take(&suite::network_bucket(&address), &one).await;
    }
    assert!(throttle.buckets() <= 641);
    assert!(!throttle.take(&bucket("key"), &one).await.admitted());
}
