//! Test cases for every throttle. Each implementation runs all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use partner_core::ports::Throttle;
use partner_core::throttle::{Bucket, ClientNetwork, Counted, ThrottleDecision, Tier, TierStatus};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::task::JoinSet;

/// A throttle and its clock.
pub(crate) struct ThrottleFixture {
    pub(crate) throttle: Arc<dyn Throttle>,
    pub(crate) clock: Box<dyn TestClock>,
}

/// Advances a stopped clock.
pub(crate) trait TestClock: Send + Sync {
    fn wait(&self, millis: i64);
}

pub(crate) fn tier(name: &'static str, limit: u32, seconds: u64) -> Tier {
    Tier {
        name,
        limit,
        per: Duration::from_secs(seconds),
    }
}

pub(crate) fn tiers() -> Vec<Tier> {
    vec![tier("short", 2, 60), tier("medium", 3, 3600)]
}

pub(crate) fn bucket(who: &str) -> Bucket {
    Bucket {
        group: "pools",
        who: Counted::Credential(who.to_owned()),
    }
}

pub(crate) fn network_bucket(address: &str) -> Bucket {
    Bucket {
        group: "pools",
        who: Counted::Network(ClientNetwork::of(address.parse().unwrap())),
    }
}

/// For each tier: the remaining requests, the milliseconds to the reset, and whether the tier refused.
pub(crate) fn figures(decision: &ThrottleDecision) -> Vec<(u32, u128, bool)> {
    let figure = |one: &TierStatus| (one.remaining, one.reset.as_millis(), one.exhausted);
    decision.statuses.iter().map(figure).collect()
}

/// Runs every case of fixed requests, each with a new throttle.
pub(crate) async fn throttle_decides_fixed_requests(rig: impl AsyncFn() -> ThrottleFixture) {
    full_tier_refuses_without_counting_in_other_tiers(rig().await).await;
    clock_set_back_does_not_extend_window(rig().await).await;
    addresses_of_one_ipv6_network_share_a_bucket(rig().await).await;
    key_with_network_has_its_own_bucket(rig().await).await;
}

async fn full_tier_refuses_without_counting_in_other_tiers(rig: ThrottleFixture) {
    let ThrottleFixture { throttle, clock } = rig;
    let first = throttle.take(&bucket("a"), &tiers()).await;
    assert_eq!(figures(&first), [(1, 60_000, false), (2, 3_600_000, false)]);
    clock.wait(24_000);
    let second = throttle.take(&bucket("a"), &tiers()).await;
    assert_eq!(
        figures(&second),
        [(0, 36_000, false), (1, 3_576_000, false)]
    );
    for _ in 0..5 {
        let refused = throttle.take(&bucket("a"), &tiers()).await;
        assert!(!refused.admitted());
        assert_eq!(
            figures(&refused),
            [(0, 36_000, true), (1, 3_576_000, false)]
        );
    }
    clock.wait(36_000);
    let third = throttle.take(&bucket("a"), &tiers()).await;
    assert_eq!(figures(&third), [(1, 60_000, false), (0, 3_540_000, false)]);
    let medium_full = throttle.take(&bucket("a"), &tiers()).await;
    assert_eq!(
        figures(&medium_full),
        [(1, 60_000, false), (0, 3_540_000, true)]
    );
    assert!(throttle.take(&bucket("b"), &tiers()).await.admitted());
    let elsewhere = Bucket {
        group: "previews",
        ..bucket("a")
    };
    assert!(throttle.take(&elsewhere, &tiers()).await.admitted());
}

async fn clock_set_back_does_not_extend_window(rig: ThrottleFixture) {
    let ThrottleFixture { throttle, clock } = rig;
    let minute = [tier("short", 2, 60)];
    throttle.take(&bucket("a"), &minute).await;
    clock.wait(-900_000);
    let afresh = throttle.take(&bucket("a"), &minute).await;
    assert_eq!(figures(&afresh), [(1, 60_000, false)]);
    throttle.take(&bucket("a"), &minute).await;
    clock.wait(-30_000);
    let refused = throttle.take(&bucket("a"), &minute).await;
    assert_eq!(figures(&refused), [(0, 60_000, true)]);
}

/// Whether the third request is refused. The first two must be admitted.
async fn is_full_after_two(throttle: &dyn Throttle, three: [Bucket; 3]) -> bool {
    let tiers = [tier("short", 2, 60)];
    let mut admitted = [false; 3];
    for (at, bucket) in three.iter().enumerate() {
        admitted[at] = throttle.take(bucket, &tiers).await.admitted();
    }
    assert_eq!(admitted[..2], [true; 2]);
    !admitted[2]
}

async fn addresses_of_one_ipv6_network_share_a_bucket(rig: ThrottleFixture) {
    let throttle = &*rig.throttle;
    let one = ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:f::3"];
    assert!(is_full_after_two(throttle, one.map(network_bucket)).await);
    let two = ["2001:db8:0:2::1", "2001:db8:0:2::1", "2001:db8:0:3::1"];
    assert!(!is_full_after_two(throttle, two.map(network_bucket)).await);
    let ipv4 = ["203.0.113.9", "::ffff:203.0.113.9", "::ffff:cb00:7109"];
    assert!(is_full_after_two(throttle, ipv4.map(network_bucket)).await);
    let mixed = ["198.51.100.1", "198.51.100.1", "198.51.100.2"];
    assert!(!is_full_after_two(throttle, mixed.map(network_bucket)).await);
}

async fn key_with_network_has_its_own_bucket(rig: ThrottleFixture) {
    let throttle = &*rig.throttle;
    let key = bucket("a");
    let network = network_bucket("2001:db8::1");
    let network_of = ClientNetwork::of("2001:db8::2".parse().unwrap());
    let both = |key: &str| Bucket {
        group: "pools",
        who: Counted::CredentialFrom(key.to_owned(), network_of),
    };
    assert!(is_full_after_two(throttle, [both("a"), both("a"), both("a")]).await);
    assert!(!is_full_after_two(throttle, [both("b"), key, network]).await);
}

pub(crate) async fn concurrent_requests_are_counted_exactly(rig: ThrottleFixture) {
    let hundred = [tier("short", 100, 60)];
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (throttle, tier) = (Arc::clone(&rig.throttle), hundred.clone());
        tasks.spawn(async move {
            let mut admitted = 0;
            for _ in 0..50 {
                let decision = throttle.take(&bucket("a"), &tier).await;
                admitted += u32::from(decision.admitted());
            }
            admitted
        });
    }
    assert_eq!(tasks.join_all().await.iter().sum::<u32>(), 100);
}

/// A step of a random test.
#[derive(Debug, Clone)]
enum Step {
    Wait(u32),
    Take(usize),
    Peek(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..40_000_u32).prop_map(Step::Wait),
        Just(Step::Wait(60_000)),
        Just(Step::Wait(3_599_999)),
        (0..2_usize).prop_map(Step::Take),
        (0..2_usize).prop_map(Step::Take),
        (0..2_usize).prop_map(Step::Take),
        (0..2_usize).prop_map(Step::Peek),
    ]
}

/// A literal model of the rule: it keeps every admitted request and derives the windows from them.
#[derive(Default)]
struct Model {
    now: u128,
    admitted: HashMap<usize, Vec<u128>>,
}

impl Model {
    /// The requests in the open window of a tier, and the instant at which the window closes.
    fn window(&self, who: usize, tier: &Tier) -> (u32, u128) {
        let per = tier.per.as_millis();
        let mut open = None;
        for at in self.admitted.get(&who).into_iter().flatten() {
            open = match open {
                Some((closes, used)) if *at < closes => Some((closes, used + 1)),
                _ => Some((at + per, 1)),
            };
        }
        match open {
            Some((closes, used)) if self.now < closes => (used, closes - self.now),
            _ => (0, per),
        }
    }

    fn expected(&mut self, who: usize, tiers: &[Tier], counts: bool) -> Vec<(u32, u128, bool)> {
        let windows: Vec<_> = tiers.iter().map(|tier| self.window(who, tier)).collect();
        let full = |(tier, (used, _)): (&Tier, &(u32, u128))| *used >= tier.limit;
        let counted = counts && !tiers.iter().zip(&windows).any(full);
        if counted {
            self.admitted.entry(who).or_default().push(self.now);
        }
        let figure = |(tier, (used, reset)): (&Tier, (u32, u128))| {
            let left = tier.limit - used;
            (left - u32::from(counted), reset, left == 0)
        };
        tiers.iter().zip(windows).map(figure).collect()
    }
}

/// Checks that a throttle decides random steps as the model does. Call it outside of a tokio runtime.
pub(crate) fn throttle_equals_model_for_random_steps(
    cases: u32,
    rig: impl AsyncFn() -> ThrottleFixture,
) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    };
    let steps = proptest::collection::vec(step(), 1..40);
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async { follow(rig().await, &steps).await });
        Ok(())
    });
    outcome.unwrap();
}

async fn follow(rig: ThrottleFixture, steps: &[Step]) {
    let ThrottleFixture { throttle, clock } = rig;
    let tiers = [tier("short", 3, 60), tier("long", 7, 3600)];
    let mut model = Model::default();
    for step in steps {
        match *step {
            Step::Wait(millis) => {
                clock.wait(i64::from(millis));
                model.now += u128::from(millis);
            }
            Step::Take(who) => {
                let decision = throttle.take(&bucket(&who.to_string()), &tiers).await;
                assert_eq!(figures(&decision), model.expected(who, &tiers, true));
            }
            Step::Peek(who) => {
                let decision = throttle.peek(&bucket(&who.to_string()), &tiers).await;
                assert_eq!(figures(&decision), model.expected(who, &tiers, false));
            }
        }
    }
}

kernel::debug_as_text!(ThrottleFixture, "ThrottleFixture");
