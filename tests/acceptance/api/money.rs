//! Account balances at every step, read from the ledger tables.

use std::collections::BTreeSet;

use acceptance::{ACME, Operator, World, money};
use pools_core::profile::{Network, PoolTerms};
use pools_core::usecases::credit_account::{Credit, CreditError};
use serde_json::json;

/// The balance of an account, in units of 10^-8: credits less debits.
async fn held(world: &World, account: &str, asset: &str) -> i64 {
    let sql = format!(
        "SELECT coalesce(sum(CASE WHEN credit = '{account}' THEN amount ELSE -amount END), 0) FROM ledger_entries
         WHERE asset = '{asset}' AND (credit = '{account}' OR debit = '{account}')"
    );
    world.database().number(&sql).await
}

const CENT: i64 = 1_000_000;

// rule: money.reserved-account, money.zero-sum, money.stored-exactly
#[tokio::test]
async fn reserved_value_is_separate_until_settled_or_returned() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world.operator().credit(ACME, "500.000001", "USDT").await;
    // Partner, reserved and operator in cents; their sum equals the deposits.
    let books = async || {
        let mut found = Vec::new();
        for account in ["partner", "reserved", "operator", "outside"] {
            found.push(held(&world, account, "EUR").await / CENT);
        }
        assert_eq!(found.iter().sum::<i64>(), 0, "{found:?}");
        (found[0], found[1], found[2])
    };
    assert_eq!(books().await, (100_000, 0, 0));
    for (amount, cents, reserved, after) in [
        ("100", 10_000, (90_000, 10_000, 0), (90_000, 0, 10_000)),
        ("50.31", 5_031, (84_969, 5_031, 10_000), (90_000, 0, 10_000)),
        ("50.32", 5_032, (84_968, 5_032, 10_000), (90_000, 0, 10_000)),
    ] {
        let (quote, trade) = acme.trade("EUR-USDT", amount).await;
        let (_, id) = trade.rsplit_once('_').unwrap();
        let held = format!("SELECT reserved FROM trades WHERE id = '{id}'");
        assert_eq!(world.database().number(&held).await, cents * CENT);
        assert_eq!(books().await, reserved, "{amount}");
        acme.poll(&quote).await.ok();
        assert_eq!(books().await, after, "{amount}");
        world.notice(ACME, &trade).await;
    }
    let (quote, trade) = acme.trade("EUR-USDT", "20.41").await;
    assert_eq!(books().await, (87_959, 2_041, 10_000));
    acme.poll(&quote).await.ok();
    assert_eq!(books().await, (87_959, 0, 12_041));
    acme.poll(&quote).await.ok();
    assert_eq!(
        books().await,
        (90_000, 0, 10_000),
        "what is returned comes from the operator"
    );
    world.notice(ACME, &trade).await;
    assert_eq!(
        held(&world, "partner", "USDT").await,
        50_000_000_100,
        "units of 10^-8"
    );
    world.finish().await;
}

// rule: money.append-only
#[tokio::test]
async fn entries_are_only_ever_added() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let mut before = BTreeSet::new();
    for amount in ["10", "10.31", "10.32", "10.41", "10.21"] {
        let (quote, trade) = acme.trade("EUR-USDT", amount).await;
        for _ in 0..3 {
            acme.poll(&quote).await.ok();
            let now = world
                .database()
                .digest()
                .await
                .remove("ledger_entries")
                .unwrap();
            let now: BTreeSet<String> = now.lines().map(str::to_owned).collect();
            assert!(now.is_superset(&before), "an entry was changed");
            before = now;
        }
        world.notice(ACME, &trade).await;
    }
    world.finish().await;
}

fn credit(amount: &str, asset: &str, reference: &str) -> Credit {
    let amount = money(amount, asset);
    let fiat = amount.asset().kind() == kernel::AssetKind::Fiat;
    Credit {
        amount,
        network: (!fiat).then_some(Network::Tron),
        reference: reference.to_owned(),
    }
}

async fn try_credit(
    operator: &Operator,
    amount: &str,
    reference: &str,
) -> Result<bool, CreditError> {
    operator
        .try_credit(ACME, &credit(amount, "EUR", reference))
        .await
        .map(|credited| credited.applied)
}

/// A world without order limits, with an account filled to its limit.
async fn full() -> World {
    let world = World::new().await;
    for at in 0..9 {
        let reference = format!("deposit-{at}");
        let applied = try_credit(world.operator(), "10000000000", &reference).await;
        assert!(applied.unwrap());
    }
    let unlimited = |terms: &mut PoolTerms| terms.max_order_usdt = None;
    world.operator().terms(ACME, "EUR-USDT", unlimited).await;
    world
}

async fn is_full(world: &World, amount: &str, reference: &str) {
    let refused = try_credit(world.operator(), amount, reference).await;
    assert!(matches!(refused, Err(CreditError::TooLarge)), "{refused:?}");
}

/// Above 92233720368 an account would overflow: each order here is larger
/// than the difference between that value and the account's limit.
// rule: money.credit-limit
#[tokio::test]
async fn account_refuses_credits_over_its_limit() {
    let world = full().await;
    let acme = world.acme();
    is_full(&world, "0.01", "one-more").await;
    assert_eq!(acme.balance("EUR-USDT").await, "90000000000.00");
    for (amount, left, ends) in [
        ("9000000000.31", "80999999999.69", &["failed"][..]),
        ("9000000000.32", "80999999999.68", &["released"]),
        ("9000000000.41", "80999999999.59", &["settled", "returned"]),
    ] {
        let (quote, trade) = acme.trade("EUR-USDT", amount).await;
        assert_eq!(acme.balance("EUR-USDT").await, left);
        is_full(&world, "0.01", "the reserved trade still counts").await;
        for end in ends {
            is_full(&world, amount, "the settled trade may still be returned").await;
            assert_eq!(acme.status(&quote).await, *end, "{amount}");
        }
        assert_eq!(acme.balance("EUR-USDT").await, "90000000000.00");
        world.notice(ACME, &trade).await;
    }
    // A settled trade frees capacity once it can no longer be returned.
    let (quote, trade) = acme.trade("EUR-USDT", "9000000000.00").await;
    assert_eq!(acme.status(&quote).await, "settled");
    world.notice(ACME, &trade).await;
    world.after(30 * DAY);
    is_full(&world, "0.01", "a poll may be in flight").await;
    world.after(DAY);
    is_full(&world, "9000000000.01", "too much").await;
    let applied = try_credit(world.operator(), "9000000000", "room").await;
    assert!(applied.unwrap());
    assert_eq!(acme.balance("EUR-USDT").await, "90000000000.00");
    world.finish().await;
}

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A returned sale is credited its fiat, so both possible credits of a sale count.
// rule: money.credit-limit, pools.ledger.sell-returned
#[tokio::test]
async fn sale_is_refused_if_its_return_could_exceed_the_limit() {
    let world = full().await;
    let acme = world.acme();
    world.operator().credit(ACME, "10000000000", "USDT").await;
    // 5000000000 EUR are free once a purchase of that amount can no longer be returned.
    let (quote, bought) = acme.trade("EUR-USDT", "5000000000").await;
    acme.poll(&quote).await.ok();
    world.notice(ACME, &bought).await;
    let large = acme.sell("EUR-USDT", "5000000000.41").await;
    let refused = acme.transact("EUR-USDT", &large, "large").await;
    refused.refused(409, "reservation_failed");
    world.after(31 * DAY);
    world.recount().await;

    let large = acme.sell("EUR-USDT", "5000000000.41").await;
    let trade = acme.transact("EUR-USDT", &large, "large").await.ok();
    let trade = trade["transactId"].as_str().unwrap().to_owned();
    // Its return would be 4582949300.37 EUR.
    let next = acme.sell("EUR-USDT", "1000000000").await;
    let refused = acme.transact("EUR-USDT", &next, "next").await;
    refused.refused(409, "reservation_failed");
    for status in ["settled", "returned"] {
        is_full(&world, "500000000", "the sale may still be returned").await;
        assert_eq!(acme.status(&large).await, status);
    }
    is_full(&world, "500000000", "after the sale was returned").await;
    assert!(try_credit(world.operator(), "1", "little").await.unwrap());
    world.notice(ACME, &trade).await;
    world.finish().await;
}

/// A failed posting keeps no lease: the next poll tries again.
// rule: pools.trade.lease
#[tokio::test]
async fn refund_that_cannot_be_posted_holds_no_lease() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000", "EUR").await;
    let (quote, trade) = acme.trade("EUR-USDT", "100.31").await;
    let available = "UPDATE accounts SET available";
    // An account state that the service itself never writes.
    let broken = format!("{available} = 9223372036854000000 WHERE asset = 'EUR'");
    world.damage(&broken).await;
    acme.poll(&quote).await.refused(500, "internal_error");
    let held = "SELECT count(*) FROM trades WHERE lease_token IS NOT NULL";
    assert_eq!(world.database().number(held).await, 0);
    let mended = format!("{available} = 89969000000 WHERE asset = 'EUR'");
    world.damage(&mended).await;
    assert_eq!(acme.status(&quote).await, "failed");
    assert_eq!(acme.balance("EUR-USDT").await, "1000.00");
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: cli.credit.once, cli.credit.conflict, cli.credit.reason
#[tokio::test]
async fn reference_credits_once() {
    let world = World::new().await;
    let operator = world.operator();
    assert!(try_credit(operator, "100.00", "wire-1").await.unwrap());
    assert!(!try_credit(operator, "100", "wire-1").await.unwrap());
    assert!(matches!(
        try_credit(operator, "100.01", "wire-1").await,
        Err(CreditError::ReferenceReused(..))
    ));
    let other = operator
        .try_credit(ACME, &credit("100", "USDT", "wire-1"))
        .await;
    assert!(matches!(other, Err(CreditError::ReferenceReused(..))));
    let theirs = operator
        .try_credit(acceptance::RIVAL, &credit("7", "EUR", "wire-1"))
        .await;
    assert!(theirs.unwrap().applied, "references are per partner");
    let entries = world.acme().ledger("EUR").await["entries"].clone();
    let entry = &entries[0];
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(
        (&entry["ref"], &entry["reason"], &entry["delta"]),
        (&json!("wire-1"), &json!("payin_credit"), &json!("100.00"))
    );
    world.finish().await;
}

// rule: base.clock-forward, pools.ledger.order, time.one-clock
#[tokio::test]
async fn clock_set_back_keeps_the_ledger_in_order() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world.after(60_000);
    let (_, newer) = acme.trade("EUR-USDT", "100").await;
    let behind = acceptance::START + 58_000;
    let behind = kernel::Timestamp::from_millis(behind).unwrap();
    world.clock().set(behind);
    let (quote, newest) = acme.trade("EUR-USDT", "200").await;
    // A later process continues from the store's clock, not from its own.
    let replica = world.replica().await;
    replica.operator().credit(ACME, "1.00", "EUR").await;
    replica.close().await;
    let entries = acme.ledger("EUR").await["entries"].clone();
    let column = |field: &str| -> Vec<String> {
        let entries = entries.as_array().unwrap().iter();
        entries
            .map(|entry| entry[field].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(column("delta"), ["1.00", "-200.00", "-100.00", "1000.00"]);
    let later = "2026-05-25T12:01:00.000Z";
    assert_eq!(
        column("createdAt"),
        [later, later, later, "2026-05-25T12:00:00.000Z"]
    );
    let record = acme.quote(&quote).await.ok();
    assert_eq!(
        (&record["createdAt"], &record["expiresAt"]),
        (&json!(later), &json!("2026-05-25T12:01:15.000Z"))
    );
    let listed = acme.get("/v1/pools/trades").await.ok();
    let ids: Vec<&str> = [0, 1]
        .map(|at| listed["data"][at]["transactId"].as_str().unwrap())
        .to_vec();
    assert!(ids.contains(&newer.as_str()) && ids.contains(&newest.as_str()));
    world.finish().await;
}
