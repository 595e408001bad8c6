//! The rolling cap on a partner's trades.

use acceptance::{ACME, Client, World};

const UNIT: i64 = 100_000_000;

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

// rule: pools.velocity.retry-after
#[tokio::test]
async fn refusal_says_when_the_amount_fits() {
    const SECOND: u64 = 1_000;
    const DAY: u64 = 24 * 60 * 60;
    let world = capped(217 * UNIT).await;
    let acme = world.acme();
    let wait = async |amount: &str| {
        let quote = acme.buy("EUR-USDT", amount).await;
        let answer = acme.transact("EUR-USDT", &quote, &quote).await;
        let refused = answer.refused(429, "velocity_cap_exceeded");
        assert_eq!(refused.header("retry-after-short"), None);
        let wait = refused.header("retry-after");
        wait.map(|seconds| seconds.parse::<u64>().unwrap())
    };
    // 54.25 + 108.5 of 217, the second trade ten seconds later.
    assert!(buys(&acme, "50").await);
    world.after(10 * SECOND);
    assert!(buys(&acme, "100").await);
    world.after(20 * SECOND);
    // The first trade alone must leave, then both.
    assert_eq!(wait("60").await, Some(DAY - 30));
    assert_eq!(wait("150").await, Some(DAY - 20));
    // 217.01 exceeds the cap alone.
    assert_eq!(wait("200.01").await, None);
    world.after(wait("60").await.unwrap() * SECOND);
    assert!(buys(&acme, "60").await);
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
