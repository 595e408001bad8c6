//! The rolling cap on a partner's trades.

use std::time::Duration;

use acceptance::{ACME, Client, World};
use pools_core::profile::PoolsProfile;

const UNIT: i64 = 100_000_000;
const DAY: u64 = 24 * 60 * 60 * 1000;

/// A world with ample funds and a cap in units of 10^-8 USDT.
async fn capped(cap: i64) -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "100000.00", "EUR").await;
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = Some(cap))
        .await;
    world
}

/// Buys; returns whether the cap allowed it.
async fn buys(client: &Client, amount: &str) -> bool {
    let quote = client.buy("EUR-USDT", amount).await;
    let answer = client.transact("EUR-USDT", &quote, &quote).await;
    if answer.status == 200 {
        return true;
    }
    answer.refused(429, "velocity_cap_exceeded");
    false
}

// rule: pools.velocity.boundary, throttle.not-velocity
#[tokio::test]
async fn sum_may_reach_the_cap_but_not_exceed_it() {
    // 100 EUR are 108.5 USDT.
    let world = capped(217 * UNIT).await;
    assert!(buys(&world.acme(), "100").await && buys(&world.acme(), "100").await);
    assert!(!buys(&world.acme(), "10").await);
    world.finish().await;
    let world = capped(217 * UNIT - 1).await;
    assert!(buys(&world.acme(), "100").await);
    assert!(!buys(&world.acme(), "100").await);
    assert!(buys(&world.acme(), "99.99").await);
    world.finish().await;
}

// rule: pools.velocity.window
#[tokio::test]
async fn trade_leaves_the_window_at_the_exact_millisecond() {
    let world = capped(217 * UNIT).await;
    let acme = world.acme();
    assert!(buys(&acme, "100").await);
    world.after(1);
    assert!(buys(&acme, "100").await);
    world.after(DAY - 2);
    assert!(
        !buys(&acme, "100").await,
        "the first trade counts for one more millisecond"
    );
    world.after(1);
    assert!(
        buys(&acme, "100").await,
        "the first trade has left the window"
    );
    assert!(
        !buys(&acme, "100").await,
        "the second trade has not left the window"
    );
    world.after(1);
    assert!(buys(&acme, "100").await);
    assert!(!buys(&acme, "10").await);
    world.finish().await;
}

// rule: pools.velocity.window
#[tokio::test]
async fn velocity_uses_the_configured_window() {
    let world = World::with(|setup| setup.velocity_window = Duration::from_secs(3)).await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = Some(109 * UNIT))
        .await;
    for _ in 0..3 {
        assert!(buys(&world.acme(), "100").await);
        world.after(2_999);
        assert!(!buys(&world.acme(), "100").await);
        world.after(1);
    }
    world.finish().await;
}

// rule: pools.velocity.given-back
#[tokio::test]
async fn released_and_failed_trades_are_not_counted() {
    let world = capped(220 * UNIT).await;
    let acme = world.acme();
    for (amount, status) in [("100.31", "failed"), ("100.32", "released")] {
        for _ in 0..3 {
            let (quote, trade) = acme.trade("EUR-USDT", amount).await;
            assert!(!buys(&acme, "150").await, "a reserved trade counts");
            assert_eq!(acme.status(&quote).await, status);
            world.notice(ACME, &trade).await;
        }
    }
    let (quote, trade) = acme.trade("EUR-USDT", "100.41").await;
    assert_eq!(
        (acme.status(&quote).await, acme.status(&quote).await),
        ("settled".into(), "returned".into())
    );
    assert!(!buys(&acme, "150").await, "a returned trade counts");
    assert!(buys(&acme, "100").await);
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: pools.velocity.given-back, pools.velocity.window
#[tokio::test]
async fn return_after_the_window_lowers_the_total_once() {
    let world = capped(217 * UNIT).await;
    let acme = world.acme();
    let (old, first) = acme.trade("EUR-USDT", "100.31").await;
    world.after(DAY);
    assert!(buys(&acme, "100").await && !buys(&acme, "150").await);
    assert_eq!(acme.status(&old).await, "failed");
    assert!(!buys(&acme, "150").await, "the window is unchanged");
    assert!(buys(&acme, "100").await);
    world.notice(ACME, &first).await;
    world.finish().await;
}

// rule: pools.velocity.off
#[tokio::test]
async fn velocity_is_unlimited_without_a_cap() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000000.00", "EUR").await;
    for _ in 0..10 {
        assert!(buys(&world.acme(), "90000").await);
    }
    // A cap set later counts earlier trades.
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = Some(976_500 * UNIT))
        .await;
    assert!(!buys(&world.acme(), "10").await);
    world
        .operator()
        .change(ACME, |profile| profile.velocity_cap = Some(976_511 * UNIT))
        .await;
    assert!(buys(&world.acme(), "10").await);
    world.finish().await;
}

// rule: pools.price.usdt-rounding
#[tokio::test]
async fn fractional_value_counts_rounded_up() {
    // One USDC is 1.000461041... USDT.
    for (cap, bought) in [(100_046_104, false), (100_046_105, true)] {
        let world = capped(cap).await;
        world.operator().credit(ACME, "1", "USDC").await;
        world
            .operator()
            .terms(ACME, "EUR-USDC", |terms| terms.off_ramp = true)
            .await;
        let quote = world.acme().sell("EUR-USDC", "1").await;
        assert_eq!(
            world.acme().transact("EUR-USDC", &quote, "k").await.status == 200,
            bought
        );
        world.finish().await;
    }
}

// rule: pools.velocity.window, pools.gate-off.reserves-nothing
#[tokio::test]
async fn sides_pools_and_trades_without_the_gate_count_together() {
    let world = capped(300 * UNIT).await;
    let acme = world.acme();
    world.operator().credit(ACME, "100", "USDT").await;
    world
        .operator()
        .change(ACME, |profile| profile.balance_gate = false)
        .await;
    assert!(buys(&acme, "100").await);
    acme.trade("EUR-USDC", "50").await;
    let sale = acme.sell("EUR-USDT", "100").await;
    acme.transact("EUR-USDT", &sale, "sale").await.ok();
    // 108.5 + 54.25 + 100 of 300.
    assert!(!buys(&acme, "34.34").await);
    assert!(buys(&acme, "34.33").await);
    // The cap is per partner: another partner has no cap.
    world
        .operator()
        .credit(acceptance::RIVAL, "1000.00", "EUR")
        .await;
    assert!(buys(&world.rival(), "900").await);
    world.finish().await;
}

/// A restore returns to a version under which the process cached another cap.
// rule: base.caches-five-seconds
#[tokio::test]
async fn changed_cap_counts_after_five_seconds_though_its_version_returns() {
    let world = capped(10_000 * UNIT).await;
    let acme = world.acme();
    let restore = match test_support::test_database::StoreKind::of_run() {
        test_support::test_database::StoreKind::Sqlite => "UPDATE config_version SET version = 7",
        test_support::test_database::StoreKind::Postgres => {
            "UPDATE config_version SET version = 7; UPDATE books SET version = 7"
        }
    };
    world.damage(restore).await;
    assert!(buys(&acme, "100").await);
    let lower = world.operator();
    lower
        .change(ACME, |profile| profile.velocity_cap = Some(217 * UNIT))
        .await;
    world.damage(restore).await;
    world.after(5_000);
    assert!(!buys(&acme, "1000").await, "the new cap counts");
    assert!(buys(&acme, "100").await);
    world.finish().await;
}

/// The stored total of a partner without a cap does not advance, so a new cap must first drop the old days. No trade is refused for that.
// rule: pools.velocity.bounded, pools.velocity.off
#[tokio::test]
async fn cap_set_after_days_counts_trades_of_the_window_alone() {
    let world = World::new().await;
    world.operator().credit(ACME, "100000.00", "EUR").await;
    let acme = world.acme();
    for _ in 0..3 {
        assert!(buys(&acme, "100").await);
        world.after(DAY);
    }
    assert!(buys(&acme, "100").await);
    let operator = world.operator();
    let cap = |profile: &mut PoolsProfile| profile.velocity_cap = Some(217 * UNIT);
    operator.change(ACME, cap).await;
    assert!(buys(&acme, "100").await);
    assert!(!buys(&acme, "10").await);
    world.finish().await;
}
