//! The main flow of the contract, from discovery to reconciliation.

use acceptance::{ACME, World};
use serde_json::json;

// rule: pools.transact.effect, pools.trade.settle, pools.event.once, openapi.answers-agree, error.six-fields
#[tokio::test]
async fn discover_quote_execute_poll_and_reconcile() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000.00", "EUR").await;

    let pools = acme.get("/v1/pools").await.ok();
    assert_eq!(pools["pools"][0]["id"], "EUR-BTC");
    let terms = acme.get("/v1/pools/EUR-USDT/capabilities").await.ok();
    assert_eq!(terms["drawFeeBps"], 30);

    let quote = acme.buy("EUR-USDT", "100.00").await;
    let ack = acme
        .transact("EUR-USDT", &quote, "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1")
        .await
        .ok();
    let trade = ack["transactId"].as_str().unwrap();
    assert_eq!(
        ack,
        json!({ "transactId": trade, "status": "reserved", "quoteId": quote, "idempotent": false })
    );
    assert_eq!(acme.balance("EUR-USDT").await, "900.00");

    world.after(1_000);
    assert_eq!(acme.status(&quote).await, "settled");
    let read = acme.read(trade).await.ok();
    assert_eq!(
        (&read["status"], &read["cryptoAmount"]),
        (&json!("settled"), &json!("107.90325"))
    );
    assert_eq!(
        acme.get("/v1/pools/trades").await.ok()["data"],
        json!([read])
    );

    let ledger = acme.ledger("EUR").await;
    assert_eq!(
        (&ledger["available"], &ledger["entries"][0]["delta"]),
        (&json!("900.00"), &json!("-100.00"))
    );
    assert_eq!(
        world.notice(ACME, trade).await,
        ["pool.transaction.settled"]
    );
    world.finish().await;
}
