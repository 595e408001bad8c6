//! Clock changes: on this machine, and in another program.

use std::time::Duration;

use acceptance::{ACME, Logs, World};
use kernel::{Clock as _, Timestamp};

/// Maximum by which the store's clock may be ahead of the machine's.
const TOLERANCE: Duration = Duration::from_secs(2);

fn created(ledger: &serde_json::Value) -> Vec<String> {
    let entries = ledger["entries"].as_array().unwrap().iter();
    let instants = entries.map(|entry| entry["createdAt"].as_str().unwrap().to_owned());
    instants.collect()
}

/// `penstock balance credit` runs with the service on a clock that is ahead.
// rule: base.clock-forward, pools.ledger.order
#[tokio::test]
async fn trade_never_precedes_a_credit_of_another_program() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let (quote, trade) = acme.trade("EUR-USDT", "100.31").await;
    let now = world.clock().now();

    let beside = world.replica().await;
    world.clock().set(now.plus(TOLERANCE));
    beside.operator().credit(ACME, "1.00", "EUR").await;
    beside.close().await;
    world.clock().set(now);

    world.operator().credit(ACME, "2.00", "EUR").await;
    let bought = acme.buy("EUR-USDT", "50").await;
    acme.transact("EUR-USDT", &bought, "after").await.ok();
    assert_eq!(acme.status(&quote).await, "failed");
    world.notice(ACME, &trade).await;
    let instants = created(&acme.ledger("EUR").await);
    let later = now.plus(TOLERANCE).to_string();
    assert_eq!(instants[..4], [&later; 4].map(String::clone));
    assert_eq!(instants[4..], [&now.to_string(); 2].map(String::clone));
    world.finish().await;
}

/// A clock that was ahead is corrected: until it has caught up, quotes would live too long.
// rule: base.clock-standing
#[tokio::test]
async fn stopped_clock_refuses_new_quotes_and_trades() {
    let (logs, _caught) = Logs::catch();
    let world = World::new().await;
    let acme = world.acme();
    let start = world.clock().now();
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let (failing, trade) = acme.trade("EUR-USDT", "100.31").await;
    world.after(3_600_000);
    let quote = acme.buy("EUR-USDT", "100").await;
    let (settling, other) = acme.trade("EUR-USDT", "100").await;

    world.clock().set(start.plus(Duration::from_secs(1)));
    let firm = acceptance::purchase("EUR-USDT", "100");
    let refused = acme.ask("EUR-USDT", &firm).await;
    let refused = refused.refused(503, "service_unavailable");
    let lines = logs.of(refused.header("x-request-id").unwrap());
    let chain = lines[0]["error.chain"].as_str().unwrap();
    assert!(chain.contains("3599000 ms behind"), "{chain}");
    let refused = acme.transact("EUR-USDT", &quote, "held").await;
    refused.refused(503, "service_unavailable");
    // An indicative quote is not stored, and existing trades still reach their end.
    let mut indicative = firm;
    indicative["type"] = "indicative".into();
    acme.ask("EUR-USDT", &indicative).await.ok();
    let again = acme.transact("EUR-USDT", &settling, "again").await.ok();
    assert_eq!(again["idempotent"], true);
    assert_eq!(acme.status(&failing).await, "failed");
    assert_eq!(acme.status(&settling).await, "settled");
    assert_eq!(acme.balance("EUR-USDT").await, "900.00");
    world.operator().credit(ACME, "1.00", "EUR").await;
    acme.reject(&quote).await.ok();

    let caught_up: Timestamp = start.plus(Duration::from_secs(3_598));
    world.clock().set(caught_up);
    acme.trade("EUR-USDT", "50").await;
    for trade in [trade, other] {
        world.notice(ACME, &trade).await;
    }
    world.finish().await;
}
